"""`mteb-beyond tcr`: build a benchmark from tables, find out why retrievers fail on it, and try what helps."""

from __future__ import annotations

from typing import Any

from tcr_tasks.builder.command import add_build_command
from tcr_tasks.compare import add_compare_command
from tcr_tasks.diagnostics.command import add_diagnose_command
from tcr_tasks.qa.command import add_qa_command
from tcr_tasks.reranking.command import add_rerank_command
from tcr_tasks.retrieval.command import add_retrieve_command
from tcr_tasks.training.command import add_train_command


def add_commands(action: Any) -> None:
    """Add ``mteb-beyond tcr`` with its sub-commands."""
    command = action.add_parser(
        "tcr", help="TCR-Bench: build it, diagnose retrievers, rerank, retrieve otherwise, answer"
    )
    steps = command.add_subparsers(required=True, metavar="STEP")
    add_build_command(steps)
    add_diagnose_command(steps)
    add_compare_command(steps)
    add_qa_command(steps)
    add_rerank_command(steps)
    add_retrieve_command(steps)
    add_train_command(steps)
