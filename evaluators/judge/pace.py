"""Keeping below a rate limit."""

from __future__ import annotations

import asyncio
import time


class Pace:
    """Spaces what it lets through so evenly that no minute holds more than ``per_minute`` units.

    There is no burst to begin with: a limit counted over a sliding minute would be broken by one. Takers are served in
    the order they came; a unit is a request or a token.
    """

    def __init__(self, per_minute: float) -> None:
        if not per_minute > 0:
            raise ValueError(f"a limit per minute must be above 0, got {per_minute!r}")
        self._seconds_per_unit = 60.0 / per_minute
        self._next = 0.0

    async def take(self, units: float = 1.0) -> None:
        """Wait until ``units`` may pass."""
        now = time.monotonic()
        start = max(self._next, now)
        # Reserved before waiting, so that nobody else gets the same place.
        self._next = start + units * self._seconds_per_unit
        if start > now:
            await asyncio.sleep(start - now)
