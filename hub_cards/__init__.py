"""Dataset cards, rendered from task metadata."""

from hub_cards.cards import add_commands, dataset_card

__all__ = ["add_commands", "dataset_card"]
