"""What a random ranking is expected to score: the level below which a model has learnt nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable


def chance_ndcg(grades: Iterable[int], n_documents: int, k: int, judged: Iterable[int] | None = None) -> float:
    """Expected nDCG@k (trec_eval's, gain = grade) of ``n_documents`` documents in random order.

    Every rank then has the mean gain, so it is ``mean gain * sum of discounts / ideal DCG``. Range 0..1.

    Args:
        grades: grades of the judged documents among the ranked ones; those above 0 count.
        n_documents: number of ranked documents, judged or not.
        k: cut-off.
        judged: grades of all judged documents, ranked or not, which the ideal ranking holds; default: ``grades``.

    Raises:
        ValueError: if no judged document is relevant, or more documents are relevant than ranked.
    """
    gains = [g for g in grades if g > 0]
    ideal_gains = sorted((g for g in (gains if judged is None else judged) if g > 0), reverse=True)
    _check(len(gains), len(ideal_gains), n_documents)
    discounts = [1 / math.log2(rank + 1) for rank in range(1, k + 1)]
    ideal = sum(g * d for g, d in zip(ideal_gains, discounts, strict=False))
    return sum(gains) / n_documents * sum(discounts[:n_documents]) / ideal


def chance_average_precision(n_relevant: int, n_documents: int, k: int = 1000, n_judged: int | None = None) -> float:
    """Expected average precision at k of documents in random order.

    A document at rank r is relevant with probability R/N, and then the precision there is expected to be
    ``(1 + (r - 1) (R - 1) / (N - 1)) / r``; summed over the ranks up to k and divided by the number of relevant
    documents. Range 0..1.

    Args:
        n_relevant: R, relevant documents among the ranked ones.
        n_documents: N, ranked documents.
        k: cut-off.
        n_judged: relevant documents in all, ranked or not; default: ``n_relevant``.

    Raises:
        ValueError: as :func:`chance_ndcg`.
    """
    in_all = n_relevant if n_judged is None else n_judged
    _check(n_relevant, in_all, n_documents)
    if n_relevant == 0:
        return 0.0
    others = (n_relevant - 1) / (n_documents - 1) if n_documents > 1 else 0.0
    depth = min(k, n_documents)
    harmonic = sum(1 / rank for rank in range(1, depth + 1))
    return n_relevant / n_documents * (harmonic * (1 - others) + depth * others) / in_all


def _check(n_relevant: int, n_judged: int, n_documents: int) -> None:
    if n_judged < 1:
        raise ValueError("the chance level is undefined without relevant documents")
    if not 0 <= n_relevant <= min(n_judged, n_documents):
        raise ValueError(
            f"{n_relevant} relevant documents are ranked, of {n_documents} ranked and {n_judged} relevant documents"
        )
