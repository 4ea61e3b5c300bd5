"""`mteb-beyond tcr train`: an embedding model or a cross-encoder that learns which table answers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_train_command(steps: Any) -> None:
    """Add ``train`` to the steps of ``mteb-beyond tcr``."""
    from evaluators.training.options import add_config_options

    command = steps.add_parser(
        "train",
        help="train a retriever or reranker to find the table that answers",
        description="Train by a configuration file: each learning rate and seed is a run, and after each epoch the "
        "best checkpoint for each selection set is kept as a model that `mteb-beyond run -m DIR` takes. Run it again "
        "with the same arguments: finished runs are kept, and one that was killed goes on from its last state. "
        "DIR/report.md and DIR/matrix.csv hold every model on every evaluation set. Training needs "
        "pip install 'mteb-beyond[train]'.",
    )
    add_config_options(
        command,
        "small (on the sample, offline; explains every key), table-30, table-35, table-38 (the paper's: nine, five and "
        "two learning rates, for a GPU)",
    )
    command.add_argument(
        "--data",
        action="append",
        default=[],
        type=_place,
        metavar="NAME=DIR",
        help="where the source or evaluation of that name lies, in place of what the file says; may be repeated",
    )
    command.add_argument(
        "--only-score", action="store_true", help="train nothing; score base, trained and further models again"
    )
    command.set_defaults(func=_train)


def _train(args: argparse.Namespace) -> int:
    from evaluators.training.extra import require_extra
    from evaluators.training.options import show
    from tcr_tasks.options import require_folder
    from tcr_tasks.training.reading import config_file, read_config, with_places

    if args.show:
        return show(config_file(args.config))
    require_folder(args.out.expanduser())
    config = read_config(args.config)
    if args.base is not None:
        config = config.model_copy(update={"base": args.base})
    config = with_places(config, dict(args.data))
    if not args.only_score:
        require_extra(lora=config.lora is not None)
    from tcr_tasks.training.train import train

    for path in train(config, args.out.expanduser(), only_score=args.only_score):
        print(path)
    return 0


def _place(text: str) -> tuple[str, Path]:
    name, given, place = text.partition("=")
    if not (name and given and place):
        raise argparse.ArgumentTypeError(f"expected NAME=DIR, got {text!r}")
    return name, Path(place).expanduser()
