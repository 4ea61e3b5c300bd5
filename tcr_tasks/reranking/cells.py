"""What a printed cell stands for: a number, a date or a text, however it is written (appendix A.5 of the paper).

Read are all the forms that TCR-Bench, its sample and the builder print: 12,850, 12.85k, 1.285x10^4, 180 hp, numbers
and years in words, Roman numerals, shifts that the header tells; dates with the month in digits, in letters or as a
Roman numeral, or all in words; months without a day; times of day.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Literal

from tcr_tasks.builder.words import from_words, in_words
from tcr_tasks.values import read_moment, roman_number

__all__ = ["Kind", "Value", "read_cell"]

Kind = Literal["number", "date", "text"]
Value = str | int | float

# Beyond it, a cell is no number or date; words and patterns must not run over a whole text.
_LONGEST = 200
_LARGEST_INTEGER = 2**63
_UNIT = r"(?:\s*%|\s+[^\d\s][^\d]*)?"
_DIGITS = re.compile(
    rf"[$€£¥]?\s*(?P<number>[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|[-+]?\.\d+)"
    rf"(?P<scale>[kK]|\s*[x×]\s*10\^(?P<power>[-+]?\d{{1,2}})|[eE](?P<exponent>[-+]?\d{{1,3}}))?{_UNIT}"
)
_SHIFT = re.compile(r"[(\[]\s*([x×*/÷+−-])\s*(\d+(?:\.\d+)?)\s*[)\]]\s*$")


@lru_cache(maxsize=65536)
def read_cell(text: str, kind: Kind, header: str = "") -> Value | None:
    """The value of a cell, ``None`` if it is empty or not of that kind.

    Args:
        text: as it is printed.
        kind: ``number``: an integer where it is one; ``date``: ``YYYY-MM-DD``, with ``HH:MM`` behind a blank where the
            cell has a time, the first day of a month without a day; ``text``: as it is, without blanks at its ends.
        header: the column's, which may end in a shift of its numbers: ``(x 10)``, ``(/ 100)``, ``(+ 3)``, ``(- 3)``.
    """
    cell = text.strip()
    if not cell:
        return None
    if kind == "text":
        return cell
    if len(cell) > _LONGEST:
        return None
    if kind == "date":
        return _date(cell)
    number = _number(cell)
    return None if number is None else _plain(_unshifted(number, header))


# --- numbers -----------------------------------------------------------------------------------------------------


def _number(cell: str) -> Decimal | None:
    found = _DIGITS.fullmatch(cell)
    if found is not None:
        number = Decimal(found["number"].replace(",", ""))
        places = 3 if found["scale"] in ("k", "K") else int(found["power"] or found["exponent"] or 0)
        return number.scaleb(places)
    roman = roman_number(cell)
    return _in_words(cell.lower()) if roman is None else Decimal(roman)


def _in_words(cell: str) -> Decimal | None:
    year = re.fullmatch(r"([a-z-]+) (hundred|oh [a-z]+|[a-z]+-[a-z]+|[a-z]+)", cell)
    if year is not None:
        century, rest = _spelled(year[1]), _spelled(year[2].removeprefix("oh "))
        if century is not None and 10 < century < 100 and (year[2] == "hundred" or (rest is not None and rest < 100)):
            return century * 100 + (rest or 0)  # nineteen seventy-three, eighteen oh five, seventeen hundred
    return _spelled(cell)


def _spelled(words: str) -> Decimal | None:
    """The number that is spelled so; ``None`` for words in another order, which the inverse would take as well."""
    try:
        number = from_words(words)
        same = _plain_words(in_words(number)) == _plain_words(words)
    except (ValueError, InvalidOperation):
        return None
    return number if same else None


def _plain_words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,-]+", text) if word != "and"]


def _unshifted(number: Decimal, header: str) -> Decimal:
    shift = _SHIFT.search(header)
    if shift is None or not Decimal(shift[2]):
        return number
    sign, by = shift[1], Decimal(shift[2])
    if sign in "x×*":
        return number / by
    if sign in "/÷":
        return number * by
    return number - by if sign == "+" else number + by


def _plain(number: Decimal) -> int | float:
    if number == number.to_integral_value() and abs(number) < _LARGEST_INTEGER:
        return int(number)
    return float(number)


# --- dates -------------------------------------------------------------------------------------------------------


def _date(cell: str) -> str | None:
    moment = read_moment(cell, surely=True)
    if moment is None:
        return None
    # To the minute, as the benchmark's times are.
    return moment.day.isoformat() + ("" if moment.time is None else f" {moment.time:%H:%M}")
