"""The logits of the two answers, and the probability of the first."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evaluators.causal.reading import Answers, Reading
from evaluators.metrics.ranking import NotFiniteError

__all__ = ["answer_logits", "probabilities"]


def answer_logits(model: Any, batch: Mapping[str, torch.Tensor], answers: Answers) -> torch.Tensor:
    """The logits of (false, true) after each prompt, as float32 (rows x 2).

    Args:
        model: a causal language model, with peft's adapters or without.
        batch: as :meth:`~evaluators.causal.reading.Reading.padded` makes it, on the model's device.
        answers: token ids.
    """
    taken = _parameters(model)
    # Models that count positions by themselves (ALiBi) take none; others would count the padding.
    inputs = {name: value for name, value in batch.items() if name in taken or name != "position_ids"}
    if "logits_to_keep" in taken:  # else the whole vocabulary for every token is in memory at once
        inputs["logits_to_keep"] = 1  # type: ignore[assignment]
    logits = model(**inputs, use_cache=False).logits[:, -1]
    chosen: torch.Tensor = logits[:, [answers.false, answers.true]].float()
    return chosen


def probabilities(
    model: Any, reading: Reading, rows: Sequence[Sequence[int]], batch_size: int, told: Callable[[int], None]
) -> NDArray[np.float64]:
    """P(true) of each prompt, 0..1: the softmax over the two answers' logits, in the order of the rows.

    In double precision, since single precision would round all confident answers to 1.

    Args:
        model: a causal language model.
        reading: which made the rows, and pads them.
        rows: token ids.
        batch_size: rows at a time; they are taken by length, longest first.
        told: called after each batch with the number of rows in it.

    Raises:
        NotFiniteError: if a logit is NaN or infinite.
    """
    order = sorted(range(len(rows)), key=lambda at: -len(rows[at]))
    out = np.empty(len(rows))
    model.eval()
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        batch = {k: v.to(model.device) for k, v in reading.padded([rows[at] for at in chosen]).items()}
        with torch.inference_mode():
            logits = answer_logits(model, batch, reading.answers).double()
        out[chosen] = logits.softmax(1)[:, 1].cpu().numpy()
        told(len(chosen))
    bad = np.flatnonzero(~np.isfinite(out))
    if bad.size:
        raise NotFiniteError(
            f"the answers to {bad.size} of {len(rows)} prompts have NaN or infinity as their probability (a NaN "
            "usually means that the model overflowed in half precision; try dtype float32)"
        )
    return out


def _parameters(model: Any) -> frozenset[str]:
    """What the model's own ``forward`` takes; peft's wrappers hide it."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return frozenset(inspect.signature(base.forward).parameters)
