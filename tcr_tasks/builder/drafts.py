"""Drawing one question to a table, and what makes it too trivial to keep."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from tcr_tasks.builder.kinds import Kind, is_coordinate, is_rate, is_year, reads_as_text
from tcr_tasks.queries import Aggregate, Condition, Operator, Query, QuestionType

Rows = npt.NDArray[np.bool_]

# How many conditions: of the 70 released exact-match questions 42 have one, 22 two, 6 three.
_CONDITIONS = {1: 42, 2: 22, 3: 6}
_LONGEST_VALUE = 80
# Significant digits that every format of a table prints.
_PRINTED_DIGITS = 6
# An aggregate may take in so many times the rows that a filter may return.
AGGREGATE_FACTOR = 4
_ORDERED: tuple[Operator, ...] = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class ColumnValues:
    """A column as a draft needs it.

    Attributes:
        name, kind: of the column.
        cells: Python values, ``None`` where missing.
        present: where a cell is there.
        codes: per row the rank of its value among the distinct ones, -1 where missing.
        distinct: the distinct values in order.
    """

    name: str
    kind: Kind
    cells: Sequence[Any]
    present: Rows
    codes: npt.NDArray[np.int64]
    distinct: Sequence[Any]

    @classmethod
    def of(cls, column: pd.Series[Any], kind: Kind) -> ColumnValues:
        """From a column of a source table."""
        present = column.notna().to_numpy(dtype=bool)
        cells = [value if there else None for value, there in zip(column.tolist(), present, strict=True)]
        distinct = sorted({value for value in cells if value is not None})
        rank = {value: at for at, value in enumerate(distinct)}
        codes = np.array([-1 if value is None else rank[value] for value in cells], dtype=np.int64)
        return cls(str(column.name), kind, cells, present, codes, distinct)

    @property
    def has_no_gap(self) -> bool:
        """Whether every row has a value: a reader may take an empty cell for one that is "not X", unlike SQL."""
        return bool(self.present.all())

    @property
    def ordered(self) -> bool:
        """Whether "less than" means something."""
        return self.kind in ("integer", "number", "date")

    @property
    def summable(self) -> bool:
        """Whether a sum or an average means something."""
        return self.kind in ("integer", "number") and not is_year(self.name) and not is_coordinate(self.name)

    def holds(self, operator: Operator, value: Any) -> Rows:
        """The rows that meet ``operator value``, a value of the column."""
        code = self.distinct.index(value) if operator in ("=", "!=") else int(np.searchsorted(self.distinct, value))
        compared = {
            "=": self.codes == code,
            "!=": self.codes != code,
            "<": self.codes < code,
            "<=": self.codes <= code,
            ">": self.codes > code,
            ">=": self.codes >= code,
        }[operator]
        return cast(Rows, compared & self.present)


@dataclass(frozen=True)
class Draft:
    """A drawn question, before it is known to be any good.

    Attributes:
        query: the question.
        target: the column it asks for.
        each: per condition the rows that meet it.
        matching: the rows that meet all and have a target.
    """

    query: Query
    target: ColumnValues
    each: tuple[Rows, ...]
    matching: Rows

    def fault(self, max_answers: int) -> str | None:
        """Why the question is left out, ``None`` if it is not."""
        query = self.query
        if any(rows.all() for rows in self.each):
            return "a condition that every row meets"
        if len(self.target.distinct) == 1:
            return "a target with the same value in every row"
        if query.aggregate in ("SUM", "AVG", "MIN", "MAX") and not self.target.summable:
            return "an aggregate over identifiers, years, coordinates or texts"
        if query.aggregate == "SUM" and is_rate(self.target.name):
            return "a sum of rates or averages"
        if query.aggregate in ("SUM", "AVG", "MIN", "MAX") and len(self.target.distinct) == 2:
            return "an aggregate over two values, such as yes and no"
        if any(_is_long(c.value) for c in query.conditions):
            return f"a value of more than {_LONGEST_VALUE} characters"
        if any(_is_rounded(c.value) for c in query.conditions):
            return "a number that printing rounds"
        n_rows = int(self.matching.sum())
        if n_rows == 0:
            return "no answer"
        most = max_answers if query.aggregate is None else max_answers * AGGREGATE_FACTOR
        if n_rows > most:
            return f"more than {most} rows answer"
        if query.aggregate is not None and n_rows == 1:
            return "an aggregate over one row"
        found = query.answer_from([self.target.cells[int(row)] for row in np.flatnonzero(self.matching)])
        values = [c.value for c in query.conditions]
        if any(isinstance(value, str) and not reads_as_text(value) for value in (*found, *values)):
            return "a text that printed tables show as a number or a truth value"
        if {_text(value) for value in found} & {_text(value) for value in values}:
            return "an answer that the question itself holds"
        if self._is_redundant():
            return "a condition that leaves out no row which the others let in"
        return None

    def _is_redundant(self) -> bool:
        """Whether one of several conditions could go: the year beside the date, a comparison of what is fixed already.

        A sibling without that column could still tell the answer.
        """
        rest = [np.logical_and.reduce([*self.each[:at], *self.each[at + 1 :]]) for at in range(len(self.each))]
        return len(self.each) > 1 and any((rows & self.target.present == self.matching).all() for rows in rest)


def draw(
    question_type: QuestionType,
    columns: Mapping[str, ColumnValues],
    max_answers: int,
    aggregates: Sequence[Aggregate],
    rng: random.Random,
) -> Draft | None:
    """A question that some row answers, or ``None`` if the columns, or the cells of the row drawn, allow none.

    The conditions come from a row drawn at random: equalities with its cells, and, but for EM, one comparison whose
    bound is placed among the rows that the equalities leave so that about as few as allowed remain.
    """
    usable = [c for c in columns.values() if len(c.distinct) > 1]
    comparable = [c for c in usable if c.ordered or (question_type == "SF" and c.has_no_gap)]
    if not usable or len(columns) < 2 or (question_type != "EM" and not comparable):
        return None
    aggregate = rng.choice(aggregates) if question_type == "SA" else None
    target = columns[rng.choice(_targets(columns, aggregate))]
    n_conditions = rng.choices(list(_CONDITIONS), list(_CONDITIONS.values()))[0]
    row = rng.choice(np.flatnonzero(target.present).tolist())
    # A question may ask for the column that it compares, but not for one whose value it gives.
    equal = [c for c in usable if c is not target and c.cells[row] is not None]
    rng.shuffle(equal)
    if question_type == "EM":
        found = _equalities(equal, row, target.present, n_conditions, 1) or [(c, "=", c.cells[row]) for c in equal[:1]]
        return _drafted(question_type, found, target, aggregate)
    compared = [c for c in comparable if c.cells[row] is not None and c is not target] or [
        c for c in comparable if c.cells[row] is not None
    ]
    if not compared:
        return None
    last = rng.choice(compared)
    there = target.present & last.present
    chosen = _equalities([c for c in equal if c is not last], row, there, n_conditions - 1, 2)
    left = np.logical_and.reduce([there, *(c.holds(op, value) for c, op, value in chosen)])
    most = max_answers if aggregate is None else max_answers * AGGREGATE_FACTOR
    chosen.append((last, *_comparison(last, left, row, most, rng)))
    rng.shuffle(chosen)
    return _drafted(question_type, chosen, target, aggregate)


def _equalities(
    columns: Sequence[ColumnValues], row: int, among: Rows, n: int, fewest: int
) -> list[tuple[ColumnValues, Operator, Any]]:
    """Up to ``n`` equalities with cells of a row, each of which leaves out some of the rows ``among`` that are left.

    The last one may leave ``fewest`` rows, those before it two: of one row there is nothing to leave out.
    """
    chosen: list[tuple[ColumnValues, Operator, Any]] = []
    left = among
    for column in columns:
        narrowed = left & column.holds("=", column.cells[row])
        if len(chosen) == n:
            break
        if max(2 if len(chosen) < n - 1 else 1, fewest) <= narrowed.sum() < left.sum():
            chosen.append((column, "=", column.cells[row]))
            left = narrowed
    return chosen


def _targets(columns: Mapping[str, ColumnValues], aggregate: Aggregate | None) -> list[str]:
    """Columns to ask for; numbers for an aggregate where there are any."""
    if aggregate is None or aggregate == "COUNT":
        return list(columns)
    return [name for name, c in columns.items() if c.kind in ("integer", "number", "identifier")] or list(columns)


def _comparison(column: ColumnValues, left: Rows, row: int, most: int, rng: random.Random) -> tuple[Operator, Any]:
    """An operator and a bound that the row meets, and at most ``most`` of the rows left where that can be."""
    codes = np.sort(column.codes[left])
    own = int(column.codes[row])
    if not column.ordered or (column.has_no_gap and len(codes) <= most + 1 and rng.random() < 0.3):
        others = [code for code in np.unique(codes).tolist() if code != own] or [
            code for code in range(len(column.distinct)) if code != own
        ]
        return "!=", column.distinct[rng.choice(others)]
    operator = rng.choice(_ORDERED)
    size = rng.randint(1, min(most, len(codes)))
    if operator in ("<", "<="):
        bound = int(codes[size - 1])
        return operator, column.distinct[min(bound + (operator == "<"), len(column.distinct) - 1)]
    bound = int(codes[-size])
    return operator, column.distinct[max(bound - (operator == ">"), 0)]


def _drafted(
    question_type: QuestionType,
    chosen: Sequence[tuple[ColumnValues, Operator, Any]],
    target: ColumnValues,
    aggregate: Aggregate | None,
) -> Draft | None:
    if not chosen:
        return None
    query = Query(question_type, tuple(Condition(c.name, op, v) for c, op, v in chosen), target.name, aggregate)
    each = tuple(c.holds(op, v) for c, op, v in chosen)
    return Draft(query, target, each, np.logical_and.reduce([target.present, *each]))


def _is_long(value: str | int | float) -> bool:
    return isinstance(value, str) and len(value) > _LONGEST_VALUE


def _is_rounded(value: str | int | float) -> bool:
    return isinstance(value, float) and float(f"{value:.{_PRINTED_DIGITS}g}") != value


def _text(value: Any) -> str:
    number = isinstance(value, float) and value.is_integer()
    return (str(int(value)) if number else str(value)).casefold()
