"""Words of texts that are compared by them."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["words"]

_WORD = re.compile(r"\w+")
_SOFT_HYPHEN = "\u00ad"
_SHORT = 3  # letters of "gas", "its", "was", whose s is no plural


def words(text: str) -> list[str]:
    """Words in small letters, without soft hyphens and other forms of the same letters, and without a plural's s."""
    found = _WORD.findall(unicodedata.normalize("NFKC", text).replace(_SOFT_HYPHEN, "").casefold())
    return [word.removesuffix("s") if len(word) > _SHORT else word for word in found]
