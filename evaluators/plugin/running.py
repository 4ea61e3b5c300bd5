"""Running models on tasks so that no stale result answers, and no variant or model mixes with another."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mteb
from mteb.abstasks import AbsTask
from mteb.cache import ResultCache
from mteb.models import ModelMeta
from mteb.results import ModelResult, TaskResult

from evaluators.plugin.doubt import FAILED_CALLS
from evaluators.plugin.judged import JUDGE_KEY, JudgedTask, judge_reason
from evaluators.plugin.models import identified, with_variant
from evaluators.plugin.mteb_internals import with_precision, wrapped_model
from evaluators.plugin.results import read_provenance
from evaluators.plugin.task import RECORD_KEY, BeyondTask

logger = logging.getLogger(__name__)

# Strategies of mteb that forbid computing anything new over an existing result.
FROZEN_STRATEGIES = ("never", "only-cache")


class StaleResultError(RuntimeError):
    """A cached result does not belong to the data, metric or options at hand, and must not be replaced."""


def stale_reason(task: BeyondTask, result: TaskResult) -> str | None:
    """Why a cached result is not what the task would compute now, or not whole; ``None`` if it still holds.

    mteb answers from a cached file whatever dataset revision, metric or task option it came from.
    """
    revision = task.current_revision()
    if result.dataset_revision != revision:
        return f"its data were {result.dataset_revision!r} and are now {revision!r}"
    now = task.record()
    for split, subsets in result.scores.items():
        for scores in subsets:
            record = scores.get(RECORD_KEY)
            if not isinstance(record, dict):
                return f"split {split!r} carries no record of metric version and options"
            if record.get("metric_version") != now["metric_version"]:
                return f"its metric version was {record.get('metric_version')} and is now {now['metric_version']}"
            if record.get("options") != now["options"]:
                return f"its options were {record.get('options')} and are now {now['options']}"
            if task.metadata.main_score not in scores:
                return f"it lacks the main score {task.metadata.main_score!r}"
            if scores.get(FAILED_CALLS):
                return f"{scores[FAILED_CALLS]:.0f} calls to a language model had failed"
            if isinstance(task, JudgedTask) and (reason := judge_reason(task, scores, record)):
                return reason
    return None


def set_aside_stale_results(
    tasks: Iterable[AbsTask],
    meta: ModelMeta,
    cache: ResultCache,
    overwrite_strategy: str,
    prediction_folder: Path | None = None,
) -> None:
    """Move results that no longer hold out of mteb's way, so that it runs again; nothing is deleted.

    A result is also set aside when predictions are asked for and not there, since mteb would answer from the result
    without writing them.

    Raises:
        StaleResultError: if the overwrite strategy forbids running again.
    """
    for task in tasks:
        if not isinstance(task, BeyondTask) or overwrite_strategy == "always":
            continue
        name = task.metadata.name
        path = cache.get_task_result_path(name, meta)
        if not path.is_file():
            continue
        try:
            reason = stale_reason(task, TaskResult.from_disk(path))
        except (ValueError, TypeError, AttributeError, KeyError) as error:  # cut short, or no result at all
            reason = f"it cannot be read ({type(error).__name__}: {error})"
        if reason is None and prediction_folder is not None:
            wanted = prediction_folder / task.prediction_file_name
            # Rankings do not depend on a judge, so predictions hold whoever judged them.
            saved_with = _without_judge(read_provenance(task.per_query_file(prediction_folder)))
            if not wanted.is_file():
                reason = f"predictions were asked for and {wanted} does not exist"
            elif saved_with != _without_judge(task.provenance()):
                reason = f"predictions were asked for, and those at {wanted} come from other data, options or versions"
        if reason is None:
            continue
        if overwrite_strategy in FROZEN_STRATEGIES:
            raise StaleResultError(
                f"{path}: this result does not hold any more ({reason}), and the overwrite strategy "
                f"{overwrite_strategy!r} forbids replacing it; use 'only-missing' or 'always'"
            )
        kept = path.with_suffix(f".json.stale-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        path.rename(kept)
        logger.warning("%s is run again: %s. The old result is kept as %s", name, reason, kept)


def _without_judge(provenance: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in provenance.items() if key != JUDGE_KEY}


def prediction_folder_of(base: Path, meta: ModelMeta) -> Path:
    """The folder for one model's predictions below ``base``; mteb's file names do not tell models apart."""
    folder = base / meta.model_name_as_path() / str(meta.revision)
    return folder / meta.experiment_name if meta.experiment_name else folder


def evaluate(
    model: Any,
    tasks: AbsTask | Iterable[AbsTask],
    *,
    output_folder: str | Path = "results",
    prediction_folder: str | Path | None = None,
    overwrite_strategy: str = "only-missing",
    **kwargs: Any,
) -> ModelResult:
    """``mteb.evaluate``, made safe for this project's tasks.

    Cached results that no longer hold are computed again, task options are recorded in the model's record (so that
    their results are filed apart), predictions go into a folder of the model's own, and a model without a name or
    revision gets one from its weights.

    Args:
        model: what ``mteb.evaluate`` takes.
        tasks: tasks with equal options.
        output_folder: mteb's result folder.
        prediction_folder: where predictions and per-query tables go, below a folder per model.
        overwrite_strategy: mteb's.
        **kwargs: handed to ``mteb.evaluate``.

    Raises:
        ValueError: if the tasks' options differ, so that one record cannot state them.
        StaleResultError: as :func:`set_aside_stale_results`.
    """
    listed: Sequence[AbsTask] = [tasks] if isinstance(tasks, AbsTask) else list(tasks)
    model = _for_tasks(identified(model), listed)
    meta = with_precision(wrapped_model(model)[1], kwargs.get("encode_kwargs") or {})
    cache = ResultCache(output_folder)
    folder = None if prediction_folder is None else prediction_folder_of(Path(prediction_folder), meta)
    set_aside_stale_results(listed, meta, cache, overwrite_strategy, folder)
    for task in listed:
        if isinstance(task, JudgedTask):
            task.report_folder = cache.get_task_result_path(task.metadata.name, meta).parent
    return mteb.evaluate(
        model, listed, cache=cache, prediction_folder=folder, overwrite_strategy=overwrite_strategy, **kwargs
    )


def _for_tasks(model: Any, tasks: Sequence[AbsTask]) -> Any:
    ours = [task for task in tasks if isinstance(task, BeyondTask)]
    variants = [task.variant() for task in ours]
    others = len(ours) < len(tasks)
    if any(v != variants[0] for v in variants) or (others and any(variants)):
        told = {task.metadata.name: task.variant() for task in ours}
        raise ValueError(f"tasks with different options need separate runs: {told}")
    return with_variant(model, ours[0]) if ours else wrapped_model(model)[0]
