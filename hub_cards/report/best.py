"""Which number of a column stands out, so that it is bold."""

from __future__ import annotations

from hub_cards.report.tables import Row, Table
from hub_cards.values import Score

BEST = (
    "is the highest value of a column among the models here, if it is above 0 and above the chance level, if its 95 % "
    "interval overlaps with no other model's, and if one judge judged and "
    "one version of the metrics scored all. Intervals are compared where both have one."
)


def best(table: Table) -> list[Row | None]:
    """For each column the line of the model that stands out; :data:`BEST` is the rule.

    Columns of one model, of counts, p-values and doubts have none.
    """
    return [_best(table, at) for at in range(len(table.columns))]


def _best(table: Table, at: int) -> Row | None:
    column = table.columns[at]
    own = [row for row in table.rows if row.kind == "own" and row.cells[at].score.value is not None]
    if column.kind != "score" or not column.comparable or len(own) < 2:
        return None
    first, *others = sorted(own, key=lambda row: _value(row, at), reverse=True)
    floor = max([0.0, *(_value(row, at) for row in table.rows if row.kind == "chance")])
    apart = all(_above(first.cells[at].score, other.cells[at].score) for other in others)
    return first if apart and _value(first, at) > floor else None


def _value(row: Row, at: int) -> float:
    value = row.cells[at].score.value
    return 0.0 if value is None else value


def _above(score: Score, other: Score) -> bool:
    """Whether a score is higher, beyond both intervals where both have one."""
    if None not in (*score, *other):
        return (score.low or 0.0) > (other.high or 0.0)
    return score.value is not None and other.value is not None and score.value > other.value
