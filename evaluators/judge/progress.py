"""What has become of many calls so far, and a bar that shows it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_SECONDS_PER_LINE = 30.0


@dataclass(frozen=True)
class Price:
    """Money per million tokens, in whatever currency the user thinks in."""

    per_million_prompt: float
    per_million_completion: float

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """The price of so many tokens."""
        return (prompt_tokens * self.per_million_prompt + completion_tokens * self.per_million_completion) / 1e6


def money(amount: float) -> str:
    """An amount with two decimals, or with two digits that are not 0 where it is small."""
    return f"{amount:.2f}" if amount >= 0.1 or amount == 0 else f"{amount:.2g}"


@dataclass
class Tally:
    """Counts of a batch of calls.

    Attributes:
        total: different requests.
        cached: answered from the store.
        done: answered by the server just now.
        failed: given up.
        prompt_tokens, completion_tokens: what the calls just made used, as the server counted.
    """

    total: int
    cached: int = 0
    done: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def spent(self, price: Price) -> float:
        """What the calls just made cost."""
        return price.of(self.prompt_tokens, self.completion_tokens)

    def expected(self, price: Price) -> float | None:
        """What all calls will have cost if the rest are like those made so far; ``None`` before the first."""
        return self.spent(price) * (self.total - self.cached - self.failed) / self.done if self.done else None


class Bar:
    """A progress bar on standard error: done, cached, failed, cost and time left; a context manager.

    Where standard error is no terminal, a line every half minute in its place.
    """

    def __init__(self, label: str, tally: Tally, price: Price | None, *, shown: bool = True) -> None:
        self._label, self._tally, self._price = label, tally, price
        console = Console(stderr=True)
        self._in_lines = shown and not console.is_terminal
        self._next_line = time.monotonic() + _SECONDS_PER_LINE
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not shown or self._in_lines,
        )
        self._task = self._progress.add_task(label, total=self._calls(), told=self._told())

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._next_line = 0.0
        self.update()
        self._progress.stop()

    def update(self) -> None:
        """Show the counts as they are now."""
        made = self._tally.done + self._tally.failed
        self._progress.update(self._task, total=self._calls(), completed=made, told=self._told())
        if self._in_lines and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _SECONDS_PER_LINE
            print(f"{self._label}: {made} of {self._calls()}, {self._told()}", file=sys.stderr)

    def _calls(self) -> int:
        # Calls answered from the store take no time: counting them would spoil the estimate of the time left. Their
        # number grows while another process fills the same store.
        return self._tally.total - self._tally.cached

    def _told(self) -> str:
        tally = self._tally
        told = f"done {tally.done}, cached {tally.cached}, failed {tally.failed}"
        if self._price is None:
            return told
        expected = tally.expected(self._price)
        return f"{told}, cost {money(tally.spent(self._price))} of {'?' if expected is None else money(expected)}"
