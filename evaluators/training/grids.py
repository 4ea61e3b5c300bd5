"""All runs of a training together: which models are chosen, and a folder that keeps to one training."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import transformers.utils.logging
from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from transformers.utils.logging import is_progress_bar_enabled

from evaluators.files import write_text
from evaluators.plugin.models import weights_revision
from evaluators.training.config import Schedule
from evaluators.training.running import HISTORY, RUNS, GridRun, grid
from evaluators.training.selection import BEST, BEYOND_MEASURE, History, folder_name

__all__ = ["Chosen", "base_contents", "choose", "diverged", "require_same", "without_model_bars"]

CONFIG = "config.json"
_CONTENTS = "contents"


@dataclass(frozen=True)
class Chosen:
    """The best checkpoint of a seed on a selection set, at the learning rate that is best over all seeds.

    Attributes:
        selection: the selection set.
        run: learning rate and seed.
        epoch: from 1.
        folder: where the model is.
    """

    selection: str
    run: GridRun
    epoch: int
    folder: Path


def choose(schedule: Schedule, selection: str, out: Path, metric: str) -> list[Chosen]:
    """For each seed the best checkpoint on a selection set, at the rate whose bests have the highest mean over seeds.

    Of equal rates the lower one. Empty as long as no rate has finished with every seed. Where seeds of every rate
    diverged before they had a model, rates are compared by their other seeds.
    """
    found: dict[float, list[tuple[GridRun, int, float]]] = {}
    n_finished: Counter[float] = Counter()
    for run in grid(schedule):
        history = History.read(out / RUNS / run.label / HISTORY, metric)
        n_finished[run.rate] += history.finished
        best = history.best(selection) if history.finished else None
        if best is not None:
            found.setdefault(run.rate, []).append((run, best.number, best.scores[selection][metric]))
    n_seeds = len(schedule.seeds)
    finished = {rate: runs for rate, runs in found.items() if n_finished[rate] == n_seeds}
    whole = {rate: runs for rate, runs in finished.items() if len(runs) == n_seeds} or finished
    if not whole:
        return []
    rate = max(sorted(whole), key=lambda r: float(np.mean([value for _, _, value in whole[r]])))
    place = folder_name(selection)
    return [Chosen(selection, run, epoch, out / RUNS / run.label / BEST / place) for run, epoch, _ in whole[rate]]


def diverged(schedule: Schedule, out: Path, metric: str) -> list[str]:
    """A sentence on each run that diverged.

    Raises:
        ValueError: if all did before the end of their first epoch, so that there is no model.
    """
    histories = {run: History.read(out / RUNS / run.label / HISTORY, metric) for run in grid(schedule)}
    found = [
        f"The run with {run.told} diverged: after epoch {history.diverged} its weights are not finite, or beyond "
        f"{BEYOND_MEASURE:g}; take a smaller learning rate"
        for run, history in histories.items()
        if history.diverged is not None
    ]
    if found and not any(history.epochs for history in histories.values()):
        raise ValueError("; ".join(found))
    return found


def require_same(out: Path, fixed: Mapping[str, Any], contents: Mapping[str, str]) -> None:
    """Remember what a folder's models are trained with.

    Args:
        out: the folder.
        fixed: settings and revisions of data, as JSON values.
        contents: a revision of what stands under a name on the disk, such as the weights of a base in a directory.

    Raises:
        ValueError: if it holds models of another training, whose numbers would stand beside these. More learning rates
            and seeds may be asked for: what is there holds.
    """
    path = out / CONFIG
    begun = any((out / RUNS).glob("*/*"))
    if path.is_file() and begun:
        before = json.loads(path.read_text(encoding="utf-8"))
        # More of the grid may be asked for: what is there holds.
        changed = [k for k in fixed if before.get(k) != fixed[k] and k not in ("learning_rates", "seeds")]
        changed += _other_contents(before.get(_CONTENTS, {}), contents, changed)
        if changed:
            raise ValueError(
                f"{out} holds models trained with another configuration (differing: {', '.join(changed)}); name "
                "another folder with --out"
            )
    write_text(path, json.dumps({**fixed, _CONTENTS: dict(contents)}, indent=1) + "\n")


def base_contents(models: Mapping[str, str | None]) -> dict[str, str]:
    """A revision of the weights of each model that is a directory, for :func:`require_same`.

    Args:
        models: the setting's name -> a directory, or a name that mteb or the hub knows.
    """
    places = {name: Path(given).expanduser() for name, given in models.items() if given is not None}
    return {name: weights_revision(place) for name, place in places.items() if place.is_dir()}


def _other_contents(before: Mapping[str, str], now: Mapping[str, str], known: Sequence[str]) -> list[str]:
    """What has another content under the same name; another name is told already."""
    names = [n for n in {**before, **now} if before.get(n) != now.get(n) and n.split(".")[0] not in known]
    return [f"the content of {name}" + ("" if name in before else " (not recorded there)") for name in names]


@contextmanager
def without_model_bars() -> Iterator[None]:
    """Without the bars of transformers and datasets, one for each model that is read or written."""
    transformers_bars: Any = transformers.utils.logging  # without types
    before = are_progress_bars_disabled(), not is_progress_bar_enabled()
    transformers_bars.disable_progress_bar()
    disable_progress_bars()
    try:
        yield
    finally:
        if not before[0]:
            enable_progress_bars()
        if not before[1]:
            transformers_bars.enable_progress_bar()
