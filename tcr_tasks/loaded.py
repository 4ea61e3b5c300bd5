"""The TCR task that a command was asked for, with its data loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.plugin.registry import registered_tasks
from tcr_tasks.diagnostics.tasks import DiagnosticTask
from tcr_tasks.tasks import BENCHMARK_TASKS, TCRSample, TCRTask

__all__ = ["data_of", "find_tcr", "load_tcr", "require_same_data", "task_choices"]


def task_choices(*, with_diagnostics: bool = False) -> dict[str, type[TCRTask]]:
    """The registered TCR tasks by name: those with one set of questions, and the diagnostics, which have several."""
    return {
        cls.metadata.name: cls
        for cls in registered_tasks()
        if issubclass(cls, TCRTask) and (with_diagnostics or not issubclass(cls, DiagnosticTask))
    }


def find_tcr(
    data: Path | str | None = None, task_name: str | None = None, *, with_diagnostics: bool = False
) -> TCRTask:
    """A TCR task by what a command was given, without its data.

    Args:
        data: a TCR dataset, in the project's layout or the authors', or ``hf://datasets/USER/NAME@REVISION``.
        task_name: which task. Default: with ``data`` TCRBenchMixed, which prints each table in its own format;
            without, the embedded sample.
        with_diagnostics: whether it may be a task with several sets of questions.

    Raises:
        ValueError: if there is no such task.
    """
    choices = task_choices(with_diagnostics=with_diagnostics)
    name = task_name or (TCRSample if data is None else BENCHMARK_TASKS[0]).metadata.name
    if name not in choices:
        raise ValueError(f"there is no TCR task {name!r}; one of {', '.join(choices)}")
    task = choices[name]()
    if data is not None:
        task.data_path = data
    return task


def load_tcr(data: Path | str | None = None, task_name: str | None = None) -> TCRTask:
    """A TCR task with one set of questions, its data read and checked.

    Its ``data.side`` holds ``questions`` (list of :class:`tcr_tasks.data.Question`) and ``tables`` (corpus id ->
    :class:`tcr_tasks.tables.Table`); ``data.corpus`` and ``data.queries`` hold the texts as a model gets them.

    Args:
        data, task_name: as :func:`find_tcr`.

    Raises:
        ValueError: if there is no such task.
        FileNotFoundError: if the directory does not exist.
        DatasetError: if it is no TCR dataset, or listing everything that is wrong with it.
    """
    task = find_tcr(data, task_name)
    task.load_data()
    return task


def data_of(task: TCRTask) -> dict[str, str]:
    """What scores of a loaded task are about, as tables of results name it."""
    return {"task": task.metadata.name, "data_revision": str(task.metadata.revision)}


def require_same_data(task: TCRTask, path: Path, before: Mapping[str, Any]) -> None:
    """Refuse to replace results on other data.

    Args:
        task: with its data loaded.
        path: the earlier results.
        before: what they say of their data, with the keys of :func:`data_of`.

    Raises:
        ValueError: if their data are not the task's.
    """
    if any(before.get(key) != value for key, value in data_of(task).items()):
        raise ValueError(
            f"{path} holds results on {before.get('task')} at revision {before.get('data_revision')}; name another "
            "folder with --out"
        )
