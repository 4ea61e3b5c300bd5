"""Rows and cells of a table, read back from the text that :func:`tcr_tasks.serialize.serialize` printed.

A retriever that mteb runs gets the corpus as text. Reading that text back works on every task and every way of
printing, and gives the rows as they are presented: of a transposed table, the transposed rows.

CSV, HTML and ``safe_markdown`` are exact, cell for cell as printed. The others print what cannot be told apart:

- ``markdown``: a pipe within a cell looks like a boundary, so that a row has too many cells; the surplus stays in its
  last cell, and such rows are counted. A line end within a cell looks like another row;
- ``tsen``, ``tsens``: of a column name that holds a point and a blank only what follows them is known.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from tcr_tasks.serialize import TableFormat

__all__ = ["PrintedTable", "read_printed"]

_MARKDOWN_RULE = re.compile(r"\|(?::?-+:?\|)+")
_SAFE_RULE = re.compile(r"\| ---(?: \| ---)* \|")
_SAFE_CELL = re.compile(r" ((?:[^\\|]|\\.)*) \|")
_ESCAPED = re.compile(r"\\(.)")
_NAME, _IS, _NEXT = ":\n", " is ", ". "


@dataclass(frozen=True)
class PrintedTable:
    """A table as it was printed.

    Attributes:
        name: what stands before the table.
        format: how it was printed; ``tsen`` also for ``tsens``, whose columns have the first row's order here.
        header: names of the columns.
        rows: the cells, each row as long as the header, or shorter where the text says less.
        unclear: rows of which the text gives more cells than there are columns.
    """

    name: str
    format: TableFormat
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    unclear: int = 0


def read_printed(text: str) -> PrintedTable | None:
    """The table that a text prints, or ``None`` if it prints none.

    White space at both ends may have been stripped, as mteb does for encoders. Then a table of one sentence, or of a
    single CSV column, is taken for prose, and prose for a table if all its lines have as many commas.
    """
    name, colon, body = text.partition(_NAME)
    if not colon:
        return None
    # Only CSV ends its last line, so that with the serialisation's own empty line there are three line ends.
    whole = text.endswith("\n\n")
    if text.endswith("\n\n\n"):
        return _csv(name, body[:-2], fewest_columns=1)
    lines = body.rstrip("\n").split("\n")
    if lines[0].startswith("<table"):
        return _html(name, body)
    if len(lines) > 1 and _SAFE_RULE.fullmatch(lines[1]):
        return _safe_markdown(name, lines)
    if len(lines) > 1 and _MARKDOWN_RULE.fullmatch(lines[1]):
        return _markdown(name, lines)
    found = _sentences(name, lines) if whole or len(lines) > 1 else None
    return found or (None if whole else _csv(name, body, fewest_columns=2))


def _csv(name: str, body: str, fewest_columns: int) -> PrintedTable | None:
    try:
        # A blank line is no row: pandas prints an empty cell of a single column as "".
        rows = [tuple(row) for row in csv.reader(io.StringIO(body, newline=""), strict=True) if row]
    except csv.Error:
        return None
    if not rows or len(rows[0]) < fewest_columns or any(len(row) != len(rows[0]) for row in rows):
        return None
    return PrintedTable(name, TableFormat.CSV, rows[0], tuple(rows[1:]))


class _TableParser(HTMLParser):
    """Collects the cells of a table row by row."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[str]] = []
        self._cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None and self.rows:
            self.rows[-1].append("".join(self._cell))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)


def _html(name: str, body: str) -> PrintedTable | None:
    parser = _TableParser()
    # pandas prints a second blank as an entity; a no-break space of the cell's own stands there as it is.
    parser.feed(body.replace("&nbsp;", " "))
    parser.close()
    if not parser.rows or not parser.rows[0]:
        return None
    header, *rows = (tuple(row) for row in parser.rows)
    return PrintedTable(name, TableFormat.HTML, header, tuple(rows))


def _markdown(name: str, lines: Sequence[str]) -> PrintedTable:
    columns = lines[1].count("|") - 1
    split = [[cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")] for line in lines]
    header, _, *rows = (_shortened(cells, columns) for cells in split)
    return PrintedTable(
        name, TableFormat.MARKDOWN, header, tuple(rows), unclear=sum(len(cells) > columns for cells in split[2:])
    )


def _shortened(cells: list[str], columns: int) -> tuple[str, ...]:
    """So many cells at most, the surplus in the last one."""
    return (*cells[: columns - 1], "|".join(cells[columns - 1 :])) if len(cells) > columns else tuple(cells)


def _safe_markdown(name: str, lines: Sequence[str]) -> PrintedTable | None:
    rows = []
    for line in (lines[0], *lines[2:]):
        cells = [_unescaped(found) for found in _SAFE_CELL.findall(line[1:])]
        if len(cells) != lines[1].count("|") - 1:
            return None
        rows.append(tuple(cells))
    return PrintedTable(name, TableFormat.SAFE_MARKDOWN, rows[0], tuple(rows[1:]))


def _unescaped(cell: str) -> str:
    return _ESCAPED.sub(lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), cell)


def _sentences(name: str, lines: Sequence[str]) -> PrintedTable | None:
    """A table of sentences, ``column is value. column is value.``, if most lines name the first line's columns."""
    columns = [
        column
        for column in (part.partition(_IS)[0] for part in lines[0].split(_NEXT) if _IS in part)
        if sum(_names(line, column) for line in lines) * 2 > len(lines)
    ]
    if not columns or not lines[0].startswith(columns[0] + _IS) or not lines[-1].endswith("."):
        return None
    # A line that begins with no column continues a cell of the line before it, which holds a line end.
    joined: list[str] = []
    for line in lines:
        if any(line.startswith(column + _IS) for column in columns):
            joined.append(line)
        else:
            joined[-1] += "\n" + line
    said = [_said(line.removesuffix("."), columns) for line in joined]
    rows = tuple(tuple(found.get(column, "") for column in columns) for found in said)
    return PrintedTable(name, TableFormat.TSEN, tuple(columns), rows)


def _names(line: str, column: str) -> bool:
    return line.startswith(column + _IS) or _NEXT + column + _IS in line


def _said(line: str, columns: Sequence[str]) -> dict[str, str]:
    """Column -> value; what names no column, or one that was named before, belongs to the value before it."""
    out: dict[str, str] = {}
    last = columns[0]
    for part in line.split(_NEXT):
        column, found, value = part.partition(_IS)
        if found and column in columns and column not in out:
            out[column] = value
            last = column
        else:
            out[last] = out.get(last, "") + _NEXT + part
    return out
