"""What the trainers of all kinds of models have in common beyond sentence-transformers' own."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from sentence_transformers.base.sampler import DefaultBatchSampler

__all__ = ["Resumable"]

_WEIGHTS = "model.safetensors"


class Resumable:
    """A mixin for sentence-transformers' trainers: what makes a run that was killed end as one that was not.

    Batches come in an order that depends on seed and epoch alone. Of a model its tensors are kept, whatever adapters it
    has, in place of a directory that can be loaded by itself; and there is no model card to compute.

    Attributes:
        groups: a name for each row; rows of one name go into one batch where they fit. ``None``: no such rule.
    """

    groups: Sequence[str] | None = None
    # Of the trainer.
    model: Any
    args: Any
    train_dataset: Any

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """None."""

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        folder = Path(output_dir or self.args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        # One copy of tensors that share memory.
        save_model(self.model, str(folder / _WEIGHTS))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        load_model(self.model if model is None else model, Path(resume_from_checkpoint) / _WEIGHTS)

    def get_batch_sampler(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> DefaultBatchSampler:
        """What the trainer asks for."""
        return _EpochSampler(self.groups or [""] * len(dataset), batch_size, seed)

    def batches_of_all_epochs(self) -> Iterator[list[int]]:
        """The rows of each batch, in the order in which the training comes to them."""
        rows, size = self.train_dataset, self.args.train_batch_size
        sampler = self.get_batch_sampler(rows, size, self.args.dataloader_drop_last, seed=self.args.seed)
        for epoch in range(math.ceil(self.args.num_train_epochs)):
            sampler.set_epoch(epoch)
            yield from sampler


class _EpochSampler(DefaultBatchSampler):
    def __init__(self, groups: Sequence[str], batch_size: int, seed: int) -> None:
        super().__init__(range(len(groups)), batch_size=batch_size, drop_last=False)
        self.groups = groups
        self.seed = seed

    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(len(self.groups)))
        random.Random(f"{self.seed} {self.epoch}").shuffle(order)
        if any(self.groups):
            first: dict[str, int] = {}
            for place, row in enumerate(order):
                first.setdefault(self.groups[row], place)
            order.sort(key=lambda row: first[self.groups[row]])
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]
