"""Reading what a language model wrote: an instruction, or a query with its instruction."""

from __future__ import annotations

from evaluators.judge import Reply
from evaluators.judge.answers import headed_part, kept_text
from evaluators.judge.reply import UnreadableReplyError

_HEADINGS = ("query", "instruction")


def read_instruction(reply: Reply, below: str | None) -> str:
    """The text after the last ``Instruction:``, as one paragraph.

    Args:
        reply: to a request for an instruction.
        below: the instruction of the level below, which the new one must not repeat.

    Raises:
        UnreadableReplyError: if there is none.
    """
    text = headed_part(kept_text(reply), "instruction", _HEADINGS)
    if below is not None and text.casefold() == " ".join(below.split()).casefold():
        raise UnreadableReplyError("the reply repeats the instruction of the level below")
    return text


def read_request(reply: Reply) -> tuple[str, str]:
    """The texts after the last ``Query:`` and the last ``Instruction:``.

    Raises:
        UnreadableReplyError: if either is not there.
    """
    text = kept_text(reply)
    return headed_part(text, "query", _HEADINGS), headed_part(text, "instruction", _HEADINGS)
