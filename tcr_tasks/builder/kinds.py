"""What a column holds: text, integers, numbers, dates or identifiers, told from its cells."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import pandas as pd

Kind = Literal["text", "integer", "number", "date", "identifier"]

# What pandas takes for a missing value when it reads a CSV file, so that a printed table would lose it anyway.
MISSING = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
        *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*|(?=\.[0-9]))(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_DIGITS = re.compile(r"[+-]?[0-9]+")
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]00:00(?::00(?:\.0+)?)?)?")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_IDENTIFIER_WORDS = frozenset(
    (
        *("id", "ids", "key", "code", "zip", "zipcode", "postcode", "fips", "isbn", "issn", "ssn", "phone", "fax"),
        *("uuid", "guid", "index", "pk", "fk", "number", "no", "nr"),
    )
)
_BIG = 2**63
_EXACT = 2**53


class UnusableColumnError(ValueError):
    """A column that no benchmark can be built on; the text says why."""


def typed(name: str, cells: Sequence[Any], *, key: bool = False) -> tuple[pd.Series[Any], Kind]:
    """The column with cells of one type, and its kind.

    A text has its runs of blanks and line ends squeezed into one blank, as tables are printed; blank cells, and texts
    such as ``NA`` that a reader of CSV takes for missing, are missing. Digits with leading zeros and integers beyond
    64 bits stay text. Texts and dates (ISO, ``2012-01-31``) are of the type ``str``, integers ``Int64``, numbers
    ``float64``.

    Args:
        name: of the column; ``id``, ``code`` and the like mark an identifier.
        cells: text, int, float, bool, date, datetime, bytes or a missing value.
        key: whether the source declares the column a key.

    Raises:
        UnusableColumnError: if every cell is missing, or the column holds binary or nested data, numbers that are not
            finite, or numbers with some texts between them.
    """
    values = [_plain(cell) for cell in cells]
    present = [value for value in values if value is not None]
    if not present:
        raise UnusableColumnError("every cell is missing")
    texts = [value for value in present if isinstance(value, str)]
    numeric = [text for text in texts if _NUMBER.fullmatch(text)]
    identifier = key or _is_identifier(name)
    if len(numeric) == len(texts):
        return _numbers(name, [_number(v) for v in values], identifier)
    if len(texts) < len(present) or numeric:
        words = [text for text in texts if not _NUMBER.fullmatch(text)]
        if len(present) - len(words) > len(present) / 2 and not all(map(_DIGITS.fullmatch, texts)):
            raise UnusableColumnError(
                f"mixed types: {len(present) - len(words)} numbers and {len(words)} texts such as {words[0][:40]!r}"
            )
    column = [value if value is None or isinstance(value, str) else str(value) for value in values]
    dates = [None if text is None else _date(text) for text in column]
    if all((date is None) == (text is None) for date, text in zip(dates, column, strict=True)):
        return pd.Series(dates, dtype="str"), "date"
    digits = all(_DIGITS.fullmatch(text) for text in column if text is not None)
    return pd.Series(column, dtype="str"), "identifier" if identifier or digits else "text"


_RATES = {"rate", "ratio", "share", "percent", "percentage", "pct", "average", "avg", "mean", "median", "temperature"}


def name_words(name: str) -> list[str]:
    """The words of a column's name in small letters: ``zipCode``, ``zip_code`` and ``ZIP Code`` alike."""
    return [word.lower() for word in _WORD.findall(name)]


def is_year(name: str) -> bool:
    """Whether the name says that the column holds years: ordered, but not to be summed."""
    return bool({"year", "years", "yr"} & set(name_words(name)))


def is_coordinate(name: str) -> bool:
    """Whether the name says that the column holds degrees of latitude or longitude, which nobody adds up."""
    return bool({"lat", "latitude", "lon", "lng", "longitude"} & set(name_words(name)))


def is_rate(name: str) -> bool:
    """Whether the name says that the numbers are rates or averages, whose sum means nothing."""
    return bool(_RATES & set(name_words(name)))


def reads_as_text(value: str) -> bool:
    """Whether a text stays one where a table is read from CSV and its types are guessed."""
    return not (_NUMBER.fullmatch(value) or _DIGITS.fullmatch(value) or value.lower() in ("true", "false"))


def _is_identifier(name: str) -> bool:
    words = name_words(name)
    return bool(words) and (words[-1] in _IDENTIFIER_WORDS or words[-1].endswith("id"))


def _plain(cell: Any) -> str | int | float | None:
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, bytes | bytearray | memoryview):
        raise UnusableColumnError("binary data")
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, datetime.date):
        return cell.isoformat()
    if isinstance(cell, int):
        return cell
    if isinstance(cell, float):
        if not math.isfinite(cell):
            raise UnusableColumnError("numbers that are not finite")
        return cell
    if isinstance(cell, list | dict):
        raise UnusableColumnError("nested data")
    text = " ".join(str(cell).split())
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise UnusableColumnError(f"text with a NUL or half a character, such as {text[:40]!r}")
    return None if text in MISSING else text


def _number(value: str | int | float | None) -> int | float | None:
    if not isinstance(value, str):
        return value
    return int(value) if _INTEGER.fullmatch(value) else float(value)


def _numbers(name: str, values: list[int | float | None], identifier: bool) -> tuple[pd.Series[Any], Kind]:
    present = [value for value in values if value is not None]
    if any(isinstance(value, float) and not math.isfinite(value) for value in present):
        raise UnusableColumnError("numbers that are not finite")
    # Keys with gaps come as floats from many tools; whole numbers of exact size are meant.
    whole = all(isinstance(v, int) or (v.is_integer() and abs(v) <= _EXACT) for v in present)
    if not whole:
        if any(isinstance(value, int) and abs(value) > _EXACT for value in present):
            raise UnusableColumnError("fractions beside integers beyond 2^53, which no number type holds both")
        return pd.Series([math.nan if v is None else float(v) for v in values], dtype="float64"), "number"
    integers = [None if value is None else int(value) for value in values]
    if any(not -_BIG <= value < _BIG for value in integers if value is not None):
        return pd.Series([None if v is None else str(v) for v in integers], dtype="str"), "identifier"
    kind: Kind = "identifier" if identifier or _counts_rows(name, integers) else "integer"
    return pd.Series(pd.array(integers, dtype="Int64")), kind


def _counts_rows(name: str, values: Sequence[int | None]) -> bool:
    """Whether the values number the rows: rising without a gap in more than half of the steps, none missing."""
    present = [value for value in values if value is not None]
    if is_year(name) or len(present) < 3 or len(present) < len(values):
        return False
    steps = [after - before for before, after in pairwise(present)]
    return min(steps) > 0 and 2 * steps.count(1) > len(steps)


def _date(text: str) -> str | None:
    """The ISO date, also where midnight is written behind it."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    try:
        return datetime.date.fromisoformat(found[1]).isoformat()
    except ValueError:
        return None
