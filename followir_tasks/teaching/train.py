"""The whole of `mteb-beyond followir train`: a configuration in, models and their scores out."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import mteb
from transformers import TrainerCallback, set_seed

from evaluators.files import only_run
from evaluators.plugin.dataset import fingerprint
from evaluators.plugin.models import resolve_model
from evaluators.plugin.mteb_internals import wrapped_model
from evaluators.training.cards import write_card
from evaluators.training.doubts import Size
from evaluators.training.extra import require_extra
from evaluators.training.grids import base_contents, choose, diverged, require_same, without_model_bars
from evaluators.training.running import HISTORY, RUNS, GridRun, grid, require_precision, run_resumably
from evaluators.training.selection import Epoch, History, Scores, Selection
from followir_tasks.construction.exclusion import plain
from followir_tasks.ids import parse_query_id
from followir_tasks.tasks import FollowIRSample, FollowIRTask
from followir_tasks.teaching.config import Data, Evaluation, TeachingConfig
from followir_tasks.teaching.instances import Instances, read_instances
from followir_tasks.teaching.kinds import Teaching, teaching_of
from followir_tasks.teaching.lengths import n_cut
from followir_tasks.teaching.parts import PARTS, place_of, with_parts
from followir_tasks.teaching.report import METRIC, SCORES, Row, cut_texts, doubts, write_instances, write_report

__all__ = ["METRIC", "score", "size_of", "task_of", "train"]

logger = logging.getLogger(__name__)

# What may change between two calls on one folder: what is scored, not what is trained.
_FREE = {"evaluations", "encode_batch_size", "checkpoint_steps", "name", "train"}


def train(config: TeachingConfig, out: Path, callbacks: Sequence[TrainerCallback] = ()) -> list[Path]:
    """Run what is missing of the grid, and score the base and the chosen checkpoints on every evaluation set.

    Args:
        config: the training.
        out: where everything goes.
        callbacks: further ones for the trainers.

    Returns:
        The files written: report and table of scores.

    Raises:
        MissingExtraError: if a package that training needs is not installed.
        FileNotFoundError, DatasetError, ValueError: if data, base or folder cannot be used; the message says why.
        BlockingIOError: if another run uses the folder.
    """
    require_extra(lora=config.lora is not None)
    require_precision(config)
    teaching = teaching_of(config)
    with only_run(out), without_model_bars():
        require_same(out, _fixed(config), base_contents({"base": config.base}))
        given, config = config, with_parts(config, out / PARTS)
        tasks = {evaluation.name: task_of(evaluation) for evaluation in config.evaluations}
        set_seed(config.seeds[0])  # of a new head
        base = teaching.scored(teaching.start())
        instances = {seed: _instances(config, seed, base) for seed in config.seeds}
        write_instances(out, instances)
        sizes = {name: size_of(task, instances) for name, task in tasks.items()}
        cut = [text for text in [cut_texts(instances)] if text]
        _warn(cut)  # before the training, which may not be worth its while
        rows = [Row("— (base)", None, None, score(base, tasks, config))]
        for run in grid(config):
            _run(config, teaching, run, instances[run.seed], tasks, out / RUNS / run.label, callbacks)
        found = diverged(config, out, METRIC)
        for selection in _selecting(config):
            for chosen in choose(config, selection, out, METRIC):
                model = resolve_model(str(chosen.folder)).load_model()
                label = f"best on {selection}, epoch {chosen.epoch}"
                rows.append(Row(label, chosen.run, chosen.folder, score(model, tasks, config)))
        found += doubts(rows, sizes)
        _warn(found)
        return write_report(given, out, rows, sizes, instances, [*cut, *found])


def _warn(sentences: Sequence[str]) -> None:
    for text in sentences:
        logger.warning("%s", text)


def task_of(evaluation: Evaluation) -> FollowIRTask:
    """The task that scores an evaluation's data, loaded and checked."""
    task = FollowIRSample()
    task.data_path = place_of(evaluation)
    task.load_data()
    return task


def size_of(task: FollowIRTask, instances: Mapping[int, Instances]) -> Size:
    """How many topics have a changed document, so that p-MRR is a mean over them, and how many were trained on.

    Args:
        task: an evaluation's, loaded.
        instances: what is trained on, by seed.
    """
    assert task.data is not None
    topics = {topic for topic, documents in task.data.side["qrel_diff"].items() if documents}
    queries_of: defaultdict[str, set[str]] = defaultdict(set)  # by instruction
    for query, instruction in {(row.query, row.instruction) for found in instances.values() for row in found.rows}:
        queries_of[plain(instruction)].add(plain(query))
    queries = set().union(*queries_of.values())
    # An instruction on several queries ("recent ones only") does not tell that its topic is known.
    narratives = {instruction for instruction, asked in queries_of.items() if len(asked) == 1 and instruction}
    known = {
        parse_query_id(row["id"])[0]
        for row in task.data.queries
        if plain(row["text"]) in queries or plain(row["instruction"] or "") in narratives
    }
    return Size(len(topics), len(topics & known))


def score(model: Any, tasks: Mapping[str, FollowIRTask], config: TeachingConfig) -> dict[str, Scores]:
    """Evaluation set -> p-MRR and the score of the original queries against either judgements.

    Args:
        model: what ``mteb.evaluate`` takes.
        tasks: by the evaluation's name.
        config: the training.
    """
    out: dict[str, Scores] = {}
    for name, task in tasks.items():
        result = mteb.evaluate(
            wrapped_model(model)[0],
            task,
            cache=None,
            encode_kwargs={"batch_size": config.encode_batch_size, "show_progress_bar": False},
            show_progress_bar=False,
        )
        scores = result.task_results[0].scores["test"][0]
        out[name] = {metric: float(scores[metric]) for metric in SCORES}
    return out


def _run(
    config: TeachingConfig,
    teaching: Teaching,
    run: GridRun,
    instances: Instances,
    tasks: Mapping[str, FollowIRTask],
    folder: Path,
    callbacks: Sequence[TrainerCallback],
) -> None:
    def scores_of(model: Any) -> dict[str, Scores]:
        return score(teaching.scored(model), {name: tasks[name] for name in _selecting(config)}, config)

    def trainer_of(model: Any, arguments: dict[str, Any]) -> Any:
        return teaching.trainer(model, instances.rows, arguments)

    history = History.read(folder / HISTORY, METRIC)
    save = partial(_save, config, teaching, run, len(instances.rows))
    selection = Selection(_selecting(config), history, scores_of, save, run.label)
    run_resumably(config, run, folder, selection, teaching.start, trainer_of, callbacks)


def _save(
    config: TeachingConfig,
    teaching: Teaching,
    run: GridRun,
    n: int,
    model: Any,
    folder: Path,
    epoch: Epoch,
    chosen_on: str,
) -> None:
    teaching.save(model, folder)
    weights = "LoRA" if config.lora is not None else "all weights"
    how = f"taught to follow instructions on {n} instances ({weights}) with `mteb-beyond followir train`"
    write_card(folder, config, config.name, run, epoch, chosen_on, teaching.tags, how)


def _selecting(config: TeachingConfig) -> list[str]:
    return [evaluation.name for evaluation in config.evaluations if evaluation.select]


def _instances(config: TeachingConfig, seed: int, base: Any) -> Instances:
    out = Instances()
    for data in config.train:
        out.add(read_instances(place_of(data), seed, config.most_per_pair))
    out.counts["n_cut_to_fit"] = n_cut(base, out.rows)
    return out


def _fixed(config: TeachingConfig) -> dict[str, Any]:
    """What the models of a folder have in common."""
    fixed: dict[str, Any] = json.loads(config.model_dump_json(exclude=_FREE))
    prompt = config.answering.prompt
    fixed["answering"]["prompt"] = None if prompt is None else prompt.read_text(encoding="utf-8-sig")
    fixed["train"] = [_content(data) for data in config.train]
    fixed["selection"] = {e.name: _content(e) for e in config.evaluations if e.select}
    return fixed


def _content(data: Data) -> str:
    path = place_of(data)
    found = fingerprint(path.parent, [path.name]) if path.is_file() else fingerprint(path)
    return found if data.part == "all" else f"{found}, {data.part}"
