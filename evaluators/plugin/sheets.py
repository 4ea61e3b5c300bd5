"""Sheets that people filled in, read back."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from evaluators.plugin.checks import DatasetError
from evaluators.spreadsheet import unescaped

_DELIMITERS = ",;\t"


def read_sheet(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The named cells of every row of a CSV file that came back from a spreadsheet, empty ones as an empty text.

    Separated by commas, semicolons or tabs, in any order of columns, further ones ignored.

    Raises:
        DatasetError: if it is no UTF-8 or no CSV, or lacks columns.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(str(path), [f"it is not UTF-8 ({error}); save it as 'CSV UTF-8'"]) from error
    header = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=header.count), strict=True)
    try:
        missing = [c for c in columns if c not in (reader.fieldnames or ())]
        if missing:
            raise DatasetError(str(path), [f"row 1: the columns {', '.join(missing)} are missing"])
        return [{column: unescaped(row[column] or "") for column in columns} for row in reader]
    except csv.Error as error:
        raise DatasetError(str(path), [f"near line {reader.line_num}: {error}"]) from error
