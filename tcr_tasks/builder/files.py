"""What a build was made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.files import LOCK, write_text


def digest(value: Any) -> str:
    """Sixteen hex digits of a SHA-256 over JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


class Record:
    """The file in a build's folder that tells from what it was made.

    Args:
        directory: where the benchmark goes; it must be new, empty, or made by this command.

    Raises:
        ValueError: if it holds something else, or the file was damaged.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "work" / "settings.json"
        self._before: dict[str, Any] | None = None
        if self.path.is_file():
            try:
                self._before = dict(json.loads(self.path.read_text(encoding="utf-8")))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{self.path} was damaged ({error}); choose a new --out") from error
        elif directory.exists() and (not directory.is_dir() or _holds_files(directory)):
            raise ValueError(
                f"{directory} exists and was not made by this command (it has no work/settings.json); choose a new "
                "--out"
            )

    def begin(self, settings: Mapping[str, Any], *, redo: bool) -> None:
        """Go on with what was made from the same settings, or note them for a new build.

        Raises:
            ValueError: naming every setting that differs, unless the build is to be made again.
        """
        now = json.loads(json.dumps(settings))
        before = self._before
        if before is not None and before != now and not redo:
            changed = [
                f"{name} (was {before.get(name)!r}, is {now.get(name)!r})"
                for name in sorted({*before, *now})
                if before.get(name) != now.get(name)
            ]
            raise ValueError(
                f"{self.path.parent.parent} was built from something else: {'; '.join(changed)}. Undo the change, "
                "choose a new --out, or pass --redo to build it again"
            )
        write_text(self.path, json.dumps(now, indent=1, sort_keys=True))


def _holds_files(directory: Path) -> bool:
    """Any but the lock of a build that came to nothing."""
    return any(path.name != LOCK for path in directory.rglob("*") if not path.is_dir())
