"""What printed cells stand for, as AAR-Exec's engine reads them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.builder.forms import Form, forms_of, shifts_of
from tcr_tasks.reranking.cells import read_cell
from tcr_tasks.sample_surface import forms


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12,850", 12850),
        ("12.85k", 12850),
        ("1.285x10^4", 12850),
        ("5.467K", 5467),
        ("180 hp", 180),
        ("-1.1 C", Decimal("-1.1")),
        ("74.28 USD", Decimal("74.28")),
        ("5.2 m/s", Decimal("5.2")),
        ("5 %", 5),
        ("$3.50", Decimal("3.5")),
        ("+.5", Decimal("0.5")),
        ("1e3", 1000),
        ("MCMLXXIII", 1973),
        ("VIII", 8),
        ("eight", 8),
        ("nineteen seventy-three", 1973),
        ("eighteen oh five", 1805),
        ("seventeen hundred", 1700),
        ("twenty fifteen", 2015),
        ("two thousand eight", 2008),
        ("ninety-eight thousand and thirty-five", 98035),
        ("minus two point zero five", Decimal("-2.05")),
        # As few as a thousand's own digits, or letters of another order, are no numbers.
        ("12,85", None),
        ("1.2.3", None),
        ("IIII", None),
        ("XL shirts", None),
        ("12 of 85", None),
        ("and", None),
        ("hundred", None),
        ("one two", None),
        ("two twenty", None),
        ("point five", None),
        ("No. 457", None),
        ("", None),
        ("  ", None),
        ("nan", None),
        ("inf", None),
        ("1" * 300, None),
    ],
)
def test_numbers(text: str, value: int | Decimal | None) -> None:
    assert read_cell(text, "number") == (float(value) if isinstance(value, Decimal) else value)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("latitude (x 10)", 38.99),
        ("latitude (/ 10)", 3899),
        ("latitude (+ 3)", 386.9),
        ("latitude [- 3]", 392.9),
        ("latitude (x 0)", 389.9),
        ("latitude (N)", 389.9),
    ],
)
def test_shifts_that_a_header_tells_are_undone(header: str, value: float) -> None:
    assert read_cell("389.9", "number", header) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2009-07-09", "2009-07-09"),
        ("9/Jul/2009", "2009-07-09"),
        ("Jul. 9, 2009", "2009-07-09"),
        ("July 9th, 2009", "2009-07-09"),
        ("2009-VII-9", "2009-07-09"),
        ("two thousand nine. seven. nine.", "2009-07-09"),
        ("9 July 2009", "2009-07-09"),
        ("2009-07", "2009-07-01"),
        ("Jul/2009", "2009-07-01"),
        ("07/2009", "2009-07-01"),
        ("2009-VII", "2009-07-01"),
        ("2010-07-09 15:00", "2010-07-09 15:00"),
        ("2010-VII-9 15:00", "2010-07-09 15:00"),
        ("Jul. 9, 2010, 15:00", "2010-07-09 15:00"),
        ("June 7th, 2010, 12 a.m.", "2010-06-07 00:00"),
        ("June 7th, 2010, 12 p.m.", "2010-06-07 12:00"),
        ("June 7th, 2010, 1 p.m.", "2010-06-07 13:00"),
        ("2009-13-01", None),
        ("2009-02-30", None),
        ("2009-07-09 25:00", None),
        ("June 7th, 2010, 13 p.m.", None),
        ("2009", None),
        ("Hulk 9, 2009", None),
        ("no date", None),
    ],
)
def test_dates(text: str, value: str | None) -> None:
    assert read_cell(text, "date") == value


@settings(max_examples=80, deadline=None)
@given(st.integers(-(10**9), 10**9), st.sampled_from([*forms_of("integer", int), *shifts_of("integer", int)]))
def test_every_form_of_the_builder_is_read_back(number: int, form: Form) -> None:
    """The builder's own inverse is the oracle of what a form can print."""
    if form.keeps([number]):
        header = f"x ({form.header_note})" if form.header_note else "x"
        assert read_cell(form.show(number), "number", header) == number


@settings(max_examples=60, deadline=None)
@given(st.dates(datetime.date(1000, 1, 1)), st.sampled_from(forms_of("date", str)))
def test_every_form_of_a_date_is_read_back(day: datetime.date, form: Form) -> None:
    assert read_cell(form.show(day.isoformat()), "date") == day.isoformat()


@settings(max_examples=40, deadline=None)
@given(st.integers(1100, 2099), st.integers(0, 99), st.integers(0, 23))
def test_every_form_of_the_sample_is_read_back(year: int, small: int, hour: int) -> None:
    time_of_day = f"{year}-03-0{1 + small % 9} {hour:02d}:00"
    for kind, text in (("year", str(year)), ("small", str(small or 1)), ("count", f"{small}{year}")):
        for form in forms(kind):  # type: ignore[arg-type]
            assert read_cell(form.show(text), "number") == int(text), (kind, form.show(text))
    for form in forms("hour"):
        assert read_cell(form.show(time_of_day), "date") == time_of_day, form.show(time_of_day)
