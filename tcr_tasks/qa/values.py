"""Values of answers, and when two of them are the same.

The rules are this project's own; the paper names only what its prompt asks for (C.2: Arabic for Roman numerals, shifts
undone, dates in one form).
"""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from html import unescape
from typing import Any, Literal

from tcr_tasks.values import read_moment, roman_number

__all__ = ["TOLERANCE", "Value", "read_value", "same_value"]

# What printing with six significant digits, as in the Markdown tables of the benchmark, may take from a number.
TOLERANCE = 1e-5
_NOTHING = Decimal("1e-12")
_LARGEST_POWER = 400
_LONGEST_DATE = 100


@dataclass(frozen=True)
class Value:
    """A value of an answer, in the form in which it is compared.

    Attributes:
        kind: ``missing`` is the same as nothing.
        key: exact number, date with time, truth value, or folded text.
    """

    kind: Literal["number", "date", "boolean", "text", "missing"]
    key: Decimal | datetime.datetime | bool | str | None


def same_value(first: Value, second: Value, tolerance: float = TOLERANCE) -> bool:
    """Whether two values are the same.

    - Numbers: two whole ones if they are exactly equal, however large (35156.0 is whole); two of which one has a
      fraction if they differ by at most ``tolerance`` times the larger magnitude, or by 1e-12.
    - Dates: the same moment; a date without time is its midnight.
    - Truth values: the same; never a number, so true is not 1.
    - Texts: letter by letter, but for case, blanks and HTML's escapes.
    - A text that is a Roman numeral is also the number; no other values of different kinds are the same.
    - A missing value is the same as none, itself included.

    Symmetric; not transitive. A whole number beyond six digits that a table prints as 1.23457e+06 cannot be answered.
    """
    if first.kind == "missing" or second.kind == "missing":
        return False
    if first.kind == second.kind == "number":
        assert isinstance(first.key, Decimal) and isinstance(second.key, Decimal)
        return _same_number(first.key, second.key, tolerance)
    if first.kind == second.kind:
        return first.key == second.key
    if {first.kind, second.kind} == {"number", "text"}:
        number, text = (first, second) if first.kind == "number" else (second, first)
        # In small letters, too: texts are compared without regard to case.
        return roman_number(str(text.key).upper()) == number.key
    return False


def read_value(raw: Any) -> Value:
    """A value as JSON or a table has it: ``None``, truth value, number or text.

    A text is read as what it says: ``true`` or ``false`` in any case; a number with or without thousands separators,
    exponent and percent sign (45% is 45, never 0.45); a date in the paper's forms (A.5.2), with or without time, or a
    month, which is its first day. What could be several things stays text: 007, 1,23, 3/4/2010, 15k.

    Raises:
        TypeError: for anything else, such as a list.
    """
    if raw is None or (isinstance(raw, float) and math.isnan(raw)):
        return Value("missing", None)
    if isinstance(raw, bool):
        return Value("boolean", raw)
    if isinstance(raw, int | float | Decimal):
        return _number(Decimal(repr(raw)) if isinstance(raw, float) else Decimal(raw))
    if not isinstance(raw, str):
        raise TypeError(f"a value is a text, a number, true, false or null, not {type(raw).__name__}: {str(raw)[:80]}")
    text = " ".join(unicodedata.normalize("NFC", unescape(raw)).split())
    if text.casefold() in ("true", "false"):
        return Value("boolean", text.casefold() == "true")
    found = _NUMBER.fullmatch(text.replace("−", "-"))
    if found:
        return _number(Decimal(found[1].replace(",", "")))
    if len(text) <= _LONGEST_DATE and (moment := read_moment(text)) is not None:
        return Value("date", datetime.datetime.combine(moment.day, moment.time or datetime.time()))
    return Value("text", text.casefold())


# --- numbers -----------------------------------------------------------------------------------------------------

# No leading zeros: 007 is a name.
_WHOLE = r"(?:0|[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]*)"
_NUMBER = re.compile(rf"([+-]?(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?) ?%?")


def _number(number: Decimal) -> Value:
    if not number.is_finite() or abs(number.adjusted()) > _LARGEST_POWER:
        return Value("text", str(number).casefold())
    return Value("number", number)


def _same_number(first: Decimal, second: Decimal, tolerance: float) -> bool:
    if first == second:
        return True
    if first == first.to_integral_value() and second == second.to_integral_value():
        return False
    return abs(first - second) <= max(Decimal(repr(tolerance)) * max(abs(first), abs(second)), _NOTHING)
