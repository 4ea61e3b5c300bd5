"""How sure is a score? Percentile bootstrap over queries, and tests of DS@1 against chance within the group.

Source: TCR-Bench, appendix M (Tables 42 and 43), which prints intervals of DS@1 from 1,000 resamples, p-values against
a random choice within the group, and paired differences of two runs on the same queries.

A resample draws as many queries as there are, with replacement. Only how often each distinct row of values is drawn
matters, and these counts follow a multinomial distribution, so the counts are drawn rather than the queries: the same
distribution at a fraction of the cost, and no order of the queries can change a number. Queries count as independent,
as in the paper; where several share a group of tables they are not quite, and the intervals are then somewhat narrow.
For values that depend on each other, :mod:`evaluators.metrics.cluster_bootstrap` draws whole clusters of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 1000
SEED = 0
LEVEL = 0.95
# Equal ratios may differ in their last bits; that must not decide a comparison.
_ROUNDING = 1e-9

Array = NDArray[np.float64]


class Interval(NamedTuple):
    """A confidence interval on the scale of its score."""

    low: float
    high: float


class Hits(NamedTuple):
    """The outcome at rank 1 of each query, in one order: 0 or 1 (or booleans), shape (queries,).

    Attributes:
        target: whether the best source is the target.
        group: whether it is the target or one of its siblings; 1 wherever ``target`` is.
    """

    target: ArrayLike
    group: ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrapped:
    """A score of all queries and its values in the resamples.

    Attributes:
        value: the score, or the difference of two runs' scores.
        resampled: its value in each resample, shape (resamples,).
    """

    value: float
    resampled: Array

    def interval(self, level: float = LEVEL) -> Interval:
        """Percentile interval: the quantiles (1 - level) / 2 and (1 + level) / 2 of the resamples, interpolated.

        It lies within the range of the score. When every query has the same values, both bounds are the score itself.

        Raises:
            ValueError: if ``level`` does not lie between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"the level of an interval lies between 0 and 1, such as 0.95; got {level}")
        low, high = np.quantile(self.resampled, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(low), float(high))

    def p_bootstrap(self, baseline: float = 0.0) -> float:
        """Share of resamples with a value of at most ``baseline``: one-sided, against "no better than the baseline".

        Range 0..1 in steps of 1 / resamples (0 means below one step); low speaks for a score above the baseline. This
        is the p-value of Table 42 (of DS@1, with the baseline 0.298) and, for a paired difference and the baseline 0,
        of Table 43. A value that equals the baseline but for rounding counts as at most it.
        """
        return float(np.mean(self.resampled <= baseline + _ROUNDING))


class SiblingBootstrap(NamedTuple):
    """R@1, GR@1 and DS@1 in the same resamples, or the differences of two runs' scores."""

    recall_at_1: Bootstrapped
    gr_at_1: Bootstrapped
    ds_at_1: Bootstrapped


def bootstrap_mean(values: ArrayLike, resamples: int = RESAMPLES, seed: int = SEED) -> Bootstrapped:
    """Bootstrap of the mean of one value per query.

    Args:
        values: shape (queries,), on any scale.
        resamples: how many resamples.
        seed: of the random draws; the same seed and values give the same resamples, whatever the order of queries.

    Raises:
        ValueError: without queries, for values that are not finite or not one-dimensional, or fewer than 1 resamples.
    """
    rows = finite_column(values, "values")[:, None]
    return Bootstrapped(float(rows.mean()), resampled_sums(rows, resamples, seed)[:, 0] / len(rows))


def bootstrap_siblings(hits: Hits, resamples: int = RESAMPLES, seed: int = SEED) -> SiblingBootstrap:
    """Bootstrap of R@1, GR@1 and DS@1 (Table 42).

    In each resample R@1 and GR@1 are the means of ``target`` and ``group``, and DS@1 is the ratio of these means:
    R@1 / GR@1, 0 where GR@1 = 0. Range 0..1, higher is better. If no query hits its group, all of them are 0 in every
    resample.

    Raises:
        ValueError: as :func:`bootstrap_mean`, for values other than 0 and 1, lengths that differ, or a target hit that
            is no group hit; the position of the query is named.
    """
    rows = _hit_rows(hits)
    return _scores(rows.sum(axis=0)[None], resampled_sums(rows, resamples, seed), len(rows))


def bootstrap_difference(first: Hits, second: Hits, resamples: int = RESAMPLES, seed: int = SEED) -> SiblingBootstrap:
    """Paired bootstrap of two runs: R@1, GR@1 and DS@1 of ``first`` minus those of ``second`` (Table 43).

    Each resample draws queries, and both runs are scored on the same drawn queries, each with its own DS@1 (0 at GR@1 =
    0). Range -1..1; positive means that ``first`` is better. ``p_bootstrap()`` is the share of resamples with a
    difference of at most 0: one-sided, low where ``first`` is better.

    Args:
        first, second: the runs' hits on the same queries in the same order.
        resamples, seed: as in :func:`bootstrap_mean`.

    Raises:
        ValueError: as :func:`bootstrap_siblings`, or if the runs have different numbers of queries.
    """
    ours, theirs = _hit_rows(first), _hit_rows(second)
    if len(ours) != len(theirs):
        raise ValueError(
            f"a paired comparison needs the same queries, but the runs have {len(ours)} and {len(theirs)}: keep those "
            "that both have, in one order"
        )
    rows = np.hstack([ours, theirs])
    observed, drawn = rows.sum(axis=0)[None], resampled_sums(rows, resamples, seed)
    n = len(rows)
    pairs = zip(_scores(observed[:, :2], drawn[:, :2], n), _scores(observed[:, 2:], drawn[:, 2:], n), strict=True)
    return SiblingBootstrap(*(Bootstrapped(a.value - b.value, a.resampled - b.resampled) for a, b in pairs))


def p_null(hits: Hits, group_sizes: ArrayLike) -> float:
    """P-value of the target hits against a blind choice within the group, given which groups were hit.

    In each query whose group was hit, chance draws the target with probability 1 / group size. The number of target
    hits then has a Poisson-binomial distribution, and p is its exact upper tail: the probability of at least as many
    target hits as observed. It is what the share of such draws tends to as more and more of them are simulated.

    Range 0..1 (never 0 in exact terms), one-sided; low speaks for a retriever that tells the target from its siblings.
    Unlike ``p_bootstrap`` it takes each group's own chance, not the average, and has no steps of 1 / resamples. If no
    query hits its group, p is 1: nothing speaks against chance.

    Args:
        hits: shape (queries,) each.
        group_sizes: size of each query's group, target included, shape (queries,); whole numbers of at least 1.

    Raises:
        ValueError: as :func:`bootstrap_siblings`, or for a group size that is not a whole number of at least 1.
    """
    rows = _hit_rows(hits)
    sizes = finite_column(group_sizes, "group_sizes")
    if len(sizes) != len(rows):
        raise ValueError(f"{len(sizes)} group sizes for {len(rows)} queries; there must be one for each")
    bad = np.flatnonzero((sizes < 1) | (sizes != np.floor(sizes)))
    if len(bad):
        raise ValueError(f"query {bad[0]} has the group size {sizes[bad[0]]}; it must be a whole number of at least 1")
    chances = 1 / sizes[rows[:, 1] == 1]
    # Position k: the probability of k target hits among the queries so far.
    probabilities = np.zeros(len(chances) + 1)
    probabilities[0] = 1
    for chance in chances:
        probabilities[1:] = probabilities[1:] * (1 - chance) + probabilities[:-1] * chance
        probabilities[0] *= 1 - chance
    return float(min(probabilities[int(rows[:, 0].sum()) :].sum(), 1))


def _scores(observed: Array, drawn: Array, n: int) -> SiblingBootstrap:
    """Scores from sums of target and group hits, shape (1, 2) and (resamples, 2), over ``n`` queries."""

    def ratio(sums: Array) -> Array:
        # Of sums, not means: equal ratios of whole numbers are equal as floats.
        return np.divide(sums[:, 0], sums[:, 1], out=np.zeros(len(sums)), where=sums[:, 1] > 0)

    return SiblingBootstrap(
        Bootstrapped(float(observed[0, 0] / n), drawn[:, 0] / n),
        Bootstrapped(float(observed[0, 1] / n), drawn[:, 1] / n),
        Bootstrapped(float(ratio(observed)[0]), ratio(drawn)),
    )


def resampled_sums(rows: Array, resamples: int, seed: int) -> Array:
    """Sums of the columns in each resample of the rows, shape (resamples, columns); the order of rows is of no account.

    Raises:
        ValueError: for fewer than 1 resamples.
    """
    if resamples < 1:
        raise ValueError(f"a bootstrap needs at least 1 resample, got {resamples}")
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    n = len(rows)
    drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=resamples)
    return np.asarray(drawn @ distinct, dtype=np.float64)


def _hit_rows(hits: Hits) -> Array:
    """Target and group hits as columns of 0 and 1, shape (queries, 2)."""
    target, group = finite_column(hits.target, "target hits"), finite_column(hits.group, "group hits")
    if len(target) != len(group):
        raise ValueError(f"{len(target)} target hits and {len(group)} group hits; there must be one of each per query")
    rows = np.column_stack([target, group])
    bad = np.flatnonzero(((rows != 0) & (rows != 1)).any(axis=1))
    if len(bad):
        raise ValueError(f"query {bad[0]}: hits must be 0 or 1, got {rows[bad[0]].tolist()}")
    bad = np.flatnonzero(target > group)
    if len(bad):
        raise ValueError(f"query {bad[0]}: its target was hit but not its group, to which the target belongs")
    return rows


def finite_column(values: ArrayLike, what: str) -> Array:
    """One value per query as an array.

    Raises:
        ValueError: naming the position, for values that are not finite; or if there is none, or no single column.
    """
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise ValueError(f"{what} must be one value per query, got an array of shape {column.shape}")
    if len(column) == 0:
        raise ValueError(f"no query to resample: {what} are empty")
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise ValueError(f"query {bad[0]}: {what} must be finite, got {column[bad[0]]}")
    return column
