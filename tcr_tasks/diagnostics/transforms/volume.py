"""Semantic volume: rows as sentences, whole or only what the question needs: Table 2 (section 5.2, appendix G.1)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import pandas as pd

from tcr_tasks.diagnostics.base import Base, BaseQuestion, BaseTable, QuestionSet
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.transforms.common import (
    document_id,
    group_case,
    inferred_note,
    known,
    structured,
)
from tcr_tasks.serialize import TableFormat

Volume = Literal["sen", "sens", "senss"]
VOLUMES: tuple[Volume, ...] = get_args(Volume)


def volume(base: Base, kind: Volume) -> Case:
    """The diagnostic questions over tables as sentences.

    ``sen``: every row a full sentence. ``sens``: with its columns in random order. ``senss``: only the question's
    condition and target columns, in target and siblings alike, without those that a sibling lacks. These texts are the
    question's own, so it is asked of its group in this form and of the other groups' tables as ``sen``.

    Raises:
        NotPossibleError: if of no exact-match question the columns are known.
    """
    questions = base.diagnostic
    kept, notes = structured(base)
    documents = questions.texts(TableFormat.TSENS if kind == "sens" else TableFormat.TSEN)
    if kind != "senss":
        return group_case(kept, documents, notes=notes)
    sentences = dict(documents)
    targets, groups, labels, candidates = {}, {}, {}, {}
    for q in kept:
        own = {table: document_id(questions, table, f"{q.id}#senss") for table in q.group}
        documents |= {own[table]: sufficient_text(questions, q, table) for table in q.group}
        targets[q.id], groups[q.id] = (own[q.target],), tuple(own.values())
        labels[q.id] = {own[table]: q.strategies[table] for table in q.group}
        candidates[q.id] = (*own.values(), *(table for table in sentences if table not in own))
    return Case(
        documents,
        {q.id: q.text for q in kept},
        targets,
        groups,
        candidates,
        labels,
        {q.id: q.type for q in kept},
        notes=(*notes, *inferred_note(kept)),
    )


def sufficient_text(questions: QuestionSet, question: BaseQuestion, table_id: str) -> str:
    """A table of the question's group as sentences over the question's columns; without any of them, its name alone."""
    table = questions.tables[table_id]
    return table.text(TableFormat.TSEN, sufficient(questions, question, table_id))


def sufficient(questions: QuestionSet, question: BaseQuestion, table_id: str) -> pd.DataFrame:
    """The question's columns of a table of its group, in the table's order, each cell as the whole row prints it."""
    structure, _ = known(question)
    headers = questions.counterparts(question, table_id)
    wanted = {headers[column] for column in structure.columns if column in headers}
    frame = questions.tables[table_id].frame
    # Among numbers alone 1 would print as 1.0, or no longer do so, if the other columns went first.
    cells = pd.DataFrame(frame.to_numpy().astype(object), columns=frame.columns)
    part = cells[[column for column in frame.columns if column in wanted]]
    return part if wanted else part.iloc[:0]


def row_sentences(table: BaseTable, frame: pd.DataFrame, shuffled: bool = False) -> list[str]:
    """One sentence per row, as TSen, or with ``shuffled`` TSenS, prints it; a line end in a cell becomes a blank."""
    if frame.empty:
        return []
    fmt = TableFormat.TSENS if shuffled else TableFormat.TSEN
    lines = _lines(table, frame, fmt)
    if len(lines) == len(frame):
        return lines
    return _lines(table, frame.map(_one_line).rename(columns=_one_line), fmt)


def _lines(table: BaseTable, frame: pd.DataFrame, fmt: TableFormat) -> list[str]:
    return table.text(fmt, frame).removeprefix(f"{table.table.name}:\n").removesuffix("\n\n").split("\n")


def _one_line(cell: Any) -> Any:
    return cell.replace("\n", " ") if isinstance(cell, str) else cell
