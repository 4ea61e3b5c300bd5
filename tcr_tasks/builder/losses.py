"""Which cells lose their value when a table is printed as the authors of TCR-Bench print it.

:mod:`tcr_tasks.serialize` keeps the authors' losses (six significant digits in Markdown, integers beside a gap as
floats, leading zeros). In a built benchmark a table whose answer is not legible must not count as one that answers.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

import pandas as pd

from tcr_tasks.builder.forms import Cell
from tcr_tasks.builder.generate import Planned
from tcr_tasks.serialize import TableFormat, read_table, serialize

__all__ = ["as_read", "lost_cells", "misprint"]

_PRINTED_NUMBER = re.compile(r"-?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")
_HTML_CELL = re.compile(r"<td>(.*?)</td>")


def lost_cells(csv: str, fmt: TableFormat) -> dict[str, dict[int, str]]:
    """What is printed in place of values that are not printed in full, by header and row, the first row being 0.

    Headers without such a value are left out.

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
    out: dict[str, dict[int, str]] = {}
    for at, header in enumerate(wanted.columns):
        pairs = zip(wanted.iloc[:, at].tolist(), _shown(read.iloc[:, [at]], fmt), strict=True)
        lost = {row: shown for row, (cell, shown) in enumerate(pairs) if not _same(cell, shown)}
        if lost:
            out[str(header)] = lost
    return out


def as_read(frame: pd.DataFrame, lost: Mapping[str, Mapping[int, Cell | None]]) -> pd.DataFrame:
    """The table as a reader of the printed one takes it: with other values, or none, in place of the lost ones.

    Args:
        frame: columns of text or of numbers, rows as printed.
        lost: by column and row of the frame.
    """
    read = frame.copy()
    for column, cells in lost.items():
        values = frame[column].astype(object).tolist()
        for row, value in cells.items():
            values[row] = value
        read[column] = pd.Series(values, index=frame.index, dtype=object)
    return read


def misprint(
    planned: Planned, table: pd.DataFrame, rows: Sequence[int], lost: Mapping[str, Mapping[int, Cell | None]]
) -> str | None:
    """Why the printed target does not give the question's answer, ``None`` if it does.

    Args:
        planned: the question.
        table: the target's canonical cells.
        rows: the rows of the source that these are.
        lost: see :func:`as_read`.
    """
    wanted = [at for at, row in enumerate(rows) if row in set(planned.answer_rows)]
    for column in planned.query.columns:
        if not lost.get(column, {}).keys().isdisjoint(wanted):
            return f"its answer is not printed in full in column {column!r}"
    if planned.query.rows(as_read(table.reset_index(drop=True), lost)) != wanted:
        return "printed, other rows answer, too"
    return None


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
