"""Command line options of reports in the shape of a paper's tables."""

from __future__ import annotations

from typing import Any

__all__ = ["add_report_options"]


def add_report_options(parser: Any) -> None:
    """Add the folder of results, and ``--published``: which of the paper's numbers stand beside them."""
    parser.add_argument("folder", metavar="DIR", help="the --output-folder of `mteb-beyond run`")
    parser.add_argument(
        "--published",
        choices=("matching", "all", "none"),
        default="matching",
        help="show the paper's numbers for the models that are in the paper, for all of its models, or not "
        "(%(default)s)",
    )
