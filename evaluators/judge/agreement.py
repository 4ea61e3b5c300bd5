"""How well two sides' scores of the same (instruction, passage) pairs agree: people and a judge, or two people.

IFIR checks its judge in this way (section 6): 400 pairs, scored 1 to 5 by one expert each and by GPT-4o, have a Pearson
coefficient of 0.704.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evaluators.judge.scale import Scale

Interval = tuple[float, float]
_Array = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 2000
# Two points always lie on a line.
FEWEST = 3
# What is left of equal weighted scores after rounding is no variation.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Correlation:
    """A coefficient in -1..1 and 95 % intervals, which take the pairs as independent of each other.

    Attributes:
        value: the coefficient.
        fisher: by Fisher's z transform, for Pearson's coefficient of at least 4 pairs, else ``None``.
        bootstrap: percentiles over resampled pairs, ``None`` if no resample has a coefficient.
        n_undefined: resamples left out of it, because one side was constant in them.
    """

    value: float
    fisher: Interval | None
    bootstrap: Interval | None
    n_undefined: int


@dataclass(frozen=True)
class Agreement:
    """The agreement of a first and a second side.

    Attributes:
        n: pairs that both sides scored.
        scales: lowest and highest score of each side.
        means: mean score of each side on its scale, ``None`` without pairs.
        pearson, spearman: ``None`` if there is no coefficient.
        note: why there is none; empty otherwise.
        of_range: whether the scores are shares of the ranges of several scales, see :func:`compared`.
    """

    n: int
    scales: tuple[Scale, Scale]
    means: tuple[float, float] | None
    pearson: Correlation | None
    spearman: Correlation | None
    note: str = ""
    of_range: bool = False


class Scored(NamedTuple):
    """A pair with the scores of two sides, each on its scale."""

    first: float
    second: float
    scales: tuple[Scale, Scale]


def agreement(
    first: Sequence[float],
    second: Sequence[float],
    scales: tuple[Scale, Scale],
    *,
    names: tuple[str, str] = ("human", "judge"),
    fewest: int = FEWEST,
    seed: int = 0,
) -> Agreement:
    """Pearson's and Spearman's coefficient of two sides' scores of the same pairs, with intervals.

    Args:
        first, second: scores, in the same order of pairs.
        scales: lowest and highest score of either side.
        names: of the sides, for messages.
        fewest: with fewer pairs there is no coefficient; at least 3.
        seed: of the bootstrap, which draws ``RESAMPLES`` resamples.

    Raises:
        ValueError: if the sides differ in length, or a score is no finite number on its scale.
    """
    if len(first) != len(second):
        raise ValueError(
            f"{len(first)} scores of {names[0]} and {len(second)} of {names[1]}: expected one of each a pair"
        )
    x, y = (_on_scale(*side) for side in zip((first, second), scales, names, strict=True))
    note = _why_none(x, y, scales, names, max(fewest, FEWEST))
    means = (float(x.mean()), float(y.mean())) if len(x) else None
    if note:
        return Agreement(len(x), scales, means, None, None, note)
    linear, ranked = stats.pearsonr(x, y), stats.spearmanr(x, y)
    # Fisher's interval has the standard error 1 / sqrt(n - 3).
    fisher = linear.confidence_interval(CONFIDENCE) if len(x) > 3 else None
    return Agreement(
        len(x),
        scales,
        means,
        Correlation(
            float(linear.statistic),
            None if fisher is None else (float(fisher.low), float(fisher.high)),
            *_bootstrap(x, y, _pearson, seed),
        ),
        Correlation(float(ranked.statistic), None, *_bootstrap(x, y, _spearman, seed)),
    )


def share(score: float, scale: Scale) -> float:
    """A score as a share of its scale's range: 0 for the lowest, 1 for the highest."""
    return (score - scale[0]) / (scale[1] - scale[0])


def compared(
    scored: Sequence[Scored],
    *,
    names: tuple[str, str] = ("human", "judge"),
    fewest: int = FEWEST,
    seed: int = 0,
) -> Agreement:
    """:func:`agreement` of pairs that may have been scored on different scales.

    If all have the same scales, their scores are compared as they are; otherwise every score as a share of its scale's
    range, so that the scales are 0 to 1.

    Raises:
        ValueError: as :func:`agreement`.
    """
    by_scales = {s.scales for s in scored}
    same = len(by_scales) == 1
    scales = by_scales.pop() if same else ((0, 1), (0, 1))
    first = [s.first if same else share(s.first, s.scales[0]) for s in scored]
    second = [s.second if same else share(s.second, s.scales[1]) for s in scored]
    found = agreement(first, second, scales, names=names, fewest=fewest, seed=seed)
    return replace(found, of_range=not same and bool(scored))


def _on_scale(scores: Sequence[float], scale: Scale, name: str) -> _Array:
    lowest, highest = scale
    values = np.asarray(scores, dtype=np.float64)
    off = np.flatnonzero(~((values >= lowest) & (values <= highest)))
    if len(off):
        raise ValueError(
            f"{name}: score {scores[off[0]]!r} of pair {off[0]} (from 0) is not on the scale {lowest} to {highest}"
        )
    return values


def _why_none(x: _Array, y: _Array, scales: tuple[Scale, Scale], names: tuple[str, str], fewest: int) -> str:
    if len(x) < fewest:
        return f"no coefficient: {len(x)} pairs, at least {fewest} are needed"
    for values, (lowest, highest), name in zip((x, y), scales, names, strict=True):
        if np.ptp(values) <= _ROUNDING * (highest - lowest):
            return f"no coefficient: every score of {name} is {values[0]:g}"
    return ""


def _bootstrap(x: _Array, y: _Array, coefficient: Callable[..., Any], seed: int) -> tuple[Interval | None, int]:
    with warnings.catch_warnings():
        # A resample in which a side is constant has no coefficient; it is counted below.
        warnings.simplefilter("ignore")
        drawn = stats.bootstrap(
            (x, y),
            coefficient,
            paired=True,
            vectorized=True,
            n_resamples=RESAMPLES,
            method="percentile",
            rng=np.random.default_rng(seed),
        ).bootstrap_distribution
    defined = drawn[np.isfinite(drawn)]
    undefined = len(drawn) - len(defined)
    if not len(defined):
        return None, undefined
    low, high = np.quantile(defined, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return (float(low), float(high)), undefined


def _pearson(x: _Array, y: _Array, axis: int) -> Any:
    return stats.pearsonr(x, y, axis=axis).statistic


def _spearman(x: _Array, y: _Array, axis: int) -> Any:
    return _pearson(stats.rankdata(x, axis=axis), stats.rankdata(y, axis=axis), axis)
