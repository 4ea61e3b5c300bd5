"""Dataset cards: one per dataset family and sample, rendered from task metadata, statistics and hand-written text.

``python -m hub_cards.cards`` renders the cards in ``hub_cards/datasets`` again.
"""

from hub_cards.cards.command import add_card_command
from hub_cards.cards.families import FAMILIES, Family, family_of
from hub_cards.cards.render import card, dataset_card

__all__ = ["FAMILIES", "Family", "add_card_command", "card", "dataset_card", "family_of"]
