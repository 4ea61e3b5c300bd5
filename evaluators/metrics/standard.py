"""The standard measures, from trec_eval by way of pytrec_eval."""

from __future__ import annotations

from collections.abc import Mapping

import pytrec_eval

from evaluators.metrics.ranking import Run


def is_plain_text(text: str) -> bool:
    """Whether trec_eval, which is C, can take a text: it cuts it at a NUL and crashes on a lone surrogate."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text if c > "\ud7ff")


def trec_measure(run: Run, qrels: Mapping[str, Mapping[str, int]], measure: str) -> dict[str, float]:
    """One trec_eval measure (``ndcg_cut.20``, ``map_cut.1000``, ...) per judged query.

    trec_eval orders by (score in float32, document id), both descending. It leaves out a query whose run is
    empty; here such a query gets 0, since nothing was found.

    Raises:
        ValueError: if a judged query is not in the run, or an id cannot be handed to trec_eval.
    """
    for query_id in qrels:
        if query_id not in run:
            raise ValueError(f"query {query_id!r} is judged but not among the {len(run)} queries of the run")
        for ids in (qrels[query_id], run[query_id]):
            if not is_plain_text("".join((query_id, *ids))):
                bad = next(i for i in (query_id, *ids) if not is_plain_text(i))
                raise ValueError(f"query {query_id!r}: the id {bad!r} holds a character that trec_eval cannot take")
    measured = pytrec_eval.RelevanceEvaluator(
        {q: {d: int(g) for d, g in judged.items()} for q, judged in qrels.items()}, {measure}
    ).evaluate({q: {d: float(s) for d, s in run[q].items()} for q in qrels})
    key = measure.replace(".", "_")
    return {q: float(measured[q][key]) if run[q] else 0.0 for q in qrels}
