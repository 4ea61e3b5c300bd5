"""Asks a reader the questions of a task in every setting, and scores its answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcr_tasks.asking import Asker, Estimate, remedy
from tcr_tasks.qa.asking import NO_TABLE, ORACLE, Exam, Retriever, Setting, expected_answers, settings_of
from tcr_tasks.qa.scoring import ALL, FAILED, READ, Answered, Cell, cells_of, score
from tcr_tasks.qa.values import Value

__all__ = ["Results", "examine", "label_of", "plan"]


@dataclass(frozen=True)
class Results:
    """What came of it.

    Attributes:
        cells: averages, setting by setting: the target alone, no table, then each retriever's.
        rows: a row for each question and setting, for a table.
    """

    cells: list[Cell]
    rows: list[dict[str, Any]]

    @property
    def is_complete(self) -> bool:
        """Whether every call got a reply."""
        return not any(cell.n_failed for cell in self.cells)

    @property
    def first_failure(self) -> str | None:
        """Why the first call that stayed without a reply did; ``None`` if all have one."""
        return next((str(row["reason"]) for row in self.rows if row["status"] == FAILED), None)

    @property
    def warnings(self) -> list[str]:
        """What makes the numbers doubtful, a sentence for each setting."""
        cells = [cell for cell in self.cells if cell.question_type == ALL and cell.is_doubtful]
        return [
            f"{label_of(cell.setting)}: {cell.n_unreadable + cell.n_failed} of {cell.n} replies cannot be used; "
            f"{remedy(cell.n_failed, cell.n_unreadable)}"
            for cell in cells
        ]


def examine(exam: Exam, retrievers: Sequence[Retriever], ks: Sequence[int], tolerance: float) -> Results:
    """Ask and score; every reply is stored at once, so that an interrupted run goes on where it stopped.

    Raises:
        ValueError: if questions have no answer, or tables do not fit into the prompt.
        EndpointError: if the endpoint answers nothing.
    """
    asker = Asker(exam.asking.language_model, again=exam.again)
    expected = expected_answers(exam.questions)
    cells: list[Cell] = []
    rows: list[dict[str, Any]] = []
    oracle: dict[str, Answered] = {}
    for setting in settings_of(retrievers, ks):
        asked = exam.asked(setting)
        _, took = asker.ask({a.question.id: a.planned for a in asked}, label_of(setting))
        answered = [
            score(a, outcome, expected[a.question.id], tolerance)
            for a, outcome in zip(asked, took.outcomes, strict=True)
        ]
        if setting.name == ORACLE:
            oracle = {a.asked.question.id: a for a in answered}
        cells += cells_of(setting, answered, oracle)
        rows += [_row(setting, a, expected[a.asked.question.id]) for a in answered]
    return Results(cells, rows)


def plan(exam: Exam, retrievers: Sequence[Retriever], ks: Sequence[int]) -> Estimate:
    """What :func:`examine` would ask; asks nothing.

    Raises:
        ValueError: as :func:`examine`.
    """
    expected_answers(exam.questions)
    estimate = Estimate(exam.asking.language_model, exam.cutter)
    for setting in settings_of(retrievers, ks):
        estimate.add_planned((a.planned for a in exam.asked(setting)), again=exam.again)
    return estimate


def label_of(setting: Setting) -> str:
    """A setting in words."""
    if setting.retriever is not None:
        return f"{setting.retriever.name}, top {setting.k}"
    return {ORACLE: "target alone", NO_TABLE: "no table"}[setting.name]


def _row(setting: Setting, answered: Answered, expected: Sequence[Value]) -> dict[str, Any]:
    question, found = answered.asked.question, answered.score
    tables = answered.asked.tables
    return {
        "retriever": setting.retriever.name if setting.retriever is not None else None,
        "setting": setting.name,
        "query-id": question.id,
        "question_type": question.type,
        "tables": [table.id for table in tables],
        "rows_cut": sum(table.rows - table.kept for table in tables),
        "target_shown": answered.is_target_shown,
        "status": answered.status,
        "reason": answered.reason or None,
        "f1": found.f1 if found is not None else None,
        "precision": found.precision if found is not None else None,
        "recall": found.recall if found is not None else None,
        "answer": _listed(answered.values) if answered.status == READ else None,
        "expected": _listed(expected),
        "reply": answered.reply or None,
        "prompt_tokens": answered.prompt_tokens,
        "completion_tokens": answered.completion_tokens,
    }


def _listed(values: Sequence[Value]) -> str:
    """Values in the form in which they are compared, as a JSON list of texts."""
    return json.dumps([None if v.key is None else str(v.key) for v in values], ensure_ascii=False)
