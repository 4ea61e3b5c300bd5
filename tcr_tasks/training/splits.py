"""Which questions are trained on: parts that share no source database, and no table that rows were taken from."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from tcr_tasks.training.collection import Collection, Problem
from tcr_tasks.training.config import Part, Shares

__all__ = ["part_of", "split"]


def part_of(collection: Collection, part: Part, shares: Shares | None) -> tuple[Problem, ...]:
    """The questions of a part.

    Raises:
        ValueError: if the part would be empty.
    """
    if part == "all" or shares is None:
        return collection.problems
    chosen = split(collection.problems, shares)
    found = tuple(problem for problem in collection.problems if chosen[problem.id] == part)
    if not found:
        n = len(_components(collection.problems))
        raise ValueError(
            f"{collection.directory}: the part {part!r} is empty; its {len(collection.problems)} questions lie in {n} "
            "sources that must stay together, so ask for another share in [split]"
        )
    return found


def split(problems: Sequence[Problem], shares: Shares) -> dict[str, Part]:
    """Question id -> part.

    Questions that share a unit, directly or through others, stay together. These bundles are shuffled by the seed and
    go to ``test`` until its share of the questions is reached, then to ``validation``, the rest to ``train``.
    """
    bundles = _components(problems)
    random.Random(shares.seed).shuffle(bundles)
    out: dict[str, Part] = {}
    wanted: dict[Part, float] = {
        "test": shares.test * len(problems),
        "validation": shares.validation * len(problems),
    }
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


def _components(problems: Sequence[Problem]) -> list[list[str]]:
    """The ids of questions that are joined by common units, in an order that depends on the ids alone."""
    parent: dict[str, str] = {}

    def root(unit: str) -> str:
        while parent.setdefault(unit, unit) != unit:
            parent[unit] = parent[parent[unit]]
            unit = parent[unit]
        return unit

    first: Mapping[str, str] = {p.id: min(p.units, default=f"question {p.id}") for p in problems}
    for problem in problems:
        for unit in problem.units:
            parent[root(unit)] = root(first[problem.id])
    bundles: dict[str, list[str]] = {}
    for problem in problems:
        bundles.setdefault(root(first[problem.id]), []).append(problem.id)
    return sorted(sorted(bundle) for bundle in bundles.values())
