"""The surface forms of one column's values, each with its inverse (A.5.2 and A.5.3 of the TCR-Bench paper).

Numbers go through ``Decimal`` made from their text: no step rounds, so integers beyond 2^53 and decimal fractions come
back as they were.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from functools import partial

from tcr_tasks.builder.kinds import Kind
from tcr_tasks.builder.words import from_roman, from_words, in_roman, in_words
from tcr_tasks.surface import MONTHS, date_long, date_parts, date_roman, date_short, date_slashes

__all__ = ["Cell", "Form", "forms_of", "plain_form", "shifts_of"]

Cell = str | int | float

# Raises rather than rounds.
_EXACT = Context(prec=40, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
_LARGE = 1000
_ADDENDS = (1, 2, 3, 5)


@dataclass(frozen=True)
class Form:
    """One way to print the values of a column.

    Attributes:
        name: unique among the forms of a column.
        show: value to printed text; raises ``ValueError`` or ``ArithmeticError`` for a value that it cannot print.
        parse: the inverse of ``show``.
        header_note: what the header must say about the values, or nothing.
        prompt_note: what a reader of the table must do to get the true values, or nothing.
        large: worth while only where some value has four digits before the point.
    """

    name: str
    show: Callable[[Cell], str]
    parse: Callable[[str], Cell]
    header_note: str = ""
    prompt_note: str = ""
    large: bool = False

    def keeps(self, cells: Iterable[Cell]) -> bool:
        """Whether every value comes back as it was, in value and type, and none is printed as an empty cell."""
        found_large = not self.large
        for cell in cells:
            try:
                text = self.show(cell)
                back = self.parse(text)
            except (ValueError, ArithmeticError):
                return False
            if not text or type(back) is not type(cell) or back != cell:
                return False
            found_large = found_large or (not isinstance(cell, str) and abs(cell) >= _LARGE)
        return found_large


def plain_form(cell_type: type) -> Form:
    """Values as they are: a text, the digits of an integer, the shortest decimal text of a float.

    Raises:
        ValueError: if cells of this type are not known.
    """
    if cell_type is str:
        return Form("plain", _text, _text)
    if cell_type is int:
        # Markdown prints 1234511 beside a gap as 1.23451e+06.
        return Form("plain", repr, lambda text: _integer(Decimal(text)))
    if cell_type is float:
        return Form("plain", repr, float)
    raise ValueError(f"a table's cells are str, int or float, not {cell_type.__name__}")


def forms_of(kind: Kind, cell_type: type) -> tuple[Form, ...]:
    """The forms of a column beside the plain one, for cells of ``str``, ``int`` or ``float``.

    Identifiers are spelled in words or Roman numerals at most: nobody writes a ZIP code as 12.85k.
    """
    if kind == "date":
        return _DATES
    if cell_type is str:
        return ()
    found = [
        _number("words", cell_type, in_words, from_words),
        _number("words_and", cell_type, partial(in_words, british=True), from_words),
    ]
    if cell_type is int:
        found.append(Form("roman", lambda cell: in_roman(int(cell)), from_roman))
    if kind != "identifier":
        found += [
            _number("k", cell_type, partial(_thousands, "k"), partial(_from_thousands, "k"), large=True),
            _number("K", cell_type, partial(_thousands, "K"), partial(_from_thousands, "K"), large=True),
            _number("power_of_ten", cell_type, _power_of_ten, _from_power_of_ten, large=True),
            _number("grouped", cell_type, lambda number: f"{number:,f}", _from_grouped, large=True),
        ]
    return tuple(found)


def shifts_of(kind: Kind, cell_type: type) -> tuple[Form, ...]:
    """Multiplications, divisions and additions, which a header must tell; none for what nobody calculates with."""
    if kind not in ("integer", "number") or cell_type not in (int, float):
        return ()
    scaled = [
        _number(
            f"shift_{symbol}_{10**places}",
            cell_type,
            partial(_scaled, sign * places),
            partial(_unscaled, sign * places),
            header_note=f"{symbol} {10**places}",
            prompt_note=f"{done} by {10**places}; {undo} by {10**places} to get the true value",
        )
        for symbol, sign, done, undo in (("x", 1, "multiplied", "divide"), ("/", -1, "divided", "multiply"))
        for places in (1, 2)
    ]
    added = [
        _number(
            f"shift_+_{addend}",
            cell_type,
            partial(_added, addend),
            partial(_subtracted, addend),
            header_note=f"+ {addend}",
            prompt_note=f"increased by {addend}; subtract {addend} to get the true value",
        )
        for addend in _ADDENDS
    ]
    return (*scaled, *added)


# --- numbers -----------------------------------------------------------------------------------------------------


def _number(
    name: str,
    cell_type: type,
    show: Callable[[Decimal], str],
    parse: Callable[[str], Decimal],
    *,
    header_note: str = "",
    prompt_note: str = "",
    large: bool = False,
) -> Form:
    """A form over Decimals as one over cells of ``int`` or ``float``."""
    typed = _integer if cell_type is int else float
    return Form(
        name,
        lambda cell: show(Decimal(repr(cell))),
        lambda text: typed(parse(text)),
        header_note,
        prompt_note,
        large,
    )


def _integer(number: Decimal) -> int:
    if number != number.to_integral_value():
        raise ValueError(f"{number} is not a whole number")
    return int(number)


def _text(cell: Cell) -> str:
    return str(cell)


def _scaled(places: int, number: Decimal) -> str:
    return f"{_EXACT.scaleb(number, places):f}"


def _unscaled(places: int, text: str) -> Decimal:
    return _EXACT.scaleb(Decimal(text), -places)


def _added(addend: int, number: Decimal) -> str:
    return f"{_EXACT.add(number, Decimal(addend)):f}"


def _subtracted(addend: int, text: str) -> Decimal:
    return _EXACT.subtract(Decimal(text), Decimal(addend))


def _thousands(letter: str, number: Decimal) -> str:
    """15000 is 15k and 12850 is 12.85k; numbers under a thousand stay as they are."""
    if number.copy_abs() < _LARGE:
        return f"{number:f}"
    return f"{_EXACT.scaleb(number, -3).normalize(_EXACT):f}{letter}"


def _from_thousands(letter: str, text: str) -> Decimal:
    return _EXACT.scaleb(Decimal(text[:-1]), 3) if text.endswith(letter) else Decimal(text)


def _power_of_ten(number: Decimal) -> str:
    """12850 is 1.285x10^4."""
    short = number.normalize(_EXACT)
    power = short.adjusted() if short else 0
    return f"{_EXACT.scaleb(short, -power):f}x10^{power}"


def _from_power_of_ten(text: str) -> Decimal:
    factor, _, power = text.partition("x10^")
    return _EXACT.scaleb(Decimal(factor), int(power))


def _from_grouped(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


# --- dates: ISO text to other forms -------------------------------------------------------------------------------


def _date(name: str, show: Callable[[str], str], pattern: str, month: Callable[[str], int]) -> Form:
    """A form that prints year, month and day, read back by a pattern with groups ``y``, ``m`` and ``d``."""
    compiled = re.compile(pattern)

    def parse(text: str) -> str:
        found = compiled.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a date in the form {name!r}")
        return datetime.date(int(found["y"]), month(found["m"]), int(found["d"])).isoformat()

    return Form(name, lambda cell: show(str(cell)), parse)


def _month(text: str) -> int:
    """The number of a month from its name or the first three letters of it."""
    for number, name in enumerate(MONTHS, 1):
        if text.rstrip(".") in (name, name[:3]):
            return number
    raise ValueError(f"{text!r} is not a month")


def _date_words(text: str) -> str:
    """2023-01-15 is two thousand twenty-three. one. fifteen."""
    return " ".join(f"{in_words(Decimal(part))}." for part in date_parts(text))


def _from_date_words(text: str) -> str:
    year, month, day = (int(from_words(part)) for part in text.removesuffix(".").split(". "))
    return datetime.date(year, month, day).isoformat()


_DATES = (
    _date("day_slashes", date_slashes, r"(?P<d>\d{1,2})/(?P<m>[A-Z][a-z]{2})/(?P<y>\d{1,4})", _month),
    _date("short_month", date_short, r"(?P<m>[A-Z][a-z]{2}\.?) (?P<d>\d{1,2}), (?P<y>\d{1,4})", _month),
    _date("long_month", date_long, r"(?P<m>[A-Z][a-z]+) (?P<d>\d{1,2})(st|nd|rd|th), (?P<y>\d{1,4})", _month),
    _date("roman_month", date_roman, r"(?P<y>\d{1,4})-(?P<m>[IVX]+)-(?P<d>\d{1,2})", from_roman),
    Form("date_words", lambda cell: _date_words(str(cell)), _from_date_words),
)
