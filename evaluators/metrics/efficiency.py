"""How much of a retrieved target does the reader make use of? (TCR-Bench, section 4.2)"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evaluators.metrics.bootstrap import LEVEL, RESAMPLES, SEED, Bootstrapped, Interval, finite_column, resampled_sums


class Efficiency(NamedTuple):
    """Eff@k with its bootstrap interval.

    Attributes:
        value: Eff@k; ``None`` where it is not defined.
        interval: ``None`` where ``value`` is, or where too many resamples have none.
        undefined: resamples in which it is not defined.
    """

    value: float | None
    interval: Interval | None
    undefined: int


def efficiency(qa_at_k: float, qa_at_oracle: float, recall_at_k: float) -> float | None:
    """Eff@k = (QA@k / QA@Oracle) / R@k, of averages over queries (section 4.2).

    Range from 0, without upper bound; higher is better. About 1: the reader answers as well from the k tables as from
    the target alone whenever the target is among them; below 1: the other tables are in its way; above 1: it also
    answers where the target is not among them.

    Args:
        qa_at_k: mean F1 with the k best tables, 0..1.
        qa_at_oracle: mean F1 with the target alone, 0..1.
        recall_at_k: share of queries with the target among the k best, 0..1.

    Returns:
        ``None`` if R@k or QA@Oracle is 0: then there is nothing that could be made use of.

    Raises:
        ValueError: for a value outside 0..1.
    """
    for name, value in (("QA@k", qa_at_k), ("QA@Oracle", qa_at_oracle), ("R@k", recall_at_k)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} lies in 0..1, got {value}")
    if qa_at_oracle == 0 or recall_at_k == 0:
        return None
    return qa_at_k / qa_at_oracle / recall_at_k


def bootstrap_efficiency(
    qa_at_k: ArrayLike,
    qa_at_oracle: ArrayLike,
    recall_at_k: ArrayLike,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Efficiency:
    """Eff@k of all queries, with a percentile interval (95 %) from resampled queries.

    A resample draws queries, with all three values of each, and takes Eff@k of its averages. A resample without any
    target among the k best, or without any answer from the target alone, has no Eff@k: it is left out and counted. If
    more than 2.5 % are, there is no interval, since its upper bound would depend on them.

    Args:
        qa_at_k, qa_at_oracle: F1 of each query, shape (queries,), 0..1.
        recall_at_k: 1 where the target is among the k best, otherwise 0, shape (queries,).
        resamples, seed: as in :func:`evaluators.metrics.bootstrap.bootstrap_mean`.

    Raises:
        ValueError: without queries, for different numbers of values, or values outside 0..1.
    """
    names = ("QA@k", "QA@Oracle", "R@k")
    given = zip((qa_at_k, qa_at_oracle, recall_at_k), names, strict=True)
    columns = [finite_column(values, name) for values, name in given]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"Eff@k needs three values of each query, got {[len(column) for column in columns]}")
    rows = np.column_stack(columns)
    bad = np.flatnonzero(((rows < 0) | (rows > 1)).any(axis=1))
    if len(bad):
        raise ValueError(f"query {bad[0]}: {', '.join(names)} lie in 0..1, got {rows[bad[0]].tolist()}")
    n = len(rows)
    value = efficiency(*(rows.sum(axis=0) / n).tolist())
    if value is None:
        return Efficiency(None, None, resamples)
    sums = resampled_sums(rows, resamples, seed)
    defined = sums[(sums[:, 1] > 0) & (sums[:, 2] > 0)]
    undefined = resamples - len(defined)
    if undefined > (1 - LEVEL) / 2 * resamples:
        return Efficiency(value, None, undefined)
    drawn = Bootstrapped(value, defined[:, 0] / defined[:, 1] * n / defined[:, 2])
    return Efficiency(value, drawn.interval(), undefined)
