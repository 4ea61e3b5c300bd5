"""Dataset cards: mteb's own card of a task, with the import that makes the task known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import mteb
from mteb.abstasks import AbsTask

from evaluators.plugin.task import BeyondTask


def dataset_card(task: AbsTask) -> str:
    """The dataset card of one of our tasks as Markdown with YAML header.

    It is rendered by mteb from the task's metadata; its example gets the line that registers the task.

    Raises:
        ValueError: if the task is not one of ours, or mteb's template no longer holds the example.
    """
    if not isinstance(task, BeyondTask):
        raise ValueError(f"{task.metadata.name} is a task of mteb itself; mteb makes its card")
    text = str(task.metadata.generate_dataset_card())
    package = type(task).__module__.split(".")[0]
    before, found, after = text.partition("import mteb\n")
    if not found:
        raise ValueError(f"mteb {mteb.__version__}'s card template has no line 'import mteb' any more")
    return f"{before}{found}import {package}  # pip install mteb-beyond; registers the task\n{after}"


def add_commands(action: Any) -> None:
    """Add ``mteb-beyond card``."""
    command = action.add_parser("card", help="print the dataset card of a task")
    command.add_argument("task", metavar="TASK", help="a task's name")
    command.add_argument("--out", metavar="FILE", help="write it there instead")
    command.set_defaults(func=_card)


def _card(args: argparse.Namespace) -> int:
    text = dataset_card(mteb.get_task(args.task))
    if args.out is None:
        print(text)
    else:
        Path(args.out).write_text(text, encoding="utf-8")
    return 0
