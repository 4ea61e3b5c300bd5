"""Which tables of a corpus answer which question: every question on every table that has its columns, in DuckDB.

Tables with the same columns are stacked into one table of the database with a column that numbers them, and each
question runs once on each stack that has its columns. A column counts as a question's only if it can be compared with
it: in another database the same name may hold texts where the question asks for numbers. Names count as one in any
style and abbreviated; that ``town`` may mean ``city`` is for a person to see (:mod:`tcr_tasks.builder.review`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product, zip_longest
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from tcr_tasks.builder.kinds import name_words
from tcr_tasks.queries import Query

if TYPE_CHECKING:
    import duckdb

Type = Literal["VARCHAR", "BIGINT", "DOUBLE"]
_TYPES: Mapping[str, Type] = {
    "string": "VARCHAR",
    "boolean": "BIGINT",
    "integer": "BIGINT",
    "floating": "DOUBLE",
    "mixed-integer-float": "DOUBLE",
}
_ARROW: Mapping[Type, pa.DataType] = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
# Rows of a stack that wait in memory before they go to the database.
_BATCH = 100_000
_NUMBER, _ROW = "table", "row"
# Letters that an abbreviation of a word has at least.
_SHORTEST = 3


@dataclass
class _Stack:
    """Tables with the same columns, of the same types."""

    name: str
    columns: Mapping[str, Type]
    waiting: list[pa.Table] = field(default_factory=list)
    n_waiting: int = 0
    n_tables: int = 0

    def physical(self) -> dict[str, str]:
        """The names in the database: DuckDB tells no names apart that differ in case alone."""
        return {column: f"c{at}" for at, column in enumerate(self.columns)}

    def named(self, query: Query, matching: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
        """The query's columns by their names here, once for each way to read them that makes sense on the tables.

        Args:
            query: the question.
            matching: by column of the query the names that may mean it, see :func:`names_like`.
        """
        options = [_nearest(column, [n for n in matching[column] if n in self.columns]) for column in query.columns]
        for names in product(*options):
            found = dict(zip(query.columns, names, strict=True))
            if query.aggregate in ("SUM", "AVG") and self.columns[found[query.target]] == "VARCHAR":
                continue
            if all(isinstance(c.value, str) == (self.columns[found[c.column]] == "VARCHAR") for c in query.conditions):
                yield found


class Corpus:
    """Tables in DuckDB; a context manager.

    ``n_pairs`` counts the pairs of question and table that were executed.

    An integer compared with a fraction is compared as a double, so beyond 2^53 neighbours count as equal there.
    """

    def __init__(self) -> None:
        import duckdb

        self._connection: duckdb.DuckDBPyConnection = duckdb.connect()
        self._keys: list[str] = []
        self._stacks: dict[tuple[tuple[str, Type], ...], _Stack] = {}
        # By column the numbers of the stacks that have it.
        self._by_column: dict[str, set[int]] = {}
        self._names: dict[tuple[str, ...], list[str]] = {}
        self.n_pairs = 0

    def __enter__(self) -> Corpus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def add(self, key: str, frame: pd.DataFrame) -> None:
        """Add a table with canonical columns and values.

        Columns without any value and columns whose name occurs twice answer nothing and are passed over.

        Raises:
            ValueError: naming table and column, if a column holds neither text alone nor numbers alone.
        """
        names = [str(name) for name in frame.columns]
        columns: dict[str, tuple[Type, Any]] = {}
        for at, name in enumerate(names):
            kind = pd.api.types.infer_dtype(frame.iloc[:, at], skipna=True)
            if kind == "empty" or names.count(name) > 1 or frame.iloc[:, at].isna().all():
                continue
            if kind not in _TYPES:
                raise ValueError(f"table {key!r}, column {name!r}: it holds {kind} values, not text or numbers alone")
            columns[name] = (_TYPES[kind], frame.iloc[:, at])
        number = len(self._keys)
        self._keys.append(key)
        if not columns:
            return
        schema = tuple(sorted((name, kind) for name, (kind, _) in columns.items()))
        stack = self._stacks.get(schema)
        if stack is None:
            stack = self._stacks[schema] = _Stack(f"s{len(self._stacks)}", dict(schema))
            physical = ", ".join(f"{stack.physical()[name]} {kind}" for name, kind in schema)
            self._connection.execute(f'CREATE TABLE {stack.name} ("{_NUMBER}" INTEGER, "{_ROW}" INTEGER, {physical})')
            for name in columns:
                if name not in self._by_column:
                    self._names.setdefault(_stems(name), []).append(name)
                self._by_column.setdefault(name, set()).add(len(self._stacks) - 1)
        arrays = [pa.array(columns[name][1], type=_ARROW[kind], from_pandas=True) for name, kind in schema]
        numbers = pa.array(np.full(len(frame), number, dtype=np.int32))
        rows = pa.array(np.arange(len(frame), dtype=np.int32))
        stack.waiting.append(pa.table([numbers, rows, *arrays], names=[_NUMBER, _ROW, *stack.physical().values()]))
        stack.n_waiting += len(frame)
        stack.n_tables += 1
        if stack.n_waiting >= _BATCH:
            self._flush(stack)

    def answering(self, query: Query) -> tuple[str, ...]:
        """The keys of the tables that answer, in the order in which they were added."""
        found = {number for (number,) in self._select(f'DISTINCT "{_NUMBER}"', query)}
        return tuple(dict.fromkeys(self._keys[number] for number in sorted(found)))

    def rows(self, query: Query) -> dict[str, set[int]]:
        """The rows that answer, from 0, by the keys of their tables."""
        found: dict[str, set[int]] = {}
        for number, row in self._select(f'"{_NUMBER}", "{_ROW}"', query):
            found.setdefault(self._keys[number], set()).add(row)
        return found

    def _select(self, what: str, query: Query) -> Iterator[tuple[Any, ...]]:
        matching = {column: names_like(column, self._names.get(_stems(column), ())) for column in query.columns}
        having = [set().union(*(self._by_column[name] for name in names)) for names in matching.values()]
        stacks = list(self._stacks.values())
        for number in sorted(set.intersection(*having)):
            stack = stacks[number]
            named = list(stack.named(query, matching))
            if named:
                self._flush(stack)
                self.n_pairs += stack.n_tables
            for names in named:
                physical = {column: stack.physical()[name] for column, name in names.items()}
                sql = f"SELECT {what} FROM {stack.name} WHERE {query.where(physical)}"
                yield from self._connection.execute(sql).fetchall()

    def _flush(self, stack: _Stack) -> None:
        if stack.waiting:
            rows = pa.concat_tables(stack.waiting)
            self._connection.register("waiting", rows)
            self._connection.execute(f"INSERT INTO {stack.name} SELECT * FROM waiting")
            self._connection.unregister("waiting")
            stack.waiting, stack.n_waiting = [], 0


@cache
def same_name(column: str) -> str:
    """What a reader takes for the same name: the words in small letters."""
    return " ".join(name_words(column)) or column.casefold()


def names_like(column: str, names: Iterable[str]) -> list[str]:
    """The names that may mean the column: in any style (``zipCode``, ``ZIP code``), or abbreviated (``lat``)."""
    return [name for name in names if _alike(same_name(column), same_name(name))]


def _stems(column: str) -> tuple[str, ...]:
    """What names that may mean the same have in common."""
    return tuple(word[:_SHORTEST] for word in same_name(column).split())


def _alike(one: str, other: str) -> bool:
    pairs = list(zip_longest(one.split(), other.split(), fillvalue=""))
    return all(a == b or (min(len(a), len(b)) >= _SHORTEST and (a.startswith(b) or b.startswith(a))) for a, b in pairs)


def _nearest(column: str, names: Sequence[str]) -> Sequence[str]:
    """Of names that may mean the column, those that do so most clearly: a table tells its own columns apart."""
    same = [name for name in names if same_name(name) == same_name(column)]
    return [column] if column in names else same or names


def twin(query: Query) -> Query | None:
    """The query with its numbers as texts: in another database the same code may be kept so.

    ``None`` if it compares no number, or compares numbers by order.
    """
    numbers = [c for c in query.conditions if not isinstance(c.value, str)]
    if not numbers or any(c.operator not in ("=", "!=") for c in numbers):
        return None
    conditions = tuple(c if isinstance(c.value, str) else replace(c, value=str(c.value)) for c in query.conditions)
    return replace(query, conditions=conditions)


def answering(
    tables: Iterable[tuple[str, pd.DataFrame]], queries: Mapping[str, Query]
) -> tuple[dict[str, tuple[str, ...]], int]:
    """Per question the keys of all tables that answer it, and how many pairs of question and table were executed.

    Args:
        tables: key and canonical table; an iterator keeps few of them in memory.
        queries: by question.

    Raises:
        ValueError: see :meth:`Corpus.add`.
    """
    with Corpus() as corpus:
        for key, frame in tables:
            corpus.add(key, frame)
        found = {name: corpus.answering(query) for name, query in queries.items()}
        return found, corpus.n_pairs
