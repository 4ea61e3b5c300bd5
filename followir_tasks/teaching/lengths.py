"""How many training instances a model does not read as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from sentence_transformers import CrossEncoder

from evaluators.causal.reranker import CausalReranker
from evaluators.plugin.doubt import token_counts
from evaluators.plugin.mteb_internals import query_texts
from followir_tasks.teaching.instances import Instance

__all__ = ["n_cut"]


def n_cut(model: Any, instances: Sequence[Instance]) -> int:
    """How many instances are longer than the model reads.

    Of a causal model the prompt, of a cross-encoder the pair, of an encoder the query with its instruction or the
    document, whichever it is.

    Args:
        model: as it is scored: what a :class:`~followir_tasks.teaching.kinds.Teaching` makes.
        instances: what is trained on.

    Raises:
        ValueError: if a query with its instruction leaves a causal model no room for a document.
    """
    if isinstance(model, CausalReranker):
        rows = [(i.query, i.instruction, i.document) for i in instances]
        model.reading.require_room((query, instruction) for query, instruction, _ in rows)
        return model.reading.n_cut(rows)
    asked = query_texts(
        Dataset.from_dict({"text": [i.query for i in instances], "instruction": [i.instruction for i in instances]})
    )
    documents, limit = [i.document for i in instances], model.max_seq_length
    if isinstance(model, CrossEncoder):
        return int((token_counts(model.tokenizer, asked, documents) > limit).sum())
    longest = [token_counts(model.tokenizer, texts) for texts in (asked, documents)]
    return int(((longest[0] > limit) | (longest[1] > limit)).sum())
