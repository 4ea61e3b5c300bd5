"""The standard measures, from trec_eval by way of pytrec_eval."""

from __future__ import annotations

from collections.abc import Mapping

import pytrec_eval

from evaluators.metrics.ranking import Run


def trec_measure(run: Run, qrels: Mapping[str, Mapping[str, int]], measure: str) -> dict[str, float]:
    """One trec_eval measure (``ndcg_cut.20``, ``map_cut.1000``, ...) per judged query.

    trec_eval orders by (score in float32, document id), both descending. It leaves out a query whose run is
    empty; here such a query gets 0, since nothing was found.

    Raises:
        ValueError: if a judged query is not in the run.
    """
    for query_id in qrels:
        if query_id not in run:
            raise ValueError(f"query {query_id!r} is judged but not among the {len(run)} queries of the run")
    measured = pytrec_eval.RelevanceEvaluator({q: dict(judged) for q, judged in qrels.items()}, {measure}).evaluate(
        {q: {d: float(s) for d, s in run[q].items()} for q in qrels}
    )
    key = measure.replace(".", "_")
    return {q: float(measured[q][key]) if run[q] else 0.0 for q in qrels}
