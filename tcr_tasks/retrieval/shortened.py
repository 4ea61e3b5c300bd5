"""A printed table of which only so much fits."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

from tcr_tasks.retrieval.printed import read_printed

__all__ = ["Shortened", "shortened"]


class Shortened(NamedTuple):
    """A text of limited length, and the share of its rows (of its characters, if it prints no table) left out."""

    text: str
    left_out: float = 0.0


def shortened(text: str, longest: int) -> Shortened:
    """The text as it is if it has no more than ``longest`` characters, otherwise its header and first rows as CSV."""
    if len(text) <= longest:
        return Shortened(text)
    table = read_printed(text)
    if table is None or not table.rows:
        return Shortened(text[:longest], 1 - longest / len(text))
    out = f"{table.name}:\n{_line(table.header)}"
    kept = 0
    for row in table.rows:
        line = _line(row)
        if len(out) + len(line) > longest:
            break
        out += line
        kept += 1
    return Shortened(out, 1 - kept / len(table.rows))


def _line(cells: tuple[str, ...]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow(cells)
    return written.getvalue()
