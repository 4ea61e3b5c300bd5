"""How many rows make a table of a wanted length in tokens (A.4 of the TCR-Bench paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcr_tasks.serialize import TableFormat

__all__ = ["Budget", "size_for"]

_PROBE = 20
_ESTIMATES = 12


@dataclass(frozen=True)
class Budget:
    """How many tokens a table should have: ``lower`` to ``upper``, both included.

    Attributes:
        lower, upper: the paper's 6,500 and 7,800 by default (A.4).
        measured_as: the format in which tables are measured; ``None``: each in its own. (The released targets that
            were looked at lie within the budget as HTML, whatever format they are printed in.)
    """

    lower: int = 6_500
    upper: int = 7_800
    measured_as: TableFormat | None = None

    def __post_init__(self) -> None:
        if not 0 < self.lower <= self.upper:
            raise ValueError(f"a token budget runs from at least 1 to no less than that, not {self.lower}-{self.upper}")

    def holds(self, tokens: int) -> bool:
        """Whether a table of so many tokens keeps to the budget."""
        return self.distance(tokens) == 0

    def distance(self, tokens: int) -> int:
        """How many tokens too few or too many, 0 within the budget."""
        return max(0, self.lower - tokens, tokens - self.upper)


def size_for(tokens: Callable[[int], int], most: int, wanted: float, budget: Budget) -> tuple[int, int]:
    """How many rows to add, 0 to ``most``, so that ``tokens(rows)`` lies in the budget, and what it is then.

    Estimated from the length of a few rows, then corrected by counting. Where no number of rows hits the budget, it is
    the largest one that stays below it.
    """
    below, above = 0, most + 1
    counted = {0: tokens(0)}
    probe = min(most, _PROBE)
    if probe:
        counted[probe] = tokens(probe)
    per_row = max(1.0, (counted[probe] - counted[0]) / max(1, probe))
    for extra, found in counted.items():
        if found <= budget.upper:
            below = max(below, extra)
        else:
            above = min(above, extra)
    guess = round((wanted - counted[0]) / per_row)
    for correction in range(_ESTIMATES + most.bit_length()):
        if budget.holds(counted[below]) or above - below <= 1:
            break
        if correction >= _ESTIMATES:
            guess = (below + above) // 2
        guess = min(max(guess, below + 1), above - 1)
        found = counted[guess] = tokens(guess)
        if found <= budget.upper:
            below = guess
        else:
            above = guess
        guess += round((wanted - found) / per_row)
    return below, counted[below]
