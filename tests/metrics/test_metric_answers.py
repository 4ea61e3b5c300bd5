"""F1 of two sets of answers: by hand, against every possible pairing, and what must not matter."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.metrics.answers import answer_f1

FAST = settings(deadline=None, max_examples=60)
# Small whole numbers of which neighbours are the same: symmetric and not transitive.
SETS = st.lists(st.integers(0, 12), max_size=5)


def near(a: int, b: int) -> bool:
    return abs(a - b) <= 1


def matched_slowly(given_values: list[int], expected: list[int]) -> int:
    """The most pairs over every order of the longer side."""
    short, long = sorted([list(set(given_values)), list(set(expected))], key=len)
    return max(sum(map(near, short, order)) for order in itertools.permutations(long, len(short)))


@FAST
@given(SETS, SETS)
def test_f1_is_that_of_the_best_pairing(first: list[int], second: list[int]) -> None:
    score = answer_f1(first, second, near)
    n, m = len(set(first)), len(set(second))
    if n + m == 0:
        assert score.f1 == 1
        return
    pairs = matched_slowly(first, second)
    assert score.f1 == pytest.approx(2 * pairs / (n + m))
    assert score.precision == pytest.approx(pairs / n if n else 0)
    assert score.recall == pytest.approx(pairs / m if m else 0)
    if pairs:
        assert score.f1 == pytest.approx(2 / (1 / score.precision + 1 / score.recall))  # the harmonic mean


@FAST
@given(SETS, SETS, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_nor_side_matters(first: list[int], second: list[int], rng: object) -> None:
    score = answer_f1(first, second, near)
    shuffled = [*first, *first]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert answer_f1(shuffled, second[::-1], near) == score
    swapped = answer_f1(second, first, near)
    assert (swapped.f1, swapped.precision, swapped.recall) == (score.f1, score.recall, score.precision)
    assert answer_f1(first, first, near).f1 == 1


def test_by_hand() -> None:
    # Two of three given are right, two of four expected are found: P = 2/3, R = 1/2, F1 = 4/7.
    score = answer_f1("abx", "abcd", str.__eq__)
    assert (score.precision, score.recall, score.f1) == pytest.approx((2 / 3, 1 / 2, 4 / 7))
    assert answer_f1("aab", "ab", str.__eq__).f1 == 1
    # 2 is both, but whoever pairs 2 with 2 leaves 1 and 3 over; 1 with 2 and 2 with 3 pairs all.
    assert answer_f1([1, 2], [2, 3], near).f1 == 1
    assert answer_f1([], ["a"], str.__eq__) == answer_f1(["a"], [], str.__eq__)
    assert answer_f1([], ["a"], str.__eq__).f1 == 0
