"""What the test server saw: every request with its times, and the counts that follow from them."""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from language_model_replies import fingerprint


@dataclass(slots=True)
class Request:
    """One request for a completion, counted from 0 in order of arrival.

    `arrived` and `finished` are `time.monotonic()` seconds, which on Linux all processes share; `body` is None where it
    was no JSON; `key` is the fingerprint of the body; `status` is None where no status line was sent; `complete` says
    whether a reply was sent to its end; `finished` without `complete` means that either side broke off.
    """

    number: int
    arrived: float
    headers: dict[str, str]
    body: Any
    key: str
    fault: str | None = None
    status: int | None = None
    complete: bool = False
    finished: float | None = None


class Counts:
    """All requests for completions so far, and what they sum to; safe to read from another thread."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.in_flight = 0
        self.max_in_flight = 0

    @contextmanager
    def request(self, headers: dict[str, str], data: bytes) -> Iterator[Request]:
        """Count a request that is in flight while the block runs."""
        try:
            body = json.loads(data)
        except ValueError:
            body = None
        key = fingerprint(data.decode(errors="replace") if body is None else body)
        seen = Request(len(self.requests), time.monotonic(), headers, body, key)
        self.requests.append(seen)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            yield seen
        finally:
            self.in_flight -= 1
            seen.finished = time.monotonic()

    @property
    def asked(self) -> Counter[str]:
        """How often each body came, by its fingerprint."""
        return Counter(r.key for r in list(self.requests))

    @property
    def answered(self) -> Counter[str]:
        """How often each body got a whole reply with status 200, be it of use or not."""
        return Counter(r.key for r in list(self.requests) if r.status == 200 and r.complete)

    @property
    def answered_well(self) -> Counter[str]:
        """How often each body got a whole reply with status 200 and without any fault."""
        return Counter(r.key for r in list(self.requests) if r.status == 200 and r.complete and r.fault is None)

    @property
    def statuses(self) -> Counter[int | None]:
        """How often each status was sent; None where the connection ended, or has not yet ended, without one."""
        return Counter(r.status for r in list(self.requests))

    @property
    def faults(self) -> Counter[str]:
        """How often each fault was carried out."""
        return Counter(r.fault for r in list(self.requests) if r.fault is not None)

    @property
    def arrivals(self) -> list[float]:
        """When the requests came, in `time.monotonic()` seconds, ascending."""
        return [r.arrived for r in list(self.requests)]

    @property
    def headers(self) -> dict[str, set[str]]:
        """The values seen of each header (lower case)."""
        values: dict[str, set[str]] = {}
        for request in list(self.requests):
            for name, value in request.headers.items():
                values.setdefault(name, set()).add(value)
        return values

    @property
    def replies_per_second(self) -> float:
        """Whole 200 replies over the time from the first arrival to the last of these replies; 0 without any."""
        done = [r.finished for r in list(self.requests) if r.status == 200 and r.complete and r.finished is not None]
        return len(done) / (max(done) - self.requests[0].arrived) if done else 0.0

    def most_arrivals_within(self, seconds: float) -> int:
        """The largest number of arrivals in any half-open window of this length: for checks of rate limits."""
        times = self.arrivals
        return max((bisect_left(times, start + seconds) - i for i, start in enumerate(times)), default=0)

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON holds it (sets as sorted lists, None as "none")."""
        return {
            "requests": len(self.requests),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "replies_per_second": self.replies_per_second,
            "asked": self.asked,
            "answered": self.answered,
            "answered_well": self.answered_well,
            "statuses": {str(status or "none"): count for status, count in self.statuses.items()},
            "faults": self.faults,
            "arrivals": self.arrivals,
            "headers": {name: sorted(values) for name, values in self.headers.items()},
        }
