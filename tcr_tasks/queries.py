"""Queries over one table: the typed object behind a TCR-Bench question.

TCR-Bench asks three types of question (section A.2 of the paper): exact match (EM), selective filtering (SF) and
selective aggregation (SA), each with one to three conditions that must all hold. A query here can be printed as
SQL, as the paper's template and sentence forms, and answered on a table.

A missing value meets no condition, not even ``!=``, and is never an answer: the rules of SQL's NULL. A condition
compares numbers with numbers and text with text; on a cell of the other kind it does not hold.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import pandas as pd

__all__ = ["Aggregate", "Condition", "Operator", "Query", "QuestionType"]

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
QuestionType = Literal["EM", "SF", "SA"]
# COUNT is not among the paper's definitions (A.2), though F.1 names it.
Aggregate = Literal["SUM", "AVG", "MIN", "MAX", "COUNT"]

MAX_CONDITIONS = 3

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATOR_WORDS = {
    "=": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is greater than",
    ">=": "is at least",
}
_AGGREGATE_WORDS = {"SUM": "sum", "AVG": "average", "MIN": "minimum", "MAX": "maximum", "COUNT": "count"}

# EM: the patterns of the released questions, of which the paper's F.1 lists the first four.
_TEMPLATES: dict[str, tuple[str, ...]] = {
    "EM": (
        "What is the {target} when {conds}?",
        "Please find the {target} for rows where {conds}.",
        "List the {target} for the entries with {conds}.",
        "Which {target} values correspond to {conds}?",
        "Show me the {target} where {conds}.",
        "Get the {target} for records satisfying {conds}.",
    ),
    "SF": (
        "What is the {target} when {conds}?",
        "List the {target} for rows where {conds}.",
        "Which {target} values correspond to rows where {conds}?",
        "Please find the {target} for entries with {conds}.",
    ),
    "SA": (
        "What is the {agg} of {target} when {conds}?",
        "Compute the {agg} of {target} for rows where {conds}.",
        "Find the {agg} value of {target} corresponding to rows where {conds}.",
        "Please calculate the {agg} of {target} for entries with {conds}.",
    ),
}


@dataclass(frozen=True)
class Condition:
    """``column operator value``, for instance ``Condition("year", ">=", 1973)``.

    Raises:
        ValueError: if a name is empty, the operator is unknown, or the value is not a text or a finite number.
    """

    column: str
    operator: Operator
    value: str | int | float

    def __post_init__(self) -> None:
        _check_name("condition column", self.column)
        if self.operator not in get_args(Operator):
            raise ValueError(
                f"condition on {self.column!r}: unknown operator {self.operator!r}; "
                f"one of {' '.join(get_args(Operator))}"
            )
        if isinstance(self.value, bool) or not isinstance(self.value, str | int | float):
            raise ValueError(f"condition on {self.column!r}: {self.value!r} is neither a text nor a number")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"condition on {self.column!r}: {self.value!r} is not a finite number")
        if isinstance(self.value, str) and "\0" in self.value:
            raise ValueError(f"condition on {self.column!r}: {self.value!r} holds a NUL, which SQL cannot write")

    def holds(self, cell: object) -> bool:
        """Whether a cell of the column meets the condition."""
        kind = str if isinstance(self.value, str) else (int, float)
        if not isinstance(cell, kind) or _is_missing(cell):
            return False
        return _COMPARE[self.operator](cell, self.value)


@dataclass(frozen=True)
class Query:
    """A question to one table, checked on construction.

    Attributes:
        question_type: EM (only ``=``), SF or SA (at least one other operator).
        conditions: one to three, all of which must hold.
        target: the column that is asked for.
        aggregate: SA only: what is computed over the target's values.

    Raises:
        ValueError: if these rules are broken.
    """

    question_type: QuestionType
    conditions: tuple[Condition, ...]
    target: str
    aggregate: Aggregate | None = None

    def __post_init__(self) -> None:
        if self.question_type not in get_args(QuestionType):
            raise ValueError(
                f"unknown question type {self.question_type!r}; one of {', '.join(get_args(QuestionType))}"
            )
        if not isinstance(self.conditions, tuple):
            raise ValueError(f"conditions must be a tuple, not {self.conditions!r}")
        if not 1 <= len(self.conditions) <= MAX_CONDITIONS:
            raise ValueError(f"a query has 1 to {MAX_CONDITIONS} conditions, not {len(self.conditions)}")
        _check_name("target column", self.target)
        only_equal = all(c.operator == "=" for c in self.conditions)
        if self.question_type == "EM" and not only_equal:
            used = sorted({c.operator for c in self.conditions})
            raise ValueError(f"an EM query has no operator but '=', not {' '.join(used)}")
        if self.question_type != "EM" and only_equal:
            raise ValueError(f"an {self.question_type} query needs a condition with an operator other than '='")
        if self.question_type == "SA" and self.aggregate not in get_args(Aggregate):
            raise ValueError(
                f"an SA query needs an aggregate, one of {', '.join(get_args(Aggregate))}, not {self.aggregate!r}"
            )
        if self.question_type != "SA" and self.aggregate is not None:
            raise ValueError(f"an {self.question_type} query has no aggregate, not {self.aggregate!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that a table needs, once each: the conditions' columns, then the target."""
        return tuple(dict.fromkeys([*(c.column for c in self.conditions), self.target]))

    def sql(self, table: str) -> str:
        """The query in SQL, for SQLite and DuckDB alike.

        Columns must be checked beforehand: SQLite takes the quoted name of a column that does not exist for a
        text. An SA query over no row gives one row with NULL, COUNT included.

        Raises:
            ValueError: if the table's name is empty or holds a NUL.
        """
        _check_name("table", table)
        selected = _identifier(self.target)
        if self.aggregate is not None:
            selected = f"{self.aggregate}({selected})"
        if self.aggregate == "COUNT":
            selected = f"NULLIF({selected}, 0)"
        return f"SELECT {selected} FROM {_identifier(table)} WHERE {self.where()}"

    def where(self, names: Mapping[str, str] | None = None) -> str:
        """What SQL demands of a row that answers: the conditions, and a target that is not missing.

        Args:
            names: the names of the columns in the database, by their names here; default: the same.
        """
        renamed = names or {}
        tests = [
            f"{_identifier(renamed.get(c.column, c.column))} {_sql_operator(c.operator)} {_literal(c.value)}"
            for c in self.conditions
        ]
        return " AND ".join([*tests, f"{_identifier(renamed.get(self.target, self.target))} IS NOT NULL"])

    def templates(self) -> tuple[str, ...]:
        """The patterns of the question's type, with ``{target}``, ``{conds}`` and, for SA, ``{agg}`` to fill in."""
        return _TEMPLATES[self.question_type]

    def template(self, form: int) -> str:
        """The fixed pattern number ``form`` of the question's type: six for EM, four each for SF and SA.

        EM as in the released questions (``a is 1 and b is x``), SF and SA as in F.1 (``a = 1 AND b > 2``).

        Raises:
            ValueError: if there is no such pattern.
        """
        patterns = _TEMPLATES[self.question_type]
        if not 0 <= form < len(patterns):
            raise ValueError(f"{self.question_type} has the template forms 0 to {len(patterns) - 1}, not {form}")
        if self.question_type == "EM":
            conds = " and ".join(f"{c.column} is {c.value}" for c in self.conditions)
        else:
            conds = " AND ".join(f"{c.column} {c.operator} {c.value}" for c in self.conditions)
        # By replacement of the pattern's own parts alone: names and values may hold braces.
        parts = {"target": self.target, "conds": conds, "agg": _AGGREGATE_WORDS.get(self.aggregate or "", "")}
        return patterns[form].format(**parts)

    def sentential(self) -> str:
        """The conditions as sentences, the target at the end.

        EM as in the released ``question_sentence`` (``a is 1. b is ?``); SF and SA, of which no such form was
        released, as in the example of F.1 (``The a is 1. The b is greater than 29. c is?``).
        """
        if self.question_type == "EM":
            return " ".join([*(f"{c.column} is {c.value}." for c in self.conditions), f"{self.target} is ?"])
        sentences = [f"The {c.column} {_OPERATOR_WORDS[c.operator]} {c.value}." for c in self.conditions]
        asked = self.target if self.aggregate is None else f"The {_AGGREGATE_WORDS[self.aggregate]} of {self.target}"
        return " ".join([*sentences, f"{asked} is?"])

    def answer(self, frame: pd.DataFrame) -> list[str | int | float]:
        """The answer on a table: for EM and SF one value per matching row, in the table's order; for SA one value.

        The list is empty if a column is missing or occurs twice, if no row matches (a COUNT of 0 is no answer), or if
        SUM or AVG finds a text in the matching rows: then the table cannot answer.
        """
        rows = self.rows(frame)
        values = frame[self.target].tolist() if rows else []
        return self.answer_from([values[row] for row in rows])

    def rows(self, frame: pd.DataFrame) -> list[int]:
        """The numbers of the rows, from 0, that meet the conditions and whose target is not missing.

        None if a column is missing or occurs twice.
        """
        names = frame.columns.tolist()
        if any(names.count(column) != 1 for column in self.columns):
            return []
        cells = {column: frame[column].tolist() for column in self.columns}
        return [
            i
            for i in range(len(frame))
            if all(c.holds(cells[c.column][i]) for c in self.conditions) and not _is_missing(cells[self.target][i])
        ]

    def answer_from(self, values: list[Any]) -> list[str | int | float]:
        """The answer, given the target's values in the rows that match, none of them missing."""
        if self.aggregate is None or not values:
            return values
        if self.aggregate == "COUNT":
            return [len(values)]
        if self.aggregate in ("SUM", "AVG") and not all(isinstance(v, int | float) for v in values):
            return []
        return [_aggregate(self.aggregate, values)]

    def to_json(self) -> str:
        """The query as a JSON object with the attributes' names; :meth:`from_json` reads it."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Query:
        """The query that :meth:`to_json` wrote.

        Raises:
            ValueError: if the text is no such object, or the query breaks the rules.
        """
        try:
            fields = json.loads(text)
            conditions = tuple(Condition(**c) for c in fields.pop("conditions"))
            return cls(conditions=conditions, **fields)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not a query in JSON: {text!r}: {error}") from error


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError(f"{what}: a name is a non-empty text without NUL, not {name!r}")


def _is_missing(cell: object) -> bool:
    return cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_operator(symbol: str) -> str:
    return "<>" if symbol == "!=" else symbol


def _literal(value: str | int | float) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        # An exponent makes it a double: DuckDB reads 0.1 as a decimal.
        text = repr(value)
        return text if "e" in text else f"{text}e0"
    return str(value)


def _aggregate(function: Aggregate, values: list[Any]) -> str | int | float:
    if function == "MIN":
        return min(values)  # type: ignore[no-any-return]
    if function == "MAX":
        return max(values)  # type: ignore[no-any-return]
    # fsum is exact; sum keeps a sum of integers an integer.
    total: int | float = math.fsum(values) if any(isinstance(v, float) for v in values) else sum(values)
    return total / len(values) if function == "AVG" else total
