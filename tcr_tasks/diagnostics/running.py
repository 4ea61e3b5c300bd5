"""Runs diagnostics for one model: what is known already is kept, the rest is ranked, scored and kept in turn."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import mteb
import numpy as np
from mteb.types import EncodeKwargs, PromptType

from evaluators.metrics.ranking import NotFiniteError
from evaluators.plugin.checks import shown
from evaluators.plugin.mteb_internals import document_texts, query_texts
from tcr_tasks.diagnostics.base import Base, NotPossibleError
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.catalogue import Diagnostic
from tcr_tasks.diagnostics.consistency import COMPARISONS, compare
from tcr_tasks.diagnostics.geometry import Embedded, measure, picture, without_direction
from tcr_tasks.diagnostics.models import OnceEncoder
from tcr_tasks.diagnostics.results import NO_EMBEDDINGS, NOT_MEASURABLE, NOT_POSSIBLE, Finding, Origin, Store, changes
from tcr_tasks.diagnostics.score import CaseScores
from tcr_tasks.diagnostics.tasks import CaseTask, task_data

logger = logging.getLogger(__name__)

# Raised whenever the same model and data would give other numbers.
VERSION = 3
# All questions over all tables: the diagnostics whose embeddings are looked at, and the one that is pictured.
GEOMETRY_FAMILY, PICTURED = "main", "main/mixed"


def pending(diagnostics: Sequence[Diagnostic], origin: Origin, store: Store) -> tuple[list[Finding], list[Diagnostic]]:
    """The findings that still hold, and the diagnostics to run; it is logged why a finding no longer holds."""
    kept, todo = [], []
    for diagnostic in diagnostics:
        found = store.read(origin, diagnostic.key)
        if found is not None and found.origin == origin and not found.failed:
            kept.append(found)
            continue
        if found is not None and found.origin != origin:
            logger.warning("%s is run again: %s", diagnostic.key, "; ".join(changes(found.origin, origin)))
        todo.append(diagnostic)
    return kept, todo


def run(
    model: Any, base: Base, diagnostics: Sequence[Diagnostic], origin: Origin, store: Store, batch_size: int
) -> Iterator[Finding]:
    """Run diagnostics one after the other; each finding is in the store before it is handed out.

    Args:
        model: as mteb runs it, an encoder within :func:`tcr_tasks.diagnostics.models.encoded_once`.
        base: the dataset.
        diagnostics: what to run.
        origin: what the findings depend on.
        store: where they are kept.
        batch_size: texts encoded at a time.
    """
    for diagnostic in diagnostics:
        finding = _run_one(model, base, diagnostic, origin, batch_size)
        store.write(finding)
        yield finding


def _run_one(model: Any, base: Base, diagnostic: Diagnostic, origin: Origin, batch_size: int) -> Finding:
    empty = Finding(diagnostic.key, origin)
    try:
        case = made(diagnostic, base, origin.seed)
    except NotPossibleError as error:
        return replace(empty, reason=(NOT_POSSIBLE, str(error)))
    task = CaseTask(case, origin.data_revision, origin.seed)
    settings: EncodeKwargs = {"batch_size": batch_size, "show_progress_bar": False}
    try:
        mteb.evaluate(model, task, cache=None, show_progress_bar=False, encode_kwargs=settings)
    except NotFiniteError as error:
        return replace(empty, reason=(NOT_MEASURABLE, str(error)), notes=case.notes, failed=True)
    found = task.found["default"]
    if found.reason is not None:
        return replace(empty, reason=(NOT_MEASURABLE, found.reason), notes=found.notes, scores=found.scores)
    finding = replace(
        empty,
        notes=found.notes,
        scores=found.scores,
        targets={q: case.targets[q][0] for q in found.per_query},
        tops={q: list(found.tops[q]) for q in found.per_query},
        hits={q: [int(o.target_in[1]), o.group_in[1]] for q, o in found.per_query.items()},
    )
    return _with_geometry(finding, model, case, found) if diagnostic.family == GEOMETRY_FAMILY else finding


def made(diagnostic: Diagnostic, base: Base, seed: int) -> Case:
    """The diagnostic's case, with the seed where it draws anything at random.

    Raises:
        NotPossibleError: if the dataset does not allow it.
    """
    make: Callable[..., Case] = diagnostic.make
    return make(base, seed=seed) if "seed" in inspect.signature(make).parameters else make(base)


def _with_geometry(finding: Finding, model: Any, case: Case, found: CaseScores) -> Finding:
    if not isinstance(model, OnceEncoder):
        return replace(finding, notes=(*finding.notes, NO_EMBEDDINGS))
    embedded = embeddings_of(model, case)
    if zero := without_direction(embedded):
        name = finding.origin.model
        why = f"{name} gives {len(zero)} embeddings of length 0, so there is no geometry: those of {shown(zero)}"
        return replace(finding, notes=(*finding.notes, why))
    measured = measure(case, embedded, found.per_query)
    extra: dict[str, Any] = {"margins": measured.margins}
    if finding.diagnostic == PICTURED:
        extra["picture"] = picture(case, embedded, measured.margins, finding.origin.seed)
    scores = [*finding.scores, *(s for s in measured.scores if finding.value(s.metric) is None)]
    return replace(finding, scores=tuple(scores), notes=(*finding.notes, *measured.notes), extra=extra)


def embeddings_of(model: OnceEncoder, case: Case) -> Embedded:
    """The embeddings with which a case has just been ranked."""
    data = task_data(case)
    name = CaseTask.metadata.name
    documents = model.embeddings(name, PromptType.document, document_texts(data.corpus))
    queries = model.embeddings(name, PromptType.query, query_texts(data.queries))
    return Embedded(
        dict(zip(case.documents, np.asarray(documents), strict=True)),
        dict(zip(case.queries, np.asarray(queries), strict=True)),
    )


def comparisons(findings: Sequence[Finding]) -> list[Finding]:
    """The consistency of those findings (of one model and data) that have a counterpart to compare with."""
    by_key = {finding.diagnostic: finding for finding in findings}
    out = []
    for comparison in COMPARISONS:
        pair = by_key.get(comparison.base), by_key.get(comparison.other)
        if pair[0] is not None and pair[1] is not None:
            out.append(compare(comparison, pair[0], pair[1]))
    return out
