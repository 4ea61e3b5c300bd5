"""What of a table is embedded by itself: rows with their header, columns, or its name and header."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tcr_tasks.retrieval.printed import PrintedTable, read_printed

__all__ = ["PIECES", "Pieces", "pieces_of"]


@dataclass(frozen=True)
class Pieces:
    """The texts of one document, at least one.

    Attributes:
        texts: one per piece.
        whole: whether the document prints no table, and is its own only piece.
        unclear: rows of which it is not clear which cell belongs to which column.
    """

    texts: tuple[str, ...]
    whole: bool = False
    unclear: int = 0


def _rows(table: PrintedTable) -> list[str]:
    """Each row concatenated with the header (appendix D.2), as the authors' own sentences of a row do it."""
    return [_sentence(table, row) for row in table.rows]


def _sentence(table: PrintedTable, row: tuple[str, ...]) -> str:
    pairs = zip(table.header, row, strict=False)
    return ". ".join(f"{column} is {cell}" for column, cell in pairs) + "."


def _columns(table: PrintedTable) -> list[str]:
    """Each column: the table's name, the column's, its values without repetition."""
    out = []
    for at, column in enumerate(table.header):
        values = dict.fromkeys(row[at] for row in table.rows if at < len(row))
        out.append(f"{table.name}. {column}: {', '.join(values)}")
    return out


def _schema(table: PrintedTable) -> list[str]:
    """The table's name and the names of its columns."""
    return [f"{table.name}: {', '.join(table.header)}"]


PIECES: Mapping[str, Callable[[PrintedTable], list[str]]] = {"rows": _rows, "columns": _columns, "schema": _schema}


def pieces_of(text: str, kind: str) -> Pieces:
    """The pieces of a document: of the table that it prints, or the document itself if it prints none.

    A table without rows has its name and header for its only piece.
    """
    table = read_printed(text)
    if table is None:
        return Pieces((text,), whole=True)
    return Pieces(tuple(PIECES[kind](table) or _schema(table)), unclear=table.unclear)
