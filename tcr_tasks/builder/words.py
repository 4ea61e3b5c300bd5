"""Numbers in English words and in Roman numerals, both ways and exact."""

from __future__ import annotations

import re
from decimal import Decimal

from tcr_tasks.surface import roman, under_hundred

__all__ = ["from_roman", "from_words", "in_roman", "in_words"]

LARGEST_ROMAN = 3999
# More digits than that after the point fill a cell with words and tell nobody anything.
LONGEST_FRACTION = 6

_SCALES = (
    *("", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion"),
    *("octillion", "nonillion", "decillion"),
)
_SMALL = {under_hundred(number): number for number in range(100)}
_ROMAN = {roman(number): number for number in range(1, LARGEST_ROMAN + 1)}


def in_roman(number: int) -> str:
    """1973 is MCMLXXIII.

    Raises:
        ValueError: if the number is not between 1 and 3999.
    """
    if not 1 <= number <= LARGEST_ROMAN:
        raise ValueError(f"{number} is not between 1 and {LARGEST_ROMAN}, the range of Roman numerals")
    return roman(number)


def from_roman(text: str) -> int:
    """The number that :func:`in_roman` wrote.

    Raises:
        ValueError: if the text is no Roman numeral in its usual form.
    """
    if text not in _ROMAN:
        raise ValueError(f"{text!r} is not a Roman numeral from I to MMMCMXCIX")
    return _ROMAN[text]


def in_words(number: Decimal, *, british: bool = False) -> str:
    """A number as it is read out, a fraction digit by digit: ``minus two thousand twenty-three point zero five``.

    Args:
        number: finite; its trailing zeros after the point are read out too.
        british: with "and" and commas: ``twenty-four thousand, five hundred and twenty-two``.

    Raises:
        ValueError: if the number has no name here (10^36 or more), or more than six digits after the point.
    """
    if not number.is_finite():
        raise ValueError(f"{number} has no words")
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
    if len(fraction) > LONGEST_FRACTION:
        raise ValueError(f"{number} has more than {LONGEST_FRACTION} digits after the point")
    sign = "minus " if number.is_signed() else ""
    digits = "".join(f" {under_hundred(int(digit))}" for digit in fraction)
    return f"{sign}{_cardinal(int(whole), british)}{' point' + digits if digits else ''}"


def from_words(text: str) -> Decimal:
    """The number that :func:`in_words` wrote, in either style.

    Raises:
        ValueError: if a word is not one that :func:`in_words` writes.
    """
    whole, _, fraction = text.removeprefix("minus ").partition(" point ")
    number = str(_whole(whole))
    if fraction:
        number += "." + "".join(str(_small(word)) for word in fraction.split())
    return Decimal(f"-{number}" if text.startswith("minus ") else number)


def _cardinal(number: int, british: bool) -> str:
    if number == 0:
        return under_hundred(0)
    groups: list[int] = []
    while number:
        number, group = divmod(number, 1000)
        groups.append(group)
    if len(groups) > len(_SCALES):
        raise ValueError(f"numbers of more than {3 * len(_SCALES)} digits have no words here")
    parts = [
        f"{_under_thousand(group, british)} {scale}".rstrip()
        for group, scale in zip(groups, _SCALES, strict=False)
        if group
    ][::-1]
    if not british:
        return " ".join(parts)
    if len(parts) > 1 and 0 < groups[0] < 100:
        return f"{', '.join(parts[:-1])} and {parts[-1]}"
    return ", ".join(parts)


def _under_thousand(number: int, british: bool) -> str:
    hundreds, rest = divmod(number, 100)
    parts = [f"{under_hundred(hundreds)} hundred"] if hundreds else []
    if rest:
        parts.append(under_hundred(rest))
    return (" and " if british else " ").join(parts)


def _whole(text: str) -> int:
    total = group = 0
    for word in re.findall(r"[^\s,]+", text):
        if word == "hundred":
            group *= 100
        elif word in _SCALES:
            total += group * 1000 ** _SCALES.index(word)
            group = 0
        elif word != "and":
            group += _small(word)
    return total + group


def _small(word: str) -> int:
    if word not in _SMALL:
        raise ValueError(f"{word!r} is not a number in words")
    return _SMALL[word]
