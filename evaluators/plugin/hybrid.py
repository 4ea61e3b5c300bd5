"""Several models joined by mteb's ``HybridSearch``, under a record that states how."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from mteb.models.hybrid_wrappers import HybridSearch

from evaluators.metrics.ranking import Scores
from evaluators.plugin.given import given_model
from evaluators.plugin.models import identified, recorded

Fusion = Literal["rrf", "dbsf", "rsf"] | Callable[[Sequence[Scores], Sequence[float]], Mapping[str, float]]


def joined(
    models: Sequence[Any],
    weights: Sequence[float],
    fusion: Fusion,
    *,
    rank_constant: int = 60,
    experiment: Mapping[str, Any] | None = None,
) -> HybridSearch:
    """mteb's ``HybridSearch`` of these models.

    The record's ``experiment_kwargs`` state the parts (with their own variants), weights, rank constant and what
    ``experiment`` adds, so mteb files each variant apart.

    Args:
        models: sentence-transformers models, models in mteb's form, or ``ModelMeta``, which are loaded.
        weights: one per model.
        fusion: mteb's name of a fusion, or a function.
        rank_constant: of fusions by rank.
        experiment: further arguments for the record.

    Raises:
        ValueError: for a weight that is negative or not finite, weights that are all 0, or a part that has no name.
    """
    if len(weights) != len(models) or not all(math.isfinite(w) and w >= 0 for w in weights) or not any(weights):
        count = {2: "two", 3: "three"}.get(len(models), len(models))
        raise ValueError(f"weights must be {count} finite numbers of at least 0, one of them above it, got {weights!r}")
    parts = [given_model(model) for model in models]
    # The record would tell -0.0 from 0.
    unsigned = [weight + 0.0 for weight in weights]
    made = HybridSearch(parts, weights=unsigned, fusion_strategy=fusion, rrf_k=rank_constant)
    found: HybridSearch = identified(recorded(made, made.mteb_model_meta, experiment or {}))
    return found
