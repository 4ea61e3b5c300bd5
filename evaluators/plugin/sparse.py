"""Sparse embeddings of which mteb can pick candidates."""

from __future__ import annotations

from typing import Any


class SparseRows:
    """A matrix of sparse embeddings, from which one row at a time is taken: torch's sparse tensors take no list."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows.coalesce()
        places, self._columns = self.rows.indices()
        self._values = self.rows.values()
        self._ends = places.bincount(minlength=len(self)).cumsum(0).tolist()

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __getitem__(self, place: int) -> Any:
        """A row, as a sparse vector."""
        import torch

        part = slice(self._ends[place - 1] if place else 0, self._ends[place])
        return torch.sparse_coo_tensor(
            self._columns[part][None],
            self._values[part],
            self.rows.shape[1:],
            is_coalesced=True,
            check_invariants=False,
        )


class PickableEncoder:
    """A sparse encoder (as mteb runs it) for tasks with candidates, of whose embeddings mteb picks some by place."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def mteb_model_meta(self) -> Any:
        """The model's record."""
        return self._model.mteb_model_meta

    def encode(self, inputs: Any, **kwargs: Any) -> SparseRows:
        """The model's embeddings."""
        return SparseRows(self._model.encode(inputs, **kwargs))

    def similarity(self, queries: Any, documents: Any) -> Any:
        """The model's similarity; of vectors that were picked from :class:`SparseRows`, too."""
        import torch

        return self._model.similarity(queries, torch.stack(documents) if isinstance(documents, list) else documents)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """The model's similarity of pairs."""
        return self._model.similarity_pairwise(first, second)
