"""The scores of an IFIR run, from plain and instructed rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evaluators.metrics.chance import chance_ndcg
from evaluators.metrics.ifir import ifir_mrr, ifir_ndcg
from evaluators.metrics.ranking import Run
from evaluators.metrics.standard import trec_measure
from ifir_tasks.ids import parse_query_id

K = 20
Qrels = Mapping[str, Mapping[str, int]]


def instructed_queries(qrels: Qrels) -> list[str]:
    """The ids that carry an instruction, in order."""
    return [q for q in qrels if parse_query_id(q).level is not None]


def has_relevant(qrels: Qrels, query: str) -> bool:
    """Whether a query has any relevant document."""
    return any(grade > 0 for grade in qrels[query].values())


def per_query_scores(run: Run, qrels: Qrels, n_documents: int) -> dict[str, dict[str, Any]]:
    """One row per instructed query; ``qrels`` are the real judgements of plain and instructed queries.

    ``ndcg_at_20`` and ``mrr_at_20`` are the standard measures and ``None`` for a query without relevant document;
    ``paper_...`` are the authors' variants, which give 0 there; ``query_only_...`` score the ranking of the plain
    query against this instruction's relevant documents (IFIR, section 4.1: what the instruction adds is the
    difference); ``chance_ndcg_at_20`` is what a random order of all ``n_documents`` documents is expected to get.
    """
    instructed = {q: qrels[q] for q in instructed_queries(qrels)}
    scored = {q: docs for q, docs in instructed.items() if has_relevant(qrels, q)}
    plain = {q: run[parse_query_id(q).plain] for q in instructed}
    columns: dict[str, Mapping[str, float]] = {
        f"ndcg_at_{K}": trec_measure(run, scored, f"ndcg_cut.{K}"),
        f"mrr_at_{K}": ifir_mrr(run, scored, K).per_query if scored else {},
        f"query_only_ndcg_at_{K}": trec_measure(plain, scored, f"ndcg_cut.{K}"),
        f"query_only_mrr_at_{K}": ifir_mrr(plain, scored, K).per_query if scored else {},
        f"chance_ndcg_at_{K}": {q: chance_ndcg(docs.values(), n_documents, K) for q, docs in scored.items()},
        f"paper_ndcg_at_{K}": ifir_ndcg(run, instructed, K).per_query,
        f"paper_mrr_at_{K}": ifir_mrr(run, instructed, K).per_query,
    }
    rows: dict[str, dict[str, Any]] = {}
    for q, docs in instructed.items():
        parts = parse_query_id(q)
        rows[q] = {
            "base_query": parts.base,
            "level": parts.level,
            "n_relevant": sum(grade > 0 for grade in docs.values()),
            **{name: values.get(q) for name, values in columns.items()},
        }
    return rows


def averages(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Means over instructed queries, over all of them and by level.

    A subset without levels has none; where only some instructions have a level, the others count as level 0. A mean
    over no query at all is left out, never 0.
    """
    out = _means(rows.values(), str)
    levels = {row["level"] for row in rows.values()}
    for level in sorted(levels) if levels != {0} else ():
        of_level = [row for row in rows.values() if row["level"] == level]
        out |= _means(of_level, f"level_{level}_{{}}".format)
    out["n_plain_queries"] = len({row["base_query"] for row in rows.values()})
    return out


def _means(rows: Iterable[Mapping[str, Any]], key: Callable[[str], str]) -> dict[str, Any]:
    listed = list(rows)
    out: dict[str, Any] = {}
    kinds = ("", "paper_", "query_only_")
    names = [f"{kind}{measure}_at_{K}" for kind in kinds for measure in ("ndcg", "mrr")]
    for name in (*names, f"chance_ndcg_at_{K}"):
        values = [row[name] for row in listed if row[name] is not None]
        if values:
            out[key(name)] = sum(values) / len(values)
    out[key("n_queries")] = len(listed)
    out[key("n_without_relevant")] = sum(row["n_relevant"] == 0 for row in listed)
    return out
