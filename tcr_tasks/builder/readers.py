"""Reading tables as they are stored: the cells of SQLite, CSV and parquet before any type is told."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FILE_SUFFIXES = (".csv", ".parquet")
DATABASE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
# A cell of a CSV file may be this long; the csv module's own limit stops at texts that databases do hold.
_LONGEST_CELL = 10_000_000


class UnreadableError(ValueError):
    """A database or table that cannot be read; the text says why."""


@dataclass(frozen=True)
class RawTable:
    """A table as it is stored.

    Attributes:
        name: of the table.
        columns: names as they are there, which may be empty or occur twice.
        rows: gives all rows; may raise :class:`UnreadableError`.
        keys: columns that the source declares keys or references to keys.
    """

    name: str
    columns: Sequence[str]
    rows: Callable[[], Iterator[Sequence[Any]]]
    keys: frozenset[str] = field(default_factory=frozenset)


def open_tables(path: Path) -> Iterator[RawTable]:
    """The tables of a SQLite file, or of a folder of CSV and parquet files.

    Raises:
        UnreadableError: if the path is no such thing, naming the fault.
    """
    if path.is_file():
        return _sqlite_tables(path)
    return (_file_table(file) for file in sorted(path.iterdir()) if file.suffix.lower() in FILE_SUFFIXES)


# --- SQLite ------------------------------------------------------------------------------------------------------


def _sqlite_tables(path: Path) -> Iterator[RawTable]:
    try:
        with closing(_connect(path)) as connection:
            names = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
                    " ORDER BY name"
                )
            ]
            found = [_sqlite_table(connection, path, name) for name in names]
    except sqlite3.Error as error:
        raise UnreadableError(f"it cannot be read as a SQLite database: {error}") from error
    if not found:
        raise UnreadableError("it is a database without tables")
    yield from found


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)


def _sqlite_table(connection: sqlite3.Connection, path: Path, name: str) -> RawTable:
    quoted = _quoted(name)
    try:
        described = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
        references = connection.execute(f"PRAGMA foreign_key_list({quoted})").fetchall()
    except sqlite3.Error as error:  # of a virtual table whose module is not there
        return _broken(name, error)
    columns = [row[1] for row in described]
    keys = {row[1] for row in described if row[5]} | {row[3] for row in references}
    # By name: a star gives computed columns, too, which the description leaves out.
    selected = ", ".join(map(_quoted, columns))

    def rows() -> Iterator[Sequence[Any]]:
        try:
            with closing(_connect(path)) as reading:
                yield from reading.execute(f"SELECT {selected} FROM {quoted}")
        except sqlite3.Error as error:
            raise UnreadableError(f"it cannot be read: {error}") from error

    return RawTable(name, columns, rows, frozenset(keys))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- files -------------------------------------------------------------------------------------------------------


def _file_table(path: Path) -> RawTable:
    if path.suffix.lower() == ".csv":
        return _csv_table(path)
    return _parquet_table(path)


def _broken(name: str, error: Exception) -> RawTable:
    """A table whose reading fails: the reason belongs to it, not to its database."""

    def rows() -> Iterator[Sequence[Any]]:
        raise UnreadableError(f"it cannot be read: {error}")

    return RawTable(name, [], rows)


def _csv_table(path: Path) -> RawTable:
    def rows() -> Iterator[Sequence[Any]]:
        csv.field_size_limit(_LONGEST_CELL)
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file, strict=True)
                width = len(next(reader, []))
                for row in reader:
                    if not row:
                        continue
                    if len(row) != width:
                        raise UnreadableError(
                            f"line {reader.line_num} has {len(row)} cells, the header {width}; are its commas quoted?"
                        )
                    yield row
        except UnicodeDecodeError as error:
            raise UnreadableError(f"it is not UTF-8 ({error}); save it as UTF-8") from error
        except (OSError, csv.Error) as error:
            raise UnreadableError(f"it cannot be read: {error}") from error

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
    except UnicodeDecodeError:
        header = []  # reading the rows says what is wrong
    except (OSError, csv.Error) as error:
        return _broken(path.stem, error)
    return RawTable(path.stem, header, rows)


def _parquet_table(path: Path) -> RawTable:
    def rows() -> Iterator[Sequence[Any]]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches():
                    columns = [column.to_pylist() for column in batch.columns]
                    yield from zip(*columns, strict=True)
        except (OSError, pa.ArrowException) as error:
            raise UnreadableError(f"it cannot be read: {error}") from error

    try:
        header = pq.read_schema(path).names
    except (OSError, pa.ArrowException) as error:
        return _broken(path.stem, error)
    return RawTable(path.stem, header, rows)
