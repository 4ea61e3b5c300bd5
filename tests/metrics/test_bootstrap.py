"""Bootstrap intervals and p-values: the paper's Table 42, scipy, complete enumeration, and coverage."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from evaluators.metrics.bootstrap import (
    Bootstrapped,
    Hits,
    Interval,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_siblings,
    p_null,
)

FAST = settings(deadline=None, max_examples=30)
N = 209  # questions of TCR-Bench
PAPER_CHANCE, REAL_CHANCE = 0.298, 0.221


def hits_of(target: int, group: int, n: int = N) -> Hits:
    """That many target and group hits among ``n`` queries."""
    return Hits(np.arange(n) < target, np.arange(n) < group)


# One outcome per query: neither, group only, target.
OUTCOMES = st.lists(st.sampled_from([(0, 0), (0, 1), (1, 1)]), min_size=1, max_size=40)
Outcomes = list[tuple[int, int]]


def hits(outcomes: Outcomes) -> Hits:
    return Hits([t for t, _ in outcomes], [g for _, g in outcomes])


# --- the paper's Table 42 ----------------------------------------------------------------------------------------

# Target hits are 209 * R@1, group hits are target hits / DS@1, each rounded: R@1, DS@1, interval, p-value as printed.
# ModernColBERT's R@1 is printed as 0.173, which no count gives (36 / 209 = 0.172, 37 / 209 = 0.177).
TABLE_42 = {
    "tapas_nq_retriever_large": (1, 1, 0.005, 1.000, 0.000, 1.000, 0.350),
    "tapas_nq_hn_retriever_large": (2, 8, 0.010, 0.250, 0.000, 0.600, 0.628),
    "SauerkrautLM-Multi-ModernColBERT": (36, 160, 0.172, 0.225, 0.164, 0.291, 0.985),
    "reason-colBERT-150M-GTE-ModernColBERT": (18, 91, 0.086, 0.198, 0.116, 0.286, 0.982),
    "Qwen3-E4B + BM25 hybrid": (45, 144, 0.215, 0.312, 0.239, 0.389, 0.369),
    "Qwen3-Embedding-8B": (38, 140, 0.182, 0.271, 0.200, 0.346, 0.748),
    "Qwen3-Embedding-4B": (36, 143, 0.172, 0.252, 0.185, 0.322, 0.904),
    "stella_en_1.5B_v5": (20, 110, 0.096, 0.182, 0.117, 0.257, 0.999),
}


@pytest.mark.parametrize("resamples", [1000, 20_000])
@pytest.mark.parametrize("model", TABLE_42)
def test_table_42(model: str, resamples: int) -> None:
    target, group, recall, ds, low, high, p = TABLE_42[model]
    found = bootstrap_siblings(hits_of(target, group), resamples)
    assert found.recall_at_1.value == pytest.approx(recall, abs=0.0005)
    assert found.ds_at_1.value == pytest.approx(ds, abs=0.0006)  # 0.3125 is printed as 0.312
    assert found.ds_at_1.interval() == pytest.approx((low, high), abs=0.01)
    assert found.ds_at_1.p_bootstrap(PAPER_CHANCE) == pytest.approx(p, abs=0.05)


def test_the_verdict_hangs_on_the_baseline() -> None:
    ds = bootstrap_siblings(hits_of(45, 144), resamples=100_000).ds_at_1
    assert ds.p_bootstrap(PAPER_CHANCE) > 0.3
    assert ds.p_bootstrap(REAL_CHANCE) == pytest.approx(0.007, abs=0.0015)


# --- other ways to the same resamples ----------------------------------------------------------------------------


def ratio(target: NDArray[np.float64], group: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    hit, near = np.sum(target, axis=axis), np.sum(group, axis=axis)
    return np.where(near > 0, hit / np.maximum(near, 1), 0.0)


def test_scipy_finds_the_same_intervals() -> None:
    rng = np.random.default_rng(1)
    skewed = rng.exponential(size=60)
    scipys = stats.bootstrap((skewed,), np.mean, n_resamples=20_000, method="percentile", rng=rng)
    ours = bootstrap_mean(skewed, resamples=20_000)
    assert ours.value == pytest.approx(skewed.mean())
    error = skewed.std() / math.sqrt(60)
    assert ours.interval() == pytest.approx(tuple(scipys.confidence_interval), abs=0.06 * error)
    assert ours.resampled.std() == pytest.approx(error, rel=0.03)

    first = [np.asarray(v, float) for v in hits_of(38, 140)]
    order = rng.permutation(N)
    second = [np.asarray(v, float)[order] for v in hits_of(20, 110)]
    found = bootstrap_siblings(Hits(*first), resamples=5000)
    difference = bootstrap_difference(Hits(*first), Hits(*second), resamples=5000)
    settings_of_scipy = {"n_resamples": 5000, "method": "percentile", "paired": True, "rng": rng, "vectorized": True}
    for ours, data, statistic in (
        (found.recall_at_1, first[:1], np.mean),
        (found.gr_at_1, first[1:], np.mean),
        (found.ds_at_1, first, ratio),
        (difference.ds_at_1, [*first, *second], lambda a, b, c, d, axis=-1: ratio(a, b, axis) - ratio(c, d, axis)),
        (difference.gr_at_1, [first[1], second[1]], lambda a, b, axis=-1: (a - b).mean(axis=axis)),
    ):
        scipys = stats.bootstrap(tuple(data), statistic, **settings_of_scipy)
        assert ours.interval() == pytest.approx(tuple(scipys.confidence_interval), abs=0.01)


def ds_of(drawn: Outcomes) -> float:
    near = sum(g for _, g in drawn)
    return sum(t for t, _ in drawn) / near if near else 0.0


@pytest.mark.parametrize(
    "outcomes", [[(1, 1), (0, 1), (0, 0)], [(1, 1), (0, 0), (0, 0), (0, 0)], [(0, 1), (1, 1), (1, 1), (0, 1), (0, 0)]]
)
def test_all_possible_resamples(outcomes: Outcomes) -> None:
    n = len(outcomes)
    possible = [ds_of(list(drawn)) for drawn in itertools.product(outcomes, repeat=n)]  # all n**n equally likely
    found = bootstrap_siblings(hits(outcomes), resamples=40_000).ds_at_1
    assert set(np.round(found.resampled, 9)) <= set(np.round(possible, 9))
    for baseline in (0, 0.2, 1 / 3, 0.5, 0.7, 1):
        exact = np.mean([value <= baseline + 1e-12 for value in possible])
        assert found.p_bootstrap(baseline) == pytest.approx(exact, abs=0.015)


def test_paired_against_the_slow_definition() -> None:
    first: Outcomes = [(1, 1), (1, 1), (0, 1), (0, 0), (0, 1)]
    second: Outcomes = [(0, 1), (1, 1), (0, 0), (0, 0), (0, 1)]
    drawn = [[*itertools.chain(d)] for d in itertools.product(range(5), repeat=5)]
    possible = [ds_of([first[i] for i in d]) - ds_of([second[i] for i in d]) for d in drawn]
    recalls = [sum(first[i][0] - second[i][0] for i in d) / 5 for d in drawn]
    found = bootstrap_difference(hits(first), hits(second), resamples=40_000)
    assert found.recall_at_1.value == pytest.approx(1 / 5)
    assert found.gr_at_1.value == pytest.approx(1 / 5)
    assert found.ds_at_1.value == pytest.approx(2 / 4 - 1 / 3)
    for score, exact in ((found.ds_at_1, possible), (found.recall_at_1, recalls)):
        for baseline in (-0.3, 0, 0.2):
            share = np.mean([value <= baseline + 1e-12 for value in exact])
            assert score.p_bootstrap(baseline) == pytest.approx(share, abs=0.015)
        assert score.resampled.std() == pytest.approx(np.std(exact), abs=0.01)
    # Unpaired resamples would vary more.
    assert found.recall_at_1.resampled.std() == pytest.approx(math.sqrt(1 / 5 * 4 / 5 / 5), abs=0.01)


def test_paired_by_hand() -> None:
    # Two queries, four equally likely resamples:
    #   first twice:   DS@1 of A 2/2, of B 0/2                      -> 1
    #   one of each:   A 1/2, B 0/1, and that twice                 -> 1/2
    #   second twice:  A 0/2, B found no group, so 0 by convention  -> 0
    found = bootstrap_difference(hits([(1, 1), (0, 1)]), hits([(0, 1), (0, 0)]), resamples=20_000).ds_at_1
    assert found.value == 0.5
    shares = {value: np.mean(found.resampled == value) for value in (0, 0.5, 1)}
    assert shares == pytest.approx({0: 0.25, 0.5: 0.5, 1: 0.25}, abs=0.015)
    assert found.p_bootstrap() == shares[0]


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    group_rate, ds, experiments = 0.67, 0.27, 500
    covered = {"gr_at_1": 0, "recall_at_1": 0, "ds_at_1": 0}
    truth = {"gr_at_1": group_rate, "recall_at_1": group_rate * ds, "ds_at_1": ds}
    for seed in range(experiments):
        group = rng.random(N) < group_rate
        found = bootstrap_siblings(Hits(group & (rng.random(N) < ds), group), seed=seed)
        for name in covered:
            low, high = getattr(found, name).interval()
            covered[name] += low <= truth[name] <= high
    for name, times in covered.items():
        assert 0.92 <= times / experiments <= 0.98, name


# --- properties --------------------------------------------------------------------------------------------------


@FAST
@given(OUTCOMES, OUTCOMES, st.randoms(use_true_random=False), st.integers(0, 5))
def test_properties(first: Outcomes, second: Outcomes, random: object, seed: int) -> None:
    n = min(len(first), len(second))
    first, second = first[:n], second[:n]
    found = bootstrap_siblings(hits(first), 200, seed)
    for score in found:
        low, high = score.interval()
        assert 0 <= score.resampled.min() <= low <= high <= score.resampled.max() <= 1
        assert 0 <= score.value <= 1
        assert score.interval(0.5).low >= low and score.interval(0.5).high <= high
        assert 0 <= score.p_bootstrap(0) <= score.p_bootstrap(0.5) <= score.p_bootstrap(1) == 1
    assert (found.recall_at_1.resampled <= found.gr_at_1.resampled).all()
    assert found.ds_at_1.value == pytest.approx(ds_of(first))

    difference = bootstrap_difference(hits(first), hits(second), 200, seed)
    for score in difference:
        low, high = score.interval()
        assert -1 <= low <= high <= 1
    order = list(range(n))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = [first[i] for i in order]
    again = bootstrap_siblings(hits(shuffled), 200, seed)
    paired = bootstrap_difference(hits(shuffled), hits([second[i] for i in order]), 200, seed)
    for score, other in zip((*found, *difference), (*again, *paired), strict=True):
        np.testing.assert_array_equal(score.resampled, other.resampled)
        assert score.value == other.value
    assert p_null(hits(first), [3] * n) == pytest.approx(p_null(hits(shuffled), [3] * n))


def test_the_seed_decides() -> None:
    one, same, other = (bootstrap_siblings(hits_of(38, 140), seed=s).ds_at_1.resampled for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert len(one) == 1000


def test_ends_of_the_scale() -> None:
    for score in bootstrap_siblings(hits_of(N, N)):
        assert (score.value, score.interval(), score.p_bootstrap(0.99)) == (1.0, Interval(1.0, 1.0), 0.0)
    # No group was hit: DS@1 is 0 by convention, in every resample too.
    for score in bootstrap_siblings(hits_of(0, 0)):
        assert (score.value, score.interval(), score.p_bootstrap(0)) == (0.0, Interval(0.0, 0.0), 1.0)
    for score in bootstrap_difference(hits_of(38, 140), hits_of(38, 140)):
        assert (score.value, score.interval(), score.p_bootstrap()) == (0.0, Interval(0.0, 0.0), 1.0)
    # The one hit is missing from (1 - 1/209)**209 = 37 % of the resamples.
    single = bootstrap_siblings(hits_of(1, 1), 20_000).ds_at_1
    assert set(single.resampled) == {0.0, 1.0}
    assert single.p_bootstrap(0.5) == pytest.approx((1 - 1 / N) ** N, abs=0.015)


def test_rounding_does_not_decide() -> None:
    below = math.nextafter(1 / 3, 0)  # what a mean of thirds may come to
    sure = Bootstrapped(1 / 3, np.full(10, 1 / 3))
    assert sure.p_bootstrap(below) == sure.p_bootstrap(1 / 3) == 1
    assert sure.p_bootstrap(0.3333) == 0


# --- chance within the group -------------------------------------------------------------------------------------


def test_p_null_by_hand() -> None:
    # Groups of 2 and 4 were hit; the third query's was not, so its size does not matter.
    both, one, none = ([(t1, 1), (t2, 1), (0, 0)] for t1, t2 in ((1, 1), (0, 1), (0, 0)))
    assert p_null(hits(both), [2, 4, 3]) == pytest.approx(1 / 2 * 1 / 4)
    assert p_null(hits(one), [2, 4, 3]) == pytest.approx(1 - 1 / 2 * 3 / 4)
    assert p_null(hits(none), [2, 4, 3]) == 1
    assert p_null(hits([(0, 0), (0, 0)]), [2, 4]) == 1
    assert p_null(hits([(1, 1)]), [1]) == 1  # a group of one cannot be missed


def test_p_null_against_scipy_and_simulation() -> None:
    rng = np.random.default_rng(3)
    sizes = np.repeat([3, 4, 5, 6, 7, 8], [38, 46, 65, 31, 11, 18])  # as in TCR-Bench
    assert np.mean(1 / sizes) == pytest.approx(REAL_CHANCE, abs=0.0005)
    order = rng.permutation(N)
    for target, group in ((38, 140), (45, 144), (20, 110), (1, 1), (90, 100)):
        found = p_null(Hits(*(np.asarray(v)[order] for v in hits_of(target, group))), sizes)
        of_hit = 1 / sizes[np.asarray(hits_of(target, group).group)[order]]
        assert found == pytest.approx(stats.poisson_binom.sf(target - 1, of_hit), abs=1e-9)
        simulated = (rng.random((20_000, group)) < of_hit).sum(axis=1)
        assert found == pytest.approx(np.mean(simulated >= target), abs=0.015)
    # Far in the tail no digit is lost, as a difference from 1 would: 40 of 40 in groups of 8.
    assert p_null(hits_of(40, 40, 40), [8] * 40) == pytest.approx(8.0**-40, rel=1e-9)


# --- bad input ---------------------------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="no query to resample"):
        bootstrap_siblings(Hits([], []))
    with pytest.raises(ValueError, match="query 1: hits must be 0 or 1"):
        bootstrap_siblings(Hits([0, 0.5], [1, 1]))
    with pytest.raises(ValueError, match="query 2: target hits must be finite"):
        bootstrap_siblings(Hits([0, 0, math.nan], [1, 1, 1]))
    with pytest.raises(ValueError, match="query 1: its target was hit but not its group"):
        bootstrap_siblings(Hits([0, 1], [0, 0]))
    with pytest.raises(ValueError, match="2 target hits and 3 group hits"):
        bootstrap_siblings(Hits([0, 0], [0, 0, 0]))
    with pytest.raises(ValueError, match="the runs have 2 and 3"):
        bootstrap_difference(hits_of(1, 1, 2), hits_of(1, 1, 3))
    with pytest.raises(ValueError, match=r"array of shape \(2, 1\)"):
        bootstrap_mean([[1.0], [2.0]])
    with pytest.raises(ValueError, match="at least 1 resample"):
        bootstrap_mean([1.0], resamples=0)
    with pytest.raises(ValueError, match="got 95"):
        bootstrap_mean([1.0]).interval(95)
    with pytest.raises(ValueError, match="2 group sizes for 3 queries"):
        p_null(hits_of(1, 1, 3), [2, 2])
    for size in (0, 2.5):
        with pytest.raises(ValueError, match=f"query 1 has the group size {size}"):
            p_null(hits_of(1, 1, 2), [2, size])
