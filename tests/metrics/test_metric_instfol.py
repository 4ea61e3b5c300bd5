"""InstFol and the weighted judge score (IFIR, section 4.1 and appendix B)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators import inst_fol, weighted_score
from evaluators.metrics.instfol import inst_fol_of_lists, paper_inst_fol_of_lists

FAST = settings(deadline=None, max_examples=120)


def log(probability: float) -> float:
    return math.log(probability)


# InstFol ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("s_instruction", "s_query", "maximum", "value"),
    [
        (2.0, 1.0, 3, 1 / 2),  # (2 - 1) / (3 - 1); a plain difference is 1, divided by the maximum 1/3, by S_q 1
        (1.0, 2.0, 3, -1.0),  # (1 - 2) / (3 - 2)
        (0.5, 0.25, 1, 1 / 3),  # 0.25 / 0.75; with a fixed maximum of 3 it would be 1/11
        (1.5, 1.0, 2, 1 / 2),  # 0.5 / 1; with 3: 1/4
        (3.0, 0.0, 3, 1.0),
        (3.0, 2.5, 3, 1.0),
        (0.0, 0.0, 3, 0.0),
        (1.25, 1.25, 3, 0.0),
        # Far below -1: (0 - 2.9) / (3 - 2.9) = -29; (2 - 2.5) / 0.5 = -1; (1 - 2.5) / 0.5 = -3.
        (0.0, 2.9, 3, -29.0),
        (2.0, 2.5, 3, -1.0),
        (1.0, 2.5, 3, -3.0),
        # Nothing to gain: the difference itself, and equal means 0.
        (3.0, 3.0, 3, 0.0),
        (2.5, 3.0, 3, -0.5),
        (0.0, 3.0, 3, -3.0),
        (0.0, 1.0, 1, -1.0),
    ],
)
def test_inst_fol_by_hand(s_instruction: float, s_query: float, maximum: float, value: float) -> None:
    assert inst_fol(s_instruction, s_query, maximum) == pytest.approx(value, abs=1e-12)


def test_equal_means_give_zero_without_a_sign() -> None:
    for score in (0.0, 1.5, 3.0):
        assert math.copysign(1, inst_fol(score, score, 3)) == 1
    assert math.copysign(1, inst_fol(-0.0, 0.0, 3)) == 1


@FAST
@given(st.integers(0, 300), st.integers(0, 300), st.sampled_from([1, 2, 3]))
def test_inst_fol_equals_the_formula(a: int, b: int, maximum: int) -> None:
    s_inst, s_q = Fraction(a * maximum, 300), Fraction(b * maximum, 300)
    expected = s_inst - s_q if s_q == maximum else (s_inst - s_q) / (maximum - s_q)
    value = inst_fol(a * maximum / 300, b * maximum / 300, maximum)
    assert value == pytest.approx(float(expected), rel=1e-11, abs=1e-11)
    assert value <= 1 + 1e-12
    if s_q < maximum:
        assert value >= -s_q / (maximum - s_q) - Fraction(1, 10**9)
    assert (value > 0) == (a > b)
    assert (value < 0) == (a < b)


@FAST
@given(st.floats(0, 3), st.floats(0, 3), st.floats(0, 2.99))
def test_inst_fol_rises_with_the_instructed_score(a: float, b: float, s_q: float) -> None:
    low, high = sorted((a, b))
    assert inst_fol(low, s_q, 3) <= inst_fol(high, s_q, 3)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((math.nan, 1, 3), "s_instruction"),
        ((1, math.nan, 3), "s_query"),
        ((math.inf, 1, 3), "s_instruction"),
        ((1, -math.inf, 3), "s_query"),
        ((3.01, 1, 3), "s_instruction"),
        ((1, 3.01, 3), "s_query"),
        ((-0.01, 1, 3), "s_instruction"),
        ((1, -1, 3), "s_query"),
        ((2, 1, 1), "s_instruction"),
        ((0, 0, 0), "max_score"),
        ((0, 0, -3), "max_score"),
        ((0, 0, math.nan), "max_score"),
        ((0, 0, math.inf), "max_score"),
    ],
)
def test_inst_fol_errors(args: tuple[float, float, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        inst_fol(*args)


# InstFol of two lists ----------------------------------------------------------------------------------------------

SCORES = st.lists(st.none() | st.integers(0, 2), max_size=6)


def test_lists_by_hand() -> None:
    # All that have a score: (2 + 1 + 0) / 3 = 1 against (1 + 0) / 2 = .5, highest 2: .5 / 1.5 = 1/3.
    instructed, plain = [2, None, 1, 0], [1, 0, None]
    assert inst_fol_of_lists(instructed, plain, 2) == pytest.approx(1 / 3)
    # Ranks with both scores: the first alone. 2 against 1, highest 3: 1/2.
    assert paper_inst_fol_of_lists(instructed, plain) == pytest.approx(1 / 2)
    # A scale that ends at 1: 1 at best for us, (1 - 0.5) / (3 - 0.5) = 0.2 as the authors compute it.
    assert inst_fol_of_lists([1, 1], [0, 1], 1) == 1
    assert paper_inst_fol_of_lists([1, 1], [0, 1]) == pytest.approx(0.2)


def test_a_list_without_scores_has_no_value() -> None:
    for empty in ([], [None], [None, None]):
        assert inst_fol_of_lists(empty, [1], 3) is None and inst_fol_of_lists([1], empty, 3) is None
        assert paper_inst_fol_of_lists(empty, [1]) is None and paper_inst_fol_of_lists([1], empty) is None
    assert paper_inst_fol_of_lists([1, None], [None, 2]) is None
    assert inst_fol_of_lists([0], [0], 3) == 0  # a score of 0 is a score


def test_a_score_off_the_scale_is_an_error() -> None:
    with pytest.raises(ValueError, match="s_query"):
        inst_fol_of_lists([1], [2], 1)


@FAST
@given(SCORES, SCORES)
def test_lists_equal_the_definition(instructed: list[int | None], plain: list[int | None]) -> None:
    def value(after: list[int], before: list[int], highest: int) -> float | None:
        if not after or not before:
            return None
        a, b = Fraction(sum(after), len(after)), Fraction(sum(before), len(before))
        return float(a - b if b == highest else (a - b) / (highest - b))

    known = [[s for s in scores if s is not None] for scores in (instructed, plain)]
    assert inst_fol_of_lists(instructed, plain, 2) == pytest.approx(value(*known, 2))
    both = [(a, b) for a, b in zip(instructed, plain, strict=False) if a is not None and b is not None]
    expected = value([a for a, _ in both], [b for _, b in both], 3)
    assert paper_inst_fol_of_lists(instructed, plain) == pytest.approx(expected)


# The weighted score ----------------------------------------------------------------------------------------------


def test_weighted_score_by_hand() -> None:
    # (3 * 0.5 + 2 * 0.25 + 0 * 0.05) / (0.5 + 0.25 + 0.05) = 2 / 0.8 = 2.5. Not normalised 2.0; the most likely
    # token 3; over the log-probabilities themselves something else altogether; without the 0 (as falsy) 2.6666667.
    tokens = {"3": log(0.5), "2": log(0.25), "0": log(0.05), "good": log(0.1)}
    assert weighted_score(tokens) == pytest.approx(2.5)
    assert weighted_score(list(tokens.items())) == pytest.approx(2.5)
    assert weighted_score(iter(tokens.items())) == pytest.approx(2.5)
    assert weighted_score(dict(reversed(tokens.items()))) == pytest.approx(2.5)


def test_unlikely_tokens_are_dropped() -> None:
    # 0 has 0.009 < 0.01: (3 * 0.9) / 0.9 = 3; kept it would be 2.7 / 0.909 = 2.970297.
    tokens = {"3": log(0.9), "0": log(0.009)}
    assert weighted_score(tokens) == pytest.approx(3.0)
    assert weighted_score(tokens, min_prob=0.005) == pytest.approx(2.7 / 0.909)
    assert weighted_score(tokens, min_prob=0) == pytest.approx(2.7 / 0.909)
    assert weighted_score(tokens, min_prob=0.5) == pytest.approx(3.0)


def test_a_probability_of_exactly_the_limit_counts() -> None:
    # exp(log 0.25) and exp(log 0.5) are exact: (3 * 0.5 + 1 * 0.25) / 0.75 = 7/3.
    assert math.exp(log(0.25)) == 0.25
    assert weighted_score({"3": log(0.5), "1": log(0.25)}, min_prob=0.25) == pytest.approx(7 / 3)
    assert weighted_score({"3": log(0.5), "1": log(0.25)}, min_prob=math.nextafter(0.25, 1)) == pytest.approx(3.0)
    assert weighted_score({"3": log(0.5), "1": log(0.01)}) == pytest.approx(1.51 / 0.51)


def test_only_numbers_of_the_scale_count() -> None:
    # With 0..3, "4" and "10" are out: (3 * 0.2 + 1 * 0.2) / 0.4 = 2. With 1..10 all: (0.6 + 0.2 + 0.8 + 2) / 0.8 = 4.5.
    tokens = {token: log(0.2) for token in ("3", "1", "4", "10")}
    assert weighted_score(tokens) == pytest.approx(2.0)
    assert weighted_score(tokens, 1, 10) == pytest.approx(4.5)
    assert weighted_score(tokens, 0, 1) == pytest.approx(1.0)
    assert weighted_score(tokens, highest=4) == pytest.approx(8 / 3)
    assert weighted_score(tokens, lowest=2) == pytest.approx(3.0)


def test_two_tokens_for_one_number_both_count() -> None:
    # (2 * 0.25 + 2 * 0.25 + 1 * 0.25) / 0.75 = 5/3; keeping one of the two gives 1.5.
    assert weighted_score([("2", log(0.25)), (" 2", log(0.25)), ("1", log(0.25))]) == pytest.approx(5 / 3)
    # The same token twice is possible with pairs only.
    assert weighted_score([("2", log(0.25)), ("2", log(0.25)), ("1", log(0.25))]) == pytest.approx(5 / 3)


@pytest.mark.parametrize("token", [" 2", "2 ", "\n2", "\t2\n", "\u00a02"])
def test_blanks_are_ignored(token: str) -> None:
    assert weighted_score({token: log(0.5)}) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "token", ["-1", "2.0", "2.", "II", "٣", "²", "\uff12", "1_0", "+2", "two", "", " ", "2/3", "0x2", "1 2", "1e0", "④"]
)
def test_what_is_no_whole_number_of_the_scale_is_no_score(token: str) -> None:
    with pytest.raises(ValueError, match="no readable score"):
        weighted_score({token: log(0.9)}, 0, 10)
    assert weighted_score({token: log(0.5), "1": log(0.25)}, 0, 10) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "tokens",
    [
        {},
        [],
        {"yes": log(0.9)},
        {"4": log(0.9), "10": log(0.05)},
        {"3": log(0.009), "2": log(0.005)},
        {"3": -math.inf},
        {"I": log(0.9), "3": log(0.001)},
    ],
)
def test_no_readable_score_is_an_error_and_not_zero(tokens: Any) -> None:
    with pytest.raises(ValueError, match="no readable score"):
        weighted_score(tokens)


def test_a_sure_token_and_an_impossible_one() -> None:
    assert weighted_score({"2": 0.0, "3": -math.inf}) == 2.0
    assert weighted_score({"2": 0.0, "3": -10_000.0}, min_prob=0) == 2.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.1, 1.0, np.float32("nan")])
@pytest.mark.parametrize("token", ["2", "junk"])
def test_bad_log_probabilities(bad: float, token: str) -> None:
    with pytest.raises(ValueError, match=token):
        weighted_score({"3": log(0.5), token: bad})


@pytest.mark.parametrize(
    "kwargs",
    [
        {"lowest": 3},
        {"lowest": 4},
        {"highest": 0},
        {"highest": -1},
        {"min_prob": -0.01},
        {"min_prob": 1.01},
        {"min_prob": math.nan},
        {"min_prob": math.inf},
    ],
)
def test_bad_scale_or_limit(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        weighted_score({"3": log(0.5)}, **kwargs)


TOKENS = ["0", "1", " 1", "2", "2 ", "3", "4", "10", "-1", "2.0", "II", "٣", "x", ""]


@FAST
@given(
    st.lists(st.tuples(st.sampled_from(TOKENS), st.floats(-8, 0)), max_size=8),
    st.sampled_from([(0, 3), (0, 1), (1, 3), (0, 10)]),
    st.sampled_from([0.0, 0.01, 0.2]),
)
def test_weighted_score_equals_the_formula(
    pairs: list[tuple[str, float]], scale: tuple[int, int], min_prob: float
) -> None:
    values = {"0": 0, "1": 1, " 1": 1, "2": 2, "2 ": 2, "3": 3, "4": 4, "10": 10}
    kept = [
        (Fraction(values[t]), Fraction(math.exp(lp)))
        for t, lp in pairs
        if t in values and scale[0] <= values[t] <= scale[1] and math.exp(lp) >= min_prob
    ]
    if not kept:
        with pytest.raises(ValueError):
            weighted_score(pairs, *scale, min_prob)
        return
    value = weighted_score(pairs, *scale, min_prob)
    assert value == pytest.approx(float(sum(s * p for s, p in kept) / sum(p for _, p in kept)), rel=1e-12)
    assert weighted_score(pairs[::-1], *scale, min_prob) == pytest.approx(value, rel=1e-12)
    # Each token's weight is relative: a common factor (that drops nothing) changes nothing.
    if min_prob == 0:
        assert weighted_score([(t, lp - 3) for t, lp in pairs], *scale, 0.0) == pytest.approx(value, rel=1e-9)


@FAST
@given(
    st.lists(st.tuples(st.sampled_from(["0", "1", "2", "3", " 3"]), st.floats(-4.6, 0)), min_size=1, max_size=4),
)
def test_weighted_score_never_leaves_the_range_of_its_tokens(pairs: list[tuple[str, float]]) -> None:
    # Exactly, not nearly: InstFol refuses a score above the rubric's maximum.
    numbers = [int(token) for token, _ in pairs]
    assert min(numbers) <= weighted_score(pairs) <= max(numbers)


@FAST
@given(st.floats(-4.6, 0), st.floats(-4.6, 0), st.sampled_from(range(11)))
def test_one_number_alone_gives_exactly_that_number(first: float, second: float, number: int) -> None:
    # Whatever its probability. InstFol divides by (maximum - S_q), so 2.9999999999999996 is not as good as 3.
    assert weighted_score({str(number): first}, 0, 10) == number
    assert weighted_score({str(number): first, f" {number}": second}, 0, 10) == number


@FAST
@given(st.lists(st.floats(-4.6, 0), min_size=1, max_size=20), st.floats(0, 2.99))
def test_all_best_scores_of_the_plain_query_are_the_nothing_to_gain_case(logprobs: list[float], s_inst: float) -> None:
    # Every passage is judged "3", each with its own probability: S_q = 3, so the value is the difference.
    scores = [weighted_score({"3": lp}) for lp in logprobs]
    s_query = sum(scores) / len(scores)
    assert inst_fol(s_inst, s_query, 3) == pytest.approx(s_inst - 3, abs=1e-9)


@pytest.mark.parametrize("logprob", [-3.5133632472924243, -2.279001400622928])
def test_a_rounding_error_does_not_become_a_huge_loss(logprob: float) -> None:
    # (3 * p) / p is 2.9999999999999996 for these p, and 0.5 / 4.4e-16 would be an InstFol of -1.1e15.
    s_query = weighted_score({"3": logprob})
    assert inst_fol(2.5, s_query, 3) == pytest.approx(-0.5)
    assert inst_fol(3.0, s_query, 3) == pytest.approx(0.0, abs=1e-9)
