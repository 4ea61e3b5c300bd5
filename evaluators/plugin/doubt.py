"""What makes a score doubtful: tied rankings, and texts cut off by the model's length limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset

from evaluators.metrics.ranking import Run, top_and_tied
from evaluators.plugin.mteb_internals import document_texts, is_cross_encoder, query_texts

# Counting tokens of every document of a large corpus would cost more than it tells.
SAMPLED_TEXTS = 2000
# The figure of wrappers that ask a language model: different calls that stayed without a reply. While it is not 0 the
# scores are not yet the language model's.
FAILED_CALLS = "n_failed_calls"


class _Reader(NamedTuple):
    """How a model reads text: its tokenizer, and how many tokens of a query and of a document it keeps."""

    tokenizer: Any
    query_limit: int
    document_limit: int


def tie_share(run: Run) -> float:
    """Share of queries whose best score is shared by several documents when compared in float32 (0..1)."""
    return sum(len(top_and_tied(scores, 1, query)[1]) > 1 for query, scores in run.items()) / len(run) if run else 0.0


def missing_candidates(run: Run, top_ranked: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Query id -> number of its candidates that the run does not rank; only queries that lack any."""
    lacking = {q: sum(d not in run.get(q, {}) for d in docs) for q, docs in top_ranked.items()}
    return {q: n for q, n in lacking.items() if n}


def length_figures(model: Any, corpus: Dataset, queries: Dataset) -> dict[str, float]:
    """How much of the data the model does not read, or nothing if its tokenizer and limit are not known.

    ``truncated_documents_share`` and ``truncated_queries_share``: share of texts longer than the limit;
    ``truncated_tokens_share``: share of the documents' tokens beyond it. All 0..1, measured on at most
    ``SAMPLED_TEXTS`` evenly spaced texts. For a model that reads query and document together the limit of a
    document is what a query of mean length leaves.
    """
    reader = _reader(model)
    if reader is None or len(corpus) == 0 or len(queries) == 0:
        return {}
    documents = token_counts(reader.tokenizer, document_texts(_evenly(corpus)))
    asked = token_counts(reader.tokenizer, query_texts(_evenly(queries)))
    limit = reader.document_limit
    if is_cross_encoder(model):
        limit = max(limit - round(float(asked.mean())), 0)
    return {
        "truncated_documents_share": float((documents > limit).mean()),
        "truncated_tokens_share": float(np.maximum(documents - limit, 0).sum() / max(documents.sum(), 1)),
        "truncated_queries_share": float((asked > reader.query_limit).mean()),
    }


def own_figures(model: Any) -> dict[str, float]:
    """What a model says of its own run in an attribute ``doubt_figures``, as wrappers of this project do.

    For instance the share of the documents that it could not use as it should.
    """
    return {name: float(value) for name, value in (getattr(model, "doubt_figures", None) or {}).items()}


def _reader(model: Any) -> _Reader | None:
    """Tokenizer and limits of a sentence-transformers model inside one of mteb's wrappers."""
    inner: Any = getattr(model, "model", None)
    tokenizer = getattr(inner, "tokenizer", None)
    limit = getattr(inner, "max_seq_length", None)
    if not callable(tokenizer) or not isinstance(limit, int):
        return None
    # Late-interaction models have limits of their own for queries and documents.
    first = inner[0] if hasattr(inner, "__getitem__") and len(inner) else None
    own = [getattr(first, name, None) for name in ("query_length", "document_length")]
    query, document = (min(limit, n) if isinstance(n, int) else limit for n in own)
    return _Reader(tokenizer, query, document)


def _evenly(table: Dataset) -> Dataset:
    if len(table) <= SAMPLED_TEXTS:
        return table
    return table.select(np.linspace(0, len(table) - 1, SAMPLED_TEXTS).astype(int).tolist())


def token_counts(
    tokenizer: Any, texts: list[str], seconds: list[str] | None = None
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of tokens of each text, or of each pair of texts, special ones included; nothing is cut."""
    pairs = [texts] if seconds is None else [texts, seconds]
    encoded = tokenizer(*pairs, add_special_tokens=True, truncation=False, padding=False, verbose=False)
    return np.array([len(ids) for ids in encoded["input_ids"]], dtype=np.int64)
