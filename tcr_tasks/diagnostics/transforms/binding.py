"""Which value belongs to which row? Tables 3 and 22 (section 5.2, appendix G.2)."""

from __future__ import annotations

import random
from typing import Literal, get_args

import pandas as pd

from tcr_tasks.diagnostics.base import Base, BaseQuestion
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.columns import cell_texts
from tcr_tasks.diagnostics.transforms.pairs import Frames, pairs_case
from tcr_tasks.diagnostics.transforms.perturbation import other_content
from tcr_tasks.serialize import TableFormat

Binding = Literal["ori", "rid", "rid-shuf"]
BINDINGS: tuple[Binding, ...] = get_args(Binding)
_NOTE = (
    "the paper does not name the table that the target is compared with; here it is the target with other entries "
    "where it answered (the content perturbation), changed in the same way"
)


def binding(base: Base, kind: Binding, fmt: TableFormat | None = None, seed: int = 0) -> Case:
    """Each diagnostic question's target against its content perturbation, both changed alike.

    ``ori``: as they are. ``rid``: every cell with its row's number in front. ``rid-shuf``: these cells shuffled within
    each column, so that the number tells where a value belongs, and the row does not.

    Raises:
        NotPossibleError: if no question gives a pair.
    """

    def change(frame: pd.DataFrame, table_id: str) -> pd.DataFrame:
        if kind == "ori":
            return frame
        return with_row_ids(frame) if kind == "rid" else shuffled(with_row_ids(frame), f"{seed}:{table_id}")

    def make(question: BaseQuestion) -> Frames | str:
        table = base.diagnostic.tables[question.target]
        other = other_content(table, question, seed)
        if isinstance(other, str):
            return other
        return Frames(change(table.frame, question.target), change(other, question.target))

    return pairs_case(base, make, f"binding#{kind}#{fmt or 'mixed'}#{seed}", ("original", "content"), fmt, (_NOTE,))


def with_row_ids(frame: pd.DataFrame) -> pd.DataFrame:
    """Every cell as text, its row's number in front: ``7: Reynoldsburg``; rows count from 1."""
    columns = [
        [f"{row}: {text}" for row, text in enumerate(cell_texts(frame.iloc[:, at]), start=1)]
        for at in range(len(frame.columns))
    ]
    return pd.DataFrame(dict(enumerate(columns)), dtype=object).set_axis(frame.columns, axis=1)


def shuffled(frame: pd.DataFrame, seed: str) -> pd.DataFrame:
    """Each column's cells in another order, not the same in all columns if there are two rows and two columns."""
    rng = random.Random(seed)
    orders = [rng.sample(range(len(frame)), len(frame)) for _ in frame.columns]
    if len(orders) > 1 and all(order == orders[0] for order in orders):
        orders[-1] = [*orders[-1][1:], *orders[-1][:1]]
    columns = {at: frame.iloc[order, at].tolist() for at, order in enumerate(orders)}
    return pd.DataFrame(columns, dtype=object).set_axis(frame.columns, axis=1)
