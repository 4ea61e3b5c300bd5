"""Models as mteb searches with them, for wrappers that hand a corpus and queries on."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mteb.models import CrossEncoderProtocol, EncoderProtocol, SearchProtocol
from mteb.models.search_wrappers import SearchCrossEncoderWrapper, SearchEncoderWrapper

from evaluators.plugin.given import given_model
from evaluators.plugin.mteb_internals import is_sparse_encoder
from evaluators.plugin.sparse import PickableEncoder

__all__ = ["SearchedOnce", "is_searcher", "searcher"]


def is_searcher(model: Any) -> bool:
    """Whether a model, as mteb runs it, searches by itself, so that its scores may depend on the whole corpus."""
    return isinstance(model, SearchProtocol)


def searcher(model: Any, *, candidates: bool = False, task_type: str = "Retrieval") -> Any:
    """A search model of mteb: the model itself, or an encoder or cross-encoder in mteb's wrapper.

    Args:
        model: as mteb runs it.
        candidates: whether it will be given candidates, of which sparse embeddings need another form.
        task_type: of the task; other types get dense embeddings from sparse encoders.
    """
    if is_searcher(model):
        return model
    if isinstance(model, EncoderProtocol):
        pickable = candidates and is_sparse_encoder(model) and task_type == "Retrieval"
        encoder: Any = PickableEncoder(model) if pickable else model
        return SearchEncoderWrapper(encoder)
    if isinstance(model, CrossEncoderProtocol):
        return SearchCrossEncoderWrapper(model)
    raise ValueError(f"{type(model).__name__} is neither encoder, cross-encoder nor search model")


class SearchedOnce:
    """A search model that remembers what it found, for the parts of hybrids that differ in their weights only.

    A corpus is indexed when it is first searched. Rankings are known again by the content of corpus and queries, task,
    subset, candidates and depth.
    """

    def __init__(self, model: Any) -> None:
        """Take a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``, which is loaded."""
        given = given_model(model)
        self._model = searcher(given)
        self.mteb_model_meta = given.mteb_model_meta
        self._found: dict[str, dict[str, dict[str, float]]] = {}
        self._indexed = ""

    def index(self, corpus: Any, **kwargs: Any) -> None:
        """Keep the corpus for the first search that needs it."""
        self._corpus, self._index_arguments = corpus, kwargs
        self._corpus_key = _digest(list(corpus["id"]), list(corpus["text"]), _place(kwargs))

    def search(
        self, queries: Any, *, top_k: int, top_ranked: Mapping[str, Sequence[str]] | None = None, **kwargs: Any
    ) -> dict[str, dict[str, float]]:
        """What the model finds."""
        texts = [list(queries[name]) for name in ("id", "text", "instruction") if name in queries.column_names]
        key = _digest(self._corpus_key, texts, top_k, top_ranked, _place(kwargs))
        if key not in self._found:
            if self._indexed != self._corpus_key:
                self._model.index(self._corpus, **self._index_arguments)
                self._indexed = self._corpus_key
            self._found[key] = self._model.search(queries, top_k=top_k, top_ranked=top_ranked, **kwargs)
        return copy.deepcopy(self._found[key])


def _place(arguments: Mapping[str, Any]) -> list[str]:
    metadata = arguments["task_metadata"]
    return [metadata.name, str(metadata.prompt), arguments["hf_split"], arguments["hf_subset"]]


def _digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
