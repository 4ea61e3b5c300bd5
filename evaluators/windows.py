"""Texts cut into windows that overlap."""

from __future__ import annotations


def window_starts(length: int, size: int, overlap: int, *, trailing: bool = False) -> range:
    """Where windows begin in a text, in tokens or words.

    Windows begin every ``size - overlap`` of them until one reaches the end of the text. With ``trailing`` they begin
    as long as the start lies in the text, so the last ones can lie wholly in the one before them. A text without
    any has one, empty window.

    Args:
        length: of the text.
        size: of a window, more than ``overlap``.
        overlap: shared by neighbours.
        trailing: see above; as IFIR's authors do.
    """
    return range(0, max(length if trailing else length - overlap, 1), size - overlap)
