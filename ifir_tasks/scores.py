"""The scores of an IFIR run, from plain and instructed rankings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evaluators.metrics.chance import chance_ndcg
from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.metrics.ifir import ifir_mrr, ifir_ndcg
from evaluators.metrics.ranking import Run
from evaluators.metrics.standard import trec_measure
from evaluators.plugin.results import bounds
from ifir_tasks.ids import parse_query_id

K = 20
_MEANS = tuple(f"{kind}{measure}_at_{K}" for kind in ("", "paper_", "query_only_") for measure in ("ndcg", "mrr"))
_WITH_INTERVAL = tuple(f"{name}_at_{K}" for name in ("ndcg", "query_only_ndcg", "paper_ndcg", "paper_mrr"))
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
    out: dict[str, Any] = {}
    for prefix, listed in _by_level(rows):
        for name in (*_MEANS, f"chance_ndcg_at_{K}"):
            values = [row[name] for row in _known(listed, name)]
            if values:
                out[prefix + name] = sum(values) / len(values)
        out[f"{prefix}n_queries"] = len(listed)
        out[f"{prefix}n_without_relevant"] = sum(row["n_relevant"] == 0 for row in listed)
    out["n_plain_queries"] = len({row["base_query"] for row in rows.values()})
    return out


def intervals(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """95 % intervals of the main ones of these means, as ``<key>_low`` and ``<key>_high``.

    They are those of nDCG of instructed and plain queries and of the authors' nDCG and MRR: percentiles of 1,000
    resamples of base queries, each drawn with all its instructions, since these depend on each other. They rest on the
    queries that the mean is over; where these belong to a single base query, there is none.
    """
    out: dict[str, float] = {}
    for prefix, listed in _by_level(rows):
        for name in _WITH_INTERVAL:
            known = _known(listed, name)
            if known:
                bases = [row["base_query"] for row in known]
                out |= bounds(prefix + name, bootstrap_clusters([row[name] for row in known], bases))
    return out


def _by_level(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """All rows, and where there are levels those of each, with what stands before the keys of their scores."""
    listed = list(rows.values())
    yield "", listed
    levels = {row["level"] for row in listed}
    for level in sorted(levels) if levels != {0} else ():
        yield f"level_{level}_", [row for row in listed if row["level"] == level]


def _known(rows: Iterable[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row[name] is not None]
