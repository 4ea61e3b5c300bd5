"""Counts of what was used and left out, by names that begin with ``n_``."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["counted"]


def counted(counts: Mapping[str, int], *, zeros: bool = False) -> str:
    """The counts in words: ``3 topics, 1 documents without text``.

    Args:
        counts: by name, ``n_documents_without_text``.
        zeros: whether those of nothing are told, too.
    """
    return ", ".join(f"{n} {name[2:].replace('_', ' ')}" for name, n in counts.items() if n or zeros)
