"""Geometry of embeddings against singular values, scipy's distances, and examples worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr

from evaluators.metrics.geometry import LocalGeometry, Spread, local_geometry, pearson, spread, summarise_local
from evaluators.metrics.siblings import SiblingQuery, sibling_queries

# Rows that are safely not zero: the first number is at least 1.
POINTS = st.tuples(st.integers(2, 7), st.integers(1, 7)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-9, 9)).map(
        lambda m: np.concatenate([np.abs(m[:, :1]) + 1, m], axis=1)
    )
)


def by_singular_values(vectors: np.ndarray) -> tuple[float, float] | None:
    """d_eff and rho from the definition, by another decomposition than the code's."""
    rows = vectors / np.sqrt((vectors**2).sum(axis=1))[:, None]
    eigenvalues = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    if eigenvalues.sum() < 1e-9:
        return None
    return eigenvalues.sum() ** 2 / (eigenvalues**2).sum(), eigenvalues[0] / eigenvalues.sum()


@given(POINTS)
@settings(max_examples=80, deadline=None)
def test_spread_against_singular_values_and_pdist(points: np.ndarray) -> None:
    found = spread(points)
    expected = by_singular_values(points)
    if expected is None:
        assert (found.d_eff, found.rho) == (None, None)
    else:
        assert (found.d_eff, found.rho) == pytest.approx(expected, rel=1e-6)
        assert 1 - 1e-9 <= found.d_eff <= min(len(points) - 1, points.shape[1]) + 1e-9
    assert found.mean_distance == pytest.approx(pdist(points, "cosine").mean(), abs=1e-9)


@given(POINTS, st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_turning_scaling_and_reordering_change_nothing(points: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(points.shape[1], points.shape[1])))
    moved = (points * rng.uniform(0.5, 2, size=(len(points), 1)))[rng.permutation(len(points))] @ turn
    before, after = spread(points), spread(moved)
    assert (after.d_eff is None) == (before.d_eff is None)
    if before.d_eff is not None:
        assert (after.d_eff, after.rho) == pytest.approx((before.d_eff, before.rho), rel=1e-6)
    assert after.mean_distance == pytest.approx(before.mean_distance, abs=1e-9)


@pytest.mark.parametrize(("n", "dimensions"), [(2, 2), (5, 5), (5, 50), (30, 30)])
def test_orthonormal_points(n: int, dimensions: int) -> None:
    # Centred, they span n - 1 dimensions with equal eigenvalues; every pair has cosine 0.
    found = spread(3 * np.eye(n, dimensions))
    assert found.d_eff == pytest.approx(n - 1)
    assert found.rho == pytest.approx(1 / (n - 1))
    assert found.mean_distance == pytest.approx(1)


def test_two_eigenvalues_by_hand() -> None:
    # Points +-e1 (twice each) and +-e2: covariance diag(4, 2) up to a factor, so d_eff = 36 / 20, rho = 4 / 6.
    # Cosines of the 15 pairs: e1 twice with itself 1, likewise -e1; four pairs e1, -e1 and one e2, -e2 with -1: the sum
    # is -3, so the mean distance is 1 + 3 / 15.
    points = [[1, 0], [1, 0], [-1, 0], [-1, 0], [0, 1], [0, -1]]
    assert spread(points) == Spread(6, pytest.approx(1.8), pytest.approx(2 / 3), pytest.approx(1.2))


def test_more_points_than_dimensions_and_fewer_agree() -> None:
    points = np.random.default_rng(0).normal(size=(20, 8))
    padded = np.concatenate([points, np.zeros((20, 30))], axis=1)  # the Gram matrix instead of the covariance
    few, many = spread(padded), spread(points)
    assert (few.d_eff, few.rho, few.mean_distance) == pytest.approx((many.d_eff, many.rho, many.mean_distance))


def test_one_place_has_no_directions() -> None:
    assert spread([[1.0, 2.0]]) == Spread(1, None, None, None)
    found = spread(np.array([[1, 2], [2, 4], [3, 6]], dtype=np.float32))
    assert (found.d_eff, found.rho) == (None, None)
    assert found.mean_distance == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("bad", [[[0.0, 0.0], [1.0, 0.0]], [[1.0, math.nan]], [[math.inf, 1.0]]])
def test_embeddings_without_direction(bad: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="embedding 0 is zero or not finite"):
        spread(bad)


def test_other_shapes() -> None:
    with pytest.raises(ValueError, match="one embedding a row"):
        spread([1.0, 2.0])
    with pytest.raises(ValueError, match="no embedding"):
        spread(np.empty((0, 3)))
    with pytest.raises(ValueError, match="different shapes"):
        local_geometry([1, 0], [1, 0, 0], [[0, 1]])


def test_margin_by_hand() -> None:
    # cos(q, t) = 0.6; siblings 0.8 and 0: the margin is 0.6 - 0.8, whatever the lengths.
    found = local_geometry([2, 0], [3, 4], [[8, 6], [0, 1]])
    assert found.margin == pytest.approx(-0.2)
    assert found.spread.n == 3
    assert found.spread.mean_distance == pytest.approx(pdist([[3, 4], [8, 6], [0, 1]], "cosine").mean())


def test_single_member_group_has_no_margin() -> None:
    found = local_geometry([1, 0], [1, 1], [])
    assert found == LocalGeometry(Spread(1, None, None, None), None)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 1)), min_size=2, max_size=12))
@settings(max_examples=60, deadline=None)
def test_pearson_against_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = (list(map(float, side)) for side in zip(*pairs, strict=True))
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert pearson(first, second) is None
    else:
        assert pearson(first, second) == pytest.approx(pearsonr(first, second).statistic, abs=1e-9)


def outcome(top: str) -> SiblingQuery:
    """What a query with target t and siblings s, u contributes when ``top`` is best."""
    run = {"q": {d: float(d == top) for d in ("t", "s", "u", "other")}}
    return sibling_queries(run, {"q": "t"}, {"q": ["t", "s", "u"]})["q"]


def group(d_eff: float, margin: float) -> LocalGeometry:
    return LocalGeometry(Spread(3, d_eff, 0.5, 0.1), margin)


def test_summary_by_hand() -> None:
    local = {"a": group(1.0, 0.3), "b": group(2.0, -0.1), "c": group(4.0, -0.2), "d": group(5.0, 0.1)}
    outcomes = {"a": outcome("t"), "b": outcome("s"), "c": outcome("u"), "d": outcome("other")}
    found = summarise_local(local, outcomes)
    assert found.values == {
        "median_d_eff": 3.0,
        "median_rho": 0.5,
        "median_distance": pytest.approx(0.1),
        "mean_margin": pytest.approx(0.025),  # 0.1 / 4
        "positive_margin_share": 0.5,
        "mean_margin_target_first": pytest.approx(0.3),
        "mean_margin_sibling_first": pytest.approx(-0.15),
        "neighbourhood_hit_target_miss": 0.5,
        "r_d_eff_r_at_1": pytest.approx(pearsonr([1, 2, 4, 5], [1, 0, 0, 0]).statistic),
        "r_d_eff_gr_at_1": pytest.approx(pearsonr([1, 2, 4, 5], [1, 1, 1, 0]).statistic),
        "r_margin_r_at_1": pytest.approx(pearsonr([0.3, -0.1, -0.2, 0.1], [1, 0, 0, 0]).statistic),
        "r_margin_gr_at_1": pytest.approx(pearsonr([0.3, -0.1, -0.2, 0.1], [1, 1, 1, 0]).statistic),
    }
    # rho and distance are the same in every group: no correlation, and the reason is told.
    assert found.undefined.keys() == {f"r_{x}_{y}" for x in ("rho", "distance") for y in ("r_at_1", "gr_at_1")}


def test_groups_of_one_collapse_as_in_table_25() -> None:
    hit = {"q": {"t": 1.0, "x": 0.0}, "r": {"t2": 0.0, "x": 1.0}}
    outcomes = sibling_queries(hit, {"q": "t", "r": "t2"}, {"q": ["t"], "r": ["t2"]})
    local = {q: local_geometry([1, 0], [1, 1], []) for q in hit}
    found = summarise_local(local, outcomes)
    assert found.values == {"neighbourhood_hit_target_miss": 0.0}
    assert {"mean_margin", "median_d_eff", "positive_margin_share"} <= found.undefined.keys()


def test_summary_needs_the_same_queries() -> None:
    with pytest.raises(ValueError, match="same queries"):
        summarise_local({"a": group(1, 0)}, {"b": outcome("t")})
