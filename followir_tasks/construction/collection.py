"""The collection cut into passages, on disk: models read it from there, whatever its size.

A document of more than 400 words becomes passages of 400 words that begin every 200 words (FollowIR, section 3); the
last one ends with the document. A document that stays whole keeps its id, a passage is ``DOCUMENT::1``,
``DOCUMENT::2`` and so on. Every passage has the document's title beside its text.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Collection as Ids
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from datasets import Dataset

from evaluators.files import unfinished
from evaluators.plugin.checks import DatasetError, shown
from evaluators.windows import window_starts
from followir_tasks.construction.documents import Documents

__all__ = ["OVERLAP", "WORDS", "Collection", "cut", "passage_id", "write_collection"]

WORDS, OVERLAP = 400, 200
# Passages that a model encodes at a time: what is lost if a run is killed.
_PER_PART = 10_000
_SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "document", "title", "text")])
_WORD = re.compile(r"\S+")


def cut(text: str, words: int = WORDS, overlap: int = OVERLAP) -> list[str]:
    """Passages of a text: ``words`` words each, the last one fewer, beginning every ``words - overlap`` words.

    A word is what stands between blanks. The text between a passage's first and last word stays as it is.
    """
    spans = [found.span() for found in _WORD.finditer(text)]
    if len(spans) <= words:
        return [text]
    starts = window_starts(len(spans), words, overlap)
    return [text[spans[s][0] : spans[min(s + words, len(spans)) - 1][1]] for s in starts]


def passage_id(document: str, place: int, of: int) -> str:
    """The id of a document's passage; ``place`` is counted from 1."""
    return document if of == 1 else f"{document}::{place}"


@dataclass(frozen=True)
class Collection:
    """What :func:`write_collection` wrote.

    Attributes:
        path: an Arrow file with the columns ``id``, ``document``, ``title``, ``text``.
        counts: documents, passages, documents cut, documents without text (which are left out).
        without: files that held no document.
    """

    path: Path
    counts: dict[str, int]
    without: list[str]

    def passages(self) -> Dataset:
        """All passages, memory-mapped."""
        return Dataset.from_file(str(self.path))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The passages in parts, each of whole documents. Memory: one part, mapped."""
        with pa.memory_map(str(self.path)) as source:
            yield from pa.ipc.open_stream(source)

    def of_documents(self, wanted: Ids[str]) -> dict[str, list[str]]:
        """The passages' ids of some documents, in order; a document that is not there is not among the keys."""
        out: dict[str, list[str]] = {}
        for batch in self.batches():
            for document, passage in zip(batch["document"].to_pylist(), batch["id"].to_pylist(), strict=True):
                if document in wanted:
                    out.setdefault(document, []).append(passage)
        return out

    def some(self, wanted: Ids[str]) -> Dataset:
        """Some passages by id, in the collection's order, in memory."""
        parts = []
        for batch in self.batches():
            mask = pa.array([passage in wanted for passage in batch["id"].to_pylist()], pa.bool_())
            parts.append(batch.filter(mask))
        return Dataset(pa.Table.from_batches(parts, _SCHEMA))


def write_collection(documents: Documents, path: Path) -> Collection:
    """Cut all documents and write the passages; the texts in memory are those of one part.

    Raises:
        DatasetError: as the documents' reader, or if ids occur more than once, also as a passage's id.
    """
    counts = Counter(dict.fromkeys(("n_documents", "n_passages", "n_documents_cut", "n_documents_without_text"), 0))
    digests = array("Q")
    with unfinished(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_stream(sink, _SCHEMA) as writer:
        rows: list[tuple[str, str, str, str]] = []
        for document in documents:
            if not document.text.strip():
                counts["n_documents_without_text"] += 1
                continue
            texts = cut(document.text)
            counts["n_documents"] += 1
            counts["n_passages"] += len(texts)
            counts["n_documents_cut"] += len(texts) > 1
            for place, text in enumerate(texts, 1):
                passage = passage_id(document.id, place, len(texts))
                digests.append(_digest(passage))
                rows.append((passage, document.id, document.title, text))
            if len(rows) >= _PER_PART:
                writer.write_batch(_batch(rows))
                rows = []
        if rows:
            writer.write_batch(_batch(rows))
        if not counts["n_documents"]:
            raise DatasetError(documents.name, ["none of its documents has a text"])
        # Ids of millions of documents fit into memory as numbers only.
        values, found = np.unique(np.frombuffer(digests, np.uint64), return_counts=True)
        twice = set(values[found > 1].tolist())
        if twice:
            named = Counter(_named(documents, twice))
            raise DatasetError(documents.name, [f"{len(named)} ids occur more than once: {shown(named)}"])
    return Collection(path, dict(counts), list(documents.without))


def _batch(rows: list[tuple[str, str, str, str]]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.string()) for values in zip(*rows, strict=True)], schema=_SCHEMA)


def _digest(identifier: str) -> int:
    return int.from_bytes(hashlib.blake2b(identifier.encode(), digest_size=8).digest())


def _named(documents: Documents, digests: Ids[int]) -> Iterator[str]:
    for document in documents:
        n = len(cut(document.text)) if document.text.strip() else 0
        for passage in (passage_id(document.id, place, n) for place in range(1, n + 1)):
            if _digest(passage) in digests:
                yield passage
