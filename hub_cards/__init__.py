"""What leaves the project: dataset cards and repositories, model cards, submissions, a page of results, runs."""

from __future__ import annotations

from typing import Any

from hub_cards.cards import dataset_card

__all__ = ["add_commands", "dataset_card"]


def add_commands(action: Any) -> None:
    """Add ``mteb-beyond card``, ``publish``, ``model-card``, ``check-submission``, ``report`` and ``runs``."""
    from hub_cards.cards import add_card_command
    from hub_cards.model_card import add_model_card_commands
    from hub_cards.publish import add_publish_commands
    from hub_cards.report.command import add_report_command
    from hub_cards.runs import add_runs_command
    from hub_cards.submission import add_submission_commands

    add_card_command(action)
    add_publish_commands(action)
    add_model_card_commands(action)
    add_submission_commands(action)
    add_report_command(action)
    add_runs_command(action)
