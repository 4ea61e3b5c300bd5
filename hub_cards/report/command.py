"""``mteb-beyond report``: results as one HTML page, as Markdown or as CSV."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

SUFFIXES = (".html", ".md", ".csv")
MOST_QUERIES = 50
DESCRIPTION = (
    "Results of all models side by side. FILE.html is one page that works offline: tables, figures and, where there "
    "are saved predictions, single queries. FILE.md holds the same tables. FILE.csv has a line for each number of each "
    "result file, with its 95 % interval where it has one, and the papers' own values, marked as published; mteb's "
    "abstention scores (nauc_...) are left out."
)


def add_report_command(action: Any) -> None:
    """Add ``mteb-beyond report``."""
    command = action.add_parser(
        "report",
        help="results of all models as one HTML page that works offline, as Markdown or as CSV",
        description=DESCRIPTION,
    )
    command.add_argument(
        "results", nargs="+", metavar="RESULTS", help="result folders: the --output-folder of `mteb-beyond run`"
    )
    command.add_argument(
        "--out",
        required=True,
        action="append",
        metavar="FILE",
        help="FILE.html, FILE.md or FILE.csv; may be given several times",
    )
    command.add_argument(
        "--predictions",
        action="append",
        default=[],
        metavar="DIR",
        help="show single queries from these --prediction-folders (default: the folders `predictions` in RESULTS)",
    )
    command.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="DIR",
        help="data of your own that results were computed on, for the texts of single queries; nothing is fetched",
    )
    command.add_argument(
        "--queries",
        type=int,
        default=MOST_QUERIES,
        metavar="N",
        help="show at most so many single queries of a task; 0: none (%(default)s)",
    )
    command.add_argument(
        "--published",
        choices=("all", "none"),
        default="all",
        help="show the papers' own values as points of reference, or not (%(default)s)",
    )
    command.set_defaults(func=_report)


def _report(args: argparse.Namespace) -> int:
    out = [Path(name).expanduser() for name in args.out]
    for path in out:
        _require_writable(path)
    if args.queries < 0:
        raise ValueError(f"--queries must be 0 or more, got {args.queries}")

    from evaluators.files import write_text
    from evaluators.plugin.results import SAVED_BY, output_folder
    from hub_cards.report.collect import collect
    from hub_cards.report.page import page
    from hub_cards.report.queries import Sheet, sheets
    from hub_cards.report.text import csv_text, markdown

    folders = [Path(name).expanduser() for name in args.results]
    collected = collect(folders)
    shown: list[Sheet] = []
    notes: list[str] = []
    if args.queries and any(path.suffix.lower() != ".csv" for path in out):
        predictions = _folders(args.predictions, "--predictions")
        predictions = predictions or [f for base in folders if (f := output_folder(base) / "predictions").is_dir()]
        shown, notes = sheets(collected, predictions, _folders(args.data, "--data"), args.queries)
        if not shown:
            notes.append(f"No single queries: no saved predictions of these results were found. {SAVED_BY}.")
    published = args.published == "all"
    makers = {
        ".html": lambda: page(collected, shown, notes, published),
        ".md": lambda: markdown(collected, shown, notes, published),
        ".csv": lambda: csv_text(collected, published),
    }
    for note in notes:
        print(f"note: {note}")
    texts = {path: makers[path.suffix.lower()]() for path in out}  # all of them are made before one is written
    for path, text in texts.items():
        write_text(path, text)
        print(f"written: {path} ({path.stat().st_size / 1000:,.0f} kB)")
    for sheet in shown:
        print(f"single queries of {sheet.content['place']}: {sheet.n_shown} of {sheet.n_queries}")
    return 0


def _require_writable(path: Path) -> None:
    """Find what would stop the last of several files before the first one is written."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--out {path} must end in .html, .md or .csv")
    if path.is_dir():
        raise ValueError(f"--out {path} is a folder; name a file in it")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ValueError(f"--out {path} cannot be written: {above} is a file, no folder")


def _folders(names: list[str], option: str) -> list[Path]:
    paths = [Path(name).expanduser() for name in names]
    for path in paths:
        if not path.is_dir():
            raise FileNotFoundError(f"{option} {path} is no folder")
    return paths
