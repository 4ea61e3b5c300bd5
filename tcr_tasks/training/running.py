"""One run of the grid: trained from its last kept state on, with the best checkpoint for each selection set."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
import yaml
from transformers import PrinterCallback, TrainerCallback, set_seed

from evaluators.files import write_text
from tcr_tasks.training.config import TrainingConfig
from tcr_tasks.training.evaluating import EvaluationSet, Ranker
from tcr_tasks.training.examples import Examples
from tcr_tasks.training.selection import Epoch, History, Selection

if TYPE_CHECKING:
    from transformers import Trainer

__all__ = ["GridRun", "Training", "grid", "run_one", "training_of"]

logger = logging.getLogger(__name__)

CHECKPOINTS, HISTORY = "checkpoints", "history.json"
_STATE = "trainer_state.json"


class Training(Protocol):
    """A kind of model as something to train."""

    # What the report calls the baseline.
    baseline_name: str

    def load(self, name: str) -> Any:
        """A model by its name."""
        ...

    def baseline(self) -> Ranker:
        """What the trained models are compared with."""
        ...

    def start(self) -> Any:
        """The base, ready to be trained."""
        ...

    def ranker(self, model: Any) -> Ranker:
        """The model as it is scored."""
        ...

    def trainer(self, model: Any, examples: Examples, arguments: dict[str, Any], seed: int) -> Trainer:
        """A trainer of the model on examples."""
        ...

    def save(self, model: Any, folder: Path) -> None:
        """Write the model as a directory."""
        ...


@dataclass(frozen=True)
class GridRun:
    """A learning rate and a seed."""

    rate: float
    seed: int

    @property
    def label(self) -> str:
        """Its name, also of its folder."""
        return f"lr-{self.rate:g}-seed-{self.seed}"


def grid(config: TrainingConfig) -> list[GridRun]:
    """All runs of a training: each learning rate with each seed."""
    return [GridRun(rate, seed) for rate in config.learning_rates for seed in config.seeds]


def training_of(config: TrainingConfig) -> Training:
    """How the model of a configuration is trained."""
    if config.cross_encoder is not None:
        from tcr_tasks.training.cross_encoder import CrossEncoderTraining

        return CrossEncoderTraining(config)
    from tcr_tasks.training.embedding import EmbeddingTraining

    return EmbeddingTraining(config)


def run_one(
    training: Training,
    config: TrainingConfig,
    run: GridRun,
    examples: Examples,
    sets: Sequence[EvaluationSet],
    folder: Path,
    callbacks: Sequence[TrainerCallback] = (),
) -> History:
    """Train one run, or what is missing of it.

    A run that was killed goes on from its last checkpoint, with the state of optimiser, schedule and random numbers:
    on the same machine it ends in the same weights as one that was not.

    Args:
        training: how its kind of model is trained.
        config: the training.
        run: learning rate and seed.
        examples: what is trained on.
        sets: the selection sets.
        folder: the run's own; holds ``history.json`` and ``best/<selection set>``.
        callbacks: further ones for the trainer.
    """
    history = History.read(folder / HISTORY)
    if history.finished:
        return history
    set_seed(run.seed)  # before the model: adapters and heads begin at random
    model = training.start()
    last = _last_checkpoint(folder / CHECKPOINTS)
    trainer = training.trainer(model, examples, _arguments(config, run, folder), run.seed)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Selection(sets, history, training.ranker, partial(_save, training, config, run), run.label))
    for callback in callbacks:
        trainer.add_callback(callback)
    if last is not None:
        logger.warning("%s goes on from %s", run.label, last.name)
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    history.finished = True
    history.write()
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return history


def _arguments(config: TrainingConfig, run: GridRun, folder: Path) -> dict[str, Any]:
    """What the trainers of all kinds of models have in common."""
    every = config.checkpoint_steps
    return {
        "output_dir": str(folder / CHECKPOINTS),
        "learning_rate": run.rate,
        "seed": run.seed,
        "num_train_epochs": config.epochs,
        "per_device_train_batch_size": config.batch_size,
        "gradient_accumulation_steps": config.gradient_accumulation,
        "warmup_steps": config.warmup_ratio,  # below 1: a share of all steps
        "weight_decay": config.weight_decay,
        "bf16": config.precision == "bf16",
        "fp16": config.precision == "fp16",
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


def _save(
    training: Training, config: TrainingConfig, run: GridRun, model: Any, folder: Path, epoch: Epoch, chosen_on: str
) -> None:
    training.save(model, folder)
    kind = "cross-encoder" if config.cross_encoder is not None else "sentence-transformers"
    slug = re.sub(r"[^\w.-]+", "-", f"{config.name}-{run.label}-best-on-{chosen_on}").strip("-")
    base = config.base if not Path(config.base).is_dir() else Path(config.base).name
    header = {"model_name": f"local/{slug}", "base_model": base, "tags": [kind, "mteb-beyond", "tcr-bench"]}
    how = "LoRA, merged" if config.lora is not None else "all weights"
    scores = ", ".join(f"{name} {value:.4f}" for name, value in epoch.scores[chosen_on].items())
    text = (
        f"# {slug}\n\n{base} trained on {config.name} ({how}; learning rate {run.rate:g}, seed {run.seed}, epoch "
        f"{epoch.number} of {config.epochs}) with `mteb-beyond tcr train`; the best epoch on {chosen_on}: {scores}.\n"
    )
    write_text(folder / "README.md", f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n{text}")
