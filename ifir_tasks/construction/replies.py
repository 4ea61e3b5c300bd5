"""Reading what a language model wrote: an instruction, or a query with its instruction."""

from __future__ import annotations

import re

from evaluators.judge import Reply
from evaluators.judge.answers import complete_text, paragraph
from evaluators.judge.reply import UnreadableReplyError

_PARTS = re.compile(r"^[\s*#>_]*(query|instruction)[\s*_]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE)


def read_instruction(reply: Reply, below: str | None) -> str:
    """The text after the last ``Instruction:``, as one paragraph.

    Args:
        reply: to a request for an instruction.
        below: the instruction of the level below, which the new one must not repeat.

    Raises:
        UnreadableReplyError: if there is none.
    """
    text = _part(complete_text(reply), "instruction")
    if below is not None and text.casefold() == " ".join(below.split()).casefold():
        raise UnreadableReplyError("the reply repeats the instruction of the level below")
    return text


def read_request(reply: Reply) -> tuple[str, str]:
    """The texts after the last ``Query:`` and the last ``Instruction:``.

    Raises:
        UnreadableReplyError: if either is not there.
    """
    text = complete_text(reply)
    return _part(text, "query"), _part(text, "instruction")


def _part(text: str, name: str) -> str:
    """What follows the last heading of that name, up to the next heading."""
    pieces = _PARTS.split(text)
    found = [body for heading, body in zip(pieces[1::2], pieces[2::2], strict=True) if heading.lower() == name]
    part = paragraph(found[-1]) if found else ""
    if not any(c.isalnum() for c in part):
        raise UnreadableReplyError(f"the reply holds no text after '{name.capitalize()}:': {text[:80]!r}")
    return part
