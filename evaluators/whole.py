"""Text from elsewhere, such as a language model's, made valid Unicode.

JSON's ``\\ud800`` is half of a character that UTF-16 writes in two (a lone surrogate). Python takes it into a text,
which can then neither be printed nor written to a file in UTF-8.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["half_character", "read_json", "read_json_at", "whole", "whole_text"]

_HALF = re.compile("[\ud800-\udfff]")
# What a surrogate's escape in JSON begins with.
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def whole_text(text: str) -> str:
    """The text with U+FFFD for each half of a character; two halves that belong together become the character."""
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def half_character(text: str) -> str | None:
    """Words for the first half of a character in a text and where it stands; ``None`` if the text is whole."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"half a character (a lone surrogate, {text[error.start]!a}, at character {error.start + 1})"
    return None


def whole(value: Any) -> Any:
    """A value as JSON gives it, with every text in it, keys included, made whole by :func:`whole_text`.

    Raises:
        RecursionError: if it is nested too deeply.
    """
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, list):
        return [whole(one) for one in value]
    if isinstance(value, dict):
        return {whole_text(key): whole(one) for key, one in value.items()}
    return value


def read_json(text: str) -> Any:
    """A JSON text's value, its texts whole.

    Raises:
        ValueError, RecursionError: if it is no JSON, or nested too deeply.
    """
    return _made_whole(json.loads(text), text)


def read_json_at(decoder: json.JSONDecoder, text: str, place: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at a place of a text, its texts whole, and where it ends.

    Raises:
        ValueError, RecursionError: if none begins there, or it is nested too deeply.
    """
    value, end = decoder.raw_decode(text, place)
    return _made_whole(value, text[place:end]), end


def _made_whole(value: Any, text: str) -> Any:
    # Few replies have any, and log-probabilities make large values.
    return whole(value) if _ESCAPED_HALF.search(text) or _HALF.search(text) else value
