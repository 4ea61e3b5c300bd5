"""Robustness: the worst instruction counts (InstructIR, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evaluators.metrics.ranking import Run, check_judgements, check_k, score_array
from evaluators.metrics.standard import trec_measure


@dataclass(frozen=True)
class Robustness:
    """Robustness@k of a run.

    Attributes:
        score: mean over base queries of the lowest nDCG@k among their instructions; 0..1, higher is better.
        per_base: base query -> that lowest value.
        per_query: query id -> its nDCG@k.
        n_single: base queries with one instruction only, for which nothing is minimised; they are left out of
            ``score`` and ``per_base``.
    """

    score: float
    per_base: dict[str, float]
    per_query: dict[str, float]
    n_single: int


def robustness_at_k(
    run: Run,
    qrels: Mapping[str, Mapping[str, int]],
    k: int,
    base_of: Callable[[str], str],
) -> Robustness:
    """For each base query the lowest nDCG@k over its instructions, averaged over base queries.

    nDCG is the standard graded one of trec_eval, with its tie rule (score in float32, then document id, both
    descending). Base queries with a single instruction are left out and counted.

    Args:
        run: query id -> {document id: score}.
        qrels: query id -> {document id: grade}; every query here is scored.
        k: cut-off, at least 1 (the paper: 10).
        base_of: maps a query id to its base query; it should raise on an id that it does not know.

    Raises:
        ValueError: for a judged query without run, a query without relevant document, scores that are not finite,
            ids that are not strings, k < 1, or when no base query has several instructions.
    """
    k = check_k(k)
    check_judgements(qrels, run)
    for query_id, judged in qrels.items():
        if not any(grade > 0 for grade in judged.values()):
            raise ValueError(f"query {query_id!r} has no relevant document, so its nDCG is undefined")
        score_array(run[query_id], query_id)
    per_query = trec_measure(run, qrels, f"ndcg_cut.{k}")
    by_base: dict[str, list[float]] = {}
    for query_id, value in per_query.items():
        by_base.setdefault(base_of(query_id), []).append(value)
    per_base = {base: min(values) for base, values in by_base.items() if len(values) > 1}
    if not per_base:
        raise ValueError(f"robustness is undefined: none of {len(by_base)} base queries has several instructions")
    return Robustness(sum(per_base.values()) / len(per_base), per_base, per_query, len(by_base) - len(per_base))
