"""Finding the JSON object that a language model was asked for within its reply."""

from __future__ import annotations

import json
from typing import Any

from evaluators.judge.reply import UnreadableReplyError
from evaluators.whole import read_json_at

# Places of a reply where an object may begin that are tried, from the end; a reply of braces alone must not take long.
_MOST_PLACES = 200


def last_object(text: str, key: str) -> dict[str, Any]:
    """The last JSON object in the text that has the key, whatever is written around it.

    Raises:
        UnreadableReplyError: if there is none.
    """
    decoder = json.JSONDecoder(strict=False)
    best: tuple[int, dict[str, Any]] | None = None
    place = text.rfind("{")
    for _ in range(_MOST_PLACES):
        if place < 0:
            break
        try:
            found, end = read_json_at(decoder, text, place)
        except (ValueError, RecursionError):
            found, end = None, 0
        # Of nested objects the outermost one that has the key; of several in a row the last.
        if isinstance(found, dict) and key in found and (best is None or end >= best[0]):
            best = end, found
        place = text.rfind("{", 0, place)
    if best is None:
        raise UnreadableReplyError(f"the reply holds no JSON object with {key!r}: {text[:80]!r}")
    return best[1]
