"""Reading what a language model wrote: the text of a reply, and its verdict yes or no."""

from __future__ import annotations

import re
from collections.abc import Collection

from evaluators.judge.reply import Reply, UnreadableReplyError
from evaluators.metrics.standard import is_plain_text

__all__ = ["complete_text", "declines", "headed_part", "kept_text", "paragraph", "plain_text", "read_verdict"]

# "yes/no" and "yes or no" repeat the form instead of filling it in.
_VERDICT = re.compile(
    r"^[\s*#>_]*(?:answer[\s*_]*:[\s*_\"']*)(yes|no)\b(?!\s*(?:/|or\b))", re.IGNORECASE | re.MULTILINE
)
_BARE_VERDICT = re.compile(r"\s*[\"'*_]*(yes|no)[\"'*_]*[.,:;!]?\s*(?:\n|$)", re.IGNORECASE)
# Control characters that are no blanks, and the sign that stands for half a character (evaluators/whole.py).
_NO_TEXT = re.compile("[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffd]")
_THOUGHT_BEGINS, _THOUGHT_ENDS = "<think>", "</think>"
# How a reply in English begins that declines to answer.
_DECLINES = re.compile(
    r"as an ai\b|(?:i['\u2019]m |i am )?sorry[,.]|"
    r"i(?: can(?:not|['\u2019]t)| won['\u2019]t| am unable to|['\u2019]m unable to) "
    r"(?:write|help|assist|provide|comply|create|generate|produce|fulfil)",
    re.IGNORECASE,
)
_REASON = re.compile(r"^[\s*#>_]*reason[\s*_]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE)


def read_verdict(reply: Reply) -> tuple[bool, str]:
    """The last ``Answer: yes`` or ``Answer: no``, and the reason, which may be empty or cut off.

    Raises:
        UnreadableReplyError: if there is no verdict. In a reply that was cut off it must come first: what else looks
            like one may be the middle of a thought.
    """
    text = plain_text(reply)
    found = list(_VERDICT.finditer(text))
    verdict = found[-1] if found else _BARE_VERDICT.match(text)
    if reply.finish_reason == "length":
        text = text.lstrip()
        verdict = _VERDICT.match(text) or _BARE_VERDICT.match(text)
    if verdict is None:
        raise UnreadableReplyError(f"the reply holds no 'Answer: yes' or 'Answer: no': {text[:80]!r}")
    reason = _REASON.split(text[verdict.end() :].lstrip(" .,:;*_\"'"))[-1]
    return verdict[1].lower() == "yes", paragraph(reason)


def plain_text(reply: Reply) -> str:
    """The text of a reply that has one, without what the model thought aloud before ``</think>``.

    Raises:
        UnreadableReplyError: if the model refused, said nothing or did not end its thought, or the text cannot be kept
            in a file.
    """
    text = reply.said().rpartition(_THOUGHT_ENDS)[2]
    if text.lstrip().startswith(_THOUGHT_BEGINS):
        raise UnreadableReplyError(f"the reply ends within the model's thought: {text[:80]!r}")
    if not text.strip():
        raise UnreadableReplyError("the reply is empty but for what the model thought")
    if not is_plain_text(text):
        raise UnreadableReplyError("the reply holds half a character or a NUL")
    return text


def complete_text(reply: Reply) -> str:
    """The text of a reply that was not cut off.

    Raises:
        UnreadableReplyError: as :func:`plain_text`, or if it was.
    """
    text = plain_text(reply)
    if reply.finish_reason == "length":
        raise UnreadableReplyError(f"the reply was cut off, allow more tokens (--llm-max-tokens): {text[:80]!r}")
    return text


def kept_text(reply: Reply) -> str:
    """The text of a reply that becomes part of a dataset: whole, and nothing but text.

    Raises:
        UnreadableReplyError: as :func:`complete_text`, or if it holds control characters other than blanks and line
            ends, or signs in place of what could not be read.
    """
    text = complete_text(reply)
    odd = _NO_TEXT.search(text)
    if odd is not None:
        raise UnreadableReplyError(f"the reply holds {odd[0]!a}, which is no text: {text[:80]!r}")
    return text


def declines(text: str) -> bool:
    """Whether a text begins, in English, as one that declines to answer."""
    return _DECLINES.match(text.lstrip()) is not None


def paragraph(text: str) -> str:
    """The text in one line, without marks of emphasis or quotation around it."""
    line = " ".join(text.split()).strip("*_ ")
    quoted = len(line) > 1 and (line[0], line[-1]) in {('"', '"'), ("“", "”")}
    return line[1:-1].strip() if quoted else line


def headed_part(text: str, heading: str, headings: Collection[str]) -> str:
    """What follows the last line that begins with ``heading:``, up to the next heading, as one paragraph.

    Args:
        text: of a reply.
        heading: in small letters.
        headings: all that the prompt asked for.

    Raises:
        UnreadableReplyError: if there are no words below that heading.
    """
    pieces = re.split(
        rf"^[\s*#>_]*({'|'.join(map(re.escape, headings))})[\s*_]*:[ \t*_]*", text, flags=re.IGNORECASE | re.MULTILINE
    )
    found = [body for name, body in zip(pieces[1::2], pieces[2::2], strict=True) if name.lower() == heading]
    part = paragraph(found[-1]) if found else ""
    if not any(c.isalnum() for c in part):
        raise UnreadableReplyError(f"the reply holds no text after '{heading.capitalize()}:': {text[:80]!r}")
    return part
