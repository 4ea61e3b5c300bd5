"""Running a query that a language model wrote, on one small table, so that it can do nothing else.

The query is hostile until shown otherwise. It runs on a database in memory that holds the one table; an authorizer
allows SELECT, reading that table's columns and a list of harmless functions, and nothing else (no other table, no
PRAGMA, ATTACH, write, extension or recursion); lengths, depths and rows are limited; and it is stopped after so many
steps of SQLite's machine, which do not depend on how busy this one is, or after so many seconds.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from tcr_tasks.reranking.cells import Kind, Value
from tcr_tasks.reranking.evidence import RowSet, watch_aggregates

__all__ = ["FUNCTIONS", "TABLE", "Outcome", "run_query"]

TABLE = "t"
# None of them makes a text much longer than what it gets, reads a file or a setting, or is random.
FUNCTIONS = frozenset(
    (
        *("abs", "avg", "coalesce", "count", "date", "datetime", "dense_rank", "ifnull", "iif", "instr", "julianday"),
        *("length", "like", "lower", "ltrim", "max", "min", "nullif", "rank", "round", "row_number", "rtrim", "sign"),
        *("strftime", "substr", "substring", "sum", "time", "total", "trim", "typeof", "unicode", "upper"),
    )
)

_MOST_STEPS = 2_000_000
_STEPS_PER_LOOK = 10_000
_MOST_SECONDS = 2.0
_MOST_ROWS = 10_000
_LONGEST_SQL = 10_000
# Beyond it a cell is cut: what a sort of many copies can fill must stay small.
_LONGEST_CELL = 1_000
_LIMITS: Mapping[int, int] = {
    sqlite3.SQLITE_LIMIT_LENGTH: 20_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: _LONGEST_SQL,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 20,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
# Not EXPLAIN, which gives rows on any table.
_SELECT = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:select|with)\b", re.IGNORECASE | re.DOTALL)
_AFFINITY: Mapping[Kind, str] = {"number": "NUMERIC", "date": "TEXT", "text": "TEXT COLLATE NOCASE"}
# Texts, comments and quoted names of SQL; an open one reaches to the end.
_PARTS = re.compile(
    r"'(?:[^']|'')*(?:'|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|`(?:[^`]|``)*(?:`|\Z)|\[[^\]]*(?:\]|\Z)|"
    r'"(?P<name>(?:[^"]|"")*)(?P<end>"|\Z)',
    re.DOTALL,
)


class Outcome(StrEnum):
    """What became of a query on a table."""

    ANSWERED = "answered"
    NOTHING = "no answer"
    LACKS = "lacks a column"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass
class _Watch:
    """Sees what a query reads and calls while SQLite prepares it, and how long it runs."""

    columns_read: int = 0
    refused: bool = False
    steps: int = 0
    deadline: float = 0.0

    def authorize(self, action: int, first: str | None, second: str | None, database: str | None, _: object) -> int:
        if action == sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        # A subquery's columns have a table name of their own, or none, and stand for columns that were read below it.
        if action == sqlite3.SQLITE_READ and first == TABLE and database in ("main", None):
            self.columns_read += bool(second)
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in FUNCTIONS:
            return sqlite3.SQLITE_OK
        self.refused = True
        return sqlite3.SQLITE_DENY

    def go_on(self) -> int:
        self.steps += _STEPS_PER_LOOK
        return int(self.steps > _MOST_STEPS or time.monotonic() > self.deadline)


def run_query(sql: str, columns: Mapping[str, Kind], rows: Sequence[Sequence[Value | None]]) -> Outcome:
    """Run one SELECT on the table ``t``, and say whether it gives an answer.

    A row answers if none of its values is NULL or an empty text, and if it rests on the table's rows: 0 is an answer
    where it stands in the table or is the sum of what stands there, and none where it only says that no row met the
    query's conditions (:mod:`tcr_tasks.reranking.evidence` has the rule and its limits). A query that reads no column
    of the table answers nothing.

    Args:
        sql: anything at all.
        columns: the table's columns with their kinds; names of letters, digits and ``_``.
        rows: the table's cells.
    """
    if len(sql) > _LONGEST_SQL or "\0" in sql or not _SELECT.match(sql):
        return Outcome.REFUSED
    sql, watch = _without_text_names(sql), _Watch()
    try:
        with _opened(columns, (), watch) as empty:
            bare = RowSet(islice(empty.execute(sql), _MOST_ROWS))
        if watch.columns_read == 0:
            return Outcome.REFUSED
        with _opened(columns, rows, watch) as table:
            in_doubt, cursor = RowSet(), table.execute(sql)
            for row in _whole(cursor):
                if not bare.shares(row):
                    return Outcome.ANSWERED
                in_doubt.add(row)
            if not in_doubt:
                return Outcome.NOTHING
            cursor.close()
            use = watch_aggregates(table)
            rows_left = (row for row in _whole(table.execute(sql)) if row in in_doubt)
            rests = any(use.seen or row not in bare for row in rows_left)
        return Outcome.ANSWERED if rests else Outcome.NOTHING
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        return _outcome(error, watch)


@contextmanager
def _opened(
    columns: Mapping[str, Kind], rows: Sequence[Sequence[Value | None]], watch: _Watch
) -> Iterator[sqlite3.Connection]:
    """A database with the table alone, on which a query can do nothing but read it."""
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    try:
        _fill(connection, columns, rows)
        watch.deadline = time.monotonic() + _MOST_SECONDS
        connection.set_authorizer(watch.authorize)
        connection.set_progress_handler(watch.go_on, _STEPS_PER_LOOK)
        yield connection
    finally:
        connection.close()


def _fill(connection: sqlite3.Connection, columns: Mapping[str, Kind], rows: Sequence[Sequence[Value | None]]) -> None:
    for limit, value in _LIMITS.items():
        if limit != sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER:
            connection.setlimit(limit, value)
    names = ", ".join(f"`{name}` {_AFFINITY[kind]}" for name, kind in columns.items())
    connection.execute(f"CREATE TABLE {TABLE} ({names})")
    marks = ", ".join("?" * len(columns))
    connection.execute("BEGIN")  # a transaction for every row would take most of the time
    connection.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", ([_cut(value) for value in row] for row in rows))
    connection.execute("COMMIT")
    connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, _LIMITS[sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER])
    connection.execute("PRAGMA query_only=ON")


def _cut(value: Value | None) -> Value | None:
    return value[:_LONGEST_CELL] if isinstance(value, str) else value


def _whole(cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    """The first rows, those of them without NULL and empty text."""
    return (row for row in islice(cursor, _MOST_ROWS) if not any(value in (None, "") for value in row))


def _outcome(error: BaseException, watch: _Watch) -> Outcome:
    if watch.refused or isinstance(error, sqlite3.Warning | sqlite3.ProgrammingError):  # several statements
        return Outcome.REFUSED
    if "no such column" in str(error):
        return Outcome.LACKS
    if "interrupted" in str(error) or isinstance(error, MemoryError):
        return Outcome.STOPPED
    return Outcome.FAILED


def _without_text_names(sql: str) -> str:
    """The query with names in backticks instead of double quotes.

    SQLite takes a double-quoted name that no column has for a text, so that a table without the column would answer.
    """

    def changed(found: re.Match[str]) -> str:
        if found["name"] is None or not found["end"]:
            return found.group()
        return "`" + found["name"].replace('""', '"').replace("`", "``") + "`"

    return _PARTS.sub(changed, sql)
