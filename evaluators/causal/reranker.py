"""A causal language model as a reranker in mteb's form."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import numpy as np
from mteb.models import ModelMeta
from numpy.typing import NDArray
from tqdm.auto import tqdm  # type: ignore[import-untyped]

from evaluators.causal.loading import adapter_at, load_parts, reading_of
from evaluators.causal.reading import Reading
from evaluators.causal.scoring import probabilities
from evaluators.causal.settings import CAUSAL_LM, FIELDS, PROMPT, CausalSettings, read_settings
from evaluators.judge import Prompt, read_prompt
from evaluators.plugin.models import local_name, resolve_model, weights_revision
from evaluators.plugin.mteb_internals import register_model

__all__ = ["CausalReranker", "reranker_meta", "with_base_revision"]

logger = logging.getLogger(__name__)


class CausalReranker:
    """Scores a document by the probability that the model answers "true" and not "false".

    Args:
        model: a causal language model of transformers, with peft's adapters or without.
        reading: makes token ids for it.
        meta: its record.
        batch_size: prompts at a time, where mteb's ``encode_kwargs`` do not say.
    """

    def __init__(self, model: Any, reading: Reading, meta: ModelMeta, batch_size: int = 8) -> None:
        self.model = model
        self.reading = reading
        self.mteb_model_meta = meta
        self.batch_size = batch_size

    def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> NDArray[np.float64]:
        """P(true) of each pair of query (with its instruction, empty where there is none) and document."""
        queries = [pair for batch in inputs1 for pair in _asked(batch)]
        documents = [text for batch in inputs2 for text in batch["text"]]
        pairs = [(q, i, d) for (q, i), d in zip(queries, documents, strict=True)]
        return self.score(
            pairs, kwargs.get("batch_size") or self.batch_size, progress=kwargs.get("show_progress_bar", True)
        )

    def score(
        self, rows: list[tuple[str, str, str]], batch_size: int | None = None, progress: bool = False
    ) -> NDArray[np.float64]:
        """P(true) of each (query, instruction, document), 0..1.

        Raises:
            ValueError: if a query with its instruction does not fit.
            NotFiniteError: if a probability is not finite.
        """
        self.reading.require_room((query, instruction) for query, instruction, _ in rows)
        read = [self.reading.read(*row) for row in rows]
        if n := sum(tokens.cut for tokens in read):
            logger.warning("%d of %d documents were cut to fit %d tokens", n, len(rows), self.reading.max_length)
        with tqdm(total=len(rows), disable=not progress, desc="Scoring pairs") as bar:
            ids = [tokens.ids for tokens in read]
            return probabilities(self.model, self.reading, ids, batch_size or self.batch_size, bar.update)

    def truncation_figures(self, rows: list[tuple[str, str, str]]) -> dict[str, float]:
        """How much of (query, instruction, document) is not read, as :func:`evaluators.plugin.doubt.length_figures`.

        Only documents are cut, to the longest beginning that fits: to the limit, or a few tokens less where the next
        word is longer.
        """
        whole = np.array(self.reading.sizes(rows))
        of_documents = whole - np.array(self.reading.sizes([(query, told, "") for query, told, _ in rows]))
        beyond = np.maximum(whole - self.reading.max_length, 0)
        return {
            "truncated_documents_share": float((beyond > 0).mean()),
            "truncated_tokens_share": float(beyond.sum() / max(of_documents.sum(), 1)),
            "truncated_queries_share": 0.0,
        }


def _asked(batch: dict[str, Any]) -> list[tuple[str, str]]:
    """Query and instruction apart, as far as mteb keeps them so."""
    queries = batch.get("query", batch["text"])
    instructions = batch.get("instruction") or [""] * len(queries)
    return [(query, instruction or "") for query, instruction in zip(queries, instructions, strict=True)]


def reranker_meta(name: str) -> ModelMeta:
    """The record of a causal reranker, registered with mteb: a directory with settings, or ``causal-lm:MODEL``.

    Its revision changes with settings, prompt, adapter and base.

    Raises:
        FileNotFoundError, ValueError: if settings, prompt or base cannot be used; the message says why.
    """
    if name.startswith(CAUSAL_LM):
        base = name.removeprefix(CAUSAL_LM)
        here = Path(base).expanduser().resolve()
        settings, prompt = CausalSettings(base=str(here) if here.is_dir() else base), read_prompt(PROMPT, FIELDS)
        called, weights = f"causal-lm/{here.name if here.is_dir() else base.replace('/', '__')}", ""
    else:
        directory = Path(name).expanduser().resolve()
        settings, prompt = read_settings(directory)
        called, weights = local_name(directory), weights_revision(directory)
        if settings.adapter is not None:
            weights += weights_revision(adapter_at(settings.adapter))
    settings = with_base_revision(settings)
    # Content decides, not the place it lies in.
    base = "" if settings.base_fingerprint else settings.base
    placeless = settings.model_copy(update={"base": base, "adapter": None})

    def load(name: str, revision: str | None = None, device: str | None = None, **kwargs: Any) -> CausalReranker:
        model, tokenizer = load_parts(settings, device)
        return CausalReranker(model, reading_of(settings, prompt, model.config, tokenizer), meta)

    meta = ModelMeta.create_empty(
        {
            "loader": load,
            "name": called,
            "revision": _digest(placeless, prompt, weights),
            "model_type": ["cross-encoder"],
            "languages": ["eng-Latn"],
        }
    )
    register_model(meta)
    register_model(meta, name)
    return meta


def with_base_revision(settings: CausalSettings) -> CausalSettings:
    """The settings with the revision, or for a directory the fingerprint, of the base and of nothing else.

    Raises:
        ValueError: if the base has other weights than the settings say.
    """
    place = Path(settings.base).expanduser()
    if place.is_dir():
        found = weights_revision(place)
        if settings.base_fingerprint not in (None, found):
            raise ValueError(
                f"the base model in {place} has the fingerprint {found}, not {settings.base_fingerprint} as when the "
                "reranker was made: its adapter does not belong to these weights"
            )
        return settings.model_copy(update={"base_fingerprint": found})
    if settings.base_fingerprint is not None:
        raise FileNotFoundError(f"the reranker's base model is not in {place}, where it was when it was made")
    if settings.revision is not None:
        return settings
    return settings.model_copy(update={"revision": resolve_model(settings.base).revision})


def _digest(settings: CausalSettings, prompt: Prompt, weights: str) -> str:
    return hashlib.sha256(f"{settings.digest(prompt)} {weights}".encode()).hexdigest()[:40]
