"""Values of answers: what is the same, what is not; replies: what is an answer, what is not."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.judge import Reply
from evaluators.judge.reply import UnreadableReplyError
from tcr_tasks.builder.forms import forms_of
from tcr_tasks.builder.words import in_roman
from tcr_tasks.qa.reply import read_answer
from tcr_tasks.qa.values import Value, read_value, same_value

FAST = settings(deadline=None, max_examples=60)
TEXTS = st.text("0123456789.,%+-/: TeEIVXJan", max_size=12)
ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS)


def same(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    first, second = read_value(a), read_value(b)
    assert same_value(first, second, tolerance) == same_value(second, first, tolerance)
    return same_value(first, second, tolerance)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (35156.0, 35156),
        ("35156.0", 35156),
        (9007199254740993, "9007199254740993"),
        ("1,234,567", 1234567),
        ("1,234.5", 1234.5),
        ("45%", 45),
        ("45 %", "45"),
        (41.33333, 41.3333),
        ("1.23457e+06", 1234567.8),
        ("\u22123", -3),
        (0.1 + 0.2 - 0.3, 0),
        (-0.0, 0),
        ("XII", 12),
        ("xii", "XII"),
        ("Saint  Paris ", "saint paris"),
        ("AT&amp;T", "AT&T"),
        ("Straße", "STRASSE"),
        ("Cafe\u0301", "caf\u00e9"),
        ("TRUE", True),
        ("2012-11-19", "2012-11-19 00:00:00"),
        ("2010-07-09 15:00", "July 9th, 2010, 3 p.m."),
        ("2010-07-09T15:00", "2010-VII-9 15:00"),
        ("2008-11", "2008-11-01"),
        ("Nov/2008", "November 2008"),
        ("11/2008", "2008-XI"),
        ("007", "007"),
    ],
)
def test_the_same(a: Any, b: Any) -> None:
    assert same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (9007199254740993, 9007199254740992),
        (9007199254740993, 9007199254740992.0),
        (35156, 35157),
        (1234567, 1234570),
        (5299.4, 5299.5),
        (1e-9, 2e-9),
        ("45%", 0.45),
        (True, 1),
        ("true", 1),
        (False, 0),
        (True, False),
        ("yes", True),
        ("007", 7),
        ("07030", 7030),
        ("1,23", 123),
        ("1,23", 1.23),
        ("15k", 15000),
        ("IIII", 4),
        ("2012-11-19", "2012-11-20"),
        ("2012-11-19 10:00", "2012-11-19"),
        ("3/4/2010", "2010-04-03"),
        ("3/4/2010", "2010-03-04"),
        ("1995-96", "1995"),
        ("2012", "2012-01-01"),
        ("12", "2012-12"),
        ("", 0),
        (None, None),
        (None, "None"),
        ("resume", "résumé"),
        ("49 hp", 49),
        ("-3", 3),
        ("٣", 3),
    ],
)
def test_not_the_same(a: Any, b: Any) -> None:
    assert not same(a, b)


def test_the_tolerance_is_that_of_numbers_with_a_fraction() -> None:
    assert same(3.266666, 3.27, 0.01) and not same(3.266666, 3.27, 0.001)
    assert not same(100, 101, 0.05)
    assert not same(3.5, 3.5000001, 0)


@FAST
@given(ANYTHING, ANYTHING)
def test_symmetric_and_reflexive(a: Any, b: Any) -> None:
    same(a, b)
    assert same(a, a) == (a is not None)


@FAST
@given(st.integers(-(10**25), 10**25), st.integers(1, 5))
def test_whole_numbers_are_exact(number: int, step: int) -> None:
    assert same(number, f"{number:,}") and same(number, f"{number}.0") and same(number, json.dumps(number))
    assert not same(number, number + step)


@FAST
@given(st.dates(min_value=datetime.date(1000, 1, 1)), st.integers(1, 3999))
def test_what_the_builder_prints_is_read(day: datetime.date, number: int) -> None:
    for form in forms_of("date", str):
        assert same(form.show(day.isoformat()), day.isoformat()), form.name
    assert same(in_roman(number), number) and not same(in_roman(number), number + 1)


def test_values_of_no_known_kind_are_refused() -> None:
    for wrong in ([1], {"a": 1}, object()):
        with pytest.raises(TypeError, match="a value is a text"):
            read_value(wrong)


# --- replies -----------------------------------------------------------------------------------------------------


def read(text: str, finish: str = "stop") -> list[Any]:
    return [v.key for v in read_answer(Reply(text, finish, 0, 0))]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('Answer: ["Hailey", 2.5]', ["hailey", Decimal("2.5")]),
        ("I think.\n**Answer:** [1, 2]", [1, 2]),
        ("answer: 49", [49]),
        ("Final answer: null", []),
        ("Answer: []", []),
        ("Answer: [1]\nAnswer: [2]", [2]),
        ('Answer: ["The answer: 5"]', ["the answer: 5"]),
        ("<think>Answer: [1]</think>\nAnswer: [9007199254740993]", [9007199254740993]),
        ("Answer:\n```json\n[1]\n```", [1]),
        ("Answer: [1]\nBecause row 3 says so.", [1]),
        ('{"answer": ["a"]}', ["a"]),
        ("```json\n[3]\n```", [3]),
        ("Answer: [null, true]", [None, True]),
        ("Answer: [1e999999999]", ["1e+999999999"]),
    ],
)
def test_answers_that_are_read(text: str, values: list[Any]) -> None:
    assert read(text) == values


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It is Hailey.", "no answer in JSON"),
        ("Answer: Hailey", "no answer in JSON"),
        ("Answer: ['Hailey']", "no answer in JSON"),
        ("Answer: [1, [2]]", "not list"),
        ('Answer: {"a": 1}', "not dict"),
        ("Answer: [NaN]", "no answer in JSON"),
        ("Answer: [1] or [2]", "more than an answer"),
        ("5", "more than an answer"),
        ("", "empty"),
        ("Answer: " + "[" * 100_000, "no answer in JSON"),
        ("Answer: [" + "9" * 5000 + "]", "no answer in JSON"),
        ("Answer: " + json.dumps(list(range(10_001))), "10001 values"),
    ],
)
def test_answers_that_cannot_be_read(text: str, reason: str) -> None:
    with pytest.raises(UnreadableReplyError, match=reason):
        read(text)


def test_a_reply_that_is_cut_off_or_refused() -> None:
    with pytest.raises(UnreadableReplyError, match="cut off"):
        read("Answer: [1]", "length")
    with pytest.raises(UnreadableReplyError, match="refused"):
        read_answer(Reply("Answer: [1]", "stop", 0, 0, refusal="no"))


def test_equal_values_are_one() -> None:
    assert read_value("35156.0") == read_value(35156) == Value("number", Decimal(35156))
    assert len({read_value("A b"), read_value("a  B"), read_value(1), read_value(True)}) == 3
