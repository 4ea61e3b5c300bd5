"""Reading what a language model wrote: a description of a table, or a table for a question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluators.judge import Reply
from evaluators.judge.answers import complete_text
from evaluators.judge.reply import UnreadableReplyError
from tcr_tasks.retrieval.printed import read_printed

__all__ = ["UNREADABLE_REPLIES", "read_description", "read_table"]

# The figure of a result: different replies from which nothing could be read.
UNREADABLE_REPLIES = "n_unreadable_replies"
# A reply is foreign text: what is far too long for its purpose is not used.
_LONGEST_DESCRIPTION, _LONGEST_TABLE = 6_000, 12_000
_TABLE = re.compile(
    r"^[\s*#>_]*name[\s*_]*:[ \t*_]*([^\n]*)\n+```[ \t]*(?:csv)?[ \t]*\n(.*?)\n[ \t]*```", re.I | re.M | re.S
)


def read_description(reply: Reply, parts: Sequence[str]) -> str:
    """The lines of a reply that begin with each of the parts' names, with what follows each.

    Raises:
        UnreadableReplyError: if there is no complete reply, a part is missing or empty, or it is far too long.
    """
    text = complete_text(reply)
    places = []
    for part in parts:
        found = list(re.finditer(rf"^[\s*#>_-]*{part}[\s*_]*:[ \t*_]*", text, re.IGNORECASE | re.MULTILINE))
        if not found:
            raise UnreadableReplyError(f"the reply has no line '{part}:': {text[:80]!r}")
        places.append((found[-1].start(), found[-1].end(), part))
    places.sort()
    ends = [start for start, _, _ in places[1:]] + [len(text)]
    said = {part: " ".join(text[begin:end].split()) for (_, begin, part), end in zip(places, ends, strict=True)}
    if not all(said.values()):
        raise UnreadableReplyError(f"the reply says nothing after '{next(p for p in parts if not said[p])}:'")
    description = " ".join(f"{part}: {said[part]}" for part in parts)
    if len(description) > _LONGEST_DESCRIPTION:
        raise UnreadableReplyError(f"the description has {len(description)} characters, {_LONGEST_DESCRIPTION} at most")
    return description


def read_table(reply: Reply) -> str:
    """The last table of a reply as a TCR table of CSV prints it: its name, the header, at least one row.

    Raises:
        UnreadableReplyError: if there is no complete reply, no such table, or it is far too long.
    """
    text = complete_text(reply)
    found = list(_TABLE.finditer(text))
    if not found:
        raise UnreadableReplyError(f"the reply holds no name with a table of CSV: {text[:80]!r}")
    name, body = (part.strip() for part in found[-1].groups())
    printed = f"{name.strip('*_ ')}:\n{body}\n\n\n"
    table = read_printed(printed)
    if table is None or not table.rows:
        raise UnreadableReplyError(f"the reply's table is no CSV with a header and a row: {body[:80]!r}")
    if len(printed) > _LONGEST_TABLE:
        raise UnreadableReplyError(f"the table has {len(printed)} characters, {_LONGEST_TABLE} at most")
    return printed
