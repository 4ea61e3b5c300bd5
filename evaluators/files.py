"""Files that are there as a whole or not at all, and folders that one run writes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = ".lock"


def write_text(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write a file, and the folders above it; a reader sees the whole file or none. Line ends stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding=encoding, newline="")
    unfinished.replace(path)


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keep other runs off a folder, which is made if it is not there.

    Raises:
        BlockingIOError: if another run uses it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK, timeout=0.1):
            yield
    except Timeout:
        raise BlockingIOError(f"another run uses {folder}; wait for it, or name another folder with --out") from None
