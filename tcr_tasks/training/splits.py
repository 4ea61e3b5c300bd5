"""Which questions are trained on: parts that share no source database, and no table that rows were taken from."""

from __future__ import annotations

from evaluators.training.config import Part, Shares
from evaluators.training.splits import of_part
from tcr_tasks.training.collection import Collection, Problem

__all__ = ["part_of"]


def part_of(collection: Collection, part: Part, shares: Shares | None) -> tuple[Problem, ...]:
    """The questions of a part.

    Raises:
        ValueError: if the part would be empty.
    """
    chosen = of_part({p.id: p.units for p in collection.problems}, part, shares, str(collection.directory))
    return tuple(problem for problem in collection.problems if problem.id in chosen)
