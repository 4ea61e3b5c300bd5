"""Where this project keeps what it fetched, converted or paid for."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "MTEB_BEYOND_CACHE"


def cache_directory() -> Path:
    """``$MTEB_BEYOND_CACHE`` or ``~/.cache/mteb-beyond``; created if it does not exist."""
    path = Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "mteb-beyond").expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path
