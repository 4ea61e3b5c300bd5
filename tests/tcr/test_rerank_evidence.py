"""AAR-Exec's engine: what no row gives is no answer, and a 0 that rows give is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.reranking.cells import Kind, Value
from tcr_tasks.reranking.sandbox import Outcome, run_query

COLUMNS: dict[str, Kind] = {"n": "number", "day": "date", "name": "text"}
ROWS: list[list[Value | None]] = [[i, None if i == 7 else "2020-01-01", f"name {i}"] for i in range(300)]


def outcome(sql: str) -> Outcome:
    return run_query(sql, COLUMNS, ROWS)


# Queries that say something on this table and, by hand, would give the same or no row on one without such rows.
TELLING = [
    "SELECT n FROM t WHERE n = 0",
    "SELECT sum(n) FROM t WHERE n = 0",
    "SELECT max(n) FROM t WHERE name IN ('name 0')",
    "SELECT n FROM t GROUP BY n HAVING count(*) = 1 ORDER BY n LIMIT 1",
    "SELECT n FROM t WHERE (SELECT count(*) FROM t u WHERE u.n < t.n) = 0",
    "SELECT sum(n) FROM t WHERE (SELECT count(*) FROM t u WHERE u.n < t.n) = 0",
    "SELECT n FROM t WHERE n = 0 AND (SELECT count(*) FROM t u WHERE u.name = t.name) = 1",
    "SELECT name, (SELECT count(*) FROM t u WHERE u.n > t.n) FROM t WHERE n = 299",
    "SELECT coalesce(sum(n), 0) FROM t WHERE n = 0",
    "SELECT total(n) FROM t WHERE n = 0",
    "WITH q AS (SELECT total(n) AS x FROM t WHERE name = 'name 0') SELECT x FROM q",
    "SELECT (SELECT count(*) FROM t WHERE n < 9) - (SELECT count(*) FROM t WHERE n > 290)",
    "SELECT 100.0 * count(CASE WHEN n > 999 THEN 1 END) / count(*) FROM t WHERE name = 'name 5'",
    "SELECT CASE WHEN max(n) > 30 THEN 'yes' ELSE 'no' END FROM t WHERE name = 'name 5'",
    "SELECT max(n), 'kg' FROM t WHERE name = 'name 5'",
    "SELECT avg(n / 3.0), 'kg' FROM t",
    "SELECT (SELECT n FROM t WHERE name = 'name 5'), 'kg'",
    "SELECT count(*) FROM t WHERE n > 990 UNION ALL SELECT count(*) FROM t WHERE n < 9",
    "SELECT EXISTS(SELECT 1 FROM t WHERE n = 5)",
    "SELECT count(DISTINCT name) FROM t WHERE n < 9",
]


@pytest.mark.parametrize("sql", TELLING)
def test_a_value_of_the_table_is_an_answer_even_if_it_is_0(sql: str) -> None:
    assert outcome(sql) is Outcome.ANSWERED


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t WHERE name = 'nobody' AND n < (SELECT count(*) FROM t)",
        "SELECT count(*) FROM t WHERE n > (SELECT avg(n) FROM t) AND name = 'nobody'",
        "SELECT count(*), (SELECT max(n) FROM t) FROM t WHERE name = 'nobody'",
        "SELECT count(day) FROM t WHERE n = 7",
        "SELECT count(*) FROM (SELECT n FROM t WHERE name = 'nobody' GROUP BY n)",
        "WITH q AS (SELECT count(*) AS c FROM t WHERE n > 990) SELECT c FROM q",
        "SELECT max(c) FROM (SELECT count(*) AS c FROM t WHERE n > 990)",
        "SELECT count(*) FILTER (WHERE n > 990) FROM t",
        "SELECT count(CASE WHEN n > 990 THEN 1 END) FROM t",
        "SELECT (SELECT count(*) FROM t WHERE n > 990) + 5",
        "SELECT coalesce(sum(n), 0) FROM t WHERE n > 990",
        "SELECT ifnull(max(name), 'none') FROM t WHERE n > 990",
        "SELECT coalesce((SELECT n FROM t WHERE name = 'nobody'), 'unknown')",
        "SELECT CASE WHEN max(n) > 30 THEN 'yes' ELSE 'no' END FROM t WHERE name = 'nobody'",
        "SELECT EXISTS(SELECT 1 FROM t WHERE n = 999)",
        "SELECT typeof(sum(n)) FROM t WHERE n > 990",
        "SELECT coalesce(count(*), 7) FROM t WHERE n > 990",
        "SELECT n FROM t WHERE n > 990 UNION ALL SELECT 0",
    ],
)
def test_what_no_row_gives_is_no_answer(sql: str) -> None:
    assert outcome(sql) is Outcome.NOTHING


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT sum(CASE WHEN name = 'nobody' THEN 1 ELSE 0 END) FROM t", Outcome.ANSWERED),
        ("SELECT coalesce((SELECT n FROM t WHERE n = 0), 0)", Outcome.NOTHING),
        ("SELECT count(day) FROM t WHERE n = 7 GROUP BY n", Outcome.ANSWERED),
        ("SELECT coalesce(sum(n), 0) FROM t WHERE name = 'nobody' AND n < (SELECT avg(n) FROM t)", Outcome.NOTHING),
        ("SELECT coalesce(sum(n), 0) FROM t WHERE n < (SELECT avg(n) FROM t) AND n > 990", Outcome.ANSWERED),
    ],
)
def test_limits_of_the_rule(sql: str, found: Outcome) -> None:
    """What it cannot tell, or only by the order in which SQLite tests conditions."""
    assert outcome(sql) is found


_CELL = st.sampled_from([0, 0, 1, -1, 2.5, None])
_GRID = st.lists(st.tuples(_CELL, _CELL), max_size=5)
# A query over the column x where y = 0, and whether the rows there, as x's values, give it an answer.
_FORMS: dict[str, Callable[[list[Value | None]], bool]] = {
    "SELECT x FROM t WHERE y = 0": lambda xs: any(x is not None for x in xs),
    "SELECT count(*) FROM t WHERE y = 0": lambda xs: bool(xs),
    "SELECT count(*) FROM t WHERE y = 0 GROUP BY y": lambda xs: bool(xs),
    "SELECT x FROM t WHERE y = 0 GROUP BY x HAVING count(*) > 1": lambda xs: any(
        xs.count(x) > 1 for x in xs if x is not None
    ),
    "SELECT count(*) * 0 FROM t WHERE y = 0": lambda xs: bool(xs),
    "SELECT (SELECT count(*) FROM t WHERE y = 0) - (SELECT count(*) FROM t u WHERE u.y = 0)": lambda xs: bool(xs),
} | {
    form.format(call): lambda xs: any(x is not None for x in xs)
    for call in ("count(x)", "sum(x)", "total(x)", "avg(x)", "min(x)", "max(x)", "count(DISTINCT x)", "sum(x) - sum(x)")
    for form in (
        "SELECT {} FROM t WHERE y = 0",
        "SELECT coalesce({}, 0) FROM t WHERE y = 0",
        "WITH q AS (SELECT {} AS v FROM t WHERE y = 0) SELECT v FROM q",
        "SELECT (SELECT {} FROM t WHERE y = 0)",
        "SELECT max(v) FROM (SELECT {} AS v FROM t WHERE y = 0)",
    )
}
_FORMS |= {
    f"SELECT v FROM (SELECT {name}(x) AS v, y FROM t GROUP BY y) WHERE y = 0": lambda xs: any(x is not None for x in xs)
    for name in ("sum", "avg", "min", "max")
}


@settings(max_examples=150, deadline=None)
@given(_GRID, st.sampled_from(sorted(_FORMS)))
def test_an_answer_rests_on_a_value_of_a_row_that_meets_the_condition(
    grid: list[tuple[Value | None, Value | None]], sql: str
) -> None:
    expected = _FORMS[sql]([x for x, y in grid if y == 0])
    assert (run_query(sql, {"x": "number", "y": "number"}, grid) is Outcome.ANSWERED) == expected
