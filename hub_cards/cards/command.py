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
    import mteb

    from evaluators.files import write_text
    from hub_cards.cards.render import dataset_card

    text = dataset_card(mteb.get_task(args.task))
    if args.out is None:
        print(text)
    else:
        write_text(Path(args.out), text)
    return 0
