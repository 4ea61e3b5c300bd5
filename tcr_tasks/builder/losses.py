"""Which cells lose their value when a table is printed as the authors of TCR-Bench print it.

:mod:`tcr_tasks.serialize` keeps the authors' losses (six significant digits in Markdown, integers beside a gap as
floats, leading zeros). In a built benchmark a table whose answer is not legible must not count as one that answers.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

import pandas as pd

from tcr_tasks.serialize import TableFormat, read_table, serialize

__all__ = ["lost_cells"]

_PRINTED_NUMBER = re.compile(r"-?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")
_HTML_CELL = re.compile(r"<td>(.*?)</td>")


def lost_cells(csv: str, fmt: TableFormat) -> dict[str, list[int]]:
    """The rows, from 0, in which a value is not printed in full, by header; headers without such a row are left out.

    Numbers may be printed otherwise (``1`` as ``1.0``) as long as they are equal; texts must be the same but for the
    case of ``true`` and ``false``.

    Args:
        csv: the table.
        fmt: one of CSV, HTML and Markdown.

    Raises:
        ValueError: if the format is another one.
    """
    if fmt not in _CELLS:
        raise ValueError(f"cannot tell what {fmt} loses; one of {', '.join(_CELLS)}")
    wanted = pd.read_csv(io.StringIO(csv), dtype=str, keep_default_na=False)
    read = read_table(io.StringIO(csv))
    out: dict[str, list[int]] = {}
    for at, header in enumerate(wanted.columns):
        pairs = zip(wanted.iloc[:, at].tolist(), _shown(read.iloc[:, [at]], fmt), strict=True)
        lost = [row for row, (cell, shown) in enumerate(pairs) if not _same(cell, shown)]
        if lost:
            out[str(header)] = lost
    return out


def _shown(column: pd.DataFrame, fmt: TableFormat) -> list[str]:
    """The cells of a frame of one column as they are printed; missing ones are empty."""
    cells = column.iloc[:, 0]
    missing = cells.isna().tolist()
    present = cells.dropna()
    # tabulate, behind Markdown, takes texts for numbers where all can be read as such: 1_000, or 30 digits.
    rounded = cells.dtype.kind == "f" or (fmt is TableFormat.MARKDOWN and all(map(_numeric, present)))
    if rounded and cells.dtype.kind not in "iub":
        # The last ones: a header may hold line ends.
        shown = _CELLS[fmt](serialize("t", column, fmt))[-len(column) :]
    else:
        shown = [str(cell) for cell in cells.tolist()]
    return ["" if gone else cell for gone, cell in zip(missing, shown, strict=True)]


def _numeric(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def _csv_cells(text: str) -> list[str]:
    # A number holds no line end; an empty cell alone in its line is printed as "".
    return [line.strip('"') for line in text.rstrip("\n").split("\n")]


def _html_cells(text: str) -> list[str]:
    return [html.unescape(cell).strip() for cell in _HTML_CELL.findall(text)]


def _markdown_cells(text: str) -> list[str]:
    return [line.strip("| ") for line in text.rstrip("\n").split("\n")]


_CELLS: dict[TableFormat, Callable[[str], list[str]]] = {
    TableFormat.CSV: _csv_cells,
    TableFormat.HTML: _html_cells,
    TableFormat.MARKDOWN: _markdown_cells,
}


def _same(wanted: str, shown: str) -> bool:
    if wanted == shown or (shown in ("True", "False") and wanted.lower() == shown.lower()):
        return True
    if not _PRINTED_NUMBER.fullmatch(wanted):
        return False
    try:
        return Decimal(wanted) == Decimal(shown)
    except InvalidOperation:
        return False
