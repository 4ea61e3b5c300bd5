"""The whole of `mteb-beyond tcr train`: a configuration in, models and the matrix of their scores out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import transformers.utils.logging
from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from transformers.utils.logging import is_progress_bar_enabled

from evaluators.files import only_run
from tcr_tasks.training.collection import Collection, directory_of, read_collection
from tcr_tasks.training.config import TrainingConfig
from tcr_tasks.training.evaluating import EvaluationSet, evaluation_set, score
from tcr_tasks.training.examples import Examples, make_examples
from tcr_tasks.training.extra import require_extra
from tcr_tasks.training.identity import require_same_training
from tcr_tasks.training.matrix import Row, write_matrix
from tcr_tasks.training.running import HISTORY, GridRun, Training, grid, run_one, training_of
from tcr_tasks.training.selection import BEST, METRIC, History, folder_name

__all__ = ["Chosen", "choose", "train"]

logger = logging.getLogger(__name__)

RUNS = "runs"


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


def train(config: TrainingConfig, out: Path, *, only_score: bool = False) -> list[Path]:
    """Run what is missing of the grid, score base, chosen checkpoints and further models on every evaluation set.

    Args:
        config: the training, with places for all its data.
        out: where everything goes.
        only_score: train nothing; with no model trained yet, base and further models are scored.

    Returns:
        The files written: the matrix as Markdown and CSV.

    Raises:
        MissingExtraError: if a package that training needs is not installed.
        FileNotFoundError, DatasetError, ValueError: if data, models or folder cannot be used; the message says why.
        BlockingIOError: if another run uses the folder.
    """
    if not only_score:
        require_extra(lora=config.lora is not None)
    collections = _collections(config)
    sets = [evaluation_set(e, config, collections[e.name]) for e in config.evaluations]
    training = training_of(config)
    with only_run(out), _quiet_bars():
        require_same_training(config, collections, out)
        notes: list[str] = []
        if not only_score:
            notes = _train_grid(config, training, collections, sets, out)
        chosen = [c for data in sets if data.select for c in choose(config, data.name, out)]
        rows = _rows(config, training, chosen, sets, out)
        return write_matrix(out, rows, sets, config, notes)


@contextmanager
def _quiet_bars() -> Iterator[None]:
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


def choose(config: TrainingConfig, selection: str, out: Path) -> list[Chosen]:
    """For each seed the best checkpoint on a selection set, at the rate whose best R@1 has the highest mean over seeds.

    Of equal rates the lower one. Empty as long as no rate has finished with every seed.
    """
    found: dict[float, list[tuple[GridRun, int, float]]] = {}
    for run in grid(config):
        history = History.read(out / RUNS / run.label / HISTORY)
        best = history.best(selection) if history.finished else None
        if best is not None:
            found.setdefault(run.rate, []).append((run, best.number, best.scores[selection][METRIC]))
    whole = {rate: runs for rate, runs in found.items() if len(runs) == len(config.seeds)}
    if not whole:
        return []
    rate = max(sorted(whole), key=lambda r: float(np.mean([value for _, _, value in whole[r]])))
    place = folder_name(selection)
    return [Chosen(selection, run, epoch, out / RUNS / run.label / BEST / place) for run, epoch, _ in whole[rate]]


def _collections(config: TrainingConfig) -> dict[str, Collection]:
    """The dataset of each source and evaluation, by its name; each is read once."""
    read: dict[Path, Collection] = {}
    out: dict[str, Collection] = {}
    for data in (*config.sources, *config.evaluations):
        place = directory_of(data).resolve()
        if place not in read:
            read[place] = read_collection(place)
        out[data.name] = read[place]
    return out


def _train_grid(
    config: TrainingConfig,
    training: Training,
    collections: Mapping[str, Collection],
    sets: Sequence[EvaluationSet],
    out: Path,
) -> list[str]:
    selecting = [data for data in sets if data.select]
    notes: list[str] = []
    for run in grid(config):
        examples: Examples = make_examples(config, collections, run.seed)
        notes += [note for note in examples.notes if note not in notes]
        run_one(training, config, run, examples, selecting, out / RUNS / run.label)
    return notes


def _rows(
    config: TrainingConfig, training: Training, chosen: Sequence[Chosen], sets: Sequence[EvaluationSet], out: Path
) -> list[Row]:
    rows = [Row(training.baseline_name, "", None, None, "", score(training.baseline(), sets))]
    for one in chosen:
        place = one.folder.relative_to(out).as_posix()
        scores = score(training.ranker(training.load(str(one.folder))), sets)
        rows.append(Row(config.name, one.selection, one.run, one.epoch, place, scores))
    for further in config.models:
        scores = score(training.ranker(training.load(further.path)), sets)
        rows.append(Row(further.name, "", None, None, further.path, scores))
    return rows
