"""What the diagnostics need of a model: each text encoded once, its embeddings again, how much of a text it reads."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import EncoderProtocol, SearchProtocol
from mteb.models.cache_wrappers import CachedEmbeddingWrapper
from mteb.models.cache_wrappers.cache_backends import NumpyCache
from mteb.types import PromptType
from numpy.typing import NDArray

from evaluators.metrics.ranking import NotFiniteError
from evaluators.plugin.mteb_internals import document_prompt, is_cross_encoder, is_sparse_encoder

logger = logging.getLogger(__name__)


class _GrowingCache(NumpyCache):
    """mteb's cache, whose file starts small and doubles: its own size would be gigabytes for a large model."""

    def __init__(self, directory: str | Path) -> None:
        super().__init__(directory, initial_vectors=1024)

    def load(self) -> None:
        """Read what is there and whole; what a run left broken is encoded again, which is logged.

        An interrupt leaves an index half written, a loss of power files that are short, or rows that are zero.
        """
        files = (self.index_file, self.vectors_file, self.dimension_file)
        if not any(file.exists() for file in files):
            return  # which is no reason for mteb's warnings
        try:
            n = self._fitting_entries()
        except (OSError, ValueError, AttributeError) as error:
            logger.warning("%s cannot be used (%s); its texts are encoded again", self.directory, error)
            for file in files:
                file.unlink(missing_ok=True)
            return
        super().load()
        assert self.vectors is not None
        rows = np.asarray(self.vectors[:n])
        unusable = np.flatnonzero(~np.isfinite(rows).all(axis=1) | ~rows.any(axis=1))
        if unusable.size:
            # Places are given in turn, so that nothing can be taken out of the middle.
            kept = int(unusable[0])
            logger.warning(
                "%s holds %d embeddings that are zero or not finite; %d of its %d texts are encoded again",
                self.directory,
                unusable.size,
                n - kept,
                n,
            )
            self.hash_to_index = {key: place for key, place in self.hash_to_index.items() if place < kept}

    def _fitting_entries(self) -> int:
        """The number of entries, if index, dimension and vectors fit one another; otherwise an error says why not."""
        index = json.loads(self.index_file.read_text(encoding="utf-8"))
        dimension = int(self.dimension_file.read_text(encoding="utf-8"))
        size, row = self.vectors_file.stat().st_size, 4 * dimension
        if sorted(index.values()) != list(range(len(index))):
            raise ValueError("its index does not number the embeddings in turn")
        if dimension < 1 or size % row or size // row < max(len(index), 1):
            raise ValueError(f"vectors.npy has {size} bytes, which are no {len(index)} rows of {dimension} numbers")
        return len(index)


class OnceEncoder(CachedEmbeddingWrapper):
    """An encoder whose embeddings are kept in mteb's cache, with every text encoded once in all.

    mteb's cache tells embeddings apart by task, by query or document and by the exact text, not by model or by prompt:
    ``folder`` must belong to one model at one revision, and tasks of one name must have one prompt.
    """

    def __init__(self, model: Any, folder: Path) -> None:
        super().__init__(model, folder, _GrowingCache)

    @property
    def model(self) -> Any:
        """What mteb's wrapper holds: a SentenceTransformer, whose tokenizer and limit are asked for."""
        return getattr(self._model, "model", None)

    @property
    def model_prompts(self) -> Any:
        """The prompts that mteb's wrapper puts before texts."""
        return getattr(self._model, "model_prompts", None)

    def encode(self, inputs: Any, **kwargs: Any) -> NDArray[np.floating[Any]]:
        """The embeddings in the order of the inputs; equal texts have equal ones, which batches would not ensure.

        Raises:
            NotFiniteError: if one of them is not finite: nothing can be ranked by it.
        """
        from torch.utils.data import DataLoader

        first: dict[str, int] = {}
        texts = list(inputs.dataset["text"])
        for place, text in enumerate(texts):
            first.setdefault(text, place)
        once = inputs.dataset.select(list(first.values()))
        # They are in the text by now, and mteb's cache, which prepares rows once more, would put them there again.
        once = once.remove_columns([name for name in ("title", "instruction") if name in once.column_names])
        loader = DataLoader(once, batch_size=inputs.batch_size, collate_fn=inputs.collate_fn)
        vectors = np.asarray(super().encode(loader, **kwargs))
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if bad.size:
            raise NotFiniteError(
                f"the embeddings of {bad.size} of {len(first)} texts hold NaN or infinity (a NaN usually means that "
                f"the model overflowed in half precision); the first is that of {list(first)[bad[0]][:60]!r}"
            )
        places = {text: place for place, text in enumerate(first)}
        return vectors[[places[text] for text in texts]]

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
    """The model (as mteb runs it) with its embeddings kept in ``folder``.

    As it is if it gives no embeddings, or sparse ones: mteb's cache holds dense rows, as wide as a vocabulary here.
    """
    plain_encoder = isinstance(model, EncoderProtocol) and not isinstance(model, SearchProtocol)
    return OnceEncoder(model, folder) if plain_encoder and not is_sparse_encoder(model) else model


def characters_read(model: Any, metadata: TaskMetadata) -> Callable[[str, str], int] | None:
    """A function that says how many characters of a document the model reads, or ``None`` if that is not known.

    It takes the document and the query, whose tokens a cross-encoder's limit holds too, as an encoder's holds those of
    the prompt for documents. Known for models of sentence-transformers with a fast tokenizer.

    Args:
        model: as mteb runs it.
        metadata: the task's, which decides the prompt.
    """
    inner = getattr(model, "model", None)
    tokenizer: Any = getattr(inner, "tokenizer", None)
    limit = getattr(inner, "max_seq_length", None)
    if not getattr(tokenizer, "is_fast", False) or not isinstance(limit, int):
        return None
    both = is_cross_encoder(model)
    special = int(tokenizer.num_special_tokens_to_add(pair=both))
    prompt = "" if both else document_prompt(model, metadata)

    def ends(text: str) -> list[int]:
        found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [int(end) for _, end in found["offset_mapping"]]

    def read(document: str, query: str) -> int:
        places = ends(prompt + document)
        kept = max(limit - special - (len(ends(query)) if both else 0), 0)
        return len(document) if len(places) <= kept else max(max(places[:kept], default=0) - len(prompt), 0)

    return read
