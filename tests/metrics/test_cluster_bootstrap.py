"""The bootstrap over clusters: hand calculations, complete enumeration, scipy, coverage, and bounds in results."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluators.metrics.bootstrap import Bootstrapped, Interval, bootstrap_mean
from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.plugin.results import bounded, bounds

FAST = settings(deadline=None, max_examples=40)
# A cluster as the slow definition has it: its values, each with the stratum.
Cluster = list[tuple[int, float]]


def drawn_from(clusters: Sequence[Cluster], resamples: int = 1000, seed: int = 0) -> Bootstrapped | None:
    flat = [(value, name, stratum) for name, cluster in enumerate(clusters) for stratum, value in cluster]
    values, names, strata = zip(*flat, strict=True)
    return bootstrap_clusters(values, names, strata, resamples, seed)


def slow_mean(drawn: Sequence[Cluster], strata: set[int]) -> float | None:
    """The mean of the strata's means of these clusters; ``None`` if a stratum has no value."""
    by_stratum = [[v for cluster in drawn for s, v in cluster if s == stratum] for stratum in strata]
    return fmean(map(fmean, by_stratum)) if all(by_stratum) else None


# --- by hand -----------------------------------------------------------------------------------------------------


def test_two_clusters_by_hand() -> None:
    # a: 0; b: 1, 1, 1. Four equally likely resamples: aa 0, ab and ba 3/4 (and not 1/2, clusters weigh by size), bb 1.
    found = bootstrap_clusters([0, 1, 1, 1], ["a", "b", "b", "b"], resamples=20_000)
    assert found is not None
    assert found.value == 0.75
    shares = {value: float(np.mean(found.resampled == value)) for value in (0, 0.75, 1)}
    assert shares == pytest.approx({0: 0.25, 0.75: 0.5, 1: 0.25}, abs=0.015)
    assert found.interval() == Interval(0, 1)


def test_strata_by_hand() -> None:
    # a has 0 in stratum 1 and 1 in stratum 2, b 1 in stratum 1, c 0 in stratum 2: (1/2 + 1/2) / 2.
    # Of 27 resamples bbb and ccc have a stratum without value. Nothing but a: (0 + 1) / 2. No a: (1 + 0) / 2.
    # aab (3 of 27): stratum 1 has 0, 0, 1 and stratum 2 has 1, 1: (1/3 + 1) / 2 = 2/3.
    found = drawn_from([[(1, 0), (2, 1)], [(1, 1)], [(2, 0)]], resamples=20_000)
    assert found is not None
    assert found.value == 0.5
    assert len(found.resampled) / 20_000 == pytest.approx(25 / 27, abs=0.01)
    assert np.mean(np.isclose(found.resampled, 2 / 3)) == pytest.approx(3 / 25, abs=0.01)


@pytest.mark.parametrize(("n", "most"), [(5, True), (6, False)])
def test_no_interval_if_most_resamples_lack_a_stratum(n: int, most: bool) -> None:
    # Each of n strata has two clusters of its own; inclusion and exclusion gives how often none is missing: 52 %, 44 %.
    complete = sum((-1) ** k * math.comb(n, k) * ((n - k) / n) ** (2 * n) for k in range(n + 1))
    assert (complete > 0.5) == most
    found = drawn_from([[(cluster // 2, float(cluster))] for cluster in range(2 * n)], resamples=20_000)
    assert (found is not None) == most
    if found is not None:
        assert len(found.resampled) / 20_000 == pytest.approx(complete, abs=0.01)


def test_one_cluster_says_nothing() -> None:
    assert bootstrap_clusters([0.2, 0.9, 0.4], ["a", "a", "a"]) is None
    assert bootstrap_clusters([0.2], ["a"]) is None
    # One stratum of two has values of one cluster only.
    assert drawn_from([[(1, 0.5), (2, 0.1)], [(1, 0.7)], [(1, 0.9)]]) is None


# --- other ways to the same resamples ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clusters",
    [
        [[(0, 0.1), (0, 0.9)], [(0, 0.5)], [(0, 0.3), (0, 0.2), (0, 0.7)]],
        [[(1, 0.0), (2, 0.25)], [(1, 1.0), (1, 0.5), (2, 0.75)], [(2, 1.0)], [(1, 0.25)]],
        [[(1, -20.0), (3, 0.5)], [(1, 0.5)], [(3, -0.25)], [(0, 1.0), (3, 0.0)], [(0, 0.5)]],
    ],
)
def test_all_possible_resamples(clusters: list[Cluster]) -> None:
    strata = {stratum for cluster in clusters for stratum, _ in cluster}
    means = [slow_mean(drawn, strata) for drawn in itertools.product(clusters, repeat=len(clusters))]
    possible = [mean for mean in means if mean is not None]
    found = drawn_from(clusters, resamples=40_000)
    assert found is not None
    assert found.value == pytest.approx(slow_mean(clusters, strata))
    assert len(found.resampled) / 40_000 == pytest.approx(len(possible) / len(means), abs=0.01)
    assert set(np.round(found.resampled, 9)) <= set(np.round(possible, 9))
    for threshold in np.quantile(possible, [0.05, 0.25, 0.5, 0.75, 0.95]):
        exact = np.mean(np.array(possible) <= threshold + 1e-9)
        assert np.mean(found.resampled <= threshold + 1e-9) == pytest.approx(exact, abs=0.015)


def test_scipy_resamples_clusters_to_the_same_interval() -> None:
    rng = np.random.default_rng(5)
    clusters = [
        [(stratum, float(v)) for stratum in (1, 2, 3) for v in effect + rng.normal(0, 0.5, size=rng.integers(0, 3))]
        for effect in rng.normal(size=30)
    ]
    clusters = [cluster for cluster in clusters if cluster]

    def mean_of(at: Sequence[int]) -> float:
        mean = slow_mean([clusters[i] for i in at], {1, 2, 3})
        assert mean is not None
        return mean

    scipys = stats.bootstrap(
        (np.arange(len(clusters)),),
        mean_of,
        n_resamples=3000,
        method="percentile",
        vectorized=False,
        rng=rng,
    )
    found = drawn_from(clusters, resamples=20_000)
    assert found is not None
    error = float(scipys.standard_error)
    assert found.interval() == pytest.approx(tuple(scipys.confidence_interval), abs=0.15 * error)
    assert found.resampled.std() == pytest.approx(error, rel=0.05)


def test_clusters_of_one_value_are_the_plain_bootstrap() -> None:
    values = np.random.default_rng(1).exponential(size=60)
    found, plain = bootstrap_clusters(values, range(60)), bootstrap_mean(values)
    assert found is not None
    np.testing.assert_allclose(found.resampled, plain.resampled, rtol=1e-12)
    scipys = stats.bootstrap((values,), np.mean, n_resamples=50_000, method="percentile", rng=1)
    wide = bootstrap_clusters(values, range(60), resamples=50_000)
    assert wide is not None
    error = values.std() / math.sqrt(60)
    assert wide.interval() == pytest.approx(tuple(scipys.confidence_interval), abs=0.08 * error)


def test_an_interval_covers_the_truth_as_often_as_it_says_and_one_over_queries_does_not() -> None:
    """Base queries with up to three levels, whose values are mostly the base query's: true mean of the levels' means 0.

    With a correlation of 0.8 in a cluster of 3 the variance of the mean is 1 + 2 * 0.8 = 2.6 times that of independent
    values, so that an interval over queries covers what 1.96 / sqrt(2.6) standard errors do: 78 %, and somewhat more
    here, where some levels are missing.
    """
    rng = np.random.default_rng(9)
    experiments, n = 200, 80
    bases, levels = np.repeat(np.arange(n), 3), np.tile([1, 2, 3], n)
    covered = Counter[str]()
    for seed in range(experiments):
        asked = rng.random(3 * n) < 0.9
        values = (math.sqrt(0.8) * rng.normal(size=n)[bases] + math.sqrt(0.2) * rng.normal(size=3 * n))[asked]
        found = bootstrap_clusters(values, bases[asked].tolist(), levels[asked].tolist(), 300, seed)
        assert found is not None
        low, high = found.interval()
        covered["over base queries"] += low <= 0 <= high
        covered["over queries"] += abs(values.mean()) <= 1.96 * values.std() / math.sqrt(len(values))
    assert 0.91 <= covered["over base queries"] / experiments <= 0.98
    assert covered["over queries"] / experiments < 0.87


# --- properties --------------------------------------------------------------------------------------------------

CLUSTERS = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.floats(-20, 1)), min_size=1, max_size=5), min_size=1, max_size=12
)


@FAST
@given(CLUSTERS, st.randoms(use_true_random=False), st.integers(0, 5))
def test_properties(clusters: list[Cluster], random: object, seed: int) -> None:
    found = drawn_from(clusters, 200, seed)
    n_clusters = Counter(stratum for cluster in clusters for stratum in {s for s, _ in cluster})
    assert (found is None) == (min(n_clusters.values()) < 2)
    shuffled = [random.sample(cluster, len(cluster)) for cluster in clusters]  # type: ignore[attr-defined]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = drawn_from(shuffled, 200, seed)
    if found is None or again is None:
        assert found is again
        return
    np.testing.assert_array_equal(found.resampled, again.resampled)
    assert found.value == again.value == pytest.approx(slow_mean(clusters, set(n_clusters)), abs=1e-9)
    values = [value for cluster in clusters for _, value in cluster]
    low, high = found.interval()
    assert min(values) <= low <= high <= max(values)
    narrow = found.interval(0.5)
    assert low <= narrow.low <= narrow.high <= high


@FAST
@given(CLUSTERS)
def test_one_stratum_is_none(clusters: list[Cluster]) -> None:
    flat = [(value, name) for name, cluster in enumerate(clusters) for _, value in cluster]
    values, names = zip(*flat, strict=True)
    without, one = bootstrap_clusters(values, names), bootstrap_clusters(values, names, [7] * len(values))
    if without is None or one is None:
        assert without is one is None
    else:
        np.testing.assert_array_equal(without.resampled, one.resampled)


def test_the_seed_decides() -> None:
    clusters: list[Cluster] = [[(1, float(i)), (2, float(i * i))] for i in range(9)]
    one, same, other = (drawn_from(clusters, seed=s) for s in (1, 1, 2))
    assert one is not None and same is not None and other is not None
    np.testing.assert_array_equal(one.resampled, same.resampled)
    assert (one.resampled != other.resampled).any()
    assert len(one.resampled) == 1000


def test_rounding_leaves_the_scale_alone() -> None:
    for value in (0.1, 1 / 3, 1.0):
        found = bootstrap_clusters([value] * 9, [0, 0, 0, 1, 1, 2, 2, 2, 2])
        assert found is not None and found.interval() == Interval(value, value)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="values are empty"):
        bootstrap_clusters([], [])
    with pytest.raises(ValueError, match="values must be finite, got nan"):
        bootstrap_clusters([0.5, math.nan], ["a", "b"])
    with pytest.raises(ValueError, match="1 clusters for 2 values"):
        bootstrap_clusters([0.5, 0.5], ["a"])
    with pytest.raises(ValueError, match="3 strata for 2 values"):
        bootstrap_clusters([0.5, 0.5], ["a", "b"], [1, 2, 3])
    with pytest.raises(ValueError, match="at least 1 resample"):
        bootstrap_clusters([0.5, 0.5], ["a", "b"], resamples=0)


# --- in results --------------------------------------------------------------------------------------------------


def test_bounds_in_results() -> None:
    assert bounds("p-MRR", bootstrap_clusters([-1, 1], ["a", "b"])) == {"p-MRR_low": -1.0, "p-MRR_high": 1.0}
    assert bounds("p-MRR", None) == {}
    assert [bounded(key) for key in ("p-MRR_low", "p-MRR_high", "p-MRR", "n_lowered")] == ["p-MRR"] * 3 + ["n_lowered"]
