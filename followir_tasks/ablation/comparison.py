"""Differences between runs on the same topics, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from evaluators.metrics.bootstrap import Interval
from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.plugin.checks import shown


@dataclass(frozen=True)
class Estimate:
    """A mean over topics on the scale of their values, and its 95 % interval, ``None`` with fewer than two topics."""

    value: float
    interval: Interval | None
    n: int


def mean_over_topics(values: Mapping[str, float]) -> Estimate | None:
    """The mean of a value per topic; topics are resampled for its interval. ``None`` without any topic."""
    if not values:
        return None
    # Sorted, so that the draws do not depend on the order of topics in a file.
    topics = sorted(values)
    column = [values[topic] for topic in topics]
    drawn = bootstrap_clusters(column, topics)
    return Estimate(fmean(column), None if drawn is None else drawn.interval(), len(column))


def paired_difference(first: Mapping[str, float], second: Mapping[str, float]) -> Estimate | None:
    """``first`` - ``second`` topic by topic, and the mean; each resample draws topics with both their values.

    Positive where ``first`` is higher.

    Raises:
        ValueError: if the runs have different topics.
    """
    alone = sorted(first.keys() ^ second.keys())
    if alone:
        raise ValueError(f"a paired difference needs the same topics in both runs; only one has {shown(alone)}")
    return mean_over_topics({topic: first[topic] - second[topic] for topic in first})
