"""Files that are there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path


def write_text(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write a file, and the folders above it; a reader sees the whole file or none. Line ends stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding=encoding, newline="")
    unfinished.replace(path)
