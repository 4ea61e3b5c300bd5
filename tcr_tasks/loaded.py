"""The TCR task that a command was asked for, with its data loaded."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from evaluators.plugin.registry import found_task, registered_tasks
from tcr_tasks.diagnostics.tasks import DiagnosticTask
from tcr_tasks.tasks import BENCHMARK_TASKS, TCRSample, TCRTask

__all__ = ["data_of", "find_tcr", "load_tcr", "require_same_results", "task_choices"]


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
    return found_task("TCR", choices, name, data)


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


def require_same_results(path: Path, about: Mapping[str, str]) -> None:
    """Refuse to replace results of something else.

    Args:
        path: a CSV file with the earlier results, if there are any; the columns that ``about`` names say what of.
        about: the same of the new ones: the command (``command``), the data as :func:`data_of`, and what else does not
            change within a folder.

    Raises:
        ValueError: naming what the file holds, if it is something else.
    """
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as handle:
        before = next(csv.DictReader(handle), {})
    require_same(path, before, about)


def require_same(path: Path, before: Mapping[str, str], about: Mapping[str, str]) -> None:
    """Refuse results that a file holds if they are about something else.

    Args:
        path: the file, to be named.
        before: what its results are about.
        about: what the new ones are about.

    Raises:
        ValueError: naming what the file holds, if any of ``about`` differs.
    """
    if any(before.get(name) != value for name, value in about.items()):
        held = {name: before.get(name) or "unknown" for name in about}
        told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in held.items())
        raise ValueError(
            f"{path} holds other results, which would be replaced ({told}); name another folder with --out"
        )
