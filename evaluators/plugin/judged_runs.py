"""Saved runs of a task; for tasks that take a judge, the pairs that it would be asked about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluators.judge.judges import Judgement, Pair
from evaluators.plugin.checks import column
from evaluators.plugin.judged import JudgedTask
from evaluators.plugin.predictions import Predictions, read_predictions
from evaluators.plugin.registry import registered_tasks
from evaluators.plugin.task import SPLIT, BeyondTask

Run = dict[str, dict[str, float]]


def judged_task(name: str) -> JudgedTask:
    """The task of that name.

    Raises:
        ValueError: if it is none that takes a judge; the message lists those that do.
    """
    known = {cls.metadata.name: cls for cls in registered_tasks() if issubclass(cls, JudgedTask)}
    if name not in known:
        raise ValueError(f"{name!r} is no task that takes a judge; these do: {', '.join(sorted(known))}")
    return known[name]()


def saved_predictions(task: BeyondTask, files: Sequence[Path]) -> list[Predictions]:
    """The rankings of a task in prediction files, each checked against the task's loaded data.

    Raises:
        FileNotFoundError: if a file does not exist.
        ValueError: naming the file, if it cannot be read, lacks a query, or ranks documents that do not exist.
    """
    assert task.data is not None
    queries, documents = set(task.data.queries["id"]), set(column(task.data.corpus, "id"))
    out = []
    for path in files:
        saved = read_predictions(path, "default", SPLIT)
        saved.check(task.metadata.name, queries, documents)
        out.append(Predictions(path, saved.model, {q: saved.run[q] for q in saved.run if q in queries}))
    return out


def judged_pairs(task: JudgedTask, run: Run) -> Sequence[Pair]:
    """The pairs that judging a run of a loaded task asks about; asks nobody."""
    assert task.data is not None
    return task.judged_scores(run, task.data, _Silent()).pairs


class _Silent:
    """A judge that scores nothing, to learn what it is asked."""

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        return [Judgement(None)] * len(pairs)

    def record(self) -> dict[str, Any]:
        return {}
