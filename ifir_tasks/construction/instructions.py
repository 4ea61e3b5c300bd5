"""Stage 1: instructions, level by level, each built on the one below (IFIR, section 3.2 and appendix A.1)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.construction.workspace import Job, Row, Stage, Workspace, fingerprint
from evaluators.judge import Reply
from ifir_tasks.construction.domains import Level, filled
from ifir_tasks.construction.prompts import FIRST, NEXT, DomainAsking
from ifir_tasks.construction.replies import read_instruction
from ifir_tasks.construction.sources import SourceQuery
from ifir_tasks.ids import query_id


@dataclass(frozen=True)
class Instruction:
    """An instruction on a base query.

    Attributes:
        base: id of the base query.
        source: id of the source's query whose relevant passages it inherits.
        level: 1 to 3, or 0 if the base query has this one only.
        query: text of the base query.
        text: the instruction.
        given: the source's fields that it was made from, such as ``label``.
    """

    base: str
    source: str
    level: int
    query: str
    text: str
    given: dict[str, str]

    @property
    def id(self) -> str:
        """Id of the instructed query."""
        return query_id(self.base, self.level)


def instruction_of(row: Row) -> Instruction:
    """The instruction in a row that has one."""
    return Instruction(row["base"], row["source"], row["level"], row["query"], row["instruction"], row["given"])


def empty_row(base: str, source: str, level: int, query: str) -> Row:
    """A row of stage 1 before its instruction is there."""
    return {
        "query-id": query_id(base, level),
        "base": base,
        "source": source,
        "level": level,
        "query": query,
        "given": {},
        "conditions": [],
        "below": None,
        "instruction": None,
        "problem": None,
        "reply": None,
    }


def make_instructions(
    workspace: Workspace, asking: DomainAsking, queries: Sequence[SourceQuery], levels: Sequence[int], seed: int
) -> list[Row]:
    """The rows of all levels; a row without instruction has a ``problem``, and no level above it.

    Args:
        workspace: where the stages' files are.
        asking: how to ask; its domain says what the levels are.
        queries: the source's queries.
        levels: ascending, each built on the one before.
        seed: decides templates and conditions, for each query and level by itself.
    """
    fields = {q.id: q.fields for q in queries}
    below = [empty_row(q.id, q.id, 0, q.text) for q in queries]
    out: list[Row] = []
    for number in levels:
        level = asking.domain.levels[number]
        first = number == levels[0]
        settings = {"seed": seed, "queries": fingerprint([[q.id, q.text, q.fields] for q in queries])}
        if not level.templates:
            settings |= asking.record_of(FIRST if first else NEXT)
        else:
            settings["domain"] = asking.domain_version
        jobs = [_job(asking, level, number, row, fields[row["source"]], seed, first) for row in below]
        rows = workspace.run(Stage(f"instructions-level-{number}", settings, jobs, _read))
        out += rows
        below = [row for row in rows if row["instruction"] is not None]
    return out


def _job(asking: DomainAsking, level: Level, number: int, below: Row, fields: Any, seed: int, first: bool) -> Job:
    rng = random.Random(f"{seed}/{below['base']}/{number}")
    chosen = level.draw(fields, rng, below["base"])
    row = empty_row(below["base"], below["source"], number, below["query"])
    row["below"] = below["instruction"]
    row["conditions"] = [c.line for c in chosen]
    row["given"] = below["given"] | {k: v for c in chosen for k, v in c.given.items()}
    if level.templates:
        row["instruction"] = filled(rng.choice(level.templates), chosen)
        return Job(row)
    values = {"query": row["query"], "task": level.task, "conditions": "\n".join(row["conditions"])}
    if first:
        return Job(row, asking.request_by(FIRST, **values))
    return Job(row, asking.request_by(NEXT, instruction=row["below"], **values))


def _read(row: Row, reply: Reply) -> None:
    row["instruction"] = read_instruction(reply, row["below"])
