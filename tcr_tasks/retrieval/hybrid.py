"""Dense retrieval interpolated with BM25 (TCR-Bench, appendix D.2)."""

from __future__ import annotations

from typing import Any

import mteb
from mteb.models.hybrid_wrappers import HybridSearch

from evaluators.plugin.hybrid import joined
from evaluators.plugin.models import BM25
from evaluators.plugin.searching import SearchedOnce

__all__ = ["DENSE_WEIGHT", "GRID", "hybrid", "hybrid_grid", "told_weights"]

# The best of the paper's grid, dense to BM25 as 9 to 1.
DENSE_WEIGHT = 0.9
GRID: tuple[float, ...] = tuple(step / 10 for step in range(11))


def hybrid(dense: Any, lexical: Any = None, *, dense_weight: float = DENSE_WEIGHT) -> HybridSearch:
    """``w * dense + (1 - w) * lexical``, each query's scores scaled to 0..1 by their least and greatest before.

    This is mteb's fusion ``rsf``; a table that one model does not return counts 0 there, and where a model gives all
    tables the same score each counts one half. The paper gives the weights, and no normalisation: that is our choice.
    At weight 1 the order is the dense model's, at weight 0 the other's, ties apart.

    Args:
        dense: a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``, which is loaded.
        lexical: likewise; mteb's BM25 by default.
        dense_weight: 0..1.

    Raises:
        ValueError: for a weight outside 0..1, or a part that has no name.
    """
    if not 0 <= dense_weight <= 1:
        raise ValueError(f"the weight of the dense model must lie in 0..1, got {dense_weight!r}")
    parts = [dense, mteb.get_model(BM25) if lexical is None else lexical]
    return joined(parts, (dense_weight, round(1 - dense_weight, 10)), "rsf")


def hybrid_grid(dense: Any, lexical: Any = None) -> list[HybridSearch]:
    """A hybrid for each weight of :data:`GRID`; together they search with each of the two models once."""
    parts = [SearchedOnce(dense), SearchedOnce(mteb.get_model(BM25) if lexical is None else lexical)]
    return [hybrid(*parts, dense_weight=weight) for weight in GRID]


def told_weights(model: HybridSearch) -> str:
    """The weights with all their digits: ``0.9 : 0.1``."""
    return " : ".join(repr(float(weight)).removesuffix(".0") for weight in model.weights)
