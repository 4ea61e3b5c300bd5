"""Several vectors per table over any encoder (TCR-Bench, appendices D.2 and J): rows, columns or the schema."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from mteb.models import EncoderProtocol, SearchProtocol
from mteb.types import PromptType
from numpy.typing import NDArray

from evaluators.metrics.ranking import NotFiniteError, top
from evaluators.plugin.checks import shown
from evaluators.plugin.doubt import length_figures
from evaluators.plugin.given import given_model
from evaluators.plugin.models import recorded
from evaluators.plugin.mteb_internals import is_sparse_encoder, text_loader
from tcr_tasks.retrieval.pieces import PIECES, pieces_of
from tcr_tasks.retrieval.segments import Reduction, reduction, segment_scores

__all__ = ["MultiVector", "PieceIndex", "multi_vector"]

logger = logging.getLogger(__name__)

# Scores of pieces that are held at a time: 64 MiB.
_SCORES_HELD = 2**24
# Up to so many queries each passes over the vectors by itself: a multiplication of matrices first packs all of them.
_FEW_QUERIES = 3
# Raised whenever the same text would give other pieces.
VERSION = 1
_PROBES = 8
_LENGTHS = {
    "truncated_pieces_share": "truncated_documents_share",
    "truncated_piece_tokens_share": "truncated_tokens_share",
}


class PieceIndex:
    """Vectors of all documents' pieces in one matrix, searched in blocks of queries.

    Memory beside the vectors is bounded: at most ``held`` scores of pieces at a time, but those of one query.
    """

    def __init__(self, vectors: NDArray[np.float32], counts: Sequence[int], held: int = _SCORES_HELD) -> None:
        """Take the vectors of documents in turn.

        Args:
            vectors: shape (pieces, dimensions), each document's pieces next to one another.
            counts: pieces of each document, at least 1.
            held: see above.
        """
        self.vectors = vectors
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
        self._block = max(held // max(len(vectors), 1), 1)

    def scores(self, queries: NDArray[np.float32], how: Reduction) -> NDArray[np.float64]:
        """The scores of all documents, by inner product, shape (queries, documents)."""
        blocks = (queries[at : at + self._block] for at in range(0, len(queries), self._block))
        found = [segment_scores(self._products(block), self.starts, how) for block in blocks]
        return np.concatenate(found).astype(np.float64)

    def _products(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """The inner products of queries with pieces, shape (queries, pieces)."""
        if len(queries) > _FEW_QUERIES:
            return queries @ self.vectors.T
        # Reading the vectors takes most of the time. On one core, so that none waits for another one that is busy.
        return np.stack([np.einsum("pd,d->p", self.vectors, query) for query in queries])


class MultiVector:
    """A search model of mteb: an encoder that embeds each piece of a table by itself.

    Attributes:
        encoder: as mteb runs it.
        pieces: ``rows``, ``columns`` or ``schema``.
        how: the reduction of the scores of a table's pieces.
        doubt_figures: after :meth:`index`, what makes a score doubtful: ``n_pieces``;
            ``documents_without_pieces_share``, those that print no table and are embedded whole;
            ``unclear_rows_share`` of all pieces; where the encoder's tokenizer is known ``truncated_pieces_share``,
            those longer than it reads, and ``truncated_piece_tokens_share``, of different pieces.
    """

    def __init__(self, encoder: Any, pieces: str, how: Reduction) -> None:
        self.encoder = encoder
        self.pieces = pieces
        self.how = how
        self.mteb_model_meta = encoder.mteb_model_meta
        self.doubt_figures: dict[str, float] = {}
        self._index: PieceIndex | None = None
        self._cosine: bool | None = None
        self._ids: list[str] = []

    def index(
        self,
        corpus: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        encode_kwargs: Any,
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Read the tables of the corpus and embed their pieces; equal pieces are embedded once.

        Raises:
            NotFiniteError: if an embedding holds NaN or infinity.
        """
        self._ids = list(corpus["id"])
        found = [pieces_of(text, self.pieces) for text in corpus["text"]]
        whole = [i for i, p in zip(self._ids, found, strict=True) if p.whole]
        if whole:
            told = f"{len(whole)} of {len(found)} documents print no table, so each is embedded as a whole"
            logger.warning("%s: %s: %s", task_metadata.name, told, shown(whole))
        titles = corpus["title"] if "title" in corpus.column_names else [""] * len(found)
        texts = [f"{title} {t}" if title else t for title, p in zip(titles, found, strict=True) for t in p.texts]
        place = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        vectors = self._encoded(list(place), PromptType.document, task_metadata, hf_split, hf_subset, encode_kwargs)
        self._index = PieceIndex(vectors[[place[text] for text in texts]], [len(p.texts) for p in found])
        self._cosine = None
        self.doubt_figures = {
            "n_pieces": len(texts),
            "documents_without_pieces_share": len(whole) / max(len(found), 1),
            "unclear_rows_share": sum(p.unclear for p in found) / max(len(texts), 1),
        }
        pieces = _dataset(list(place))
        limits = length_figures(self.encoder, pieces, pieces)
        for name, known in _LENGTHS.items():
            if known in limits:
                self.doubt_figures[name] = limits[known]

    def search(
        self,
        queries: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        top_k: int,
        encode_kwargs: Any,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> dict[str, dict[str, float]]:
        """The ``top_k`` best documents of each query, or of its candidates in ``top_ranked``."""
        if self._index is None:
            raise ValueError("index a corpus before searching it")
        vectors = self._encoded(queries, PromptType.query, task_metadata, hf_split, hf_subset, encode_kwargs)
        if self._cosine is None:
            self._cosine = self._compares_by_cosine(vectors)
            if self._cosine:
                _normalise(self._index.vectors)
        if self._cosine:
            _normalise(vectors)
        out = {}
        for query, scores in zip(queries["id"], self._index.scores(vectors, self.how), strict=True):
            found = dict(zip(self._ids, scores.tolist(), strict=True))
            if top_ranked is not None:
                found = {document: found[document] for document in top_ranked[query]}
            out[query] = {document: found[document] for document in top(found, top_k, query)}
        return out

    def _encoded(
        self, texts: Any, kind: PromptType, metadata: Any, split: str, subset: str, encode_kwargs: Any
    ) -> NDArray[np.float32]:
        if kind == PromptType.document:
            texts = _dataset(texts)
        loader = text_loader(texts, metadata, kind, encode_kwargs.get("batch_size", 32))
        found = self.encoder.encode(
            loader, task_metadata=metadata, hf_split=split, hf_subset=subset, prompt_type=kind, **encode_kwargs
        )
        # A copy, since it is normalised in place.
        vectors = torch.as_tensor(found).detach().float().cpu().numpy().copy()
        if not np.isfinite(vectors).all():
            raise NotFiniteError(f"{self.mteb_model_meta.name}: embeddings of a {kind.value} hold NaN or infinity")
        return vectors

    def _compares_by_cosine(self, queries: NDArray[np.float32]) -> bool:
        """Whether the encoder compares by cosine or else by inner product, as seen on a few pairs.

        Raises:
            ValueError: if it does neither.
        """
        assert self._index is not None
        some, pieces = queries[:_PROBES].copy(), self._index.vectors[:_PROBES].copy()
        expected = torch.as_tensor(self.encoder.similarity(torch.as_tensor(some), torch.as_tensor(pieces))).numpy()
        inner = some @ pieces.T
        _normalise(some)
        _normalise(pieces)
        for cosine, scores in ((True, some @ pieces.T), (False, inner)):
            if np.allclose(scores, expected, rtol=1e-3, atol=1e-3 * float(np.abs(expected).max())):
                return cosine
        raise ValueError(
            f"{self.mteb_model_meta.name} compares embeddings neither by cosine nor by inner product, which several "
            "vectors per table need"
        )


def _dataset(texts: list[str]) -> Dataset:
    """Texts as documents of mteb."""
    numbers = [str(at) for at in range(len(texts))]
    return Dataset(pa.table({"id": numbers, "title": [""] * len(texts), "text": texts}))


def _normalise(vectors: NDArray[np.float32]) -> None:
    """Give every vector the length 1, in place; zero stays zero."""
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def multi_vector(model: Any, *, reduce: str = "max", pieces: str = "rows") -> Any:
    """The model with several vectors per table: each piece embedded by itself, their scores reduced to one.

    The rows are those of the table as presented, so of a transposed table the transposed rows (appendix J). A document
    that prints no table is embedded as a whole, which is logged and counted (``doubt_figures``). The record's
    ``experiment_kwargs`` state pieces and reduction, so mteb files each variant apart.

    Args:
        model: a dense encoder: a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``.
        reduce: ``max``, ``mean`` or ``topN``, the mean of the N highest; the paper found ``max`` best.
        pieces: ``rows`` (each with its header), ``columns``, or ``schema`` (name and header, one vector).

    Raises:
        ValueError: for an unknown reduction or kind of pieces, or a model that gives no dense embeddings.
    """
    how = reduction(reduce)
    if pieces not in PIECES:
        raise ValueError(f"unknown pieces {pieces!r}; one of {', '.join(PIECES)}")
    encoder = given_model(model)
    name = encoder.mteb_model_meta.name
    if isinstance(encoder, SearchProtocol) or not isinstance(encoder, EncoderProtocol) or is_sparse_encoder(encoder):
        raise ValueError(f"several vectors per table need an encoder with dense embeddings; {name} is none")
    wrapped = MultiVector(encoder, pieces, how)
    return recorded(wrapped, encoder.mteb_model_meta, {"pieces": f"{pieces}-{VERSION}", "reduce": how.name})
