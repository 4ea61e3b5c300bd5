"""Dates and Roman numerals: what answers and cells read in one way, and where they must differ."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.builder.forms import Form, forms_of
from tcr_tasks.qa.values import Value, read_value
from tcr_tasks.reranking.cells import read_cell
from tcr_tasks.values import Moment, read_moment, roman_number

NOON = datetime.time(12)


@settings(max_examples=60, deadline=None)
@given(st.dates(datetime.date(1000, 1, 1)), st.sampled_from(forms_of("date", str)), st.times())
def test_answers_and_cells_read_a_date_alike(day: datetime.date, form: Form, time: datetime.time) -> None:
    """The builder's forms, and times as the standard library prints them."""
    text = form.show(day.isoformat())
    assert read_moment(text) == read_moment(text, surely=True) == Moment(day, None)
    assert read_value(text) == Value("date", datetime.datetime.combine(day, datetime.time()))
    assert read_cell(text, "date") == day.isoformat()
    if ". " not in text.removesuffix("."):  # no time stands behind a date in words
        exact = time.replace(microsecond=0)
        for printed, expected in (
            (f"{text}, {exact:%I:%M %p}", exact.replace(second=0)),
            (f"{text} {exact:%H:%M:%S}", exact),
        ):
            assert read_moment(printed) == Moment(day, expected)
            assert read_value(printed) == Value("date", datetime.datetime.combine(day, expected))
            assert read_cell(printed, "date") == f"{day.isoformat()} {expected:%H:%M}"


@pytest.mark.parametrize("text", ["2009/07", "2009-7", "2009/7"])
def test_what_may_be_a_season_is_a_month_only_where_it_is_surely_a_date(text: str) -> None:
    assert read_moment(text) is None and read_value(text).kind == "text"
    assert read_moment(text, surely=True) == Moment(datetime.date(2009, 7, 1), None)
    assert read_cell(text, "date") == "2009-07-01"


@pytest.mark.parametrize(
    "text",
    ["2009-02-30", "3/4/2010", "2009-07/09", "Janu 9, 2009", "2009-IIX-9", "July 9, 2009, 13 p.m.", "0000-01-01", ""],
)
def test_no_dates(text: str) -> None:
    assert read_moment(text) is read_moment(text, surely=True) is None


def test_an_ordinal_may_stand_before_a_time() -> None:
    assert read_moment("2009-07-1st 12:00") == Moment(datetime.date(2009, 7, 1), NOON)


def test_a_numeral_is_in_capitals_and_in_its_usual_form() -> None:
    assert [roman_number(text) for text in ("MCMLXXIII", "IV", "iv", "IIII", "", "X1")] == [1973, 4, *[None] * 4]
    # An answer in small letters may be one, since texts are compared without regard to case; a cell may not.
    assert read_cell("iv", "number") is None and read_cell("IV", "number") == 4
