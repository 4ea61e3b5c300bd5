"""Surface forms for the sample's tables: other ways to print the same value.

After section A.5 of the TCR-Bench paper: dates, scaled numbers, number words and Roman numerals. A form changes no
value: what it does to a number (times ten) stands in the column's header. Every form takes and gives text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

# date: 2012-11-19; month: the first day of it; hour: 2010-07-09 15:00; year and the three kinds of number as digits.
Kind = Literal["date", "month", "hour", "year", "count", "small", "number", "text"]
NUMBER_KINDS = ("year", "count", "small", "number")

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_UNDER_TWENTY = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


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
        "date": [Form(f) for f in (str, _date_slashes, _date_short, _date_long, _date_roman)],
        "month": [Form(f) for f in (_month_iso, _month_short, _month_long, _month_roman, _month_digits)],
        "hour": [Form(f) for f in (str, _hour_slashes, _hour_short, _hour_long, _hour_roman)],
        "year": [Form(str), Form(_year_roman), Form(year_words)],
        "count": [Form(str), Form(_thousands), Form(_grouped)],
        "small": [Form(str), Form(_small_words), Form(_small_roman)],
        # The paper shifts numbers "relatively infrequently".
        "number": [*[Form(str)] * 5, Form(_times_ten, "x 10")],
        "text": [Form(str)],
    }
    found = known[kind]
    if unit:
        found = [*found, Form(str, unit), Form(lambda text: f"{text} {unit}")]
    return found


def roman(number: int) -> str:
    """A positive whole number in Roman numerals: 1973 is MCMLXXIII."""
    if number < 1:
        raise ValueError(f"Roman numerals have no {number}")
    out = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        out += letters * count
    return out


def under_hundred(number: int) -> str:
    """0 to 99 in English words."""
    if not 0 <= number < 100:
        raise ValueError(f"{number} is not between 0 and 99")
    if number < 20:
        return _UNDER_TWENTY[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens] + (f"-{_UNDER_TWENTY[ones]}" if ones else "")


def year_words(text: str) -> str:
    """A year as it is read out: nineteen seventy-three, eighteen oh five, seventeen hundred, two thousand eight."""
    century, rest = divmod(int(text), 100)
    if century == 20 and rest < 10:
        return "two thousand" + (f" {under_hundred(rest)}" if rest else "")
    if rest == 0:
        return f"{under_hundred(century)} hundred"
    return f"{under_hundred(century)} {'oh ' if rest < 10 else ''}{under_hundred(rest)}"


def ordinal(day: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    suffix = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{suffix}"


def _parts(text: str) -> tuple[int, int, int]:
    year, month, day = text[:10].split("-")
    return int(year), int(month), int(day)


def _date_slashes(text: str) -> str:
    year, month, day = _parts(text)
    return f"{day}/{MONTHS[month - 1][:3]}/{year}"


def _date_short(text: str) -> str:
    year, month, day = _parts(text)
    name = MONTHS[month - 1]
    return f"{name if len(name) < 4 else name[:3] + '.'} {day}, {year}"


def _date_long(text: str) -> str:
    year, month, day = _parts(text)
    return f"{MONTHS[month - 1]} {ordinal(day)}, {year}"


def _date_roman(text: str) -> str:
    year, month, day = _parts(text)
    return f"{year}-{roman(month)}-{day}"


def _month_iso(text: str) -> str:
    return text[:7]


def _month_short(text: str) -> str:
    year, month, _ = _parts(text)
    return f"{MONTHS[month - 1][:3]}/{year}"


def _month_long(text: str) -> str:
    year, month, _ = _parts(text)
    return f"{MONTHS[month - 1]} {year}"


def _month_roman(text: str) -> str:
    year, month, _ = _parts(text)
    return f"{year}-{roman(month)}"


def _month_digits(text: str) -> str:
    year, month, _ = _parts(text)
    return f"{month:02d}/{year}"


def _clock(text: str) -> str:
    hour = int(text[11:13])
    return f"{(hour - 1) % 12 + 1} {'a.m.' if hour < 12 else 'p.m.'}"


def _hour_slashes(text: str) -> str:
    return f"{_date_slashes(text)} {text[11:]}"


def _hour_short(text: str) -> str:
    return f"{_date_short(text)}, {text[11:]}"


def _hour_long(text: str) -> str:
    return f"{_date_long(text)}, {_clock(text)}"


def _hour_roman(text: str) -> str:
    return f"{_date_roman(text)} {text[11:]}"


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
