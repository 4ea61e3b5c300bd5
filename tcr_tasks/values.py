"""Dates and Roman numerals as tables and answers write them, read in one way."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import NamedTuple

from tcr_tasks.builder.words import from_roman, from_words
from tcr_tasks.surface import MONTHS

__all__ = ["Moment", "read_moment", "roman_number"]


class Moment(NamedTuple):
    """A date; ``time`` is ``None`` where the text has none."""

    day: datetime.date
    time: datetime.time | None


def roman_number(text: str) -> int | None:
    """The number that a Roman numeral in capitals is, in its usual form; ``None`` if the text is none."""
    try:
        return from_roman(text)
    except ValueError:
        return None


def read_moment(text: str, *, surely: bool = False) -> Moment | None:
    """The date, with its time, that a text is; ``None`` if it is none, or not one of the calendar.

    Read are the paper's forms (A.5.2): 2009-07-09, 2009/07/09, 9/Jul/2009, Jul. 9, 2009, July 9th, 2009, 2009-VII-9,
    and all in words; a month alone, which stands for its first day; a time of day behind: 15:00, 3 p.m.
    What may be day and month in either order, such as 3/4/2010, is none.

    Args:
        text: without blanks at its ends.
        surely: whether it is known to be a date, so that a month may also be written as 2009/07 and 2009-7, which
            else could be a season or a code.
    """
    found = _TIME.fullmatch(text)
    if found is None or not (found["min"] or found["half"]):
        day = _day(text, surely)
        return None if day is None else Moment(day, None)
    day, time = _day(found["date"], surely), _time(found)
    return None if day is None or time is None else Moment(day, time)


_TIME = re.compile(
    r"(?P<date>.*[^, ])(?:, *| +|T)(?P<h>[0-9]{1,2})(?::(?P<min>[0-9]{2})(?::(?P<s>[0-9]{2})(?:\.0+)?)?)?"
    r"(?: *(?P<half>[ap])\.?m\.?)?",
    re.IGNORECASE,
)
_NAME = r"(?P<name>[A-Za-z]{3,9})\.?"
_YEAR, _DAY = r"(?P<y>[0-9]{4})", r"(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?"
_NUMERAL = r"(?P<roman>[IVX]+)"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_YEAR}-(?P<m>[0-9]{{1,2}})-{_DAY}",
        rf"{_YEAR}/(?P<m>[0-9]{{1,2}})/{_DAY}",
        rf"{_YEAR}-{_NUMERAL}-{_DAY}",
        rf"{_DAY}[/ -]{_NAME},?[/ -]{_YEAR}",
        rf"{_NAME} {_DAY},? {_YEAR}",
        # A month, of which the first day stands for the whole.
        rf"{_YEAR}-(?P<m>[0-9]{{2}})",
        rf"(?P<m>[0-9]{{1,2}})/{_YEAR}",
        rf"{_YEAR}-{_NUMERAL}",
        rf"{_NAME},?[/ -]{_YEAR}",
    )
)
_IF_SURELY = re.compile(rf"{_YEAR}[-/](?P<m>[0-9]{{1,2}})")
_MONTHS = {name.casefold(): n for n, month in enumerate(MONTHS, 1) for name in (month, month[:3])} | {"sept": 9}


def _time(found: re.Match[str]) -> datetime.time | None:
    hour = int(found["h"])
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].lower() == "p" else 0)
    try:
        return datetime.time(hour, int(found["min"] or 0), int(found["s"] or 0))
    except ValueError:
        return None


def _day(text: str, surely: bool) -> datetime.date | None:
    for pattern in (*_DATES, *([_IF_SURELY] if surely else [])):
        found = pattern.fullmatch(text)
        if found is not None:
            parts = found.groupdict()
            month = _month(parts)
            return None if month is None else _of_calendar(int(found["y"]), month, int(parts.get("d") or 1))
    return _day_in_words(text)


def _month(parts: Mapping[str, str | None]) -> int | None:
    if parts.get("m"):
        return int(str(parts["m"]))
    if parts.get("roman"):
        return roman_number(str(parts["roman"]))
    return _MONTHS.get(str(parts["name"]).casefold())


def _day_in_words(text: str) -> datetime.date | None:
    """``two thousand twenty-three. one. fifteen.``"""
    parts = text.casefold().removesuffix(".").split(". ")
    if len(parts) != 3:
        return None
    try:
        year, month, day = (int(from_words(part)) for part in parts)
    except (ValueError, ArithmeticError):
        return None
    return _of_calendar(year, month, day)


def _of_calendar(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except (ValueError, OverflowError):
        return None
