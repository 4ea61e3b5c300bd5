"""Small changes that leave a table without the answer: Table 26 (appendix H)."""

from __future__ import annotations

import random
from typing import Literal, get_args

import pandas as pd

from tcr_tasks.diagnostics.base import Base, BaseQuestion, BaseTable, matching_rows
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.columns import cell_texts
from tcr_tasks.diagnostics.transforms.common import known
from tcr_tasks.diagnostics.transforms.pairs import Frames, pairs_case

Perturbation = Literal["content", "rename", "delete"]
PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)


def perturbation(base: Base, kind: Perturbation, seed: int = 0) -> Case:
    """Each diagnostic question's target against the same table with one change.

    ``content``: in the rows that answer, the cells in the question's columns are replaced by other entries of the same
    column. ``rename``: the header of one of the question's columns becomes ``Column_k`` (k: its place, from 1).
    ``delete``: that column is gone; with one seed it is the same column.

    Raises:
        NotPossibleError: if no question gives a pair.
    """

    def make(question: BaseQuestion) -> Frames | str:
        table = base.diagnostic.tables[question.target]
        if kind == "content":
            changed = other_content(table, question, seed)
        elif kind == "rename":
            changed = renamed(table.frame, _column(question, seed))
        else:
            changed = without(table.frame, _column(question, seed))
        return changed if isinstance(changed, str) else Frames(table.frame, changed)

    return pairs_case(base, make, f"perturbation#{kind}#{seed}", ("original", kind), None)


def other_content(table: BaseTable, question: BaseQuestion, seed: int) -> pd.DataFrame | str:
    """The target with other entries where it answered, or why there is no such table.

    Entries come from rows that do not answer and differ from what they replace, each cell's drawn by itself. A column
    with one value only keeps it. Where the query is known, it is run to see that nothing answers any more.
    """
    structure, rows = known(question)
    rng = random.Random(f"{seed}:{question.id}")
    orders = {column: _other_entries(table.frame[column], rows, rng) for column in structure.columns}
    if not all(any(orders[column][row] != row for column in structure.conditions) for row in rows):
        return "their conditions' columns hold no other entry"
    query = structure.query
    if query is not None and table.canonical is not None and table.columns:
        canonical = _reordered(table.canonical, {table.columns[column]: order for column, order in orders.items()})
        if matching_rows(query, canonical):
            return "they are still answered with other entries"
    return _reordered(table.frame, orders)


def _other_entries(cells: pd.Series, rows: tuple[int, ...], rng: random.Random) -> list[int]:
    """For each row, the row whose entry stands there: its own, but for ``rows`` another row's with another text."""
    texts = cell_texts(cells)
    order = list(range(len(texts)))
    for row in rows:
        others = [at for at, text in enumerate(texts) if text not in ("", texts[row]) and at not in rows]
        if others:
            order[row] = rng.choice(others)
    return order


def _reordered(frame: pd.DataFrame, orders: dict[str, list[int]]) -> pd.DataFrame:
    """The frame with each named column's entries taken from the rows given; types, and so the print, stay."""
    return frame.assign(**{column: frame[column].take(order).array for column, order in orders.items()})


def _column(question: BaseQuestion, seed: int) -> str:
    return random.Random(f"{seed}:{question.id}").choice(known(question)[0].columns)


def renamed(frame: pd.DataFrame, column: str) -> pd.DataFrame | str:
    """The table with ``Column_k`` in place of a header, or why not."""
    generic = f"Column_{list(frame.columns).index(column) + 1}"
    if generic in frame.columns:
        return "the generic header is one of the table's own"
    return frame.rename(columns={column: generic})


def without(frame: pd.DataFrame, column: str) -> pd.DataFrame | str:
    """The table without a column, or why not."""
    return frame.drop(columns=column) if len(frame.columns) > 1 else "the table has no other column"
