"""The FollowIR task that a command was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluators.plugin.registry import found_task, registered_tasks
from followir_tasks.tasks import FollowIRSample, FollowIRTask


def add_task_options(parser: Any) -> None:
    """Add ``--data`` and ``--task``, from which :func:`find_followir` makes a task."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="a FollowIR-style dataset in this project's layout, or hf://datasets/USER/NAME@REVISION (sample)",
    )
    parser.add_argument(
        "-t",
        "--task",
        metavar="TASK",
        help="a FollowIR task, which decides the measure: MAP@1000, or nDCG@5 for FollowIRNews21 (FollowIRSample)",
    )


def find_followir(data: Path | str | None = None, name: str | None = None) -> FollowIRTask:
    """A FollowIR task by what a command was given, without its data.

    Args:
        data: a FollowIR-style dataset; default: where the task finds its own.
        name: of the task; default: the sample's, which expects no published sizes.

    Raises:
        ValueError: if there is no such task.
    """
    choices = {cls.metadata.name: cls for cls in registered_tasks() if issubclass(cls, FollowIRTask)}
    return found_task("FollowIR", choices, name or FollowIRSample.metadata.name, data)
