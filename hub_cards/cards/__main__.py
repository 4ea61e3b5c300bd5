"""``python -m hub_cards.cards``: computes the statistics and renders every card of ``hub_cards/datasets`` again."""

from __future__ import annotations

import argparse
from pathlib import Path

from evaluators.files import write_text
from hub_cards.cards import scores, statistics
from hub_cards.cards.families import FAMILIES
from hub_cards.cards.render import card


def main() -> None:
    """Write statistics, measured scores where results are given, and cards."""
    parser = argparse.ArgumentParser(prog="python -m hub_cards.cards", description=__doc__)
    parser.add_argument("--results", metavar="DIR", help="take the samples' scores from this output of the demo")
    args = parser.parse_args()
    statistics.write(statistics.collect())
    if args.results is not None:
        scores.write(scores.measure(Path(args.results)))
    for family in FAMILIES:
        path = statistics.DATASETS / f"{family.name}.md"
        write_text(path, card(family))
        print(path)


if __name__ == "__main__":
    main()
