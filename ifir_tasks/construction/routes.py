"""The ways from a source to instructions: level by level, or one each as for FIRE, TREC-CDS and NFCorpus."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Literal, get_args

from evaluators.construction.workspace import Job, Row, Stage, Workspace, fingerprint
from evaluators.judge import Reply
from evaluators.plugin.checks import DatasetError, shown
from ifir_tasks.construction.instructions import empty_row, make_instructions
from ifir_tasks.construction.prompts import CITATION, DomainAsking
from ifir_tasks.construction.replies import read_request
from ifir_tasks.construction.sources import Source, SourceQuery

Route = Literal["levels", "fire", "cds", "nfcorpus"]
ROUTES: tuple[Route, ...] = get_args(Route)
MARK = "[?CITATION?]"
_OTHER_MARK = "[another citation]"
_ANY_MARK = re.compile(r"\[\?\s*CITATION\s*\?\]", re.IGNORECASE)
# Enough for the paragraph around a citation, on either side.
CONTEXT_WORDS = 200


def asks_for_relevance(route: Route) -> bool:
    """Whether passages are checked against the instructions; TREC-CDS' descriptions are what its judges judged by."""
    return route != "cds"


def instructions_by(
    route: Route, workspace: Workspace, asking: DomainAsking, source: Source, seed: int, n_marks: int
) -> list[Row]:
    """The rows of stage 1.

    Raises:
        ValueError: if the domain does not have what the route needs, or the source not.
    """
    if route == "fire":
        return _from_citations(workspace, asking, source.queries, seed, n_marks)
    if route == "cds":
        return _from_descriptions(workspace, source.queries)
    domain = asking.domain
    levels = [number for number in domain.levels if (number == 0) == (route == "nfcorpus")]
    if not levels:
        has = ", ".join(map(str, domain.levels))
        needs, other = ("level 0", "levels") if route == "nfcorpus" else ("levels 1 to 3", "nfcorpus")
        raise ValueError(f"route {route!r} needs a domain with {needs}; {domain.name!r} has {has}: use --route {other}")
    return make_instructions(workspace, asking, source.queries, levels, seed)


def _from_citations(
    workspace: Workspace, asking: DomainAsking, queries: Sequence[SourceQuery], seed: int, n_marks: int
) -> list[Row]:
    """One base query for each chosen citation mark (IFIR, section 3.2, on FIRE): a model writes query and instruction.

    The source says which cases a judgement cites but not where: the check of relevance finds out which of them fit.
    """
    without = [q.id for q in queries if not _ANY_MARK.search(q.text)]
    if len(without) == len(queries):
        raise DatasetError("route 'fire'", [f"no query has a citation mark {MARK}"])
    if without:
        workspace.tell(f"{len(without)} judgements without citation mark {MARK} are left out: {shown(without)}")
    jobs: list[Job] = []
    for query in queries:
        marks = list(_ANY_MARK.finditer(query.text))
        chosen = random.Random(f"{seed}/{query.id}").sample(range(len(marks)), min(n_marks, len(marks)))
        for number in sorted(chosen):
            row = empty_row(f"{query.id}.{number + 1}", query.id, 0, "")
            row["context"] = citation_context(query.text, number)
            jobs.append(Job(row, asking.request_by(CITATION, context=row["context"])))
    queries_seen = fingerprint([[q.id, q.text] for q in queries])
    settings = {"seed": seed, "marks": n_marks, "queries": queries_seen, **asking.record_of(CITATION)}
    return workspace.run(Stage("instructions-level-0", settings, jobs, _read_request))


def citation_context(text: str, number: int, words: int = CONTEXT_WORDS) -> str:
    """The words around citation mark ``number`` (from 0), ``words`` of them on either side; other marks are renamed."""
    marks = list(_ANY_MARK.finditer(text))
    before, after = text[: marks[number].start()], text[marks[number].end() :]
    left, right = (_ANY_MARK.sub(_OTHER_MARK, side).split() for side in (before, after))
    return " ".join([*left[-words:], MARK, *right[:words]])


def _read_request(row: Row, reply: Reply) -> None:
    row["query"], row["instruction"] = read_request(reply)


def _from_descriptions(workspace: Workspace, queries: Sequence[SourceQuery]) -> list[Row]:
    """The topic's summary as query and its description as instruction (IFIR, section 3.2, on TREC-CDS); asks nobody."""
    lacking = [q.id for q in queries if not {"summary", "description"} <= q.fields.keys()]
    if lacking:
        problem = f"{len(lacking)} queries lack the field summary or description: {shown(lacking)}"
        raise DatasetError("route 'cds'", [problem])
    jobs = []
    for query in queries:
        row = empty_row(query.id, query.id, 0, query.fields["summary"][0])
        row["instruction"] = query.fields["description"][0]
        jobs.append(Job(row))
    settings = {"queries": fingerprint([[q.id, q.fields["summary"], q.fields["description"]] for q in queries])}
    return workspace.run(Stage("instructions-level-0", settings, jobs))
