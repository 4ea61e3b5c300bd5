"""Keeping below a rate limit."""

from __future__ import annotations

import asyncio
import time
from collections import deque

_MINUTE = 60.0


class Pace:
    """Spaces what it lets through evenly, and so that no minute holds more than ``per_minute`` units.

    There is no burst to begin with. Takers are served in the order they came; a unit is a request or a token. A taker
    that wants more than a minute may hold gets a minute of its own.
    """

    def __init__(self, per_minute: float) -> None:
        if not per_minute > 0:
            raise ValueError(f"a limit per minute must be above 0, got {per_minute!r}")
        self._per_minute = per_minute
        self._next = 0.0
        # Start and units of those that may still share a minute with the next, and the sum of the units.
        self._recent: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def reserve(self, units: float, now: float) -> float:
        """When ``units`` may pass, at ``now`` or later, in seconds; the place is then taken."""
        start = max(self._next, now)
        # Even spacing alone would let a minute end with a taker larger than what was left of it.
        while self._recent and (
            self._recent[0][0] + _MINUTE <= start or self._sum + min(units, self._per_minute) > self._per_minute
        ):
            before, freed = self._recent.popleft()
            start = max(start, before + _MINUTE)
            self._sum = self._sum - freed if self._recent else 0.0
        self._recent.append((start, units))
        self._sum += units
        self._next = start + units * _MINUTE / self._per_minute
        return start

    async def take(self, units: float = 1.0) -> None:
        """Wait until ``units`` may pass."""
        now = time.monotonic()
        # Reserved before waiting, so that nobody else gets the same place.
        start = self.reserve(units, now)
        if start > now:
            await asyncio.sleep(start - now)
