"""Hybrid retrieval with BM25 as in IFIR's Table 8: reciprocal ranks of two short lists, the dense one weighing more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mteb
from mteb.models.hybrid_wrappers import HybridSearch

from evaluators.metrics.ranking import Scores, check_k, top
from evaluators.plugin.hybrid import joined
from evaluators.plugin.models import BM25

# The values in the authors' code; the paper's text does not give them.
DENSE_WEIGHT, LEXICAL_WEIGHT = 1.0, 0.3
DEPTH = 20
RANK_CONSTANT = 60


def rank_fusion(
    lists: Sequence[Scores], weights: Sequence[float], *, depth: int = DEPTH, rank_constant: int = RANK_CONSTANT
) -> dict[str, float]:
    """Join several scored lists of one query by rank, looking at the top of each only.

    Each list is cut to its ``depth`` best documents, tied scores by document id, the higher first. A document's score
    is the sum, over the lists that still hold it, of ``weight / (rank_constant + rank)``; ranks start at 1. Higher is
    better. At most ``len(lists) * depth`` documents remain; empty lists add nothing.

    Raises:
        ValueError: if a document id is not a string or a score not a finite number.
    """
    fused: dict[str, float] = {}
    for number, (scores, weight) in enumerate(zip(lists, weights, strict=True), start=1):
        for rank, doc in enumerate(top(scores, depth, f"of list {number} to be joined"), start=1):
            fused[doc] = fused.get(doc, 0.0) + weight / (rank_constant + rank)
    return fused


def hybrid(
    dense: Any,
    lexical: Any = None,
    *,
    weights: tuple[float, float] = (DENSE_WEIGHT, LEXICAL_WEIGHT),
    depth: int = DEPTH,
    rank_constant: int = RANK_CONSTANT,
) -> HybridSearch:
    """mteb's ``HybridSearch`` of a dense and a lexical model, joined by :func:`rank_fusion`.

    A query gets between ``depth`` and ``2 * depth`` documents, so measures below that depth say nothing about it. The
    record's ``experiment_kwargs`` state parts (with their windows and prompts), weights, depth and constant, so mteb
    files each variant apart.

    Args:
        dense: a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``, which is loaded.
        lexical: likewise; mteb's BM25 by default.
        weights: of the dense and of the lexical list.
        depth: how many documents of each list count.
        rank_constant: added to each rank.

    Raises:
        ValueError: for a weight that is negative or not finite, two weights of 0, a depth below 1, a negative
            constant, or a part that has no name.
    """
    check_k(depth)
    parts = [dense, mteb.get_model(BM25) if lexical is None else lexical]
    fusion = _of_top(depth, rank_constant)
    return joined(parts, weights, fusion, rank_constant=rank_constant, experiment={"fusion_depth": depth})


def _of_top(depth: int, rank_constant: int) -> Callable[[Sequence[Scores], Sequence[float]], Mapping[str, float]]:
    def rrf_of_top(lists: Sequence[Scores], weights: Sequence[float]) -> Mapping[str, float]:
        """mteb puts the name of this function into the hybrid's name."""
        return rank_fusion(lists, weights, depth=depth, rank_constant=rank_constant)

    return rrf_of_top
