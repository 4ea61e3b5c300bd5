"""Command line options that several steps of `mteb-beyond tcr` have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = [
    "MODEL_HELP",
    "PREDICTIONS_HELP",
    "REPLACED_HELP",
    "add_ask_again_option",
    "add_out_option",
    "add_task_options",
    "needed_out",
    "refuse_unused",
    "require_folder",
    "warn_last",
]

# What :func:`evaluators.plugin.models.resolve_model` takes.
MODEL_HELP = "a directory, a name that mteb knows (BM25's is mteb/baseline-bm25s) or a hub name"
REPLACED_HELP = "Report and results are those of the last call; replies and scores that were paid for are kept."

# What a path of saved predictions stands for, see :func:`evaluators.plugin.predictions.prediction_files`.
PREDICTIONS_HELP = (
    "a file <task>_predictions.json, a folder with one directly in it (then this run alone), or a folder below which "
    "they lie (then all of them)"
)


def add_task_options(parser: Any) -> None:
    """Add ``--data`` and ``--task``, from which :func:`tcr_tasks.loaded.find_tcr` makes a task."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="a TCR dataset, in this project's layout or the authors', or hf://datasets/USER/NAME@REVISION (sample)",
    )
    parser.add_argument(
        "-t", "--task", metavar="TASK", help="a TCR task (TCRBenchMixed with --data, else the sample's TCRSample)"
    )


def add_out_option(parser: Any) -> None:
    """Add ``--out``, which only a dry run does without; see :func:`needed_out`."""
    parser.add_argument("--out", type=Path, metavar="DIR", help="required unless --dry-run: where everything goes")


def add_ask_again_option(parser: Any) -> None:
    """Add ``--ask-again``."""
    parser.add_argument(
        "--ask-again", action="store_true", help="ask once more where a stored reply could not be read (it is kept)"
    )


def refuse_unused(args: argparse.Namespace, options: Iterable[str], needs: str) -> None:
    """Check that none of these options was given.

    Args:
        args: parsed; an option that was not given is ``None`` or ``False``.
        options: which nothing would use.
        needs: what would.

    Raises:
        ValueError: naming the option, if one was given.
    """
    for option in options:
        value = getattr(args, option)
        # Not by `in`: a seed of 0 equals False.
        if value is not None and value is not False:
            raise ValueError(f"--{option.replace('_', '-')} concerns {needs} only")


def warn_last(warnings: Iterable[str]) -> None:
    """Tell what makes results doubtful after all else that a command prints, on standard error."""
    sys.stdout.flush()
    for text in warnings:
        print(f"warning: {text}", file=sys.stderr)


def needed_out(args: argparse.Namespace) -> None:
    """Check that there is a folder to write to.

    Raises:
        ValueError: if there is none, and something is to be written.
        NotADirectoryError: as :func:`require_folder`.
    """
    if args.out is None and not args.dry_run:
        raise ValueError("name the folder for report and results with --out")
    if args.out is not None:
        require_folder(args.out)


def require_folder(out: Path) -> None:
    """Check that a folder can be made at a place, before anything is computed for it.

    Raises:
        NotADirectoryError: if it, or what should be a folder above it, is a file.
    """
    for place in (out, *out.parents):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(f"results cannot be put into {out}: {place} is a file; name a folder with --out")
