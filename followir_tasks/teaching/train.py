"""The whole of `mteb-beyond followir train`: a configuration in, models and their scores out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import mteb
import pandas as pd
from transformers import TrainerCallback, set_seed

from evaluators.files import only_run, write_text
from evaluators.plugin.dataset import fingerprint
from evaluators.plugin.models import resolve_model
from evaluators.plugin.mteb_internals import wrapped_model
from evaluators.training.cards import write_card
from evaluators.training.extra import require_extra
from evaluators.training.grids import base_contents, choose, quiet_bars, require_same
from evaluators.training.running import HISTORY, RUNS, GridRun, grid, run_resumably
from evaluators.training.selection import Epoch, History, Scores, Selection
from followir_tasks.tasks import FollowIRSample, FollowIRTask
from followir_tasks.teaching.config import Evaluation, TeachingConfig
from followir_tasks.teaching.instances import Instances, read_instances
from followir_tasks.teaching.kinds import Teaching, teaching_of

__all__ = ["METRIC", "score", "task_of", "train"]

METRIC = "p-MRR"
_SCORES = (METRIC, "followir_score", "followir_score_changed_qrels")
REPORT, TABLE, INSTANCES = "report.md", "scores.csv", "instances.json"
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
    teaching = teaching_of(config)
    tasks = {evaluation.name: task_of(evaluation) for evaluation in config.evaluations}
    with only_run(out), quiet_bars():
        require_same(out, _fixed(config), base_contents({"base": config.base}))
        set_seed(config.seeds[0])  # of a new head
        rows = [_row("— (base)", None, None, score(teaching.scored(teaching.start()), tasks, config))]
        instances = {seed: _instances(config, seed) for seed in config.seeds}
        write_text(out / INSTANCES, json.dumps({s: i.counts for s, i in instances.items()}, indent=1) + "\n")
        for run in grid(config):
            _run(config, teaching, run, instances[run.seed], tasks, out / RUNS / run.label, callbacks)
        for selection in _selecting(config):
            for chosen in choose(config, selection, out, METRIC):
                model = resolve_model(str(chosen.folder)).load_model()
                label = f"best on {selection}, epoch {chosen.epoch}"
                rows.append(_row(label, chosen.run, chosen.folder, score(model, tasks, config)))
        return _write(config, out, rows, instances)


def task_of(evaluation: Evaluation) -> FollowIRTask:
    """The task that scores an evaluation's data, loaded and checked."""
    task = FollowIRSample()
    task.data_path = evaluation.data
    task.load_data()
    return task


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
        out[name] = {metric: float(scores[metric]) for metric in _SCORES}
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


def _instances(config: TeachingConfig, seed: int) -> Instances:
    out = Instances()
    for path in config.train:
        out.add(read_instances(path, seed, config.most_per_pair))
    return out


def _fixed(config: TeachingConfig) -> dict[str, Any]:
    """What the models of a folder have in common."""
    fixed: dict[str, Any] = json.loads(config.model_dump_json(exclude=_FREE))
    prompt = config.answering.prompt
    fixed["answering"]["prompt"] = None if prompt is None else prompt.read_text(encoding="utf-8-sig")
    fixed["train"] = [_content(path) for path in config.train]
    fixed["selection"] = {e.name: _content(e.data) for e in config.evaluations if e.select}
    return fixed


def _content(path: Path) -> str:
    return fingerprint(path.parent, [path.name]) if path.is_file() else fingerprint(path)


def _row(model: str, run: GridRun | None, folder: Path | None, scores: Mapping[str, Scores]) -> dict[str, Any]:
    return {
        "model": model,
        "learning rate": None if run is None else run.rate,
        "seed": None if run is None else run.seed,
        "folder": "" if folder is None else str(folder),
        "scores": scores,
    }


def _write(
    config: TeachingConfig, out: Path, rows: Sequence[Mapping[str, Any]], instances: Mapping[int, Instances]
) -> list[Path]:
    tidy = [
        {
            **{key: row[key] for key in ("model", "learning rate", "seed")},
            "folder": row["folder"] and Path(row["folder"]).relative_to(out).as_posix(),
            "evaluation": name,
            **scores,
        }
        for row in rows
        for name, scores in row["scores"].items()
    ]
    table = pd.DataFrame(tidy)
    write_text(out / TABLE, table.to_csv(index=False))
    plain = table.drop(columns="folder").astype(object)
    shown = plain.where(plain.notna(), "—").to_markdown(index=False, floatfmt=("", "g", ".0f", "", ".4f", ".4f", ".4f"))
    counts = "\n".join(
        f"- seed {seed}: " + ", ".join(f"{n} {name[2:].replace('_', ' ')}" for name, n in found.counts.items())
        for seed, found in instances.items()
    )
    text = (
        f"# {config.name}\n\n{config.base} as {config.kind}, on\n\n{counts}\n\n{shown}\n\nScores on a set that "
        "checkpoints are chosen on are too high by that choice; a held-out number comes from another set.\n"
    )
    write_text(out / REPORT, text)
    return [out / REPORT, out / TABLE]
