"""What training needs beyond the package itself."""

from __future__ import annotations

import importlib.util

__all__ = ["MissingExtraError", "require_extra"]


class MissingExtraError(ModuleNotFoundError):
    """A package that training needs is not installed; the message says how to install it."""


def require_extra(lora: bool = False) -> None:
    """Raise a :class:`MissingExtraError` unless everything that training needs is installed."""
    needed = ("accelerate", *(("peft",) if lora else ()))
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"training needs {' and '.join(missing)}, not installed; run: pip install 'mteb-beyond[train]'"
        )
