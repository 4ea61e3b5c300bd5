"""THYME re-created from its description in TCR-Bench's appendix D.2: a column-oriented, field-aware hybrid."""

from __future__ import annotations

from typing import Any

import mteb
from mteb.models.hybrid_wrappers import HybridSearch

from evaluators.plugin.hybrid import joined
from evaluators.plugin.models import BM25
from tcr_tasks.retrieval.multivector import multi_vector

__all__ = ["thyme"]

# Of table name and header, of columns, of words. The description gives none.
WEIGHTS = (1.0, 1.0, 1.0)


def thyme(dense: Any, lexical: Any = None, *, weights: tuple[float, float, float] = WEIGHTS) -> HybridSearch:
    """Three signals over a table's fields, joined: name with header, the best column, and the words of the whole.

    **A re-creation.** The paper says of THYME that it "adopts a column-oriented representation and combines multiple
    retrieval signals over table fields", with the backbones bert-base, bert-large and splade; the method's own weights
    and training are not in it. Here a dense encoder embeds name and header as one vector and each column (its name and
    its values) as another, of which the best counts; a learned sparse encoder, or BM25, matches words of the whole
    table. Each query's scores of a signal are scaled to 0..1 by their least and greatest before they are added.

    Args:
        dense: a dense encoder: a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``.
        lexical: a sparse encoder or search model; mteb's BM25 by default.
        weights: of the three signals, in the order above.

    Raises:
        ValueError: for a weight that is negative or not finite, or a dense model that gives no dense embeddings.
    """
    words = mteb.get_model(BM25) if lexical is None else lexical
    parts = [multi_vector(dense, pieces="schema"), multi_vector(dense, pieces="columns"), words]
    return joined(parts, weights, "rsf", experiment={"recreation": "thyme-1"})
