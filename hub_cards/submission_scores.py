"""What is wrong with one result file that is to go to mteb's results repository."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mteb.abstasks import AbsTask
from mteb.results import TaskResult
from packaging.version import InvalidVersion, Version

from evaluators.plugin.judged import JudgedTask
from evaluators.plugin.results import BOUNDS, bounded
from evaluators.plugin.task import RECORD_KEY, BeyondTask
from evaluators.plugin.variants import variant_words
from hub_cards.measures import AT_MOST_1, LIMITS, SIGNED, UNIT, scale_of
from hub_cards.model_card_measures import known_task, measures
from hub_cards.results import read_task_result
from hub_cards.values import number

OLDEST_MTEB = Version("2.0.0")
LARGEST_FILE = 10 * 2**20
_RUN_AGAIN = "run the model on it again with `mteb-beyond run`"
# mteb's areas under the abstention curve, undefined where all queries score alike.
_UNDEFINED_IN_MTEB = "nauc_"
_TOLERANCE = 1e-6
# mteb rounds some scores to five digits, and no bound of their intervals.
_ROUNDED = 1e-5
_OFF_SCALE = {
    SIGNED: "as in tables that show it times 100; mteb's own p-MRR tasks, as ours, store it as computed, -1..1",
    AT_MOST_1: "while result files have it as a share, at most 1",
    UNIT: "while result files have it on the scale 0..1",
}


@dataclass(frozen=True)
class Finding:
    """Something that a maintainer of the results repository would see.

    Attributes:
        place: file or folder.
        problem: what is wrong.
        remedy: what to do about it; empty where nothing has to be done.
    """

    place: Path
    problem: str
    remedy: str = ""

    @property
    def must_be_fixed(self) -> bool:
        """Whether the submission should wait for it."""
        return bool(self.remedy)


def file_findings(path: Path, variant: Mapping[str, Any]) -> Iterator[Finding]:
    """Everything about one result file that lies among the results of a run with these settings."""
    if path.stat().st_size > LARGEST_FILE:
        yield Finding(path, f"larger than {LARGEST_FILE // 2**20} MB", "the repository refuses it; leave it out")
    try:
        result = read_task_result(path)
    except ValueError as error:
        message = str(error).removeprefix(f"{path} ")
        yield Finding(path, message, "restore the file, or run the model on the task again")
        return
    if result.task_name != path.stem:
        yield Finding(path, f"holds results of {result.task_name!r}", f"name it {result.task_name}.json")
    yield from _version_findings(path, result)
    task = known_task(result.task_name)
    if task is None:
        yield Finding(path, f"neither mteb nor mteb-beyond has a task {result.task_name!r}", "leave the file out")
    else:
        yield from _task_findings(path, result, task)
    yield from result_findings(path, result, variant)


def result_findings(path: Path, result: TaskResult, variant: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with the scores of a file wherever they are shown, on a leaderboard or on a card."""
    task = known_task(result.task_name)
    if not any(result.scores.values()):
        yield Finding(path, "holds no scores", _RUN_AGAIN)
    if task is not None:
        yield from _subset_findings(path, result, task)
    yield from _repeated_subsets(path, result)
    for split, blocks in result.scores.items():
        for block in blocks:
            yield from _block_findings(path, f"{split}/{block['hf_subset']}", block, task)
    if isinstance(task, BeyondTask):
        yield from _record_findings(path, result, task, variant)


def _version_findings(path: Path, result: TaskResult) -> Iterator[Finding]:
    blocks = [block for listed in result.scores.values() for block in listed]
    for found in dict.fromkeys([result.mteb_version, *(block.get("mteb_version") for block in blocks)]):
        try:
            old = Version(str(found)) < OLDEST_MTEB
        except InvalidVersion:
            yield Finding(path, f"its mteb version is {found!r}", _RUN_AGAIN)
            continue
        if old:
            yield Finding(path, f"made with mteb {found}; the repository takes {OLDEST_MTEB} and later", _RUN_AGAIN)
        elif str(found) != version("mteb"):
            yield Finding(path, f"made with mteb {found}, while {version('mteb')} is installed here")


def _task_findings(path: Path, result: TaskResult, task: AbsTask) -> Iterator[Finding]:
    metadata = type(task).metadata
    if isinstance(task, BeyondTask):
        yield Finding(path, "not a task of mteb itself: its leaderboard shows it only once mteb has the task")
    if result.dataset_revision != metadata.revision:
        yield Finding(
            path,
            f"made on data revision {result.dataset_revision!r}, while {metadata.name} is "
            f"{metadata.dataset['path']} at {metadata.revision!r}",
            "run the model on the task's own data; results on other data are not comparable",
        )
    for split, subsets in result.get_missing_evaluations(task).items():
        yield Finding(path, f"split {split!r} lacks {', '.join(sorted(subsets))}", "run the missing ones")


def _subset_findings(path: Path, result: TaskResult, task: AbsTask) -> Iterator[Finding]:
    metadata = type(task).metadata
    languages = metadata.hf_subsets_to_langscripts
    for split, blocks in result.scores.items():
        if split not in metadata.eval_splits:
            yield Finding(path, f"{metadata.name} has no split {split!r}", "remove it from the file")
        for block in blocks:
            subset = block["hf_subset"]
            if subset not in languages:
                yield Finding(path, f"{metadata.name} has no subset {subset!r}", "remove it from the file")
            elif sorted(block["languages"]) != sorted(languages[subset]):
                yield Finding(
                    path,
                    f"{split}/{subset} has languages {block['languages']}, the task {languages[subset]}",
                    _RUN_AGAIN,
                )


def _repeated_subsets(path: Path, result: TaskResult) -> Iterator[Finding]:
    for split, blocks in result.scores.items():
        for subset, n in Counter(block["hf_subset"] for block in blocks).items():
            if n > 1:
                yield Finding(
                    path,
                    f"{split}/{subset} stands in it {n} times: several runs in one file",
                    "keep the scores of one run, and give each other run a folder of its own",
                )


# ---- scores ------------------------------------------------------------------------------------------------------


def _block_findings(path: Path, where: str, block: Mapping[str, Any], task: AbsTask | None) -> Iterator[Finding]:
    undefined: list[str] = []
    unusable: list[str] = []
    off_scale: dict[str, str] = {}
    no_numbers: list[str] = []
    names = {f"{m.key}{end}" for m in (measures(task) if task else ()) for end in ("", *BOUNDS)}
    values = dict(_values(block))
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            name = key.split(".")[-1]
            if key != "main_score" and (name in names or scale_of(name)):
                no_numbers.append(f"{key} is {value!r}")
        elif not math.isfinite(value):
            (undefined if key.split(".")[-1].startswith(_UNDEFINED_IN_MTEB) else unusable).append(key)
        elif (problem := _scale_problem(key, value, task)) is not None:
            off_scale[key] = problem
    if off_scale:
        more = f" (and {len(off_scale) - 1} more scores like it)" if len(off_scale) > 1 else ""
        yield Finding(
            path, f"{where}: {next(iter(off_scale.values()))}{more}", "put every score of the file on mteb's scale"
        )
    if no_numbers:
        yield Finding(path, f"{where}: no number: {_shortened(no_numbers)}", _RUN_AGAIN)
    intervals = [problem for key, problem in _interval_problems(values) if key not in off_scale]
    if intervals:
        yield Finding(path, f"{where}: {_shortened(intervals)}", _RUN_AGAIN)
    if unusable:
        yield Finding(path, f"{where}: not finite: {_shortened(unusable)}", _RUN_AGAIN)
    if undefined:
        yield Finding(path, f"{where}: some {_UNDEFINED_IN_MTEB}... are not finite; mteb writes them so")
    main = block.get("main_score")
    if isinstance(main, bool) or not isinstance(main, int | float):
        yield Finding(path, f"{where}: main_score is {main!r}", _RUN_AGAIN)
    elif task is not None:
        name = task.metadata.main_score
        if name not in block:
            yield Finding(path, f"{where}: the score {name!r}, which is the main score, is missing", _RUN_AGAIN)
        elif number(main) is not None and number(block[name]) is not None and abs(block[name] - main) > _TOLERANCE:
            yield Finding(
                path, f"{where}: main_score is {main:g}, but {name} is {block[name]:g}", "correct it, or run again"
            )


def _values(scores: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in scores.items():
        if key == RECORD_KEY:
            continue
        if isinstance(value, Mapping):
            yield from _values(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _interval_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Scores with what is wrong with their intervals: a score has both bounds or none, and lies between them."""
    for key in dict.fromkeys(bounded(name) for name in values if bounded(name) != name):
        names = (key, *(f"{key}{end}" for end in BOUNDS))
        value, low, high = (number(values.get(name)) for name in names)
        if lacking := [name for name in names if name not in values]:
            there = [name for name in names if name in values]
            yield key, f"{' and '.join(there)} without {' and '.join(lacking)}"
        elif value is None or low is None or high is None:  # told as no number
            continue
        elif low > high:
            yield key, f"{key}_low is above {key}_high"
        elif not low - _ROUNDED <= value <= high + _ROUNDED:
            yield key, f"{key} is {value:g}, outside its interval from {low:g} to {high:g}"


def _scale_problem(key: str, value: float, task: AbsTask | None) -> str | None:
    """What is wrong with a score's size; ``None`` if nothing is, or its range is not known."""
    scale = scale_of(str(task.metadata.main_score) if task is not None and key == "main_score" else key)
    if scale is None:
        return None
    low, high = LIMITS[scale]
    fits = low - _TOLERANCE <= value <= high + _TOLERANCE
    return None if fits else f"{key} is {value:g}, {_OFF_SCALE[scale]}"


def _shortened(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# ---- our own record ----------------------------------------------------------------------------------------------


def _record_findings(path: Path, result: TaskResult, task: BeyondTask, variant: Mapping[str, Any]) -> Iterator[Finding]:
    defaults = {option.name: option.choices[0] for option in task.task_options}
    expected = defaults | {k: v for k, v in variant.items() if k in {*defaults, "first_stage"}}
    blocks = [(f"{split}/{b['hf_subset']}", b) for split, listed in result.scores.items() for b in listed]
    records = [block.get(RECORD_KEY) for _, block in blocks]
    options = [record.get("options") if isinstance(record, Mapping) else None for record in records]
    if any(found != options[0] for found in options):
        yield Finding(
            path,
            f"several variants in one file: {'; '.join(map(str, options))}",
            "run each variant by itself with `mteb-beyond run`, which files it apart",
        )
    for (where, block), record in zip(blocks, records, strict=True):
        if not isinstance(record, Mapping):
            yield Finding(path, f"{where}: no record of metric version and options ({RECORD_KEY})", _RUN_AGAIN)
            continue
        if record.get("metric_version") != task.metric_version:
            yield Finding(
                path,
                f"{where}: stale, of metric version {record.get('metric_version')}, now {task.metric_version}",
                _RUN_AGAIN,
            )
        if record.get("options") != expected:
            yield Finding(
                path,
                f"{where}: made with {_told(record.get('options'))}, but lies among results of {_told(expected)}",
                "move it to the folder of its variant, or run the model again",
            )
        notes = record.get("notes")
        for note in notes if isinstance(notes, list) else ():
            yield Finding(path, f"{where}: {note}")
        if isinstance(task, JudgedTask) and task.judged_score not in block:
            yield Finding(path, f"{where}: without a judge, so there is no {task.judged_score}")


def _told(options: Any) -> str:
    return (variant_words(options) if isinstance(options, Mapping) else str(options)) or "default options"
