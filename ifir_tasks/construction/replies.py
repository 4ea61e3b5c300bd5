"""Reading what a language model wrote: an instruction, a query with its instruction, or a verdict with its reason."""

from __future__ import annotations

import re

from evaluators.judge import Reply
from evaluators.judge.reply import UnreadableReplyError
from evaluators.metrics.standard import is_plain_text

_PARTS = re.compile(r"^[\s*#>_]*(query|instruction)[\s*_]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE)
# "yes/no" and "yes or no" repeat the form instead of filling it in.
_VERDICT = re.compile(
    r"^[\s*#>_]*(?:answer[\s*_]*:[\s*_\"']*)(yes|no)\b(?!\s*(?:/|or\b))", re.IGNORECASE | re.MULTILINE
)
_BARE_VERDICT = re.compile(r"\s*[\"'*_]*(yes|no)[\"'*_]*[.,:;!]?\s*(?:\n|$)", re.IGNORECASE)
_REASON = re.compile(r"^[\s*#>_]*reason[\s*_]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE)


def read_instruction(reply: Reply, below: str | None) -> str:
    """The text after the last ``Instruction:``, as one paragraph.

    Args:
        reply: to a request for an instruction.
        below: the instruction of the level below, which the new one must not repeat.

    Raises:
        UnreadableReplyError: if there is none.
    """
    text = _part(_complete(reply), "instruction")
    if below is not None and text.casefold() == " ".join(below.split()).casefold():
        raise UnreadableReplyError("the reply repeats the instruction of the level below")
    return text


def read_request(reply: Reply) -> tuple[str, str]:
    """The texts after the last ``Query:`` and the last ``Instruction:``.

    Raises:
        UnreadableReplyError: if either is not there.
    """
    text = _complete(reply)
    return _part(text, "query"), _part(text, "instruction")


def read_verdict(reply: Reply) -> tuple[bool, str]:
    """The last ``Answer: yes`` or ``Answer: no``, and the reason, which may be empty or cut off.

    Raises:
        UnreadableReplyError: if there is no verdict.
    """
    text = _text(reply)
    found = list(_VERDICT.finditer(text))
    verdict = found[-1] if found else _BARE_VERDICT.match(text)
    if verdict is None:
        raise UnreadableReplyError(f"the reply holds no 'Answer: yes' or 'Answer: no': {text[:80]!r}")
    reason = _REASON.split(text[verdict.end() :].lstrip(" .,:;*_\"'"))[-1]
    return verdict[1].lower() == "yes", _paragraph(reason)


def _text(reply: Reply) -> str:
    text = reply.said()
    if not is_plain_text(text):
        raise UnreadableReplyError("the reply holds half a character or a NUL")
    return text


def _complete(reply: Reply) -> str:
    text = _text(reply)
    if reply.finish_reason == "length":
        raise UnreadableReplyError(f"the reply was cut off, allow more tokens (--llm-max-tokens): {text[:80]!r}")
    return text


def _part(text: str, name: str) -> str:
    """What follows the last heading of that name, up to the next heading."""
    pieces = _PARTS.split(text)
    found = [body for heading, body in zip(pieces[1::2], pieces[2::2], strict=True) if heading.lower() == name]
    part = _paragraph(found[-1]) if found else ""
    if not any(c.isalnum() for c in part):
        raise UnreadableReplyError(f"the reply holds no text after '{name.capitalize()}:': {text[:80]!r}")
    return part


def _paragraph(text: str) -> str:
    line = " ".join(text.split()).strip("*_ ")
    quoted = len(line) > 1 and (line[0], line[-1]) in {('"', '"'), ("“", "”")}
    return line[1:-1].strip() if quoted else line
