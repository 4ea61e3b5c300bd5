"""Files that are there as a whole or not at all, and folders that one run writes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = ".lock"


def write_text(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write a file as a whole, and the folders above it. Line ends stay as they are."""
    with unfinished(path) as part:
        part.write_text(text, encoding=encoding, newline="")


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Where to write a file that takes its name, in folders made for it, at the end: a reader sees all of it or none.

    After an error the earlier file is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keep other runs off a folder, which is made if it is not there, and gone at the end if nothing was put in it.

    Raises:
        BlockingIOError: if another run uses it.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK, timeout=0.1):
            try:
                yield
            finally:
                _remove_if_empty(made)
    except Timeout:
        raise BlockingIOError(f"another run uses {folder}; wait for it, or name another folder with --out") from None


def _remove_if_empty(made: Sequence[Path]) -> None:
    """Remove a folder and those above it, as they were made, if it holds no more than the lock."""
    # Another run may be looking in, or have begun: then it stays.
    with suppress(OSError):
        if made and [path.name for path in made[0].iterdir()] == [LOCK]:
            (made[0] / LOCK).unlink()
            for folder in made:
                folder.rmdir()
