"""How long commands behave: no bars of libraries through their own, and an orderly end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["terminated_as_interrupted", "without_tqdm_bars"]


@contextmanager
def without_tqdm_bars() -> Iterator[None]:
    """Without the progress bars of libraries, which would run through ours; bm25s, for one, cannot be told."""
    from tqdm.std import tqdm  # type: ignore[import-untyped]

    begin = tqdm.__init__

    def silent(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **{**kwargs, "disable": True})

    tqdm.__init__ = silent
    try:
        yield
    finally:
        tqdm.__init__ = begin


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: what is finished is reported. Only a main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
