"""Source tables: SQLite files, folders of CSV or parquet files, and folders of databases.

Whatever cannot be used is told, never left out in silence: a table or a column by a :class:`Skipped`, a mistake of the
user by an error.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tcr_tasks.builder.kinds import Kind, UnusableColumnError, typed
from tcr_tasks.builder.readers import DATABASE_SUFFIXES, FILE_SUFFIXES, RawTable, UnreadableError, open_tables

# Rows of a source that are used at most: some ten times what the tables of a group hold.
MOST_ROWS = 20_000
_FEWEST_ROWS = 2
_FEWEST_COLUMNS = 2


@dataclass(frozen=True)
class Skipped:
    """Something of the sources that is not used.

    Attributes:
        place: ``db_id/table`` or ``db_id/table.column``, or a path.
        reason: why, in words.
    """

    place: str
    reason: str


@dataclass(frozen=True)
class SourceTable:
    """A table to build on.

    Attributes:
        db_id: the database: the file's or folder's name.
        name: of the table, unique in its database.
        frame: rows 0, 1, ...; each column of one type, see :func:`tcr_tasks.builder.kinds.typed`.
        kinds: what each column holds.
        n_rows: rows in the source, of which ``frame`` may be a sample.
    """

    db_id: str
    name: str
    frame: pd.DataFrame = field(repr=False, compare=False)
    kinds: Mapping[str, Kind]
    n_rows: int

    @property
    def place(self) -> str:
        """``db_id/name``."""
        return f"{self.db_id}/{self.name}"


def read_sources(
    paths: Sequence[Path], *, seed: int = 0, most_rows: int = MOST_ROWS
) -> tuple[list[SourceTable], list[Skipped]]:
    """Every usable table of the sources, sorted by database and name, and what is not used.

    Args:
        paths: SQLite files, folders with CSV or parquet files (the folder is the database, a file a table), or folders
            of databases ``<db_id>/<db_id>.sqlite``.
        seed: decides which rows of a long table are used.
        most_rows: rows of a table that are used at most.

    Raises:
        FileNotFoundError: if there is nothing at a path.
        ValueError: if a path is none of these, or two of them have the same database name.
    """
    tables: list[SourceTable] = []
    skipped: list[Skipped] = []
    found = databases(paths)
    skipped += [entry for path in paths for entry in _passed_over(path.expanduser().resolve(), set(found.values()))]
    for db_id, path in sorted(found.items()):
        try:
            for raw in open_tables(path):
                _add(db_id, raw, seed, most_rows, tables, skipped)
        except UnreadableError as error:
            skipped.append(Skipped(f"{db_id} ({path})", str(error)))
    return sorted(tables, key=lambda t: (t.db_id, t.name)), skipped


def databases(paths: Sequence[Path]) -> dict[str, Path]:
    """The databases by name: a SQLite file, or a folder of CSV or parquet files."""
    out: dict[str, Path] = {}
    by_name: dict[str, Path] = {}
    for given in paths:
        path = given.expanduser().resolve()
        for db_id, found in _databases_at(path):
            # In any case of letters: the names become folders.
            clash = by_name.setdefault(db_id.casefold(), found)
            if clash != found:
                raise ValueError(
                    f"two sources are called {db_id!r}: {clash} and {found}; rename one, since the name of a file or "
                    "folder tells its tables from those of others"
                )
            out[db_id] = found
    return out


def _passed_over(path: Path, used: Collection[Path]) -> list[Skipped]:
    """What lies in a folder of sources and is none."""
    if not path.is_dir():
        return []
    others = [file for file in sorted(path.iterdir()) if not file.name.startswith(".")]
    if path in used:
        others = [file for file in others if file.suffix.lower() not in FILE_SUFFIXES]
        reason = "neither CSV nor parquet; the folder's tables are its CSV and parquet files"
        database = "a database beside CSV or parquet files; name it by its own path as one more source"
        return [Skipped(str(f), database if f.suffix.lower() in DATABASE_SUFFIXES else reason) for f in others]
    used_folders = {file.parent for file in used}
    return [
        Skipped(str(file), "no folder <name> with a database <name>.sqlite in it")
        for file in others
        if file not in used_folders
    ]


def _databases_at(path: Path) -> list[tuple[str, Path]]:
    if path.is_file():
        if path.suffix.lower() in FILE_SUFFIXES:
            raise ValueError(f"{path} is a single table; name the folder it is in, whose files are then one database")
        return [(path.stem, path)]
    if not path.is_dir():
        raise FileNotFoundError(f"there is no source {path}; name a SQLite file or a folder")
    inside = sorted(path.iterdir())
    if any(file.suffix.lower() in FILE_SUFFIXES for file in inside):
        return [(path.name, path)]
    found = [
        (folder.name, file)
        for folder in inside
        for suffix in DATABASE_SUFFIXES
        if (file := folder / f"{folder.name}{suffix}").is_file()
    ]
    if not found:
        raise ValueError(
            f"{path} holds neither CSV nor parquet files nor databases <name>/<name>.sqlite; a database "
            f"that lies elsewhere is named by its own path"
        )
    return found


def _add(
    db_id: str, raw: RawTable, seed: int, most_rows: int, tables: list[SourceTable], skipped: list[Skipped]
) -> None:
    place = f"{db_id}/{raw.name}"
    if any(t.place.casefold() == place.casefold() for t in tables):
        skipped.append(Skipped(place, "another table of this database has the same name; rename one"))
        return
    try:
        n_rows, rows = _sampled(raw.rows(), most_rows, random.Random(f"{seed}:{place}"))
    except UnreadableError as error:
        skipped.append(Skipped(place, str(error)))
        return
    if n_rows < _FEWEST_ROWS:
        skipped.append(Skipped(place, f"{n_rows} row(s): nothing could be told apart in it"))
        return
    columns, kinds = _columns(place, raw, rows, skipped)
    if len(columns) < _FEWEST_COLUMNS:
        hint = ""
        if len(raw.columns) == 1 and re.search(r"[;\t|]", raw.columns[0]):
            hint = "; are its cells parted by commas?"
        skipped.append(Skipped(place, f"{len(columns)} usable column(s): a question needs {_FEWEST_COLUMNS}{hint}"))
        return
    if n_rows > len(rows):
        skipped.append(Skipped(place, f"{n_rows - len(rows)} of {n_rows} rows: {len(rows)} were drawn by the seed"))
    tables.append(SourceTable(db_id, raw.name, pd.DataFrame(columns), kinds, n_rows))


def _sampled(rows: Iterator[Sequence[Any]], most: int, rng: random.Random) -> tuple[int, list[Sequence[Any]]]:
    """How many rows there are, and all of them, or so many drawn at random, in their order."""
    kept: list[tuple[int, Sequence[Any]]] = []
    number = -1
    for number, row in enumerate(rows):
        if number < most:
            kept.append((number, row))
        elif (place := rng.randrange(number + 1)) < most:
            kept[place] = (number, row)
    return number + 1, [row for _, row in sorted(kept, key=lambda item: item[0])]


def _columns(
    place: str, raw: RawTable, rows: list[Sequence[Any]], skipped: list[Skipped]
) -> tuple[dict[str, pd.Series[Any]], dict[str, Kind]]:
    columns: dict[str, pd.Series[Any]] = {}
    kinds: dict[str, Kind] = {}
    names = [" ".join(str(name).split()) for name in raw.columns]
    # SQL tells no names apart that differ in case alone.
    counts = Counter(name.casefold() for name in names)
    for at, name in enumerate(names):
        if not name or "\0" in name:
            skipped.append(Skipped(f"{place}, column {at + 1}", "it has no name"))
        elif counts[name.casefold()] > 1:
            skipped.append(Skipped(f"{place}.{name}", f"{counts[name.casefold()]} columns have this name"))
        else:
            try:
                columns[name], kinds[name] = typed(name, [row[at] for row in rows], key=raw.columns[at] in raw.keys)
            except UnusableColumnError as error:
                skipped.append(Skipped(f"{place}.{name}", str(error)))
    return columns, kinds
