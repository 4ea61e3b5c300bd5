"""Eff@k: the paper's Tables 1 and 12, hand calculation, and a plain bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.metrics.efficiency import bootstrap_efficiency, efficiency

# Eff@k, QA@k, Oracle and R@k as printed: k = 1, 3, 5. Table 1 with R@k of Table 8 (Mixed), Table 12 with Table 11.
PRINTED = {
    "Qwen3-E0.6B": ((1.046, 0.786, 0.659), (0.144, 0.244, 0.276), 0.755, (0.182, 0.411, 0.555)),
    "Qwen3-E4B": ((0.871, 0.760, 0.690), (0.113, 0.269, 0.329), 0.755, (0.172, 0.469, 0.632)),
    "Qwen3-E8B": ((1.014, 0.751, 0.657), (0.139, 0.266, 0.330), 0.755, (0.182, 0.469, 0.665)),
    "EM": ((0.977, 0.885, 0.759), (0.194, 0.415, 0.486), 0.884, (0.224, 0.531, 0.724)),
    "SF": ((0.998, 0.605, 0.479), (0.129, 0.180, 0.204), 0.711, (0.182, 0.418, 0.600)),
    "SA": ((0.876, 0.381, 0.500), (0.054, 0.089, 0.179), 0.571, (0.107, 0.411, 0.625)),
}


@pytest.mark.parametrize("row", PRINTED)
def test_tables_1_and_12(row: str) -> None:
    printed, qa, oracle, recall = PRINTED[row]
    for expected, q, r in zip(printed, qa, recall, strict=True):
        # From three rounded decimals; SA at k = 1 is the furthest off: 0.054 / 0.571 / 0.107 = 0.884.
        assert efficiency(q, oracle, r) == pytest.approx(expected, abs=0.01)


def test_by_hand() -> None:
    assert efficiency(0.3, 0.75, 0.5) == pytest.approx(0.8)  # 0.3 / 0.75 = 0.4, 0.4 / 0.5
    assert efficiency(0.3, 0.0, 0.5) is None
    assert efficiency(0.0, 0.5, 0.0) is None
    assert efficiency(0.0, 0.5, 0.5) == 0
    with pytest.raises(ValueError, match=r"R@k lies in 0\.\.1"):
        efficiency(0.3, 0.5, 50)


def test_a_ratio_of_averages() -> None:
    # (1 + 0.5 + 0 + 0) / 4 = 0.375; oracle 0.75; R@k 0.5: 0.375 / 0.75 / 0.5 = 1. The mean of ratios would be 1.5 / 2.
    found = bootstrap_efficiency([1, 0.5, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0])
    assert found.value == pytest.approx(1)


def test_resamples_without_target_are_counted() -> None:
    # One hit among 10: a resample misses it with probability 0.9 ** 10 = 0.349.
    one = bootstrap_efficiency([1] + [0] * 9, [1] * 10, [1] + [0] * 9)
    assert one.value == 1 and one.interval is None
    assert one.undefined == pytest.approx(349, abs=60)
    none = bootstrap_efficiency([0.5, 0], [1, 1], [0, 0])
    assert none == (None, None, 1000)
    # Half of 40: never without, and each hit is fully used.
    many = bootstrap_efficiency([1, 0] * 20, [1, 1] * 20, [1, 0] * 20)
    assert many.interval == (1, 1) and many.undefined == 0


def test_the_interval_is_that_of_a_plain_bootstrap() -> None:
    rng = np.random.default_rng(3)
    n = 120
    hits = (rng.random(n) < 0.5).astype(float)
    oracle = np.round(rng.random(n), 1)
    qa = oracle * hits * np.round(rng.random(n), 1)
    found = bootstrap_efficiency(qa, oracle, hits, resamples=20_000)
    drawn = rng.integers(0, n, size=(20_000, n))
    plain = qa[drawn].mean(axis=1) / oracle[drawn].mean(axis=1) / hits[drawn].mean(axis=1)
    assert found.interval == pytest.approx(tuple(np.quantile(plain, [0.025, 0.975])), abs=0.01)
    assert found.interval is not None and found.value is not None
    assert found.interval.low < found.value < found.interval.high


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 2, st.sampled_from([0.0, 1.0])), min_size=1))
def test_the_order_of_queries_does_not_matter(rows: list[tuple[float, float, float]]) -> None:
    columns = list(zip(*rows, strict=True))
    turned = list(zip(*rows[::-1], strict=True))
    assert bootstrap_efficiency(*columns, resamples=50) == bootstrap_efficiency(*turned, resamples=50)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (([], [], []), "no query"),
        (([1], [1, 1], [1]), "three values of each query"),
        (([2], [1], [1]), r"query 0: .* lie in 0\.\.1"),
        (([float("nan")], [1], [1]), "must be finite"),
    ],
)
def test_bad_values_are_named(values: tuple[list[float], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bootstrap_efficiency(*values)
