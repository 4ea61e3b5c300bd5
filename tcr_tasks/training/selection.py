"""After each epoch: score the model, keep the best state for each selection set, and write down how it went."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from evaluators.files import write_text
from tcr_tasks.training.evaluating import EvaluationSet, Ranker, Scores, score

__all__ = ["BEST", "Epoch", "History", "Selection", "folder_name"]

BEST = "best"
METRIC = "recall_at_1"


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
        finished: whether the run reached its end.
        epochs: by number.
    """

    path: Path
    finished: bool = False
    epochs: dict[int, Epoch] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> History:
        """What the file holds; nothing if it is not there."""
        if not path.is_file():
            return cls(path)
        kept = json.loads(path.read_text(encoding="utf-8"))
        return cls(path, kept["finished"], {e["number"]: Epoch(**e) for e in kept["epochs"]})

    def write(self) -> None:
        """Replace the file."""
        rows = [vars(self.epochs[number]) for number in sorted(self.epochs)]
        write_text(self.path, json.dumps({"finished": self.finished, "epochs": rows}, indent=1) + "\n")

    def best(self, name: str, up_to: int | None = None) -> Epoch | None:
        """The epoch with the highest R@1 on a selection set; of equal ones the earliest."""
        known = [self.epochs[n] for n in sorted(self.epochs) if up_to is None or n <= up_to]
        return max(known, key=lambda epoch: epoch.scores[name][METRIC], default=None)


def folder_name(name: str) -> str:
    """A selection set's name as a folder's."""
    return name.replace(" ", "_")


class Selection(TrainerCallback):
    """The callback of sentence-transformers' trainer that does it.

    It acts before the trainer saves the state that a killed run goes on from: what is done twice is done the same way.

    Args:
        sets: the selection sets.
        history: where epochs are written down.
        ranker: makes a model scorable.
        save: writes a model into a new folder, given the epoch and the selection set's name.
        label: what the progress lines begin with.
    """

    def __init__(
        self,
        sets: Sequence[EvaluationSet],
        history: History,
        ranker: Callable[[Any], Ranker],
        save: Callable[[Any, Path, Epoch, str], None],
        label: str,
    ) -> None:
        self.sets = sets
        self.history = history
        self.ranker = ranker
        self.save = save
        self.label = label

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Score and keep."""
        model, number = kwargs["model"], round(state.epoch)
        losses = [log["loss"] for log in state.log_history if "loss" in log and number - 1 < log["epoch"] <= number]
        loss = sum(losses) / len(losses) if losses else float("nan")
        model.eval()
        epoch = Epoch(number, loss, score(self.ranker(model), self.sets))
        self.history.epochs[number] = epoch
        for data in self.sets:
            if self.history.best(data.name, number) is epoch:
                self._keep(model, epoch, data.name)
        self.history.write()
        told = ", ".join(f"{name} R@1 {scores[METRIC]:.3f}" for name, scores in epoch.scores.items())
        print(f"{self.label}, epoch {number}: loss {loss:.4f}, {told}", file=sys.stderr, flush=True)

    def _keep(self, model: Any, epoch: Epoch, name: str) -> None:
        place = self.history.path.parent / BEST / folder_name(name)
        unfinished = place.with_name(f".{place.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        self.save(model, unfinished, epoch, name)
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
