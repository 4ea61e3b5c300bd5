"""Results as entries of a model-index and of ``.eval_results``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from huggingface_hub import EvalResult, EvalResultEntry
from mteb.abstasks import AbsTask

from evaluators.plugin.judged import JUDGE_KEY
from evaluators.plugin.task import RECORD_KEY
from evaluators.plugin.variants import variant_words
from hub_cards.model_card_measures import Scored, known_task, metric_id, scored
from hub_cards.results import Result
from hub_cards.submission_scores import result_findings

SOURCE_NAME = "MTEB with mteb-beyond"
SOURCE_URL = "https://github.com/embeddings-benchmark/mteb/"


def task_of(result: Result) -> AbsTask:
    """The task of a result that is fit for a card.

    Raises:
        ValueError: naming file and score, if nothing knows the task, or ``check-submission`` would refuse the scores.
    """
    task = known_task(result.task.task_name)
    if task is None:
        raise ValueError(
            f"{result.path}: no task is called {result.task.task_name!r}; import the package that has it, or name "
            "other tasks with -t"
        )
    for finding in result_findings(result.path, result.task, result.variant):
        if finding.must_be_fixed:
            raise ValueError(f"{result.path}: {finding.problem}; {finding.remedy}, or name other tasks with -t")
    return task


def on_pinned_data(result: Result, task: AbsTask) -> bool:
    """Whether the result is of the data that the task names."""
    return bool(result.task.dataset_revision == type(task).metadata.revision)


# ---- model-index -------------------------------------------------------------------------------------------------


def eval_results(results: Iterable[Result]) -> list[EvalResult]:
    """The entries of a model-index, on the scale of the result files.

    The format has no field for an interval, a chance level or a scale: they stand in ``metric_args`` and, in words, in
    ``metric_name``. ``dataset_config`` holds the task's name, since huggingface_hub joins entries that differ neither
    in that nor in dataset, split and revision, and several tasks share a dataset.

    Raises:
        ValueError: as :func:`task_of`.
    """
    return [entry for result in results for entry in _eval_results(result)]


def _eval_results(result: Result) -> list[EvalResult]:
    task = task_of(result)
    metadata = type(task).metadata
    told = _told(result, task)
    pinned = on_pinned_data(result, task)
    out: list[EvalResult] = []
    for split, blocks in result.task.scores.items():
        for block in blocks:
            subset = block["hf_subset"]
            record = _mapping(block, RECORD_KEY)
            for score in scored(task, block):
                out.append(
                    EvalResult(
                        task_type=metadata._hf_task_type()[0],
                        task_name=metadata.type,
                        dataset_type=metadata.dataset["path"] if pinned else f"local/{metadata.name}",
                        dataset_name=f"{metadata.name} ({', '.join([subset, *told])})",
                        dataset_config="/".join([metadata.name, *([] if subset == "default" else [subset]), *told]),
                        dataset_split=split,
                        dataset_revision=result.task.dataset_revision,
                        dataset_args=_run_args(result, record),
                        metric_type=score.measure.key,
                        metric_name=score.words,
                        metric_value=score.value,
                        metric_args=_metric_args(score, record),
                        source_name=SOURCE_NAME,
                        source_url=SOURCE_URL,
                    )
                )
    return out


def _told(result: Result, task: AbsTask) -> list[str]:
    """What tells a result from the plain model's on the task's own data."""
    data = [] if on_pinned_data(result, task) else [f"other data, revision {result.task.dataset_revision[:12]}"]
    return [*data, *filter(None, [variant_words(result.variant)])]


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A part of our record, which is empty in results that are not ours."""
    part = data.get(key)
    return part if isinstance(part, Mapping) else {}


def _run_args(result: Result, record: Mapping[str, Any]) -> dict[str, Any]:
    versions = {"mteb": result.task.mteb_version}
    if record:
        versions |= {"mteb_beyond": record.get("version"), "metric_version": record.get("metric_version")}
    return {"model_revision": result.revision, **versions} | (
        {"settings": {key: str(value) for key, value in result.variant.items()}} if result.variant else {}
    )


def _metric_args(score: Scored, record: Mapping[str, Any]) -> dict[str, Any]:
    args: dict[str, Any] = {"scale": score.scale}
    if score.low is not None and score.high is not None:
        args["confidence_interval"] = {"level": 0.95, "low": score.low, "high": score.high}
    if score.chance is not None:
        args["chance"] = score.chance
    if score.measure.judged:
        # All that the scores depend on; where the judge was reached is nobody's business.
        args[JUDGE_KEY] = {k: v for k, v in _mapping(record, JUDGE_KEY).items() if k != "endpoint"}
    return args


# ---- .eval_results -----------------------------------------------------------------------------------------------


def eval_result_entries(result: Result) -> list[EvalResultEntry]:
    """The entries of ``.eval_results/<task>.yaml``, values times 100 as mteb has them.

    The main score has mteb's ids (``<task>_<subset>_<split>``, and ``<task>`` for the mean if all splits and subsets
    are there), each further measure has one of its own (:func:`hub_cards.model_card_measures.eval_ids`).

    Raises:
        ValueError: if the result is a variant's, or not of the data that the task names, whose leaderboard it would
            enter; or as :func:`task_of`.
    """
    task = task_of(result)
    metadata = type(task).metadata
    if not on_pinned_data(result, task):
        raise ValueError(
            f"{result.path} is of data revision {result.task.dataset_revision!r}, not of {metadata.dataset['path']} at "
            f"{metadata.revision!r}; it cannot stand on that dataset's leaderboard"
        )
    if result.variant:
        raise ValueError(f"{result.path} is of {variant_words(result.variant)}, which the leaderboard cannot tell")
    out: list[EvalResultEntry] = []
    for split, blocks in result.task.scores.items():
        for block in blocks:
            base, record = f"{metadata.name}_{block['hf_subset']}_{split}", _mapping(block, RECORD_KEY)
            for score in scored(task, block):
                is_main = score.measure.key == metadata.main_score
                task_id = base if is_main else metric_id(task, block["hf_subset"], split, score.measure)
                out.append(_entry(result, task, task_id, score.value, _notes(score, record)))
    if not result.task.get_missing_evaluations(task):
        note = f"mean of {metadata.main_score}, times 100"
        out.append(_entry(result, task, metadata.name, result.task.get_score(), note))
    return out


def _entry(result: Result, task: AbsTask, task_id: str, value: float, notes: str) -> EvalResultEntry:
    date = result.task.date
    return EvalResultEntry(
        dataset_id=type(task).metadata.dataset["path"],
        task_id=task_id,
        value=round(float(value) * 100, 5),
        dataset_revision=result.task.dataset_revision,
        date=None if date is None else date.date().isoformat(),
        source_url=SOURCE_URL,
        source_name=f"{SOURCE_NAME}, MTEB v{result.task.mteb_version}",
        notes=notes,
    )


def _notes(score: Scored, record: Mapping[str, Any]) -> str:
    text = score.words_times_100
    if score.measure.judged:
        judge = _mapping(record, JUDGE_KEY)
        text += f"; judge: {' '.join(str(judge[k]) for k in ('judge', 'model') if judge.get(k)) or 'not recorded'}"
    return text
