"""Where in the table the rows that answer stand: Table 27 (appendix I)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from tcr_tasks.diagnostics.base import Base, BaseQuestion
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.transforms.common import known
from tcr_tasks.diagnostics.transforms.pairs import Frames, pairs_case

Place = Literal["top", "middle", "bottom", "original"]
# The paper's four comparisons; the first-named place is the formal target.
COMPARISONS: tuple[tuple[Place, Place], ...] = (
    ("top", "original"),
    ("top", "middle"),
    ("bottom", "middle"),
    ("top", "bottom"),
)


def position(base: Base, first: Place, second: Place) -> Case:
    """Each diagnostic question's target twice, with its answer at two places; both tables answer.

    Raises:
        NotPossibleError: if no question gives a pair.
    """

    def make(question: BaseQuestion) -> Frames | str:
        frame = base.diagnostic.tables[question.target].frame
        rows = known(question)[1]
        orders = placed(len(frame), rows, first), placed(len(frame), rows, second)
        if orders[0] == orders[1]:
            return f"their answers stand at the same place in {first} and {second}"
        return Frames(_ordered(frame, orders[0]), _ordered(frame, orders[1]))

    return pairs_case(base, make, f"position#{first}#{second}", (first, second), None)


def placed(size: int, rows: Sequence[int], place: Place) -> list[int]:
    """The rows 0 .. size - 1 with ``rows`` together at a place, otherwise in order.

    ``top``: after the header; ``middle``: with as many other rows above as below, or one more below; ``bottom``: at the
    end; ``original``: as they are.
    """
    others = [row for row in range(size) if row not in rows]
    above = {"top": 0, "middle": len(others) // 2, "bottom": len(others)}
    if place == "original":
        return list(range(size))
    return [*others[: above[place]], *sorted(rows), *others[above[place] :]]


def _ordered(frame: pd.DataFrame, order: list[int]) -> pd.DataFrame:
    return frame.iloc[order]
