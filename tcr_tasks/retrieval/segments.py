"""Scores of tables from scores of their pieces: a reduction over segments of one array."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX", "MEAN", "Reduction", "reduction", "segment_scores"]

_TOP = re.compile(r"top([1-9][0-9]*)")


class Reduction(NamedTuple):
    """How the scores of a table's pieces become one: ``max``, ``mean``, or the mean of the ``best`` highest."""

    name: str
    best: int | None = None


MAX, MEAN = Reduction("max"), Reduction("mean")


def reduction(name: str) -> Reduction:
    """The reduction of a name: ``max``, ``mean`` or ``top3`` with any number.

    Raises:
        ValueError: for any other name.
    """
    found = _TOP.fullmatch(name)
    if found:
        return Reduction(name, int(found[1]))
    if name not in (MAX.name, MEAN.name):
        raise ValueError(f"unknown reduction {name!r}; it must be max, mean, or topN such as top3")
    return Reduction(name)


def segment_scores(
    scores: NDArray[np.float32], starts: NDArray[np.intp], how: Reduction
) -> NDArray[np.float32] | NDArray[np.float64]:
    """One score per segment: ``max``, arithmetic ``mean``, or the mean of the N highest (of all, if it has fewer).

    Higher is better, as for the pieces, and the range is theirs.

    Args:
        scores: shape (queries, pieces), not changed.
        starts: the first piece of each segment, ascending from 0, shape (segments,); no segment is empty.
        how: the reduction.

    Returns:
        Shape (queries, segments). Means are taken in double precision.
    """
    if how == MAX:
        return np.asarray(np.maximum.reduceat(scores, starts, axis=1))
    sizes = np.diff(starts, append=scores.shape[1])
    if how.best is None:
        return np.asarray(np.add.reduceat(scores, starts, axis=1, dtype=np.float64)) / sizes
    return _mean_of_best(scores.copy(), starts, sizes, how.best)


def _mean_of_best(
    left: NDArray[np.float32], starts: NDArray[np.intp], sizes: NDArray[np.intp], best: int
) -> NDArray[np.float64]:
    """The maximum is taken away again and again, since the few highest are wanted of segments of any length."""
    total = np.zeros((len(left), len(starts)))
    segment_of = np.repeat(np.arange(len(starts)), sizes)
    for taken in range(min(best, int(sizes.max()))):
        highest = np.maximum.reduceat(left, starts, axis=1)
        more = sizes > taken
        total[:, more] += highest[:, more]
        for query, row in zip(highest, left, strict=True):
            places = np.flatnonzero(row == query[segment_of])
            # Of equal scores one at a time; places ascend, and so do their segments.
            _, first = np.unique(segment_of[places], return_index=True)
            row[places[first]] = -np.inf
    return total / np.minimum(sizes, best)
