"""`mteb-beyond tcr diagnose`: every diagnostic of the paper that needs only a retriever, on any TCR dataset."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tcr_tasks.diagnostics.catalogue import FAMILIES
from tcr_tasks.options import MODEL_HELP


def add_diagnose_command(steps: Any) -> None:
    """Add ``diagnose`` to the steps of ``mteb-beyond tcr``."""
    command = steps.add_parser(
        "diagnose",
        help="find out why a retriever misses the table that answers",
        description="Run the diagnostics of TCR-Bench for one model. What a folder holds already is not run again, so "
        "an interrupted run goes on where it was, and several models can share a folder and its report.",
    )
    command.add_argument("-m", "--model", required=True, metavar="MODEL", help=MODEL_HELP)
    command.add_argument(
        "--data", type=Path, metavar="DIR", help="a TCR dataset, in this project's layout or the authors' (the sample)"
    )
    command.add_argument(
        "--only",
        nargs="+",
        choices=FAMILIES,
        metavar="FAMILY",
        help=f"only these: {', '.join(FAMILIES)}. Geometry comes with main, consistency with formats",
    )
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="where everything goes")
    command.add_argument(
        "--batch-size", type=int, default=32, metavar="N", help="texts encoded at a time (%(default)s)"
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of samples, shuffles and intervals (%(default)s)"
    )
    command.set_defaults(func=_diagnose)


def _diagnose(args: argparse.Namespace) -> int:
    from tcr_tasks.diagnostics.diagnose import Order, diagnose

    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    if args.seed < 0:
        raise ValueError(f"--seed must be at least 0, got {args.seed}")
    written = diagnose(Order(args.model, args.data, tuple(args.only or ()), args.out, args.batch_size, args.seed))
    for path in written:
        print(path)
    return 0
