"""`mteb-beyond followir`: build sets, ablations, the paper's tables, and teaching."""

from __future__ import annotations

from typing import Any

from followir_tasks.ablation.command import add_ablation_commands
from followir_tasks.construction.command import add_build_command
from followir_tasks.report.command import add_report_command
from followir_tasks.teaching.command import add_reranker_command, add_train_command
from followir_tasks.teaching.teach_command import add_teach_command


def add_commands(action: Any) -> None:
    """Add ``mteb-beyond followir`` with its sub-commands."""
    command = action.add_parser("followir", help="FollowIR: build a set, ablations, report, teach models")
    steps = command.add_subparsers(required=True, metavar="STEP")
    add_build_command(steps)
    add_report_command(steps)
    add_ablation_commands(steps)
    add_teach_command(steps)
    add_train_command(steps)
    add_reranker_command(steps)
