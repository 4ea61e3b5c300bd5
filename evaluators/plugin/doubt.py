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


def length_figures(model: Any, corpus: Dataset, queries: Dataset, run: Run | None = None) -> dict[str, float]:
    """How much of the data the model does not read, or nothing if its (fast) tokenizer and limit are not known.

    ``truncated_documents_share`` and ``truncated_queries_share``: share of texts that are not read whole;
    ``truncated_tokens_share``: share of the documents' tokens that are not read. All 0..1, measured on at most
    ``SAMPLED_TEXTS`` evenly spaced texts.

    For a model that reads query and document together they are shares of such pairs, cut as its tokenizer cuts them:
    also the query, and with it an instruction, may lose its end.

    Args:
        model: as mteb runs it. A reranker that cuts in its own way has a method ``truncation_figures`` (of rows of
            query, instruction and document).
        corpus, queries: what it reads.
        run: what it ranked: query -> {document: score}; without it each document is paired with a query in turn.
    """
    if len(corpus) == 0 or len(queries) == 0:
        return {}
    if is_cross_encoder(model):
        return _pair_figures(model, corpus, queries, run)
    reader = _reader(model)
    if reader is None:
        return {}
    documents = token_counts(reader.tokenizer, document_texts(_evenly(corpus)))
    asked = token_counts(reader.tokenizer, query_texts(_evenly(queries)))
    limit = reader.document_limit
    return {
        "truncated_documents_share": float((documents > limit).mean()),
        "truncated_tokens_share": float(np.maximum(documents - limit, 0).sum() / max(documents.sum(), 1)),
        "truncated_queries_share": float((asked > reader.query_limit).mean()),
    }


def _pair_figures(model: Any, corpus: Dataset, queries: Dataset, run: Run | None) -> dict[str, float]:
    cut_by_itself, reader = getattr(model, "truncation_figures", None), _reader(model)
    if cut_by_itself is None and reader is None:
        return {}
    asked, documents = _pairs(corpus, queries, run)
    if not len(asked):
        return {}
    texts = document_texts(documents)
    if cut_by_itself is not None:
        instructions = asked["instruction"] if "instruction" in asked.column_names else [None] * len(asked)
        rows = [(q, i or "", d) for q, i, d in zip(asked["text"], instructions, texts, strict=True)]
        return dict(cut_by_itself(rows))
    assert reader is not None
    pairs = (query_texts(asked), texts)
    whole = [token_counts(reader.tokenizer, listed, special=False) for listed in pairs]
    encoded = reader.tokenizer(
        *pairs, truncation="longest_first", max_length=reader.document_limit, padding=False, verbose=False
    )
    if not encoded.is_fast:
        return {}
    of = [np.array(encoded.sequence_ids(row), dtype=float) for row in range(len(texts))]
    kept = [np.array([int((ids == which).sum()) for ids in of]) for which in (0, 1)]
    return {
        "truncated_documents_share": float((kept[1] < whole[1]).mean()),
        "truncated_tokens_share": float((whole[1] - kept[1]).sum() / max(whole[1].sum(), 1)),
        "truncated_queries_share": float((kept[0] < whole[0]).mean()),
    }


def _pairs(corpus: Dataset, queries: Dataset, run: Run | None) -> tuple[Dataset, Dataset]:
    """Queries and documents of at most :data:`SAMPLED_TEXTS` pairs, evenly spaced."""
    if run is None:
        documents = _evenly(corpus)
        return queries.select([place % len(queries) for place in range(len(documents))]), documents
    every = ((query, document) for query, scores in run.items() for document in scores)
    n = sum(map(len, run.values()))
    chosen = set(_even_places(n)) if n > SAMPLED_TEXTS else range(n)
    # Of a large run, and below of a large corpus, nothing else is kept.
    found = [pair for place, pair in enumerate(every) if place in chosen]
    wanted = {key for pair in found for key in pair}
    query_at, document_at = (
        {key: place for place, key in enumerate(table["id"]) if key in wanted} for table in (queries, corpus)
    )
    return queries.select([query_at[q] for q, _ in found]), corpus.select([document_at[d] for _, d in found])


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
    return table.select(_even_places(len(table)))


def _even_places(n: int) -> list[int]:
    return [int(place) for place in np.linspace(0, n - 1, SAMPLED_TEXTS)]


def token_counts(
    tokenizer: Any, texts: list[str], seconds: list[str] | None = None, special: bool = True
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of tokens of each text, or of each pair of texts, with special ones or without; nothing is cut."""
    pairs = [texts] if seconds is None else [texts, seconds]
    encoded = tokenizer(*pairs, add_special_tokens=special, truncation=False, padding=False, verbose=False)
    return np.array([len(ids) for ids in encoded["input_ids"]], dtype=np.int64)
