"""Which (instruction, passage) pairs people are asked about."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaluators.judge.judges import Pair
from evaluators.judge.scale import Scale

Stratum = tuple[str, int]


@dataclass(frozen=True)
class Item:
    """A pair that a person may be asked about.

    Attributes:
        task: name of the task.
        pair: what is to be scored.
        scale: lowest and highest score that the person may give.
        candidates: in words, what the pair was drawn from.
    """

    task: str
    pair: Pair
    scale: Scale
    candidates: str

    @property
    def stratum(self) -> Stratum:
        """Task and level."""
        return self.task, self.pair.level


def distinct(items: Iterable[Item]) -> list[Item]:
    """The items sorted by task, level and ids, each (rubric, level, instruction, passage) once."""
    ordered = sorted(
        items, key=lambda i: (*i.stratum, i.pair.query, i.pair.document, i.pair.instruction, i.pair.passage)
    )
    out: dict[tuple[str, int, str, str], Item] = {}
    for item in ordered:
        pair = item.pair
        out.setdefault((pair.rubric, pair.level, pair.instruction, pair.passage), item)
    return list(out.values())


def draw(items: Iterable[Item], n: int, seed: int = 0) -> list[Item]:
    """Draw ``n`` items, equally many from each task and level as far as it has them, in random order.

    No pair is drawn twice, and equal texts are one pair. The draw depends on the items and the seed only, not on the
    order of the items.

    Raises:
        ValueError: if ``n`` is below 1, or there are fewer items.
    """
    strata: dict[Stratum, list[Item]] = {}
    for item in distinct(items):
        strata.setdefault(item.stratum, []).append(item)
    wanted = shares({stratum: len(members) for stratum, members in strata.items()}, n)
    drawn: list[Item] = []
    for stratum, members in strata.items():
        drawn += random.Random(f"{seed} {stratum}").sample(members, wanted[stratum])
    random.Random(f"{seed}").shuffle(drawn)
    return drawn


def shares(sizes: Mapping[Stratum, int], n: int) -> dict[Stratum, int]:
    """How many of ``n`` to draw from each stratum: equally many, and all of a stratum that has fewer.

    The strata that have more get the same quota. Where it is no whole number, all of them have the same remainder, and
    what is left goes one by one to the largest of them, of equally large ones to the last by name.

    Raises:
        ValueError: if ``n`` is below 1, or more than there is.
    """
    available = sum(sizes.values())
    if n < 1:
        raise ValueError(f"the number of pairs must be at least 1, got {n}")
    if n > available:
        raise ValueError(
            f"{n} pairs are wanted, but there are only {available} different ones; ask for fewer or give more runs"
        )
    out: dict[Stratum, int] = {}
    left = n
    for done, stratum in enumerate(sorted(sizes, key=lambda s: (sizes[s], s))):
        out[stratum] = min(sizes[stratum], left // (len(sizes) - done))
        left -= out[stratum]
    return out
