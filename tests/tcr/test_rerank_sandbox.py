"""AAR-Exec's engine: queries that are hostile, careless or right."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.reranking.cells import Kind, Value
from tcr_tasks.reranking.sandbox import Outcome, run_query

COLUMNS: dict[str, Kind] = {"n": "number", "day": "date", "name": "text"}
ROWS: list[list[Value | None]] = [[i, f"2020-01-{1 + i % 28:02d}", f"name {i}"] for i in range(300)]
ROWS[7] = [7, None, ""]
MEGABYTE = 1024  # in the kilobytes of ru_maxrss


def outcome(sql: str) -> Outcome:
    return run_query(sql, COLUMNS, ROWS)


# --- right and careless queries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM t WHERE name = 'NAME 5'",
        "-- a note\nselect n from t;",
        'SELECT "n" FROM t WHERE "name" = \'name 5\'',
        "SELECT avg(n) FROM t WHERE day >= '2020-01-05' AND name IN ('name 5', 'name 6')",
        "SELECT name FROM t WHERE n = (SELECT max(n) FROM t)",
        "WITH q AS (SELECT n, max(n) OVER () AS m FROM t) SELECT n FROM q WHERE n = m",
        "SELECT x FROM (SELECT n AS x FROM t ORDER BY n DESC LIMIT 1)",
        "SELECT count(*) FROM t WHERE n > 3",
        "SELECT n FROM t WHERE n = '5'",
        "SELECT name FROM t WHERE name LIKE '%5'",
        "SELECT n FROM t WHERE name = 'it''s' OR name = 'name 5' -- \"comment",
    ],
)
def test_queries_that_answer(sql: str) -> None:
    assert outcome(sql) is Outcome.ANSWERED


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM t WHERE name = 'nobody'",
        "SELECT sum(n) FROM t WHERE n > 1000",
        "SELECT total(n) FROM t WHERE n > 1000",
        "SELECT count(*) FROM t WHERE n > 1000",
        "SELECT day FROM t WHERE n = 7",
        "SELECT name FROM t WHERE n = 7",
        "SELECT n FROM t WHERE name > 5 AND name < 0",
        "SELECT name FROM t WHERE name = 'n'",
    ],
)
def test_queries_that_find_nothing(sql: str) -> None:
    assert outcome(sql) is Outcome.NOTHING


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT "city" FROM t',
        'SELECT n FROM t WHERE "city" = "city"',
        'SELECT n FROM t WHERE name = "name 5"',
        'SELECT t."city" FROM t',
        "SELECT `city` FROM t",
        "SELECT [city] FROM t",
        "SELECT city FROM t",
        "SELECT n FROM t WHERE 'a' = 'it''s' OR \"city\" <> ''",
        "SELECT n /* ' */ FROM t WHERE \"city\" <> '' -- '",
    ],
)
def test_a_missing_column_never_answers(sql: str) -> None:
    """SQLite takes a double-quoted name that no column has for a text, under which every one of these would answer."""
    assert outcome(sql) is Outcome.LACKS


# --- hostile queries -------------------------------------------------------------------------------------------------

HOSTILE = [
    "ATTACH DATABASE '{file}' AS x",
    "VACUUM INTO '{file}'",
    "PRAGMA writable_schema=ON",
    "PRAGMA journal_mode=WAL",
    "SELECT * FROM pragma_table_info('t')",
    "SELECT load_extension('{file}') FROM t",
    "SELECT fts3_tokenizer('simple') FROM t",
    "INSERT INTO t VALUES (1, 2, 3)",
    "UPDATE t SET n = 1",
    "DELETE FROM t",
    "DROP TABLE t",
    "CREATE TABLE u AS SELECT * FROM t",
    "CREATE TEMP TABLE u (x)",
    "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
    "SELECT n FROM t; DROP TABLE t",
    "SELECT n FROM t; SELECT n FROM t",
    "BEGIN; SELECT n FROM t",
    "SELECT sql FROM sqlite_master",
    "SELECT n FROM t UNION SELECT name FROM sqlite_schema",
    "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT max(x) FROM r",
    "WITH RECURSIVE r(x) AS (SELECT name FROM t UNION ALL SELECT x || x FROM r) SELECT x FROM r",
    "SELECT randomblob(1000000000) FROM t",
    "SELECT zeroblob(1000000000), n FROM t",
    "SELECT hex(zeroblob(500000000)) FROM t",
    "SELECT printf('%1000000000d', n) FROM t",
    "SELECT replace(name, '', name) FROM t",
    "SELECT group_concat(a.name) FROM t a, t b, t c",
    "SELECT n FROM t, json_each('[1]')",
    "SELECT random(), n FROM t",
    "SELECT sqlite_version(), n FROM t",
    "SELECT 1",
    "SELECT 'yes' FROM t",
    "VALUES (1)",
    "EXPLAIN QUERY PLAN SELECT n FROM t",
    "EXPLAIN SELECT n FROM t",
    "",
    ";",
    "SELECT n FROM t\0",
    "SELECT n FROM t -- " + "x" * 20_000,
]


@pytest.mark.parametrize("sql", HOSTILE)
def test_what_is_not_allowed_is_refused(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert outcome(sql.replace("{file}", str(tmp_path / "x.db"))) is Outcome.REFUSED or sql == ";"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(a.n) FROM t a, t b, t c, t d, t e, t f",
        "SELECT a.name || b.name || c.name FROM t a, t b, t c, t d ORDER BY 1",
        "SELECT DISTINCT a.name || b.name || c.name FROM t a, t b, t c ORDER BY 1",
        "SELECT a.n FROM t a, t b, t c GROUP BY a.name || b.name || c.name HAVING count(*) > 9",
        "SELECT n FROM t WHERE (SELECT count(a.n) FROM t a, t b, t c WHERE a.n <> t.n) < 0",
        "WITH q AS (SELECT a.name || b.name x FROM t a, t b) SELECT q.x FROM q, q r, q s ORDER BY q.x || r.x || s.x",
    ],
)
def test_bombs_are_stopped_in_time_and_space(sql: str) -> None:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    assert outcome(sql) is Outcome.STOPPED
    assert time.monotonic() - began < 4
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * MEGABYTE


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "name || " * 90 + "name FROM (SELECT " + "name || " * 90 + "name AS name FROM t)",
        "SELECT n FROM t WHERE " + "(" * 300 + "1" + ")" * 300,
        "SELECT " + "n + " * 2000 + "n FROM t",
        "SELECT n FROM t WHERE n = ?",
        "SELECT n FROM t WHERE name LIKE '" + "%a" * 150 + "'",
        "SELECT n FROM temp.t",
        "SELECT n FROM u",
        "SELECT n FROM t WHERE 'open",
        "SELECT \ud800 FROM t",
        "SELECT nonsense(n) FROM t",
        # Functions of SQLite's shell, which is not what runs here.
        "SELECT writefile('x', n) FROM t",
        "SELECT readfile('/etc/passwd') FROM t",
    ],
)
def test_what_cannot_run_fails(sql: str) -> None:
    assert outcome(sql) in (Outcome.FAILED, Outcome.REFUSED)


def test_a_table_is_as_it_was_after_anything() -> None:
    for sql in HOSTILE:
        outcome(sql)
    assert outcome("SELECT count(n) FROM t") is Outcome.ANSWERED


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="SELECTFROMt n'\"`[]();-*/,=<>\n%|1xday", max_size=60))
def test_no_text_is_an_error(sql: str) -> None:
    assert isinstance(outcome_of_few("SELECT " + sql), Outcome)
    assert isinstance(outcome_of_few("SELECT n FROM t WHERE " + sql), Outcome)


def outcome_of_few(sql: str) -> Outcome:
    return run_query(sql, COLUMNS, ROWS[:3])


NAMES = st.sampled_from(["n", "day", "name"])


@settings(max_examples=60, deadline=None)
@given(NAMES, NAMES, st.integers(0, 12), st.sampled_from(["=", "<>", "<", ">="]))
def test_answers_are_those_of_python(asked: str, tested: str, value: int, operator: str) -> None:
    """The rule written out: some row meets the condition and has a value of what is asked."""
    rows = ROWS[:12]
    random.Random(value).shuffle(rows)
    places = list(COLUMNS)
    wanted = {"n": value, "day": f"2020-01-{1 + value:02d}", "name": f"name {value}"}[tested]
    holds = {"=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b}
    expected = any(
        row[places.index(tested)] is not None
        and holds[operator](row[places.index(tested)], wanted)
        and row[places.index(asked)] not in (None, "")
        for row in rows
    )
    literal = wanted if isinstance(wanted, int) else f"'{wanted}'"
    sql = f"SELECT {asked} FROM t WHERE {tested} {operator} {literal}"
    assert (run_query(sql, COLUMNS, rows) is Outcome.ANSWERED) == expected
