"""p-MRR: do documents move the right way when the instruction changes? (FollowIR, section 3.1, equation 1)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.metrics.ranking import Run, Scores, check_query_ids, ranks_of

ORIGINAL_SUFFIX = "-og"
CHANGED_SUFFIX = "-changed"


@dataclass(frozen=True)
class PMRR:
    """p-MRR of a pair of runs.

    Attributes:
        score: mean over the queries in ``per_query``; -1..1, higher is better.
        per_query: query id (as in ``changed_docs``) -> mean over its changed documents.
        n_missing_docs: changed documents that at least one of the query's two runs lacks (each counted once).
        n_queries_without_change: queries with an empty list of changed documents, left out of the mean.
    """

    score: float
    per_query: dict[str, float]
    n_missing_docs: int
    n_queries_without_change: int


def p_mrr(original: Run, changed: Run, changed_docs: Mapping[str, Sequence[str]]) -> PMRR:
    """Paired mean reciprocal rank of the documents whose relevance the changed instruction takes away.

    For a document with rank ``o`` under the original and ``n`` under the changed instruction the value is
    ``n / o - 1`` if ``o > n``, else ``1 - o / n``; then the mean over a query's changed documents, then the mean
    over the queries that have any (FollowIR, section 3.1). Range -1..1. Positive means that the documents which
    became non-relevant moved *down*, which is what the changed instruction asks for; 0 means that the change made
    no difference. Published tables show the value times 100.

    Ranks follow (score, document id) descending. A document that a run lacks has the rank ``len(run) + 1``, so one
    that both runs lack still counts as moved if the runs differ in length; ``n_missing_docs`` says how many there are.

    Args:
        original: run for the original instructions, keyed by query id or by query id + ``-og``.
        changed: run for the changed instructions, keyed by query id or by query id + ``-changed``.
        changed_docs: query id -> ids of the documents that were relevant and no longer are.

    Raises:
        ValueError: if no query has a changed document, a query has no run, an id is not a string, a document is
            listed twice for a query, or a score is not finite. The message names the query and the document.
    """
    check_query_ids(changed_docs, "changed_docs")
    per_query: dict[str, float] = {}
    missing = empty = 0
    for query_id, docs in changed_docs.items():
        _check_listed_docs(docs, query_id)
        if len(docs) == 0:
            empty += 1
            continue
        before, after = (
            _scores_of(original, query_id, ORIGINAL_SUFFIX, "original"),
            _scores_of(changed, query_id, CHANGED_SUFFIX, "changed"),
        )
        old = ranks_of(before, docs, query_id)
        new = ranks_of(after, docs, query_id)
        per_query[query_id] = sum(map(_change, old, new)) / len(docs)
        missing += sum(o > len(before) or n > len(after) for o, n in zip(old, new, strict=True))
    if not per_query:
        raise ValueError(
            "p-MRR is undefined: no query has a changed document "
            f"({len(changed_docs)} queries given, {empty} of them with an empty list)"
        )
    return PMRR(sum(per_query.values()) / len(per_query), per_query, missing, empty)


def _change(old: int, new: int) -> float:
    return new / old - 1 if old > new else 1 - old / new


def _scores_of(run: Run, query_id: str, suffix: str, which: str) -> Scores:
    plain, suffixed = run.get(query_id), run.get(query_id + suffix)
    if plain is not None and suffixed is not None:
        raise ValueError(
            f"the {which} run holds both {query_id!r} and {query_id + suffix!r}; "
            "it is unclear which one belongs to the query"
        )
    found = plain if plain is not None else suffixed
    if found is None:
        raise ValueError(
            f"query {query_id!r} has changed documents but no {which} run: neither {query_id!r} nor "
            f"{query_id + suffix!r} is among the {len(run)} queries of that run"
        )
    return found


def _check_listed_docs(docs: Sequence[str], query_id: str) -> None:
    if docs is None or isinstance(docs, str | bytes):
        raise ValueError(f"query {query_id!r}: changed documents must be a list of ids, not {docs!r}")
    for doc in docs:
        if not isinstance(doc, str):
            raise ValueError(f"query {query_id!r}: changed document id {doc!r} is not a string")
    if len(set(docs)) != len(docs):
        twice = next(doc for doc in docs if list(docs).count(doc) > 1)
        raise ValueError(f"query {query_id!r}: changed document {twice!r} is listed more than once")
