"""Queries: what may be built, the printed forms, and the answer against two SQL engines."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from typing import Any, get_args

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.queries import Aggregate, Condition, Query, QuestionType

EM = Query("EM", (Condition("short_state", "=", "OH"), Condition("state", "=", "Ohio")), "city")
SF = Query("SF", (Condition("Year", "=", 2016), Condition("Gold", ">", 29)), "Country")
SA = Query("SA", (Condition("A", ">=", 5), Condition("B", ">=", 3)), "C", "AVG")


# --- rules -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Condition("", "=", 1), "condition column"),
        (lambda: Condition("a\0", "=", 1), "condition column"),
        (lambda: Condition("a", "==", 1), "unknown operator '=='; one of = != < <= > >="),  # type: ignore[arg-type]
        (lambda: Condition("a", "=", float("nan")), "not a finite number"),
        (lambda: Condition("a", "=", float("inf")), "not a finite number"),
        (lambda: Condition("a", "=", True), "neither a text nor a number"),
        (lambda: Condition("a", "=", None), "neither a text nor a number"),  # type: ignore[arg-type]
        (lambda: Condition("a", "=", "x\0"), "NUL"),
        (lambda: Query("XX", EM.conditions, "c"), "unknown question type 'XX'; one of EM, SF, SA"),  # type: ignore[arg-type]
        (lambda: Query("EM", (), "c"), "1 to 3 conditions, not 0"),
        (lambda: Query("EM", (Condition("a", "=", 1),) * 4, "c"), "1 to 3 conditions, not 4"),
        (lambda: Query("EM", [Condition("a", "=", 1)], "c"), "must be a tuple"),  # type: ignore[arg-type]
        (lambda: Query("EM", EM.conditions, ""), "target column"),
        (lambda: Query("EM", SF.conditions, "c"), "an EM query has no operator but '=', not = >"),
        (lambda: Query("SF", EM.conditions, "c"), "an SF query needs a condition with an operator other"),
        (
            lambda: Query("SA", EM.conditions, "c", "SUM"),
            "an SA query needs a condition with an operator other",
        ),
        (
            lambda: Query("SA", SF.conditions, "c"),
            "an SA query needs an aggregate, one of SUM, AVG, MIN, MAX",
        ),
        (lambda: Query("SA", SF.conditions, "c", "MEDIAN"), "not 'MEDIAN'"),  # type: ignore[arg-type]
        (lambda: Query("SF", SF.conditions, "c", "SUM"), "an SF query has no aggregate, not 'SUM'"),
        (lambda: Query("EM", EM.conditions, "c", "MIN"), "an EM query has no aggregate, not 'MIN'"),
        (lambda: EM.template(6), "EM has the template forms 0 to 5, not 6"),
        (lambda: SF.template(4), "SF has the template forms 0 to 3, not 4"),
        (lambda: SA.template(-1), "SA has the template forms 0 to 3, not -1"),
        (lambda: EM.sql(""), "table"),
        (lambda: Query.from_json("[]"), "not a query in JSON"),
        (lambda: Query.from_json("{}"), "not a query in JSON"),
        (lambda: Query.from_json("{"), "Expecting"),
    ],
)
def test_bad_input_is_named(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_columns_and_json() -> None:
    assert SA.columns == ("A", "B", "C")
    assert Query("SF", (Condition("a", ">", 1), Condition("a", "<", 5)), "a").columns == ("a",)
    for query in (EM, SF, SA, Query("SF", (Condition('"é', "!=", "x'y"),), "b c")):
        assert Query.from_json(query.to_json()) == query


# --- printed forms -----------------------------------------------------------------------------------------------


def test_em_templates_as_released() -> None:
    conds = "short_state is OH and state is Ohio"
    assert [EM.template(i) for i in range(6)] == [
        f"What is the city when {conds}?",
        f"Please find the city for rows where {conds}.",
        f"List the city for the entries with {conds}.",
        f"Which city values correspond to {conds}?",
        f"Show me the city where {conds}.",
        f"Get the city for records satisfying {conds}.",
    ]


def test_sf_and_sa_templates_as_in_f1() -> None:
    assert [SF.template(i) for i in range(4)] == [
        "What is the Country when Year = 2016 AND Gold > 29?",
        "List the Country for rows where Year = 2016 AND Gold > 29.",
        "Which Country values correspond to rows where Year = 2016 AND Gold > 29?",
        "Please find the Country for entries with Year = 2016 AND Gold > 29.",
    ]
    assert [SA.template(i) for i in range(4)] == [
        "What is the average of C when A >= 5 AND B >= 3?",
        "Compute the average of C for rows where A >= 5 AND B >= 3.",
        "Find the average value of C corresponding to rows where A >= 5 AND B >= 3.",
        "Please calculate the average of C for entries with A >= 5 AND B >= 3.",
    ]


def test_braces_in_names_are_no_placeholders() -> None:
    query = Query("EM", (Condition("{target}", "=", "{conds}"),), "{agg}")
    assert query.template(0) == "What is the {agg} when {target} is {conds}?"


def test_sentential() -> None:
    assert Query("EM", (Condition("keyword_id", "=", 12366),), "keyword_name").sentential() == (
        "keyword_id is 12366. keyword_name is ?"
    )
    query = Query("SF", (Condition("year", "=", 2016), Condition("number_of_gold_medals", ">", 29)), "Country")
    assert query.sentential() == "The year is 2016. The number_of_gold_medals is greater than 29. Country is?"
    query = Query("SA", (Condition("a", "!=", "x"), Condition("b", "<=", 2), Condition("c", "<", 3)), "d", "MAX")
    assert query.sentential() == "The a is not x. The b is at most 2. The c is less than 3. The maximum of d is?"


def test_sql_quotes_names_and_literals() -> None:
    query = Query("SF", (Condition('se"lect', "!=", "O'Hare"), Condition("n", ">", 0.5)), "from")
    assert query.sql('my "t') == (
        'SELECT "from" FROM "my ""t" WHERE "se""lect" <> \'O\'\'Hare\' AND "n" > 0.5e0 AND "from" IS NOT NULL'
    )
    assert SA.sql("t") == 'SELECT AVG("C") FROM "t" WHERE "A" >= 5 AND "B" >= 3 AND "C" IS NOT NULL'
    assert SA.where({"A": "c0", "C": 'c"1'}) == '"c0" >= 5 AND "B" >= 3 AND "c""1" IS NOT NULL'
    count = Query("SA", SA.conditions, "C", "COUNT")
    assert count.sql("t") == 'SELECT NULLIF(COUNT("C"), 0) FROM "t" WHERE "A" >= 5 AND "B" >= 3 AND "C" IS NOT NULL'


# --- answers -----------------------------------------------------------------------------------------------------

TABLE_5 = pd.DataFrame({"A": [5, 6], "B": [3, 8], "C": [4, 6]})


def test_answers_of_the_paper() -> None:
    em = Query("EM", (Condition("A", "=", 5), Condition("B", "=", 3)), "C")
    sf = Query("SF", (Condition("A", "=", 5), Condition("B", "<", 5)), "C")
    assert (em.answer(TABLE_5), sf.answer(TABLE_5), SA.answer(TABLE_5)) == ([4], [4], [5.0])
    assert type(em.answer(TABLE_5)[0]) is int


def test_no_answer() -> None:
    assert SA.answer(TABLE_5.drop(columns="B")) == []
    assert SA.answer(TABLE_5.drop(columns="C")) == []
    assert SA.answer(TABLE_5.head(0)) == []
    assert Query("SA", (Condition("A", ">", 6),), "C", "SUM").answer(TABLE_5) == []
    assert Query("SF", (Condition("A", "!=", "5"),), "C").answer(TABLE_5) == []  # a text against numbers
    assert Query("SA", (Condition("A", ">", 1),), "C", "SUM").answer(TABLE_5.assign(C=["x", "y"])) == []
    twice = pd.DataFrame([[5, 3, 4, 4]], columns=["A", "B", "C", "C"])
    assert SA.answer(twice) == []


def test_count() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "c": ["x", None, "x", "y"]})
    count = Query("SA", (Condition("a", ">", 1),), "c", "COUNT")
    assert count.answer(frame) == [2]  # rows 3 and 4: in row 2 the target is missing
    assert Query("SA", (Condition("a", ">", 4),), "c", "COUNT").answer(frame) == []
    assert count.template(0) == "What is the count of c when a > 1?"
    assert count.sentential() == "The a is greater than 1. The count of c is?"


def test_missing_values_neither_match_nor_answer() -> None:
    frame = pd.DataFrame({"a": ["x", None, "y"], "n": [1.0, 2.0, math.nan]})
    assert Query("SF", (Condition("a", "!=", "x"),), "n").answer(frame) == []
    assert Query("SF", (Condition("a", "!=", "y"),), "n").answer(frame) == [1.0]
    assert Query("SA", (Condition("n", "!=", 7),), "n", "AVG").answer(frame) == [1.5]
    assert Query("SA", (Condition("n", ">", 0),), "a", "MAX").answer(frame) == ["x"]


# Reserved words, quotes, blanks, no ASCII. DuckDB's names ignore case, so no two differ by case alone.
NAMES = st.sampled_from(
    ["a", "select", "from", 'q"uote', "it's", "two words", " lead", "größe", "sum(x)", "1st", "%s", "a;--"]
)
TEXTS = st.sampled_from(["", "x", "y", "O'Hare", '"q"', "Ünal", "x y", "%", "\\", "NULL", "10", "--"])
INTEGERS = st.integers(-5, 5)
FLOATS = st.integers(-20, 20).map(lambda n: n / 10)
KINDS = {"VARCHAR": TEXTS, "BIGINT": INTEGERS, "DOUBLE": FLOATS}


@st.composite
def tables_and_queries(draw: st.DrawFn) -> tuple[dict[str, str], list[list[Any]], Query]:
    """Column types by name, rows with gaps, and a query whose values fit the columns' kinds."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    types = {name: draw(st.sampled_from(sorted(KINDS))) for name in names}
    rows = draw(st.lists(st.tuples(*(st.none() | KINDS[types[n]] for n in names)).map(list), max_size=6))
    kind: QuestionType = draw(st.sampled_from(get_args(QuestionType)))
    operators = ["="] if kind == "EM" else ["!=", "<", "<=", ">", ">=", "="]
    conditions = []
    for i in range(draw(st.integers(1, 3))):
        column = draw(st.sampled_from(names))
        value = draw(TEXTS if types[column] == "VARCHAR" else INTEGERS | FLOATS)
        conditions.append(Condition(column, draw(st.sampled_from(operators[: 5 if i == 0 else None])), value))
    target = draw(st.sampled_from(names))
    aggregates = [a for a in get_args(Aggregate) if types[target] != "VARCHAR" or a in ("MIN", "MAX", "COUNT")]
    aggregate: Aggregate | None = draw(st.sampled_from(aggregates)) if kind == "SA" else None
    return types, rows, Query(kind, tuple(conditions), target, aggregate)


def run_sql(connection: Any, types: dict[str, str], rows: list[list[Any]], query: Query) -> list[Any]:
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in types}
    columns = ", ".join(f"{quoted[name]} {types[name]}" for name in types)
    connection.execute('DROP TABLE IF EXISTS "or der"')
    connection.execute(f'CREATE TABLE "or der" ({columns})')
    for row in rows:
        connection.execute(f'INSERT INTO "or der" VALUES ({", ".join("?" * len(row))})', row)
    found = [row[0] for row in connection.execute(query.sql("or der")).fetchall()]
    return [] if found == [None] and query.aggregate else found


DUCKDB = duckdb.connect()
SQLITE = sqlite3.connect(":memory:", check_same_thread=False)


@settings(max_examples=200, deadline=None)
@given(case=tables_and_queries())
def test_the_answer_is_what_sql_gives(case: tuple[dict[str, str], list[list[Any]], Query]) -> None:
    types, rows, query = case
    pandas_type = {"VARCHAR": "object", "BIGINT": "Int64", "DOUBLE": "float64"}
    frame = pd.DataFrame(
        {n: pd.Series([r[i] for r in rows], dtype=pandas_type[t]) for i, (n, t) in enumerate(types.items())}
    )
    answer = query.answer(frame)
    for connection in (DUCKDB, SQLITE):
        expected = run_sql(connection, types, rows, query)
        if query.aggregate in ("SUM", "AVG"):
            assert len(answer) == len(expected)
            assert answer == pytest.approx(expected, abs=1e-9)
        else:
            # SQL promises no order of rows.
            assert sorted(answer) == sorted(expected)
