"""nDCG and MRR as the authors of IFIR compute them, which is not the standard nDCG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evaluators.metrics.ranking import Run, check_judgements, check_k, top

Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class QueryMean:
    """A mean over queries.

    Attributes:
        score: mean of ``per_query``.
        per_query: query id -> value.
        n_without_relevant: queries that have no relevant document at all (each counts as the docstring says).
    """

    score: float
    per_query: dict[str, float]
    n_without_relevant: int


def ifir_ndcg(run: Run, qrels: Qrels, k: int) -> QueryMean:
    """The authors' nDCG@k: the ideal ranking holds only the relevant documents that *were retrieved*.

    Per query ``sum over relevant ranks r <= k of 1/log2(r + 1)``, divided by the same sum over ranks 1..m, where m
    is the number of relevant documents among the k best. It says how early the found ones stand and ignores what
    was not found, so it is at least the standard binary nDCG@k. A query with no relevant document counts 0.
    Range 0..1, higher is better; ties by (score, document id) descending. Published as "nDCG" in IFIR's tables.

    Args:
        run: query id -> {document id: score}.
        qrels: query id -> {document id: grade}; a grade above 0 is relevant, all such grades count alike. Every
            query here is scored.
        k: cut-off, at least 1 (the paper: 20).

    Raises:
        ValueError: naming the id, for a judged query without run, a score that is not finite, an id that is not
            a string, a grade that is not a whole number, k < 1, or no query.
    """
    return _mean(run, qrels, k, _ndcg_of_retrieved)


def ifir_mrr(run: Run, qrels: Qrels, k: int) -> QueryMean:
    """The authors' MRR@k: mean of 1 / rank of the first relevant document among the k best, 0 if there is none.

    The usual formula; a query with no relevant document counts 0 (the standard figure of this project leaves it
    out). Range 0..1, higher is better. Arguments, tie rule and errors as in :func:`ifir_ndcg`.
    """
    return _mean(run, qrels, k, _reciprocal_rank)


def _ndcg_of_retrieved(relevant_ranks: list[int]) -> float:
    gained = sum(1 / math.log2(rank + 1) for rank in relevant_ranks)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, len(relevant_ranks) + 1))
    return gained / ideal if relevant_ranks else 0.0


def _reciprocal_rank(relevant_ranks: list[int]) -> float:
    return 1 / relevant_ranks[0] if relevant_ranks else 0.0


def _mean(run: Run, qrels: Qrels, k: int, value: Callable[[list[int]], float]) -> QueryMean:
    k = check_k(k)
    check_judgements(qrels, run)
    per_query: dict[str, float] = {}
    without = 0
    for query_id, judged in qrels.items():
        relevant = {doc for doc, grade in judged.items() if grade > 0}
        without += not relevant
        best = top(run[query_id], k, query_id)
        per_query[query_id] = value([rank for rank, doc in enumerate(best, 1) if doc in relevant])
    return QueryMean(sum(per_query.values()) / len(per_query), per_query, without)
