"""The values of an answer, read from a language model's reply."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from evaluators.judge import Reply
from evaluators.judge.answers import complete_text
from evaluators.judge.reply import UnreadableReplyError
from evaluators.whole import read_json_at
from tcr_tasks.qa.values import Value, read_value

__all__ = ["read_answer"]

# A longer list is no answer, and comparing it would take long.
MOST_VALUES = 10_000
_HEAD = re.compile(r"^[\s*#>_`-]*(?:final )?answer[\s*_`]*:(?:[\s*_]|`(?!`))*", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"\s*```(?:json)?\s*", re.IGNORECASE)
_AFTER = re.compile(r"[\s*_`.]*")


def read_answer(reply: Reply) -> tuple[Value, ...]:
    """The values after the last ``Answer:`` that begins a line, or in a reply that is nothing but JSON.

    The values are a JSON list, or a single one; ``null`` is no value. What a model thinks aloud before ``</think>`` is
    left out. An empty answer is an answer: that there is none.

    Raises:
        UnreadableReplyError: if the reply is a refusal, empty, cut off, or holds no such values.
    """
    said = complete_text(reply)
    heads = list(_HEAD.finditer(said))
    text = said[heads[-1].end() :] if heads else said
    found = _json(_FENCE.sub("", text, count=1) if _FENCE.match(text) else text.strip(), alone=not heads)
    if isinstance(found, dict) and not heads and found.keys() == {"answer"}:
        found = found["answer"]
    values = found if isinstance(found, list) else [] if found is None else [found]
    if len(values) > MOST_VALUES:
        raise UnreadableReplyError(f"the answer has {len(values)} values, more than {MOST_VALUES}")
    try:
        return tuple(read_value(value) for value in values)
    except TypeError as error:
        raise UnreadableReplyError(str(error)) from None


def _json(text: str, *, alone: bool) -> Any:
    """The JSON value at the beginning of a text; with ``alone``, a list or an object that is all of it."""
    try:
        found, end = read_json_at(_DECODER, text)
    except (ValueError, RecursionError):
        raise UnreadableReplyError(f"the reply holds no answer in JSON: {text[-80:]!r}") from None
    rest = text[end:] if alone else text[end:].partition("\n")[0]
    if (alone and not isinstance(found, list | dict)) or not _AFTER.fullmatch(rest):
        raise UnreadableReplyError(f"the reply holds more than an answer: {text[:80]!r}")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no value")


# Decimal keeps every digit.
_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)
