"""What the language model is asked, and how its constraints are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluators.judge import Prompt, Reply, package_prompts
from evaluators.judge.answers import headed_part, kept_text
from evaluators.judge.reply import UnreadableReplyError

__all__ = ["AGAIN", "FIRST", "VERDICT", "read_constraint", "read_prompts"]

FOLDER = Path(__file__).parent / "prompts"
FIRST, AGAIN, VERDICT = "constraint", "constraint-again", "verdict"
_DRAFT = ("query", "instruction", "documents", "least", "most")
FIELDS: Mapping[str, tuple[str, ...]] = {
    FIRST: _DRAFT,
    AGAIN: (*_DRAFT, "tried"),
    VERDICT: ("query", "instruction", "document"),
}


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """The prompts of the package, or those of the same name in the user's folder where it has them."""
    return package_prompts(FOLDER, FIELDS, folder)


def read_constraint(reply: Reply, tried: Sequence[str]) -> str:
    """The text after the last ``Constraint:``, as one paragraph.

    Raises:
        UnreadableReplyError: if there is none, or it was tried before.
    """
    text = headed_part(kept_text(reply), "constraint", ("constraint",))
    if text.casefold() in {" ".join(t.split()).casefold() for t in tried}:
        raise UnreadableReplyError("the reply repeats a constraint that was tried before")
    return text
