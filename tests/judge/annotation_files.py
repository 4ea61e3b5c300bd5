"""A filled-in file for annotators, as a spreadsheet would save it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path


def edited(path: Path, change: Callable[[dict[str, str]], None]) -> Path:
    """The file as a spreadsheet would write it after ``change`` was made to every row."""
    rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
    for row in rows:
        change(row)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path
