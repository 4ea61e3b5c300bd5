"""What the diagnostics need of a model: each text encoded once, its embeddings again, how much of a text it reads."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mteb.models import EncoderProtocol, SearchProtocol
from mteb.models.cache_wrappers import CachedEmbeddingWrapper
from mteb.models.cache_wrappers.cache_backends import NumpyCache
from mteb.types import PromptType
from numpy.typing import NDArray

from evaluators.plugin.mteb_internals import is_cross_encoder

logger = logging.getLogger(__name__)


class _GrowingCache(NumpyCache):
    """mteb's cache, whose file starts small and doubles: its own size would be gigabytes for a large model."""

    def __init__(self, directory: str | Path) -> None:
        super().__init__(directory, initial_vectors=1024)

    def load(self) -> None:
        """Read what is there; that nothing is there yet is no reason for mteb's warnings."""
        if self.index_file.exists():
            super().load()


class OnceEncoder(CachedEmbeddingWrapper):
    """An encoder whose embeddings are kept in mteb's cache, with every text encoded once in all.

    mteb's cache tells embeddings apart by task, by query or document and by the exact text, not by model or by prompt:
    ``folder`` must belong to one model at one revision, and tasks of one name must have one prompt.
    """

    def __init__(self, model: Any, folder: Path) -> None:
        _drop_broken(folder)
        super().__init__(model, folder, _GrowingCache)

    @property
    def model(self) -> Any:
        """What mteb's wrapper holds: a SentenceTransformer, whose tokenizer and limit are asked for."""
        return getattr(self._model, "model", None)

    def encode(self, inputs: Any, **kwargs: Any) -> NDArray[np.floating[Any]]:
        """The embeddings in the order of the inputs; equal texts have equal ones, which batches would not ensure."""
        from torch.utils.data import DataLoader

        first: dict[str, int] = {}
        texts = list(inputs.dataset["text"])
        for place, text in enumerate(texts):
            first.setdefault(text, place)
        once = inputs.dataset.select(list(first.values()))
        loader = DataLoader(once, batch_size=inputs.batch_size, collate_fn=inputs.collate_fn)
        vectors = super().encode(loader, **kwargs)
        places = {text: place for place, text in enumerate(first)}
        return np.asarray(vectors)[[places[text] for text in texts]]

    def embeddings(self, task: str, kind: PromptType, texts: Sequence[str]) -> NDArray[np.float64]:
        """What was encoded for a task, one row a text.

        Args:
            task: the task's name.
            kind: query or document.
            texts: as the model read them.

        Raises:
            KeyError: if a text was not encoded for that task.
        """
        cache = self._get_or_create_cache(task, kind, {})
        found = [cache.get_vector({"text": text}) for text in texts]
        if any(vector is None for vector in found):
            raise KeyError(f"{task}: {sum(v is None for v in found)} of {len(texts)} texts were not encoded before")
        return np.stack([np.asarray(vector, dtype=np.float64) for vector in found])


def encoded_once(model: Any, folder: Path) -> Any:
    """The model (as mteb runs it) with its embeddings kept in ``folder``; as it is if it gives no embeddings."""
    plain_encoder = isinstance(model, EncoderProtocol) and not isinstance(model, SearchProtocol)
    return OnceEncoder(model, folder) if plain_encoder else model


def _drop_broken(folder: Path) -> None:
    """Remove caches whose index an interrupted run left half written."""
    for index in list(folder.rglob("index.json")):
        try:
            json.loads(index.read_text(encoding="utf-8"))
        except ValueError:
            logger.warning("%s was left incomplete; its texts are encoded again", index.parent)
            shutil.rmtree(index.parent)


def characters_read(model: Any) -> Callable[[str, str], int] | None:
    """A function that says how many characters of a document the model reads, or ``None`` if that is not known.

    It takes the document and the query, whose tokens a cross-encoder's limit holds too. Known for models of
    sentence-transformers with a fast tokenizer.
    """
    inner = getattr(model, "model", None)
    tokenizer: Any = getattr(inner, "tokenizer", None)
    limit = getattr(inner, "max_seq_length", None)
    if not getattr(tokenizer, "is_fast", False) or not isinstance(limit, int):
        return None
    both = is_cross_encoder(model)
    special = int(tokenizer.num_special_tokens_to_add(pair=both))

    def ends(text: str) -> list[int]:
        found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [int(end) for _, end in found["offset_mapping"]]

    def read(document: str, query: str) -> int:
        places = ends(document)
        kept = max(limit - special - (len(ends(query)) if both else 0), 0)
        return len(document) if len(places) <= kept else max(places[:kept], default=0)

    return read
