"""`mteb-beyond card`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_card_command(action: Any) -> None:
    """Add ``mteb-beyond card``."""
    command = action.add_parser("card", help="print the dataset card of a task")
    command.add_argument("task", metavar="TASK", help="a task's name")
    command.add_argument("--out", metavar="FILE", help="write it there instead")
    command.set_defaults(func=_card)


def _card(args: argparse.Namespace) -> int:
    from evaluators.files import write_text
    from evaluators.plugin.registry import registered_tasks
    from hub_cards.cards.render import dataset_card
    from hub_cards.model_card_measures import known_task

    task = known_task(args.task)
    if task is None:
        ours = ", ".join(sorted(cls.metadata.name for cls in registered_tasks()))
        raise ValueError(f"{args.task!r} is no task that mteb knows; ours are {ours}")
    text = dataset_card(task)
    if args.out is None:
        print(text)
    else:
        write_text(Path(args.out), text)
    return 0
