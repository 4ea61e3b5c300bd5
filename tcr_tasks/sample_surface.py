"""Surface forms for the sample's tables: other ways to print the same value.

After section A.5 of the TCR-Bench paper: dates, scaled numbers, number words and Roman numerals. A form changes no
value: what it does to a number (times ten) stands in the column's header. Every form takes and gives text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tcr_tasks.surface import (
    MONTHS,
    date_long,
    date_parts,
    date_roman,
    date_short,
    date_slashes,
    ordinal,
    roman,
    under_hundred,
)

__all__ = ["MONTHS", "NUMBER_KINDS", "Form", "Kind", "forms", "ordinal", "roman", "under_hundred", "year_words"]

# date: 2012-11-19; month: the first day of it; hour: 2010-07-09 15:00; year and the three kinds of number as digits.
Kind = Literal["date", "month", "hour", "year", "count", "small", "number", "text"]
# What the header of a shifted column says.
TEN_TIMES = "x 10"
NUMBER_KINDS = ("year", "count", "small", "number")


@dataclass(frozen=True)
class Form:
    """One way to print a column.

    Attributes:
        show: canonical text to printed text.
        note: what the header must say about it, or nothing.
    """

    show: Callable[[str], str]
    note: str = ""


def forms(kind: Kind, unit: str = "") -> list[Form]:
    """The forms of a kind of column; a form listed twice is drawn twice as often."""
    known: dict[Kind, list[Form]] = {
        "date": [Form(f) for f in (str, date_slashes, date_short, date_long, date_roman)],
        "month": [Form(f) for f in (_month_iso, _month_short, _month_long, _month_roman, _month_digits)],
        "hour": [Form(f) for f in (str, _hour_slashes, _hour_short, _hour_long, _hour_roman)],
        "year": [Form(str), Form(_year_roman), Form(year_words)],
        "count": [Form(str), Form(_thousands), Form(_grouped)],
        "small": [Form(str), Form(_small_words), Form(_small_roman)],
        # The paper shifts numbers "relatively infrequently".
        "number": [*[Form(str)] * 5, Form(_times_ten, TEN_TIMES)],
        "text": [Form(str)],
    }
    found = known[kind]
    if unit:
        found = [*found, Form(str, unit), Form(lambda text: f"{text} {unit}")]
    return found


def year_words(text: str) -> str:
    """A year as it is read out: nineteen seventy-three, eighteen oh five, seventeen hundred, two thousand eight."""
    century, rest = divmod(int(text), 100)
    if century == 20 and rest < 10:
        return "two thousand" + (f" {under_hundred(rest)}" if rest else "")
    if rest == 0:
        return f"{under_hundred(century)} hundred"
    return f"{under_hundred(century)} {'oh ' if rest < 10 else ''}{under_hundred(rest)}"


def _month_iso(text: str) -> str:
    return text[:7]


def _month_short(text: str) -> str:
    year, month, _ = date_parts(text)
    return f"{MONTHS[month - 1][:3]}/{year}"


def _month_long(text: str) -> str:
    year, month, _ = date_parts(text)
    return f"{MONTHS[month - 1]} {year}"


def _month_roman(text: str) -> str:
    year, month, _ = date_parts(text)
    return f"{year}-{roman(month)}"


def _month_digits(text: str) -> str:
    year, month, _ = date_parts(text)
    return f"{month:02d}/{year}"


def _clock(text: str) -> str:
    hour = int(text[11:13])
    return f"{(hour - 1) % 12 + 1} {'a.m.' if hour < 12 else 'p.m.'}"


def _hour_slashes(text: str) -> str:
    return f"{date_slashes(text)} {text[11:]}"


def _hour_short(text: str) -> str:
    return f"{date_short(text)}, {text[11:]}"


def _hour_long(text: str) -> str:
    return f"{date_long(text)}, {_clock(text)}"


def _hour_roman(text: str) -> str:
    return f"{date_roman(text)} {text[11:]}"


def _year_roman(text: str) -> str:
    return roman(int(text))


def _small_words(text: str) -> str:
    return under_hundred(int(text))


def _small_roman(text: str) -> str:
    return roman(int(text))


def _thousands(text: str) -> str:
    """12850 is 12.85k: exact, and numbers under a thousand stay as they are."""
    number = Decimal(text)
    return f"{(number / 1000).normalize():f}k" if abs(number) >= 1000 else text


def _grouped(text: str) -> str:
    return f"{Decimal(text):,}"


def _times_ten(text: str) -> str:
    shifted = Decimal(text) * 10
    return f"{shifted.to_integral_value() if shifted == shifted.to_integral_value() else shifted.normalize():f}"
