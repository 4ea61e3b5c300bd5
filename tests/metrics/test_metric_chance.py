"""Chance levels against a simulation, a hand calculation and complete enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.metrics.chance import chance_average_precision, chance_ndcg


def average_precision(order: tuple[int, ...]) -> float:
    found, total = 0, 0.0
    for rank, relevant in enumerate(order, 1):
        if relevant:
            found += 1
            total += found / rank
    return total / found


def ndcg(order: tuple[int, ...], k: int) -> float:
    ideal = sorted(order, reverse=True)
    return sum(g / math.log2(r + 2) for r, g in enumerate(order[:k])) / sum(
        g / math.log2(r + 2) for r, g in enumerate(ideal[:k])
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6).filter(any), st.integers(1, 8))
def test_mean_over_all_orders(grades: list[int], k: int) -> None:
    orders = list(itertools.permutations(grades))
    expected = sum(ndcg(o, k) for o in orders) / len(orders)
    assert chance_ndcg(grades, len(grades), k) == pytest.approx(expected, abs=1e-12)
    # Documents without judgement count as not relevant.
    assert chance_ndcg([g for g in grades if g], len(grades), k) == pytest.approx(expected, abs=1e-12)
    binary = [tuple(int(g > 0) for g in o) for o in orders]
    expected = sum(map(average_precision, binary)) / len(binary)
    assert chance_average_precision(sum(g > 0 for g in grades), len(grades)) == pytest.approx(expected, abs=1e-12)


def test_by_hand() -> None:
    # One relevant of two: at rank 1 (AP 1) or at rank 2 (AP 1/2).
    assert chance_average_precision(1, 2) == pytest.approx(0.75)
    assert chance_average_precision(1, 1) == 1
    # nDCG@1 of one relevant among four is 1 in a quarter of the orders.
    assert chance_ndcg([1], 4, 1) == pytest.approx(0.25)


def test_by_simulation() -> None:
    rng = np.random.default_rng(0)
    draws = [average_precision(tuple(rng.permutation([1] * 17 + [0] * 83))) for _ in range(4000)]
    assert chance_average_precision(17, 100) == pytest.approx(np.mean(draws), abs=4 * np.std(draws) / 4000**0.5)


@pytest.mark.parametrize(("relevant", "documents"), [(0, 5), (6, 5)])
def test_undefined(relevant: int, documents: int) -> None:
    with pytest.raises(ValueError, match="relevant documents"):
        chance_average_precision(relevant, documents)
    with pytest.raises(ValueError, match="relevant documents"):
        chance_ndcg([1] * relevant, documents, 5)
