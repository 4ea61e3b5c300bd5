"""After each epoch: score the model, keep the best state for each selection set, and write down how it went."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from evaluators.files import write_text

__all__ = ["BEST", "BEYOND_MEASURE", "Epoch", "History", "Scores", "Selection", "folder_name"]

BEST = "best"
# No model has weights as large as this: what it computes with them overflows, or soon will.
BEYOND_MEASURE = 1e6
# Metric -> value; a metric that is undefined is absent.
Scores = dict[str, float]


@dataclass(frozen=True)
class Epoch:
    """One epoch.

    Attributes:
        number: from 1.
        loss: mean training loss over its steps.
        scores: selection set -> scores at its end.
    """

    number: int
    loss: float
    scores: dict[str, Scores]


@dataclass
class History:
    """The epochs of a run, in a file beside its models.

    Attributes:
        path: the file.
        metric: by which the best epoch is chosen.
        finished: whether the run reached its end.
        epochs: by number.
        diverged: the epoch after which a weight was not finite or beyond :data:`BEYOND_MEASURE`, which ends the run.
    """

    path: Path
    metric: str
    finished: bool = False
    epochs: dict[int, Epoch] = field(default_factory=dict)
    diverged: int | None = None

    @classmethod
    def read(cls, path: Path, metric: str) -> History:
        """What the file holds; nothing if it is not there."""
        if not path.is_file():
            return cls(path, metric)
        kept = json.loads(path.read_text(encoding="utf-8"))
        epochs = {e["number"]: Epoch(**e) for e in kept["epochs"]}
        return cls(path, metric, kept["finished"], epochs, kept.get("diverged"))

    def write(self) -> None:
        """Replace the file."""
        rows = [vars(self.epochs[number]) for number in sorted(self.epochs)]
        content: dict[str, Any] = {"finished": self.finished, "epochs": rows}
        if self.diverged is not None:
            content["diverged"] = self.diverged
        write_text(self.path, json.dumps(content, indent=1) + "\n")

    def best(self, name: str, up_to: int | None = None) -> Epoch | None:
        """The epoch with the highest metric on a selection set; of equal ones the earliest."""
        known = [self.epochs[n] for n in sorted(self.epochs) if up_to is None or n <= up_to]
        return max(known, key=lambda epoch: epoch.scores[name][self.metric], default=None)


def folder_name(name: str) -> str:
    """A selection set's name as a folder's."""
    return name.replace(" ", "_")


@contextmanager
def _in_full_precision(model: Any) -> Iterator[None]:
    """Without the casting that accelerate puts around a model in training: models are saved and scored without it."""
    casting, own = model.__dict__.get("forward"), model.__dict__.get("_original_forward")
    if casting is None or own is None:
        yield
        return
    model.forward = own
    try:
        yield
    finally:
        model.forward = casting


class Selection(TrainerCallback):
    """The callback of transformers' trainers that does it.

    It acts before the trainer saves the state that a killed run goes on from: what is done twice is done the same way.
    A state at the end of an epoch is put off until the epoch is scored; else a run that was killed while it was scored
    would go on with the next epoch.

    Args:
        sets: names of the selection sets.
        history: where epochs are written down.
        score: a model's scores on each selection set.
        save: writes a model into a new folder, given the epoch and the selection set's name.
        label: what the progress lines begin with.
    """

    def __init__(
        self,
        sets: Sequence[str],
        history: History,
        score: Callable[[Any], dict[str, Scores]],
        save: Callable[[Any, Path, Epoch, str], None],
        label: str,
    ) -> None:
        self.sets = sets
        self.history = history
        self.score = score
        self.save = save
        self.label = label

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Put off a state at the end of an epoch."""
        if float(state.epoch).is_integer():
            control.should_save = False

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Score and keep; a training that diverged ends here, unscored."""
        model, number = kwargs["model"], round(state.epoch)
        losses = [log["loss"] for log in state.log_history if "loss" in log and number - 1 < log["epoch"] <= number]
        loss = sum(losses) / len(losses) if losses else float("nan")
        model.eval()
        if not all((parameter.abs() < BEYOND_MEASURE).all() for parameter in model.parameters()):
            self.history.diverged = number
            self.history.write()
            control.should_training_stop, control.should_save = True, False
            return
        with _in_full_precision(model):
            epoch = Epoch(number, loss, self.score(model))
        self.history.epochs[number] = epoch
        for name in self.sets:
            if self.history.best(name, number) is epoch:
                self._keep(model, epoch, name)
        self.history.write()
        control.should_save = True
        metric = self.history.metric
        told = ", ".join(f"{name} {metric} {scores[metric]:.3f}" for name, scores in epoch.scores.items())
        print(f"{self.label}, epoch {number}: loss {loss:.4f}, {told}", file=sys.stderr, flush=True)

    def _keep(self, model: Any, epoch: Epoch, name: str) -> None:
        place = self.history.path.parent / BEST / folder_name(name)
        unfinished = place.with_name(f".{place.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        self.save(model, unfinished, epoch, name)
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
