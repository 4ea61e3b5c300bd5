"""The whole of `mteb-beyond tcr train`: a configuration in, models and the matrix of their scores out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluators.files import only_run
from evaluators.training.doubts import Size, not_above, too_few, trained_on
from evaluators.training.extra import require_extra
from evaluators.training.grids import Chosen, choose, diverged, without_model_bars
from evaluators.training.running import RUNS, grid, require_precision
from tcr_tasks.training.collection import Collection, directory_of, read_collection
from tcr_tasks.training.config import TrainingConfig
from tcr_tasks.training.evaluating import METRIC, EvaluationSet, evaluation_set, score
from tcr_tasks.training.examples import Examples, make_examples
from tcr_tasks.training.identity import require_same_training
from tcr_tasks.training.matrix import Row, write_matrix
from tcr_tasks.training.running import Training, run_one, training_of
from tcr_tasks.training.splits import part_of

__all__ = ["train"]

logger = logging.getLogger(__name__)


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
        require_precision(config)
    collections = _collections(config)
    sets = [evaluation_set(e, config, collections[e.name]) for e in config.evaluations]
    training = training_of(config)
    with only_run(out), without_model_bars():
        require_same_training(config, collections, out)
        notes: list[str] = []
        if not only_score:
            notes = _train_grid(config, training, collections, sets, out)
        gone = diverged(config, out, METRIC)
        chosen = [c for data in sets if data.select for c in choose(config, data.name, out, METRIC)]
        rows = _rows(config, training, chosen, sets, out)
        sizes = _sizes(config, collections, sets)
        doubts = gone + _doubts(rows, sizes, training.baseline_name)
        for text in doubts:
            logger.warning("%s", text)
        return write_matrix(out, rows, sets, sizes, config, notes, doubts)


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
    rows = [Row(f"— ({training.baseline_name})", "", None, None, "", score(training.baseline(), sets))]
    for one in chosen:
        place = one.folder.relative_to(out).as_posix()
        scores = score(training.ranker(training.load(str(one.folder))), sets)
        rows.append(Row(config.name, one.selection, one.run, one.epoch, place, scores))
    for further in config.models:
        scores = score(training.ranker(training.load(further.path)), sets)
        rows.append(Row(further.name, "", None, None, further.path, scores))
    return rows


def _sizes(
    config: TrainingConfig, collections: Mapping[str, Collection], sets: Sequence[EvaluationSet]
) -> dict[str, Size]:
    """The questions of each evaluation set, and how many of them a source of the training data has, too."""
    learnt = {
        problem.text.casefold()
        for source in config.sources
        for problem in part_of(collections[source.name], source.part, config.split)
    }
    texts = {name: {problem.id: problem.text for problem in found.problems} for name, found in collections.items()}
    return {
        data.name: Size(len(data.queries), sum(texts[data.name][query].casefold() in learnt for query in data.queries))
        for data in sets
    }


def _doubts(rows: Sequence[Row], sizes: Mapping[str, Size], baseline_name: str) -> list[str]:
    """Sentences on models no better than what they are compared with, and on sets that are small or trained on."""
    baseline, *others = rows
    out = []
    for row in others:
        if row.run is not None:
            model = f"The checkpoint chosen on {row.selection} ({row.run.told}, epoch {row.epoch})"
            worse = not_above(model, METRIC, "R@1", row.scores, f"the {baseline_name}", baseline.scores)
            out.append(worse)
    out += [too_few(sizes, "questions"), trained_on(sizes, "questions")]
    return [text for text in out if text]
