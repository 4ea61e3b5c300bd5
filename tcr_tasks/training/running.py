"""One run of the grid: trained from its last kept state on, with the best checkpoint for each selection set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from transformers import TrainerCallback

from evaluators.training.cards import write_card
from evaluators.training.running import HISTORY, GridRun, run_resumably
from evaluators.training.selection import Epoch, History, Scores, Selection
from tcr_tasks.training.config import TrainingConfig
from tcr_tasks.training.evaluating import METRIC, EvaluationSet, Ranker, score
from tcr_tasks.training.examples import Examples

if TYPE_CHECKING:
    from transformers import Trainer

__all__ = ["Training", "run_one", "training_of"]


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

    def trainer_of(model: Any, arguments: dict[str, Any]) -> Trainer:
        return training.trainer(model, examples, arguments, run.seed)

    def scores_of(model: Any) -> dict[str, Scores]:
        return score(training.ranker(model), sets)

    history = History.read(folder / HISTORY, METRIC)
    selection = Selection(
        [data.name for data in sets], history, scores_of, partial(_save, training, config, run), run.label
    )
    return run_resumably(config, run, folder, selection, training.start, trainer_of, callbacks)


def _save(
    training: Training, config: TrainingConfig, run: GridRun, model: Any, folder: Path, epoch: Epoch, chosen_on: str
) -> None:
    training.save(model, folder)
    kind = "cross-encoder" if config.cross_encoder is not None else "sentence-transformers"
    how = "LoRA, merged" if config.lora is not None else "all weights"
    text = f"trained on {config.name} ({how}) with `mteb-beyond tcr train`"
    write_card(folder, config, config.name, run, epoch, chosen_on, [kind, "mteb-beyond", "tcr-bench"], text)
