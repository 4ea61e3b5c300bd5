"""An encoder that encodes a corpus once, for runs that differ in their queries only."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from mteb.models import EncoderProtocol, SearchProtocol
from mteb.types import PromptType

from evaluators.plugin.mteb_internals import is_sparse_encoder


def documents_once(model: Any) -> Any:
    """The model (as mteb runs it), with its embeddings of documents remembered while it is held.

    As it is if it searches by itself, is a cross-encoder, or gives sparse embeddings. mteb's own cache of embeddings is
    no choice here: it joins title and text, and query and instruction, a second time.
    """
    plain_encoder = isinstance(model, EncoderProtocol) and not isinstance(model, SearchProtocol)
    return DocumentsOnce(model) if plain_encoder and not is_sparse_encoder(model) else model


class DocumentsOnce:
    """An encoder of mteb; a list of documents is known again by its texts, its task and how it is to be encoded."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._found: dict[str, Any] = {}
        self.mteb_model_meta = encoder.mteb_model_meta

    @property
    def model(self) -> Any:
        """What mteb's wrapper holds: a SentenceTransformer, whose tokenizer and limit are asked for."""
        return getattr(self._encoder, "model", None)

    @property
    def model_prompts(self) -> Any:
        """The prompts that mteb's wrapper puts before texts."""
        return getattr(self._encoder, "model_prompts", None)

    def encode(self, inputs: Any, *, task_metadata: Any, prompt_type: PromptType | None = None, **kwargs: Any) -> Any:
        """The embeddings in the order of the inputs."""

        def encoded() -> Any:
            return self._encoder.encode(inputs, task_metadata=task_metadata, prompt_type=prompt_type, **kwargs)

        if prompt_type != PromptType.document:
            return encoded()
        settings = {name: repr(value) for name, value in kwargs.items()}
        content = json.dumps([task_metadata.name, str(task_metadata.prompt), settings, list(inputs.dataset["text"])])
        key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        if key not in self._found:
            self._found[key] = encoded()
        return self._found[key]

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The encoder's similarity."""
        return self._encoder.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The encoder's similarity of pairs."""
        return self._encoder.similarity_pairwise(embeddings1, embeddings2)
