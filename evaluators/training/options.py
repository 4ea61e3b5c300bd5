"""Command line options of every training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["add_config_options", "show"]


def add_config_options(command: Any, ready: str) -> None:
    """Add ``--config``, ``--out`` or ``--show``, and ``--base``.

    Args:
        command: the parser.
        ready: the names of ready configurations, for the help.
    """
    command.add_argument(
        "--config", required=True, metavar="FILE", help=f"TOML or JSON, or the name of a ready one: {ready}"
    )
    target = command.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", type=Path, metavar="DIR", help="where everything goes")
    target.add_argument("--show", action="store_true", help="print the configuration and do nothing")
    command.add_argument("--base", metavar="MODEL", help="the model to start from, in place of the file's")


def show(path: Path) -> int:
    """Print a configuration; returns the exit code."""
    print(path.read_text(encoding="utf-8"), end="")
    return 0
