"""Command line options of builders that work in stages, and the working directory that they ask for."""

from __future__ import annotations

import argparse
from typing import Any

from evaluators.construction.workspace import Workspace
from evaluators.judge import LanguageModel

__all__ = ["WAITING", "add_next_stage_dry_run_option", "add_stage_options", "workspace_of"]

# What a builder's command returns when it waits for somebody; 1 is an error, 2 unusable arguments.
WAITING = 3


def add_stage_options(parser: Any) -> None:
    """Add ``--redo``, ``--ask-again`` and ``--allow-failed``. A ``--dry-run`` belongs beside them."""
    for name, what in (
        ("redo", "make stages again whose input or settings changed"),
        ("ask-again", "ask once more where a reply could not be read, or where a failed call was allowed"),
        ("allow-failed", "go on where calls failed, without what they were for"),
    ):
        parser.add_argument(f"--{name}", action="store_true", help=what)


def add_next_stage_dry_run_option(parser: Any) -> None:
    """Add a ``--dry-run`` that stops before the next stage which asks."""
    parser.add_argument(
        "--dry-run", action="store_true", help="say how many calls the next stage needs, and stop before it"
    )


def workspace_of(args: argparse.Namespace, model: LanguageModel | None) -> Workspace:
    """The working directory of ``--out``, as the options want it.

    Args:
        args: parsed, with these options, ``dry_run`` and ``out``.
        model: what to ask; ``None`` if no stage asks.

    Raises:
        ValueError: if the directory holds something else.
    """
    return Workspace(
        args.out.expanduser(),
        model,
        redo=args.redo,
        dry_run=args.dry_run,
        ask_again=args.ask_again,
        allow_failed=args.allow_failed,
    )
