"""What FollowIR's tasks measure beside p-MRR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluators.metrics.chance import chance_average_precision, chance_ndcg

Qrels = Mapping[str, Mapping[str, int]]


def chance_score(measure: str, qrels: Qrels, ranked: Mapping[str, Sequence[str]]) -> float:
    """What a random order is expected to score, averaged over queries; 0..1.

    Args:
        measure: trec_eval's ``map_cut.K`` or ``ndcg_cut.K``.
        qrels: query -> {document: grade}; a query without a relevant document counts 0, as in trec_eval.
        ranked: query -> the documents that are put in order.
    """
    total = 0.0
    for query, judged in qrels.items():
        grades = [judged.get(d, 0) for d in ranked[query]]
        n_judged = sum(grade > 0 for grade in judged.values())
        k = int(measure.split(".")[1])
        if n_judged == 0:
            continue
        if measure.startswith("map_cut"):
            total += chance_average_precision(sum(grade > 0 for grade in grades), len(grades), k, n_judged)
        else:
            total += chance_ndcg(grades, len(grades), k, judged.values())
    return total / len(qrels)


def without_relevant(qrels: Qrels) -> int:
    """Queries that count 0 whatever the ranking."""
    return sum(not any(grade > 0 for grade in judged.values()) for judged in qrels.values())
