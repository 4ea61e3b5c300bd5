"""Words and dates that more than one builder prints: Roman numerals, small numbers in words, forms of a date."""

from __future__ import annotations

__all__ = [
    "MONTHS",
    "date_long",
    "date_parts",
    "date_roman",
    "date_short",
    "date_slashes",
    "ordinal",
    "roman",
    "under_hundred",
]

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


def ordinal(day: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    suffix = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{suffix}"


def date_parts(text: str) -> tuple[int, int, int]:
    year, month, day = text[:10].split("-")
    return int(year), int(month), int(day)


def date_slashes(text: str) -> str:
    year, month, day = date_parts(text)
    return f"{day}/{MONTHS[month - 1][:3]}/{year}"


def date_short(text: str) -> str:
    year, month, day = date_parts(text)
    name = MONTHS[month - 1]
    return f"{name if len(name) < 4 else name[:3] + '.'} {day}, {year}"


def date_long(text: str) -> str:
    year, month, day = date_parts(text)
    return f"{MONTHS[month - 1]} {ordinal(day)}, {year}"


def date_roman(text: str) -> str:
    year, month, day = date_parts(text)
    return f"{year}-{roman(month)}-{day}"
