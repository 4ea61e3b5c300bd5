"""Entities in TREC's SGML files: HTML's, those that only TREC's collections have, and none that were not meant.

``html.unescape`` also resolves names that no semicolon ends, so that ``P&LTD`` becomes ``P<D``; TREC's texts have many
a plain ``&``.
"""

from __future__ import annotations

import html
import re
from html.entities import html5

__all__ = ["resolved"]

# Of the Federal Register's files; HTML has no `hyph`, and as `blank` a sign that stands for a blank.
_NAMES = {**html5, "hyph;": "-", "blank;": " "}
_ENTITY = re.compile(r"&(?:([A-Za-z][A-Za-z0-9]*;)|#[0-9]+;|#[xX][0-9A-Fa-f]+;)")


def resolved(text: str) -> str:
    """The text with its entities, from ``&`` to ``;``, resolved; unknown ones stay as they are."""
    return _ENTITY.sub(_resolved, text)


def _resolved(found: re.Match[str]) -> str:
    entity, name = found[0], found[1]
    if name is None:  # a number
        return html.unescape(entity)
    return next((_NAMES[n] for n in (name, name.lower()) if n in _NAMES), entity)
