"""A callback for trainers that keeps the weights, and stops a run in the middle of an epoch as a kill would."""

from __future__ import annotations

from typing import Any

import torch
from transformers import TrainerCallback


class Killed(BaseException):
    """The run was stopped."""


class Watch(TrainerCallback):
    """Keeps the weights at the end; raises :class:`Killed` after a step if told so."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.kill_at = kill_at
        self.weights: dict[str, torch.Tensor] = {}

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == self.kill_at:
            raise Killed

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.weights = {name: tensor.clone() for name, tensor in kwargs["model"].state_dict().items()}
