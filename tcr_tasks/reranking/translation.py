"""A question as a query over many tables: what a language model wrote, read and checked, and run on each."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast, get_args

import pandas as pd

from evaluators.judge import Reply
from evaluators.judge.answers import complete_text
from evaluators.judge.reply import UnreadableReplyError
from tcr_tasks.reranking.cells import Kind, Value, read_cell
from tcr_tasks.reranking.json_replies import last_object
from tcr_tasks.reranking.sandbox import Outcome, run_query
from tcr_tasks.serialize import read_text_table
from tcr_tasks.tables import Table

__all__ = ["Named", "Sheet", "Translation", "read_translation"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MOST_COLUMNS = 20
_MOST_HEADERS = 200
_LONGEST_EXAMPLE = 40


@dataclass(frozen=True)
class Named:
    """A column that a query needs: how it is read, and the headers that stand for it."""

    kind: Kind
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Translation:
    """A query over columns with names of its own."""

    columns: Mapping[str, Named]
    sql: str

    def run(self, sheet: Sheet) -> Outcome:
        """What the query gives on a table; a column for which the table has no header is not there for it."""
        found = {name: header for name, column in self.columns.items() if (header := sheet.header(column.headers))}
        if not found:
            return Outcome.LACKS
        cells = [sheet.values(header, self.columns[name].kind) for name, header in found.items()]
        kinds = {name: self.columns[name].kind for name in found}
        return run_query(self.sql, kinds, list(zip(*cells, strict=True)))


@dataclass(frozen=True)
class Sheet:
    """A table's cells as text."""

    table: Table

    @cached_property
    def _frame(self) -> pd.DataFrame:
        csv = self.table.csv
        try:
            return read_text_table(io.StringIO(csv) if isinstance(csv, str) else csv)
        except (OSError, ValueError, pd.errors.ParserError) as error:
            raise ValueError(f"table {self.table.key!r} cannot be read: {error}") from error

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for at, header in enumerate(self._frame.columns):
            places.setdefault(_folded(str(header)), []).append(at)
        return places

    @cached_property
    def described(self) -> str:
        """One line: the table's name, its headers, and under each the first value that it holds."""
        columns = []
        for at, header in enumerate(self._frame.columns):
            cells = (" ".join(cell.split()) for cell in self._frame.iloc[:, at])
            example = next((cell for cell in cells if cell), "")[:_LONGEST_EXAMPLE]
            columns.append(f"{' '.join(str(header).split())}: {example}")
        return f"{' '.join(self.table.name.split())} | " + " | ".join(columns)

    def header(self, wanted: Sequence[str]) -> str | None:
        """The table's header among the wanted ones; ``None`` if it has none, or several columns of the name.

        Of several the first one wanted. Capitals and blanks do not matter.
        """
        for name in wanted:
            if len(self._places.get(_folded(name), [])) == 1:
                return name
        return None

    def values(self, header: str, kind: Kind) -> list[Value | None]:
        """A column's cells, read as that kind."""
        at = self._places[_folded(header)][0]
        own = str(self._frame.columns[at])
        return [read_cell(cell, kind, own) for cell in self._frame.iloc[:, at]]


def read_translation(reply: Reply) -> Translation:
    """The query that a reply holds.

    Raises:
        UnreadableReplyError: if it was cut off, or holds no ``{"columns": {...}, "sql": "..."}`` of the form that the
            prompt asks for.
    """
    found = last_object(complete_text(reply), "sql")
    columns, sql = found.get("columns"), found["sql"]
    if not isinstance(sql, str) or not sql.strip():
        raise UnreadableReplyError("the reply's sql is no text")
    if not isinstance(columns, dict) or not 1 <= len(columns) <= _MOST_COLUMNS:
        raise UnreadableReplyError(f"the reply has no columns, or more than {_MOST_COLUMNS}")
    named = {str(name).lower(): _named(str(name), column) for name, column in columns.items()}
    if len(named) < len(columns):
        raise UnreadableReplyError("the reply has a column twice")
    return Translation(named, sql)


def _named(name: str, column: Any) -> Named:
    if not _NAME.fullmatch(name) or not isinstance(column, dict):
        raise UnreadableReplyError(f"the reply's column {name[:64]!r} has another form than was asked for")
    kind, headers = column.get("kind"), column.get("headers")
    if kind not in get_args(Kind):
        raise UnreadableReplyError(f"the reply's column {name!r} is of no known kind: {str(kind)[:40]!r}")
    if not isinstance(headers, list) or len(headers) > _MOST_HEADERS or not all(isinstance(h, str) for h in headers):
        raise UnreadableReplyError(f"the reply's column {name!r} has no list of headers")
    return Named(cast(Kind, kind), tuple(headers))


def _folded(header: str) -> str:
    return " ".join(header.split()).casefold()
