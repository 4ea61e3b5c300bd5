"""Tables as text, exactly as the authors of TCR-Bench print them.

The authors read a CSV file with ``pandas.read_csv`` and print it with pandas. Both steps lose information, and
a score is comparable with theirs only if ours lose the same:

- reading: an integer column with a gap becomes floating point (``1`` prints as ``1.0`` and a 19-digit integer
  loses its last digits), leading zeros go, texts like ``NA`` and ``null`` become missing values;
- ``html`` prints floating-point columns with at most six decimals (pandas' ``display.precision``), two blanks in a
  cell as ``&nbsp;&nbsp;``, which the squeezing of blanks does not find, and a line end in a cell as a backslash and
  an ``n``. Long cells and long tables stay whole: ``to_html`` sets ``display.max_colwidth`` aside, and leaves out
  rows and columns only where a caller asks for it;
- ``markdown`` prints numbers with six significant digits (tabulate's ``g``): 1234567.8 becomes 1.23457e+06, and a
  pipe in a cell looks like a column boundary;
- every format: a run of blanks becomes one blank.

The authors' requirements name pandas 3.0.1; pandas 2 prints other blanks and, of numbers with 16 or more significant
digits, other last digits. So pandas 3 is required here.

``safe_markdown`` is ours, not the authors': it loses nothing.
"""

from __future__ import annotations

import random
import re
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import pandas as pd
import tabulate

__all__ = ["TableFormat", "read_table", "read_text_table", "serialize"]


class TableFormat(StrEnum):
    """How a table is printed. The first three are TCR-Bench's Mixed format, tsen and tsens its diagnostics."""

    CSV = "csv"
    HTML = "html"
    MARKDOWN = "markdown"
    TSEN = "tsen"
    TSENS = "tsens"
    SAFE_MARKDOWN = "safe_markdown"


# The defaults of every pandas option that reaches to_html: a user's `pd.set_option` must not change a score.
_DEFAULT_OPTIONS: tuple[Any, ...] = (
    *("display.precision", 6),
    *("display.float_format", None),
    *("display.chop_threshold", None),
    *("display.colheader_justify", "right"),
    *("display.html.border", 1),
    *("display.html.use_mathjax", True),
    *("display.max_colwidth", 50),
)
_SHUFFLE_SEED = 42


def read_table(csv: Path | IO[str]) -> pd.DataFrame:
    """The CSV file as the authors read it: pandas guesses the types, with the losses named above.

    Raises:
        pandas.errors.EmptyDataError: if there is no header.
        pandas.errors.ParserError: if a row has more cells than the first one.
    """
    return pd.read_csv(csv, low_memory=False)


def read_text_table(csv: Path | IO[str]) -> pd.DataFrame:
    """The CSV file with every cell as the text it has there; what ``safe_markdown`` prints.

    Duplicate column names stay as they are; a row that is too short is filled with empty cells.

    Raises:
        pandas.errors.EmptyDataError: if there is no header.
        pandas.errors.ParserError: if a row has more cells than the header.
    """
    # The header is read as a row of data: as a header, pandas would rename its duplicates, and it would take the
    # first column for an index if every row had one cell too many.
    cells = pd.read_csv(csv, header=None, dtype=str, keep_default_na=False).fillna("")
    frame = cells.iloc[1:].reset_index(drop=True)
    frame.columns = pd.Index(cells.iloc[0].tolist(), dtype=object)
    return frame


def serialize(table_name: str, frame: pd.DataFrame, fmt: TableFormat | str) -> str:
    """The text that is encoded for a table: ``{table_name}:``, the table, and an empty line.

    Args:
        table_name: the name without the number of the variant, for instance ``zip_code``.
        frame: from :func:`read_table`, or from :func:`read_text_table` for ``safe_markdown``.
        fmt: one of :class:`TableFormat`. ``tsen`` gives one line per row, ``column is value. column is value.``;
            ``tsens`` the same with each row's columns in random order (one generator per table, seed 42).

    Raises:
        ValueError: if the format is unknown, or a table for ``safe_markdown`` holds a cell that is not text.
    """
    try:
        fmt = TableFormat(fmt)
    except ValueError:
        raise ValueError(f"unknown table format {fmt!r}; one of {', '.join(TableFormat)}") from None
    if fmt is TableFormat.SAFE_MARKDOWN:
        # Blanks are not squeezed here: they may be part of a value.
        return f"{table_name}:\n{_safe_markdown(frame)}\n\n"
    return f"{table_name}:\n{re.sub(' +', ' ', _body(frame, fmt))}\n\n"


def _body(frame: pd.DataFrame, fmt: TableFormat) -> str:
    with pd.option_context(*_DEFAULT_OPTIONS):
        if fmt is TableFormat.CSV:
            # pandas ends lines as the system does; the authors' system ends them with a line feed.
            return frame.to_csv(index=False, lineterminator="\n")
        if fmt is TableFormat.HTML:
            return frame.to_html(index=False)
        if fmt is TableFormat.MARKDOWN:
            return _markdown(frame)
    return _sentences(frame, random.Random(_SHUFFLE_SEED) if fmt is TableFormat.TSENS else None)


def _markdown(frame: pd.DataFrame) -> str:
    """As tabulate prints it without the package wcwidth, which would change the width of East Asian columns."""
    wide = tabulate.WIDE_CHARS_MODE
    tabulate.WIDE_CHARS_MODE = False
    try:
        return frame.to_markdown(index=False)
    finally:
        tabulate.WIDE_CHARS_MODE = wide


def _sentences(frame: pd.DataFrame, shuffler: random.Random | None) -> str:
    lines = []
    # iterrows gives a row one type, so 1 prints as 1.0 in a table of integers and floats: as the authors do.
    for _, row in frame.iterrows():
        pairs = list(zip(frame.columns, row, strict=True))
        if shuffler is not None:
            shuffler.shuffle(pairs)
        lines.append(". ".join(f"{column} is {value}" for column, value in pairs) + ".")
    return "\n".join(lines)


def _safe_markdown(frame: pd.DataFrame) -> str:
    for at, column in enumerate(frame.columns):
        for cell in frame.iloc[:, at]:
            if not isinstance(cell, str):
                raise ValueError(
                    f"safe_markdown prints text only, but column {column!r} holds {cell!r}; use read_text_table"
                )
    rows = [
        [str(column) for column in frame.columns],
        ["---"] * len(frame.columns),
        *frame.to_numpy().tolist(),
    ]
    return "\n".join("| " + " | ".join(_escape(cell) for cell in row) + " |" for row in rows)


def _escape(cell: str) -> str:
    """A cell without pipes and line ends of its own; the backslash is escaped so that this can be undone."""
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")
