"""The sliding window: texts beyond an encoder's limit are read in overlapping windows whose embeddings are averaged.

IFIR, Appendix B: windows of 512 tokens that overlap by 128, mean of their embeddings, queries alike; LLM-based
retrievers read long texts themselves and get none.
"""

from __future__ import annotations

from typing import Any

from mteb.models import ModelMeta
from sentence_transformers import SentenceTransformer
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from evaluators.plugin.given import given_model
from evaluators.plugin.models import recorded
from ifir_tasks.retrieval.windowed import WindowedEncoder

# Unusual enough to tell whether a model's tokenizer alone makes what the model reads.
_PROBE = " Straße, ÉCOLE and 3 more\twords "


def sliding_window(model: Any, *, window: int = 512, overlap: int = 128, paper: bool = False) -> Any:
    """The model, reading each text in windows of its own tokens; the given object is left as it is.

    The embedding of a text is the mean of its windows' embeddings, and has unit length if the plain encoder ends by
    normalising. A text that fits into one window gets the plain encoder's embedding. Queries are treated alike. The
    model's own special tokens and any prompt that it puts in front are part of every window and count for its
    length, so the text of a window is shorter than ``window`` by these, and no token of the text is lost.

    The record's ``experiment_kwargs`` state the window really used, so mteb files each variant apart.

    Args:
        model: a ``SentenceTransformer``, one of mteb's wrappers around it (``mteb.get_model(...)``), or a
            ``ModelMeta``, which is loaded.
        window: tokens of a window; the model's limit if that is lower.
        overlap: tokens of text that a window shares with the one before it.
        paper: also embed the window that begins with the overlap at a text's end, as the authors do: windows begin
            at all multiples of the step (window without overlap) below the text's length, so that the last one or
            more can lie wholly in their predecessor. A text that fits but is longer than a step gets one too.

    Returns:
        A copy of mteb's wrapper.

    Raises:
        ValueError: if the model is not a text encoder of sentence-transformers, reads with windows already, is made
            from a language model, or leaves no room for the text of a window. That a model is made from a language
            model is told from its type in transformers and from last-token pooling; one with code of its own and
            another pooling is not recognised, nor is one behind an API, which has no tokenizer here and is refused
            for that.
        TypeError: if it is no model at all.
    """
    for name, value, least in (("window", window, 1), ("overlap", overlap, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    wrapped = given_model(model)
    meta: ModelMeta = wrapped.mteb_model_meta
    encoder = getattr(wrapped, "model", None)
    if isinstance(encoder, WindowedEncoder):
        raise ValueError(f"{meta.name} reads with a sliding window already")
    # A wrapper that only passes on what another one holds cannot be given another encoder.
    if type(encoder) is not SentenceTransformer or "model" not in vars(wrapped):
        raise ValueError(
            f"{meta.name}: a sliding window needs an encoder of sentence-transformers with one vector per text, alone "
            f"or in one of mteb's wrappers, and this is {_kind(wrapped, encoder)}; a hybrid takes the window around "
            "its dense part, and prompts go around the window"
        )
    _refuse_language_models(encoder, str(meta.name))
    _refuse_other_tokens(encoder, str(meta.name))
    try:
        windowed = WindowedEncoder(encoder, window, overlap, trailing=paper)
    except ValueError as error:
        raise ValueError(f"{meta.name}: {error}") from None
    used: dict[str, Any] = {"window": windowed.window, "overlap": overlap}
    changed = recorded(wrapped, meta, used | ({"paper_window": True} if paper else {}))
    changed.model = windowed
    return changed


def _kind(wrapped: Any, encoder: Any) -> str:
    return type(wrapped).__name__ + ("" if encoder is None else f" around {type(encoder).__name__}")


def _refuse_language_models(encoder: SentenceTransformer, name: str) -> None:
    """Raise for a model that transformers knows to write text only, or that pools the last token as such models do."""
    config = getattr(getattr(encoder[0], "auto_model", None), "config", None)
    kind = getattr(config, "model_type", None)
    reads = {*MODEL_FOR_MASKED_LM_MAPPING_NAMES, *MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES}
    pooling = [getattr(m, "pooling_mode", None) or getattr(m, "pooling_mode_lasttoken", None) for m in encoder]
    last_token = any(mode is True or "lasttoken" in str(mode) for mode in pooling)
    if last_token or (kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in reads):
        how = "pools the last token" if last_token else f"is of the type {kind}"
        raise ValueError(
            f"{name} {how}, so it is made from a language model; the sliding window is for other encoders (Appendix B "
            "of the paper): run it as it is"
        )


def _refuse_other_tokens(encoder: SentenceTransformer, name: str) -> None:
    """Raise unless the model reads exactly the tokens that its tokenizer makes of a text."""
    prepare = getattr(encoder, "preprocess", None) or encoder.tokenize  # before sentence-transformers 6
    try:
        read = prepare([_PROBE])["input_ids"][0].tolist()
        same = read == encoder.tokenizer(_PROBE, truncation=True)["input_ids"]
    except (AttributeError, KeyError, TypeError):  # other modules than a transformer come first
        same = False
    if not same or any(type(module).__name__ == "Router" for module in encoder):
        raise ValueError(
            f"{name} does not read what one tokenizer of transformers makes of a text, so windows cannot be cut"
        )
