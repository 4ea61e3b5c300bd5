"""How sure is a mean over queries that come in clusters, such as the instructions on one base query?

The instructions on one base query share its text and most of its relevant documents, so they are no independent draws:
an interval that treats them as such is too narrow. Here whole clusters are resampled, each with all its values, as
many as there are and with replacement (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section
3.8, resampling by cluster alone). Draws, percentiles and their independence of order are those of
:mod:`evaluators.metrics.bootstrap`, and clusters of one value each give the same numbers as
:func:`~evaluators.metrics.bootstrap.bootstrap_mean`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

from evaluators.metrics.bootstrap import RESAMPLES, SEED, Bootstrapped, finite_column, resampled_sums

# One cluster drawn again and again never differs from itself, which says nothing about how sure a mean is.
FEWEST_CLUSTERS = 2


def bootstrap_clusters(
    values: ArrayLike,
    clusters: Sequence[Hashable],
    strata: Sequence[int] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Bootstrapped | None:
    """Cluster bootstrap of a mean, or of a mean of the strata's means.

    In each resample the mean of a stratum is the sum of its values over their number, both of the clusters drawn, so
    that clusters weigh by their number of values, as they do in the mean itself. A cluster may have values in several
    strata, and is drawn with all of them. A resample in which a stratum has no value has no mean and is left out.

    There is no interval, and the answer is ``None``, where a stratum has values of fewer than two clusters, or where
    more than half of the resamples would be left out. With few clusters an interval is rough and rather too narrow:
    with two, it can only be their two means.

    Args:
        values: shape (n,), on any scale.
        clusters: the cluster of each value.
        strata: the stratum of each value; without, all are of one.
        resamples: how many resamples.
        seed: of the random draws; the same seed and values give the same resamples, whatever their order and the
            names of the clusters.

    Returns:
        the mean and its values in the resamples that have one, within the range of ``values``; ``None`` without
        interval.

    Raises:
        ValueError: without values, for values that are not finite or not one-dimensional, clusters or strata that are
            not one for each value, or fewer than 1 resamples.
    """
    column = finite_column(values, "values").tolist()
    of_value = [0] * len(column) if strata is None else list(strata)
    for what, given in (("clusters", clusters), ("strata", of_value)):
        if len(given) != len(column):
            raise ValueError(f"{len(given)} {what} for {len(column)} values; there must be one for each")
    by_cluster: dict[Hashable, dict[int, list[float]]] = {}
    by_stratum: dict[int, list[float]] = {}
    for value, cluster, stratum in zip(column, clusters, of_value, strict=True):
        by_cluster.setdefault(cluster, {}).setdefault(stratum, []).append(value)
        by_stratum.setdefault(stratum, []).append(value)
    # Sums that do not depend on the order of their terms, in columns that do not depend on the order of the strata.
    rows = [
        [part for s in sorted(by_stratum) for part in (math.fsum(own.get(s, ())), len(own.get(s, ())))]
        for own in by_cluster.values()
    ]
    drawn = resampled_sums(np.array(rows, dtype=np.float64), resamples, seed)
    sums, counts = drawn[:, 0::2], drawn[:, 1::2]
    complete = (counts > 0).all(axis=1)
    n_clusters = Counter(stratum for own in by_cluster.values() for stratum in own)
    if min(n_clusters.values()) < FEWEST_CLUSTERS or complete.mean() < 0.5:
        return None
    means = (sums[complete] / counts[complete]).mean(axis=1)
    # A rounding error must not carry a mean of ones above 1.
    within = np.clip(means, min(column), max(column))
    return Bootstrapped(fmean(math.fsum(own) / len(own) for own in by_stratum.values()), within)
