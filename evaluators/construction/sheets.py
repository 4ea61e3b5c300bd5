"""Sheets for people: CSV files that a spreadsheet opens, filled in by hand and read back with every fault named."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.construction.workspace import Workspace, read_rows, write_rows
from evaluators.files import write_text
from evaluators.plugin.checks import DatasetError
from evaluators.plugin.sheets import read_sheet
from evaluators.spreadsheet import escaped

Cells = dict[str, str]
COMMENT = "comment"
# Spreadsheets cut or split cells beyond 32,767 characters.
_LONGEST_CELL = 30_000


@dataclass(frozen=True)
class Sheet:
    """A sheet: columns that the pipeline writes, and columns that a person fills in.

    Attributes:
        name: the file's name without suffix.
        key: the written columns that together name a row.
        shown: further written columns.
        basis: those of the shown columns whose change voids what a person said about the row.
        filled: columns for a person, a free ``comment`` beside them.
    """

    name: str
    key: tuple[str, ...]
    shown: tuple[str, ...]
    basis: tuple[str, ...]
    filled: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns in order."""
        return (*self.key, *self.shown, *self.filled, COMMENT)

    def path(self, workspace: Workspace) -> Path:
        """The sheet."""
        return workspace.work / f"{self.name}.csv"

    def _copy(self, workspace: Workspace) -> Path:
        """What the pipeline last wrote, to tell what a person changed."""
        return workspace.work / f"{self.name}.asked.jsonl"

    def key_of(self, row: Mapping[str, str]) -> tuple[str, ...]:
        """What names a row."""
        return tuple(row[column] for column in self.key)

    def read(self, workspace: Workspace) -> list[Cells] | None:
        """The rows as a person left them; ``None`` if the sheet was never written.

        Raises:
            FileNotFoundError: if it was written and is gone.
            DatasetError: naming row and column of every fault: a row that is missing, unknown or there twice, or a
                written cell that was changed.
        """
        if not self._copy(workspace).is_file():
            return None
        path = self.path(workspace)
        if not path.is_file():
            raise FileNotFoundError(f"{path} is gone; put it back, or delete {self._copy(workspace)} to begin anew")
        asked = {self.key_of(row): row for row in read_rows(self._copy(workspace))}
        rows = read_sheet(path, self.columns)
        faults: list[str] = []
        counts = Counter(self.key_of(row) for row in rows)
        faults += [f"{' '.join(key)!r} is there {n} times" for key, n in counts.items() if n > 1]
        faults += [f"the row of {' '.join(key)!r} is missing" for key in asked if key not in counts]
        for number, row in numbered(rows):
            before = asked.get(self.key_of(row))
            if before is None:
                faults.append(f"row {number}: {' '.join(self.key_of(row))!r} is no row of this sheet")
                continue
            faults += [
                f"row {number}, column {column}: it was changed; only {', '.join((*self.filled, COMMENT))} are to be "
                "filled in"
                for column in self.shown
                if _collapsed(row[column]) != _collapsed(before[column])
            ]
        refuse(path, faults)
        # The written cells as they were: a spreadsheet may have changed blanks and line ends.
        return [{**row, **{column: asked[self.key_of(row)][column] for column in self.shown}} for row in rows]

    def update(self, workspace: Workspace, wanted: Sequence[Cells], present: Sequence[Cells] | None) -> list[Cells]:
        """Write the sheet anew if its rows have changed, with what a person said about rows that stay the same.

        Args:
            workspace: where the sheet is.
            wanted: rows with the written columns, and those to be filled in where they have a value already.
            present: the rows as read, ``None`` if there is no sheet.

        Returns:
            The rows in the order in which they stand in the file.
        """
        said = {self.key_of(row): row for row in present or ()}
        rows = [self._merged(row, said.get(self.key_of(row))) for row in wanted]
        if present is not None and {self.key_of(row): row for row in rows} == said:
            return list(present)
        path = self.path(workspace)
        if path.is_file():
            workspace.set_aside(path)
        write_text(path, _csv_text(self.columns, rows), encoding="utf-8-sig")
        write_rows(self._copy(workspace), [{c: row[c] for c in (*self.key, *self.shown)} for row in rows])
        workspace.tell(f"{path.name}: {len(rows)} rows written")
        return rows

    def _merged(self, wanted: Cells, said: Cells | None) -> Cells:
        row = {column: wanted.get(column, "") for column in self.columns}
        row |= {column: _shortened(row[column]) for column in self.shown}
        if said is None:
            return row
        row[COMMENT] = said[COMMENT]
        if any(said[column] != row[column] for column in self.basis):
            decided = ", ".join(f"{c}: {said[c]}" for c in self.filled if said[c])
            if decided:
                row[COMMENT] = f"{said[COMMENT]} [before the row changed: {decided}]".strip()
            return row
        return row | {c: said[c] for c in self.filled if c not in wanted}


def numbered(rows: Sequence[Cells]) -> Iterator[tuple[int, Cells]]:
    """The rows with their numbers in a spreadsheet, where the header is row 1 (a cell may have several lines)."""
    return enumerate(rows, 2)


def refuse(path: Path, faults: Sequence[str]) -> None:
    """Raise a ``DatasetError`` if there are faults."""
    if faults:
        raise DatasetError(str(path), faults)


def choice(number: int, column: str, row: Cells, allowed: Collection[str], faults: list[str]) -> str:
    """The cell in small letters, an empty text if it is empty or none of the allowed words, which is a fault."""
    value = row[column].strip().lower()
    if value and value not in allowed:
        faults.append(f"row {number}, column {column}: {row[column]!r} is none of {', '.join(allowed)}")
        return ""
    return value


def rating(number: int, column: str, row: Cells, faults: list[str]) -> int | None:
    """The cell as a rating 1..5, ``None`` if it is empty or another, which is a fault."""
    value = row[column].strip()
    if not value:
        return None
    try:
        found = float(value.replace(",", "."))
    except ValueError:
        found = 0.0
    if found not in (1, 2, 3, 4, 5):
        faults.append(f"row {number}, column {column}: {value!r} is no rating 1, 2, 3, 4 or 5")
        return None
    return int(found)


def _csv_text(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({c: escaped(str(row[c])) for c in columns} for row in rows)
    return out.getvalue()


def _shortened(text: str) -> str:
    more = len(text) - _LONGEST_CELL
    return text if more <= 0 else f"{text[:_LONGEST_CELL]} [... and {more} more characters]"


def _collapsed(text: str) -> str:
    return " ".join(text.split())
