"""The models that trainings start from."""

from __future__ import annotations

from sentence_transformers import CrossEncoder, SentenceTransformer

from evaluators.plugin.models import bundled_directory, has_bundled, loaded

__all__ = ["load_cross_encoder", "load_encoder"]


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
        name: as above; the bundled MiniLM goes by its published name or the short one.
        length: tokens of query and document together, at most.
    """
    model: CrossEncoder = CrossEncoder(str(bundled_directory()) if has_bundled(name) else name, num_labels=1)
    model.max_seq_length = min(length, model.max_seq_length or length)
    return model
