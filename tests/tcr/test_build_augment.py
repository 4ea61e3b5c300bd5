"""Surface forms: as the paper shows them, and exactly undone by their inverses.

Oracles: the examples of the paper's A.5 and of the released tables; Python's own numbers and dates; the answer of
:class:`Query` on a table before it is reworded and after it was read back from CSV.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import random
from decimal import Decimal
from typing import Any, get_args

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.builder.augment import Look, Taste, Wardrobe, as_csv, draw_look, normalised, plain_look, printed
from tcr_tasks.builder.forms import Cell, Form, forms_of, plain_form, shifts_of
from tcr_tasks.builder.kinds import Kind
from tcr_tasks.builder.words import from_roman, from_words, in_roman, in_words
from tcr_tasks.queries import Aggregate, Condition, Query

WILD = Taste(plain=0.1, shift=0.3)


def form(kind: Kind, cell_type: type, name: str) -> Form:
    return next(f for f in (*forms_of(kind, cell_type), *shifts_of(kind, cell_type)) if f.name == name)


# --- as the paper and the released tables have them -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "name", "text"),
    [
        # A.5.2
        ("date", "2023-01-15", "day_slashes", "15/Jan/2023"),
        ("date", "2023-01-15", "short_month", "Jan. 15, 2023"),
        ("date", "2023-01-15", "long_month", "January 15th, 2023"),
        ("date", "2023-01-15", "roman_month", "2023-I-15"),
        ("date", "2023-01-15", "date_words", "two thousand twenty-three. one. fifteen."),
        ("date", "2008-05-22", "short_month", "May 22, 2008"),
        ("date", "2008-12-03", "long_month", "December 3rd, 2008"),
        # A.5.3; its "102 -> C" is a slip: 102 is CII.
        ("integer", 15_000, "k", "15k"),
        ("integer", 12_850, "K", "12.85K"),
        ("integer", 999, "k", "999"),
        ("integer", -15_001, "k", "-15.001k"),
        ("number", 1234.5, "k", "1.2345k"),
        ("integer", 102, "roman", "CII"),
        ("integer", 102, "words_and", "one hundred and two"),
        # Released tables.
        ("identifier", 98_035, "words_and", "ninety-eight thousand and thirty-five"),
        ("identifier", 24_522, "words_and", "twenty-four thousand, five hundred and twenty-two"),
        ("integer", 1_000_500, "words_and", "one million, five hundred"),
        ("integer", -2_000_017, "words", "minus two million seventeen"),
        ("number", 0.05, "words", "zero point zero five"),
        ("integer", 12_850, "power_of_ten", "1.285x10^4"),
        ("number", -0.00123, "power_of_ten", "-1.23x10^-3"),
        ("integer", 1_234_567, "grouped", "1,234,567"),
        ("integer", 15, "shift_x_10", "150"),
        ("integer", 15, "shift_/_100", "0.15"),
        ("number", 0.1, "shift_+_3", "3.1"),
    ],
)
def test_a_value_in_a_form(kind: Kind, value: Cell, name: str, text: str) -> None:
    chosen = form(kind, type(value), name)
    assert chosen.show(value) == text
    assert chosen.parse(text) == value and type(chosen.parse(text)) is type(value)


def test_roman_numerals_run_from_1_to_3999() -> None:
    """Every one comes back; the rules of writing (no letter four times, V, L and D once) hold."""
    texts = [in_roman(number) for number in range(1, 4000)]
    assert [from_roman(text) for text in texts] == list(range(1, 4000))
    assert not [t for t in texts if any(c * 4 in t for c in "IXCM") or any(t.count(c) > 1 for c in "VLD")]
    for number in (0, -3, 4000):
        with pytest.raises(ValueError, match="range of Roman numerals"):
            in_roman(number)
    for text in ("", "IIII", "iv", "IC", "ABC"):
        with pytest.raises(ValueError, match="is not a Roman numeral"):
            from_roman(text)


@given(number=st.integers(-(10**36) + 1, 10**36 - 1), british=st.booleans())
def test_whole_numbers_in_words(number: int, british: bool) -> None:
    text = in_words(Decimal(number), british=british)
    assert from_words(text) == number
    assert ("minus" in text) == (number < 0)


@given(number=st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=6))
def test_decimals_in_words_keep_every_digit(number: Decimal) -> None:
    assert str(from_words(in_words(number))) == f"{number:f}"


def test_what_has_no_words() -> None:
    with pytest.raises(ValueError, match="no words here"):
        in_words(Decimal(10**36))
    with pytest.raises(ValueError, match="more than 6 digits after the point"):
        in_words(Decimal("0.1234567"))
    with pytest.raises(ValueError, match="has no words"):
        in_words(Decimal("Infinity"))
    with pytest.raises(ValueError, match="'dozen' is not a number in words"):
        from_words("one dozen")


# --- every form and its inverse -------------------------------------------------------------------------------------

INTEGERS = st.one_of(st.integers(-5_000, 5_000), st.integers(-(10**19), 10**19))
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**6), 10**6, places=2).map(float),
)
DATES = st.dates().map(datetime.date.isoformat)
ALL_FORMS = [
    *(("date", str, f.name) for f in forms_of("date", str)),
    *(("integer", int, f.name) for f in (*forms_of("integer", int), *shifts_of("integer", int))),
    *(("number", float, f.name) for f in (*forms_of("number", float), *shifts_of("number", float))),
]


@pytest.mark.parametrize(("kind", "cell_type", "name"), ALL_FORMS)
def test_a_form_prints_exactly_or_is_not_offered(kind: Kind, cell_type: type, name: str) -> None:
    """``keeps`` says so for each single value; what is kept comes back, value and type."""
    chosen = form(kind, cell_type, name)
    values: st.SearchStrategy[Any] = {str: DATES, int: INTEGERS, float: FLOATS}[cell_type]
    kept = []

    @settings(max_examples=60, deadline=None, database=None)
    @given(value=values)
    def check(value: Cell) -> None:
        # A column with a large number, so that forms for large numbers are offered.
        if not chosen.keeps([value] if cell_type is str else [value, cell_type(2000)]):
            return
        text = chosen.show(value)
        back = chosen.parse(text)
        assert back == value and type(back) is cell_type
        assert text == text.strip() and text
        kept.append(value)

    check()
    # It does print most of what it is for.
    assert len(kept) > (5 if name == "roman" else 15)


def test_integers_beyond_doubles_are_exact() -> None:
    value = 2**53 + 1
    for chosen in (*forms_of("integer", int), *shifts_of("integer", int)):
        if chosen.name != "roman":
            assert chosen.keeps([value]), chosen.name
            assert chosen.parse(chosen.show(value)) == 9_007_199_254_740_993


def test_a_form_must_suit_every_value_of_a_column() -> None:
    assert form("integer", int, "roman").keeps([1, 3999])
    assert not form("integer", int, "roman").keeps([1, 0])
    # Only with a large number is there something to abbreviate.
    assert not form("integer", int, "k").keeps([999, 12])
    assert form("integer", int, "k").keeps([999, 1000])
    assert not form("date", str, "day_slashes").keeps(["2023-01-15", "2023-02-30"])
    assert not form("date", str, "day_slashes").keeps(["2023-01-15 10:00"])
    assert not form("number", float, "words").keeps([math.inf])
    # 5.0 would come back as the integer 5.
    assert not form("integer", int, "words").keeps([5.0])


def test_what_nobody_calculates_with_is_not_scaled() -> None:
    for kind in ("identifier", "date", "text"):
        assert shifts_of(kind, int) == () == shifts_of(kind, str)
    assert {f.name for f in forms_of("identifier", int)} == {"words", "words_and", "roman"}
    assert forms_of("text", str) == () == forms_of("identifier", str)
    with pytest.raises(ValueError, match="cells are str, int or float, not bool"):
        plain_form(bool)


# --- tables ---------------------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=6)
KINDS: dict[str, Kind] = {
    "city": "text",
    "opened on": "date",
    "n_visitors": "integer",
    "rainMM": "number",
    "zip": "identifier",
}
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "city": WORDS,
    "opened on": DATES,
    "n_visitors": INTEGERS,
    "rainMM": FLOATS,
    "zip": st.integers(501, 99_950),
}


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Tables of one to eight rows with gaps; few different values, so that conditions are met."""
    n = draw(st.integers(1, 8))
    out = {}
    for name, cells in CELLS.items():
        values = draw(st.lists(cells, min_size=1, max_size=3))
        out[name] = pd.Series([draw(st.sampled_from([*values, None])) for _ in range(n)], dtype=object)
    return pd.DataFrame(out)


@st.composite
def queries(draw: st.DrawFn, frame: pd.DataFrame) -> Query:
    """Any query whose values stand in the table."""
    conditions = []
    for name in draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3, unique=True)):
        present = [cell for cell in frame[name].tolist() if cell is not None]
        value = draw(st.sampled_from(present)) if present else 0
        conditions.append(Condition(name, draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), value))
    target = draw(st.sampled_from(list(KINDS)))
    if all(c.operator == "=" for c in conditions):
        return Query("EM", tuple(conditions), target)
    aggregates: tuple[Aggregate | None, ...] = (None, *get_args(Aggregate))
    aggregate = draw(st.sampled_from(aggregates))
    return Query("SA" if aggregate else "SF", tuple(conditions), target, aggregate)


def through_csv(table: pd.DataFrame) -> pd.DataFrame:
    """Written and read again, by the csv module alone."""
    header, *rows = csv.reader(io.StringIO(as_csv(table), newline=""))
    return pd.DataFrame(rows, columns=header, dtype=object)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_answers_survive_rewording(data: st.DataObject, seed: int) -> None:
    frame = data.draw(frames())
    query = data.draw(queries(frame))
    look = draw_look(frame, KINDS, random.Random(seed), WILD)
    back = normalised(through_csv(printed(frame, look)), look)
    assert list(back.columns) == list(frame.columns)
    for name in KINDS:
        assert back[name].tolist() == frame[name].tolist(), look.columns[name]
    assert query.answer(back) == query.answer(frame)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_plain_table_is_the_table(data: st.DataObject) -> None:
    frame = data.draw(frames())
    look = plain_look(frame, KINDS)
    table = printed(frame, look)
    assert list(table.columns) == list(frame.columns) and look.notes == ()
    for name in KINDS:
        assert table[name].tolist() == ["" if cell is None else str(cell) for cell in frame[name].tolist()]


def looks(frame: pd.DataFrame, kinds: dict[str, Kind], taste: Taste, n: int = 300) -> list[Look]:
    wardrobe = Wardrobe(frame, kinds, taste)
    return [wardrobe.draw(list(frame.columns), random.Random(seed)) for seed in range(n)]


def test_how_often_a_column_changes() -> None:
    frame = pd.DataFrame({"price": [1500, 20_000], "day": ["2020-01-02", "2021-03-04"]})
    kinds: dict[str, Kind] = {"price": "integer", "day": "date"}
    drawn = looks(frame, kinds, Taste(plain=0.5, shift=0.1), 1000)
    prices = [look.columns["price"].form.name for look in drawn]
    # Binomial, n = 1000: four standard deviations are 0.063 and 0.038.
    assert prices.count("plain") / 1000 == pytest.approx(0.5, abs=0.063)
    assert sum(name.startswith("shift") for name in prices) / 1000 == pytest.approx(0.1, abs=0.038)
    dates = {look.columns["day"].form.name for look in drawn}
    assert dates == {"plain", "day_slashes", "short_month", "long_month", "roman_month", "date_words"}
    assert {look.columns["price"].form.name for look in looks(frame, kinds, Taste(plain=1, shift=0))} == {"plain"}
    with pytest.raises(ValueError, match="must be probabilities"):
        Taste(plain=0.9, shift=0.2)


def test_a_shift_is_told_in_header_and_prompt() -> None:
    frame = pd.DataFrame({"unitPrice": [15, 20]})
    notes = set()
    for look in looks(frame, {"unitPrice": "integer"}, Taste(plain=0, shift=1), 60):
        (header,) = look.canonical
        (note,) = look.notes
        shown = printed(frame, look)[header].tolist()
        if "(x 100)" in header:
            assert shown == ["1500", "2000"]
            notes.add(note.replace(repr(header), "H"))
        assert normalised(printed(frame, look), look)["unitPrice"].tolist() == [15, 20]
    assert notes == {"The values of column H were multiplied by 100; divide by 100 to get the true value."}


def test_headers_are_restyled_or_paraphrased() -> None:
    frame = pd.DataFrame({"zipCode": ["a"], "Größe": ["b"]})
    kinds: dict[str, Kind] = {"zipCode": "text", "Größe": "text"}
    found = {tuple(look.canonical) for look in looks(frame, kinds, Taste(headers={"zipCode": ["postal_zip"]}))}
    assert found == {
        (header, "Größe")
        for header in (
            *("zipCode", "zip_code", "Zip Code", "ZipCode", "zip code"),
            *("postal_zip", "Postal Zip", "postalZip", "PostalZip", "postal zip"),
        )
    }


def test_headers_never_fall_together() -> None:
    """DuckDB and SQLite do not tell A from a."""
    frame = pd.DataFrame({"max_temp": ["1"], "maxTemp": ["2"], "name": ["x"]})
    kinds: dict[str, Kind] = {"max_temp": "text", "maxTemp": "text", "name": "text"}
    for look in looks(frame, kinds, Taste(headers={"name": ["max temp", "MAX_TEMP"]})):
        assert len({header.casefold() for header in look.canonical}) == 3


def test_a_column_that_cannot_be_printed_is_named() -> None:
    with pytest.raises(ValueError, match="column 'a' holds cells of several types: \\['int', 'str'\\]"):
        Wardrobe(pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}), {"a": "text"})
    with pytest.raises(ValueError, match="column 'a' holds an empty text"):
        Wardrobe(pd.DataFrame({"a": ["", "x"]}), {"a": "text"})
    with pytest.raises(ValueError, match="is not a date in the form 'day_slashes'"):
        form("date", str, "day_slashes").parse("15 Jan 2023")
