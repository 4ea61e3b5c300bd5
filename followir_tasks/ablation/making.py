"""Keywords and short forms of instructions by a language model (FollowIR, section 4.3; the prompts are ours)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from datasets import Dataset

from evaluators.judge import Prompt, PromptedAsking, Reply, Request
from evaluators.judge.answers import complete_text, paragraph
from evaluators.judge.prompt import package_prompts
from evaluators.judge.replies import Replies, read_replies
from evaluators.judge.reply import UnreadableReplyError
from followir_tasks.forms import KEPT, KEYWORDS, SHORT, QueryForms

PROMPTS = Path(__file__).parent / "prompts"
FIELDS = {KEYWORDS: ("query", "instruction"), SHORT: ("query", "instruction")}
_HEADING = re.compile(r"^[\s*#>_]*(?:keywords|(?:short )?instruction)[\s*_]*:[\s*_]*", re.IGNORECASE)


class Wanted(NamedTuple):
    """A query, and the form of its instruction that is asked for."""

    query: str
    form: str


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """The prompts by form: the package's, or those of the same name in the user's folder where it has them.

    Raises:
        FileNotFoundError, ValueError: as :func:`~evaluators.judge.prompt.package_prompts`.
    """
    return package_prompts(PROMPTS, FIELDS, folder)


def told(asking: PromptedAsking) -> str:
    """What the forms depend on, for a card."""
    versions = ", ".join(f"{name} {asking.prompts[name].version}" for name in KEPT)
    sampling = asking.sampling
    return f"{asking.model}, prompts {versions}, temperature {sampling.temperature}, top-p {sampling.top_p}"


def form_requests(queries: Dataset, asking: PromptedAsking) -> dict[Wanted, Request]:
    """A request for each kept form of each query's instruction.

    Args:
        queries: columns ``id``, ``text`` and ``instruction``.
        asking: with a prompt for each form.
    """
    rows = list(zip(queries["id"], queries["text"], queries["instruction"], strict=True))
    return {
        Wanted(query, form): asking.request_by(form, query=text, instruction=instruction)
        for query, text, instruction in rows
        for form in KEPT
    }


def ask_forms(asking: PromptedAsking, queries: Dataset, *, ask_again: bool = False) -> Replies[Wanted, str]:
    """What the model wrote; every reply that cannot be used is there with its reason.

    Args:
        asking, queries: as for :func:`form_requests`.
        ask_again: whether to ask once more where a stored reply cannot be used.

    Raises:
        EndpointError: if the endpoint answers nothing.
    """
    language_model, requests = asking.language_model, form_requests(queries, asking)
    full = dict(zip(queries["id"], queries["instruction"], strict=True))
    outcomes = language_model.ask(list(requests.values()), label="instruction forms")
    replies = _not_longer(read_replies(requests, outcomes, read_form), full)
    if ask_again and replies.unreadable:
        again = frozenset(requests[wanted].key for wanted in replies.unreadable)
        outcomes = language_model.ask(list(requests.values()), label="instruction forms, once more", again=again)
        replies = _not_longer(read_replies(requests, outcomes, read_form), full)
    return replies


def read_form(reply: Reply) -> str:
    """What follows the heading, as one line.

    Raises:
        UnreadableReplyError: if there is nothing, or the reply was cut off.
    """
    text = paragraph(_HEADING.sub("", complete_text(reply)))
    if not any(c.isalnum() for c in text):
        raise UnreadableReplyError(f"the reply holds no words: {reply.text[:80]!r}")
    return text


def _not_longer(replies: Replies[Wanted, str], full: Mapping[str, str]) -> Replies[Wanted, str]:
    """A form with more words than the instruction is an explanation, or another instruction."""
    read, unreadable = {}, dict(replies.unreadable)
    for wanted, text in replies.read.items():
        if len(text.split()) > len(full[wanted.query].split()):
            unreadable[wanted] = f"the reply is longer than the instruction: {text[:80]!r}"
        else:
            read[wanted] = text
    return Replies(read, replies.failed, unreadable)


def forms_of(read: Mapping[Wanted, str]) -> dict[str, QueryForms]:
    """The forms by query, once all have been read.

    Raises:
        KeyError: for a query that lacks one.
    """
    queries = dict.fromkeys(wanted.query for wanted in read)
    return {query: QueryForms(*(read[Wanted(query, form)] for form in KEPT)) for query in queries}
