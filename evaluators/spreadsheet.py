"""Cells of tables that people open in a spreadsheet."""

from __future__ import annotations

import re

# What a spreadsheet may run as a formula. Apostrophes count too, so that one more of them can be taken off again.
_FORMULA = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")


def escaped(value: str) -> str:
    """The value, with an apostrophe in front where a spreadsheet could take it for a formula."""
    return "'" + value if _FORMULA.match(value) else value


def unescaped(cell: str) -> str:
    """The inverse of :func:`escaped`."""
    return cell.removeprefix("'") if _FORMULA.match(cell) else cell
