"""Whether a row of a query's result tells anything of the table that the query ran on.

SUM, AVG, MIN and MAX over no value give NULL, but COUNT and TOTAL give 0, and COALESCE, CASE or EXISTS make something
of nothing in other ways. That 0 must not count as an answer, and a 0 that stands in the table or comes out of its
numbers must. No look at the query's text tells one from the other under sub-queries and CTEs, so the engine is asked:

1. What the query gives on the same table without rows, it may give on any table. A row that shares no value, column by
   column, with any row of that result is an answer.
2. Any other row is one only if it is still there once every aggregate of the query gives NULL where it gets no value,
   as SUM does, and if, should it be a row of the empty table's result as a whole, some aggregate did get a value.

Limits. A condition inside an aggregate that gives a value for every row, ``SUM(CASE WHEN .. THEN 1 ELSE 0 END)``, is
met by any table with rows. Where a default equals the true value, ``COALESCE((SELECT x ..), 0)`` without an aggregate,
the answer is lost. COUNT of the rows that meet all conditions is no answer where it is 0, even if some of the
conditions are met; COUNT of a column is none where all its cells are NULL, unless it stands for a group. An aggregate
of one part of a query is evidence for another part that no value reached.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

__all__ = ["RowSet", "Use", "watch_aggregates"]


class RowSet:
    """Rows of results; only hashes are kept, since values may be long, and numbers are equal to nine digits."""

    def __init__(self, rows: Iterable[Sequence[Any]] = ()) -> None:
        self._rows: set[int] = set()
        self._values: set[tuple[int, int]] = set()
        for row in rows:
            self.add(row)

    def add(self, row: Sequence[Any]) -> None:
        """Put a row in."""
        hashes = _hashes(row)
        self._rows.add(hash(hashes))
        self._values.update(enumerate(hashes))

    def __contains__(self, row: Sequence[Any]) -> bool:
        return hash(_hashes(row)) in self._rows

    def __bool__(self) -> bool:
        return bool(self._rows)

    def shares(self, row: Sequence[Any]) -> bool:
        """Whether some row of it has one of the values in the same column."""
        return not self._values.isdisjoint(enumerate(_hashes(row)))


def _hashes(row: Sequence[Any]) -> tuple[int, ...]:
    # A sum may differ in its last digit by who adds up.
    return tuple(hash(float(f"{value:.9g}") if isinstance(value, float) else value) for value in row)


@dataclass
class Use:
    """Whether any aggregate of a query got a value."""

    seen: bool = False


@dataclass
class _Aggregate:
    """An aggregate that tells that it got a value. Of no rows at all, Python gives NULL without asking it."""

    of: Callable[[list[Any]], Any]
    use: Use
    values: list[Any] = field(default_factory=list)

    def step(self, value: Any = 1) -> None:
        if value is not None:
            self.use.seen = True
            self.values.append(value)

    def finalize(self) -> Any:
        return self.of(self.values) if self.values else None


_AGGREGATES: Mapping[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": sum,
    "total": lambda values: float(sum(values)),
    "avg": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
}


def watch_aggregates(connection: sqlite3.Connection) -> Use:
    """Replace the connection's aggregates by ones that give NULL where they get no value.

    They cannot be used as window functions, and of texts they add none and order them by their code points; queries
    that ask for more fail.

    Returns:
        Filled while queries run.
    """
    use = Use()
    for name, of in _AGGREGATES.items():
        connection.create_aggregate(name, 1, partial(_Aggregate, of, use))
    connection.create_aggregate("count", 0, partial(_Aggregate, len, use))
    return use
