"""Command line options that several steps of `mteb-beyond tcr` have."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["PREDICTIONS_HELP", "add_out_option", "add_task_options", "needed_out"]

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


def needed_out(args: argparse.Namespace) -> None:
    """Check that there is a folder to write to.

    Raises:
        ValueError: if there is none, and something is to be written.
        NotADirectoryError: if it is a file.
    """
    if args.out is None and not args.dry_run:
        raise ValueError("name the folder for report and results with --out")
    if args.out is not None and args.out.exists() and not args.out.is_dir():
        raise NotADirectoryError(f"--out {args.out} is a file; name a folder")
