"""Which questions are trained on: parts between which nothing is shared that would give an answer away."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from evaluators.training.config import Part, Shares

__all__ = ["of_part", "split"]


def of_part(units: Mapping[str, Collection[str]], part: Part, shares: Shares | None, source: str) -> frozenset[str]:
    """The ids of the questions of a part.

    Args:
        units: question id -> what it must not share with a question of another part.
        part: which one.
        shares: of the questions; ``None``: there are no parts, so all.
        source: where the questions are, for messages.

    Raises:
        ValueError: if the part would be empty.
    """
    if part == "all" or shares is None:
        return frozenset(units)
    found = frozenset(question for question, chosen in split(units, shares).items() if chosen == part)
    if not found:
        raise ValueError(
            f"{source}: the part {part!r} is empty; its {len(units)} questions lie in {len(_components(units))} "
            "sources that must stay together, so ask for another share in [split]"
        )
    return found


def split(units: Mapping[str, Collection[str]], shares: Shares) -> dict[str, Part]:
    """Question id -> part.

    Questions that share a unit, directly or through others, stay together. These bundles are shuffled by the seed and
    go to ``test`` until its share of the questions is reached, then to ``validation``, the rest to ``train``.

    Args:
        units: as in :func:`of_part`.
        shares: of the questions.
    """
    bundles = _components(units)
    random.Random(shares.seed).shuffle(bundles)
    out: dict[str, Part] = {}
    wanted: dict[Part, float] = {"test": shares.test * len(units), "validation": shares.validation * len(units)}
    filled = dict.fromkeys(wanted, 0)
    for bundle in bundles:
        part: Part = "train"
        for candidate in wanted:
            if filled[candidate] < wanted[candidate]:
                part = candidate
                filled[candidate] += len(bundle)
                break
        out |= dict.fromkeys(bundle, part)
    return out


def _components(units: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The ids of questions that are joined by common units, in an order that depends on the ids alone."""
    parent: dict[str, str] = {}

    def root(unit: str) -> str:
        while parent.setdefault(unit, unit) != unit:
            parent[unit] = parent[parent[unit]]
            unit = parent[unit]
        return unit

    first = {question: min(own, default=f"question {question}") for question, own in units.items()}
    for question, own in units.items():
        for unit in own:
            parent[root(unit)] = root(first[question])
    bundles: dict[str, list[str]] = {}
    for question in units:
        bundles.setdefault(root(first[question]), []).append(question)
    return sorted(sorted(bundle) for bundle in bundles.values())
