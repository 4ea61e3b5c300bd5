"""What the demo left behind, for the tests that look at it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEMO_WIDTH = "150"


@dataclass(frozen=True)
class DemoRun:
    """What a run of ``mteb-beyond demo`` left behind."""

    folder: Path
    output: str
    connections: list[str]
