"""Which tables of a corpus answer which question: every question on every table that has its columns, in DuckDB.

Tables with the same columns are stacked into one table of the database with a column that numbers them, and each
question runs once on each stack that has its columns. A column counts as a question's only if it can be compared with
it: in another database the same name may hold texts where the question asks for numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
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
_NUMBER = "table"


@dataclass
class _Stack:
    """Tables with the same columns, of the same types."""

    name: str
    columns: Mapping[str, Type]
    waiting: list[pa.Table] = field(default_factory=list)
    n_waiting: int = 0

    def physical(self) -> dict[str, str]:
        """The names in the database: DuckDB tells no names apart that differ in case alone."""
        return {column: f"c{at}" for at, column in enumerate(self.columns)}

    def named(self, query: Query) -> dict[str, str] | None:
        """The query's columns by their names here; ``None`` if the tables lack one, or it makes no sense on them.

        ``zipCode``, ``zip_code`` and ``ZIP Code`` are one name, since tables are printed in any style; only a table
        that has several such columns tells them apart.
        """
        found: dict[str, str] = {}
        for column in query.columns:
            alike = [name for name in self.columns if same_name(name) == same_name(column)]
            if not alike:
                return None
            found[column] = column if column in alike else alike[0]
        if query.aggregate in ("SUM", "AVG") and self.columns[found[query.target]] == "VARCHAR":
            return None
        if any(isinstance(c.value, str) != (self.columns[found[c.column]] == "VARCHAR") for c in query.conditions):
            return None
        return found


class Corpus:
    """Tables in DuckDB; a context manager.

    An integer compared with a fraction is compared as a double, so beyond 2^53 neighbours count as equal there.
    """

    def __init__(self) -> None:
        import duckdb

        self._connection: duckdb.DuckDBPyConnection = duckdb.connect()
        self._keys: list[str] = []
        self._stacks: dict[tuple[tuple[str, Type], ...], _Stack] = {}

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
            self._connection.execute(f'CREATE TABLE {stack.name} ("{_NUMBER}" INTEGER, {physical})')
        arrays = [pa.array(columns[name][1], type=_ARROW[kind], from_pandas=True) for name, kind in schema]
        numbers = pa.array(np.full(len(frame), number, dtype=np.int32))
        stack.waiting.append(pa.table([numbers, *arrays], names=[_NUMBER, *stack.physical().values()]))
        stack.n_waiting += len(frame)
        if stack.n_waiting >= _BATCH:
            self._flush(stack)

    def answering(self, query: Query) -> tuple[str, ...]:
        """The keys of the tables that answer, in the order in which they were added."""
        found: set[int] = set()
        for stack in self._stacks.values():
            named = stack.named(query)
            if named is not None:
                self._flush(stack)
                physical = {column: stack.physical()[name] for column, name in named.items()}
                sql = f'SELECT DISTINCT "{_NUMBER}" FROM {stack.name} WHERE {query.where(physical)}'
                found.update(number for (number,) in self._connection.execute(sql).fetchall())
        return tuple(self._keys[number] for number in sorted(found))

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


def twin(query: Query) -> Query | None:
    """The query with its numbers as texts: in another database the same code may be kept so.

    ``None`` if it compares no number, or compares numbers by order.
    """
    numbers = [c for c in query.conditions if not isinstance(c.value, str)]
    if not numbers or any(c.operator not in ("=", "!=") for c in numbers):
        return None
    conditions = tuple(c if isinstance(c.value, str) else replace(c, value=str(c.value)) for c in query.conditions)
    return replace(query, conditions=conditions)


def answering(tables: Iterable[tuple[str, pd.DataFrame]], queries: Mapping[str, Query]) -> dict[str, tuple[str, ...]]:
    """Per question the keys of all tables that answer it.

    Args:
        tables: key and canonical table; an iterator keeps few of them in memory.
        queries: by question.

    Raises:
        ValueError: see :meth:`Corpus.add`.
    """
    with Corpus() as corpus:
        for key, frame in tables:
            corpus.add(key, frame)
        return {name: corpus.answering(query) for name, query in queries.items()}
