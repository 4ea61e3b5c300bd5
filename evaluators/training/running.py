"""One run of a grid: trained from its last kept state on, with the best checkpoint for each selection set."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PrinterCallback, TrainerCallback, TrainingArguments, set_seed

from evaluators.training.config import Schedule
from evaluators.training.selection import History, Selection

if TYPE_CHECKING:
    from transformers import Trainer

__all__ = ["CHECKPOINTS", "HISTORY", "RUNS", "GridRun", "grid", "require_precision", "run_resumably"]

logger = logging.getLogger(__name__)

RUNS, CHECKPOINTS, HISTORY = "runs", "checkpoints", "history.json"
_STATE = "trainer_state.json"


@dataclass(frozen=True)
class GridRun:
    """A learning rate and a seed."""

    rate: float
    seed: int

    @property
    def label(self) -> str:
        """Its name, also of its folder."""
        return f"lr-{self.rate!r}-seed-{self.seed}"

    @property
    def told(self) -> str:
        """How reports call it."""
        return f"learning rate {self.rate:g}, seed {self.seed}"


def grid(schedule: Schedule) -> list[GridRun]:
    """All runs of a training: each learning rate with each seed."""
    return [GridRun(rate, seed) for rate in schedule.learning_rates for seed in schedule.seeds]


def require_precision(schedule: Schedule) -> None:
    """Check, before anything is computed, that this machine can train in the precision that is asked for.

    Raises:
        ValueError: if it cannot.
    """
    told = f"precision = {schedule.precision!r} needs a GPU that has it"
    if schedule.precision == "fp16" and _on_cpu():
        raise ValueError(f"{told}; this machine has none: take fp32, or bf16, which a CPU has, too, if slowly")
    try:
        TrainingArguments(output_dir=".", report_to="none", **_precision(schedule))
    except ValueError as error:
        raise ValueError(f"{told}; take fp32 ({error})") from error


def _on_cpu() -> bool:
    return bool(TrainingArguments(output_dir=".", report_to="none").device.type == "cpu")


def _precision(schedule: Schedule) -> dict[str, Any]:
    return {
        "bf16": schedule.precision == "bf16",
        "fp16": schedule.precision == "fp16",
        "use_cpu": _on_cpu(),  # else bf16 is refused there
    }


def run_resumably(
    schedule: Schedule,
    run: GridRun,
    folder: Path,
    selection: Selection,
    start: Callable[[], Any],
    trainer_of: Callable[[Any, dict[str, Any]], Trainer],
    callbacks: Sequence[TrainerCallback] = (),
) -> History:
    """Train one run, or what is missing of it.

    A run that was killed goes on from its last checkpoint, with the state of optimiser, schedule and random numbers:
    on the same machine it ends in the same weights as one that was not.

    Args:
        schedule: how it is optimised.
        run: learning rate and seed.
        folder: the run's own; holds ``history.json`` and ``best/<selection set>``.
        selection: scores and keeps after each epoch.
        start: the model to start from.
        trainer_of: a trainer of a model, with these arguments.
        callbacks: further ones for the trainer.
    """
    history = selection.history
    if history.finished:
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)  # of a run that was killed at its end
        return history
    set_seed(run.seed)  # before the model: adapters and heads begin at random
    model = start()
    last = _last_checkpoint(folder / CHECKPOINTS)
    trainer = trainer_of(model, _arguments(schedule, run, folder))
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(selection)
    for callback in callbacks:
        trainer.add_callback(callback)
    if last is not None:
        logger.warning("%s goes on from %s", run.label, last.name)
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    history.finished = True
    history.write()
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return history


def _arguments(schedule: Schedule, run: GridRun, folder: Path) -> dict[str, Any]:
    """What the trainers of all kinds of models have in common."""
    every = schedule.checkpoint_steps
    return {
        "output_dir": str(folder / CHECKPOINTS),
        "learning_rate": run.rate,
        "seed": run.seed,
        "num_train_epochs": schedule.epochs,
        "per_device_train_batch_size": schedule.batch_size,
        "gradient_accumulation_steps": schedule.gradient_accumulation,
        "warmup_steps": schedule.warmup_ratio,  # below 1: a share of all steps
        "weight_decay": schedule.weight_decay,
        **_precision(schedule),
        "save_strategy": "epoch" if every is None else "steps",
        "save_steps": every or 500,
        "save_total_limit": 1,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "logging_steps": 1,
        "disable_tqdm": True,
        "report_to": "none",
    }


def _last_checkpoint(folder: Path) -> Path | None:
    """The last state that is whole; others, which a kill left, are removed."""
    found: list[tuple[int, Path]] = []
    for place in folder.glob("checkpoint-*"):
        number = re.fullmatch(r"checkpoint-(\d+)", place.name)
        try:
            # Written after everything else of the state.
            json.loads((place / _STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            shutil.rmtree(place, ignore_errors=True)
            continue
        if number is not None:
            found.append((int(number[1]), place))
    return max(found)[1] if found else None
