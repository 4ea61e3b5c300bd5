"""What a random ranking is expected to score: the level below which a model has learnt nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable


def chance_ndcg(grades: Iterable[int], n_documents: int, k: int) -> float:
    """Expected nDCG@k (trec_eval's, gain = grade) of ``n_documents`` documents in random order.

    Every rank then has the mean gain, so it is ``mean gain * sum of discounts / ideal DCG``. Range 0..1.

    Args:
        grades: grades of the judged documents; those above 0 count.
        n_documents: number of ranked documents, judged or not.
        k: cut-off.

    Raises:
        ValueError: if there is no relevant document, or there are more of them than documents.
    """
    gains = sorted((g for g in grades if g > 0), reverse=True)
    _check(len(gains), n_documents)
    discounts = [1 / math.log2(rank + 1) for rank in range(1, min(k, n_documents) + 1)]
    ideal = sum(g * d for g, d in zip(gains, discounts, strict=False))
    return sum(gains) / n_documents * sum(discounts) / ideal


def chance_average_precision(n_relevant: int, n_documents: int) -> float:
    """Expected average precision of ``n_relevant`` documents among ``n_documents`` in random order.

    A document at rank r is relevant with probability R/N, and then the precision there is expected to be
    ``(1 + (r - 1) (R - 1) / (N - 1)) / r``; summed over ranks and divided by R. Range 0..1.

    Raises:
        ValueError: if there is no relevant document, or there are more of them than documents.
    """
    _check(n_relevant, n_documents)
    if n_documents == 1:
        return 1.0
    others = (n_relevant - 1) / (n_documents - 1)
    harmonic = sum(1 / rank for rank in range(1, n_documents + 1))
    return others + harmonic / n_documents * (1 - others)


def _check(n_relevant: int, n_documents: int) -> None:
    if not 1 <= n_relevant <= n_documents:
        raise ValueError(f"expected 1 <= relevant documents <= documents, got {n_relevant} and {n_documents}")
