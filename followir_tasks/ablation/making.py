"""Keywords and short forms of instructions by a language model (FollowIR, section 4.3; the prompts are ours)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from datasets import Dataset

from evaluators.judge import Outcome, Prompt, PromptedAsking, Reply, Request
from evaluators.judge.answers import declines, kept_text, paragraph
from evaluators.judge.prompt import package_prompts
from evaluators.judge.replies import Replies
from evaluators.judge.reply import UnreadableReplyError
from followir_tasks.forms import KEPT, KEYWORDS, SHORT, QueryForms
from followir_tasks.words import words

PROMPTS = Path(__file__).parent / "prompts"
FIELDS = {KEYWORDS: ("query", "instruction"), SHORT: ("query", "instruction")}
_HEADINGS = {
    form: re.compile(rf"^[\s*#>_]*(?:{name})[\s*_]*:[\s*_]*", re.IGNORECASE)
    for form, name in ((KEYWORDS, "keywords"), (SHORT, "(?:short )?instruction"))
}
# How a line begins that is of a list, JSON, code or markup, and one with another heading.
_MARKED = re.compile(r"[-*+\u2022]\s|[\[{`]|\d+[.)]\s|</?\w")
_OTHER_HEADING = re.compile(r"[^\w\s]*[^\W\d_][\w ]{0,40}:(?:\s|$)")
# Share of a form's words that must stand in query or instruction: keywords are taken from there, a short form may say
# some of it otherwise. Less is an answer to something else, such as "OK".
_LEAST_SHARED = {KEYWORDS: 0.5, SHORT: 0.25}
_STEM = 4  # letters


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
    ids, texts, instructions = (queries[name] for name in ("id", "text", "instruction"))
    asked = {query: (text, told) for query, text, told in zip(ids, texts, instructions, strict=True)}
    outcomes = language_model.ask(list(requests.values()), label="instruction forms")
    replies = _read(requests, outcomes, asked)
    if ask_again and replies.unreadable:
        again = frozenset(requests[wanted].key for wanted in replies.unreadable)
        outcomes = language_model.ask(list(requests.values()), label="instruction forms, once more", again=again)
        replies = _read(requests, outcomes, asked)
    return replies


def _read(
    requests: Iterable[Wanted], outcomes: Iterable[Outcome], asked: Mapping[str, tuple[str, str]]
) -> Replies[Wanted, str]:
    replies: Replies[Wanted, str] = Replies({}, {}, {})
    for wanted, outcome in zip(requests, outcomes, strict=True):
        query, full = asked[wanted.query]
        replies.add(wanted, outcome, partial(read_form, form=wanted.form, query=query, full=full))
    return replies


def read_form(reply: Reply, form: str, query: str, full: str) -> str:
    """The one line after the form's last heading, or the whole reply if it is one line without any heading.

    Args:
        reply: what the model said.
        form: that was asked for.
        query: its text.
        full: the instruction. What is longer is an explanation, or another instruction; it is compared by characters,
            since not every language puts blanks between words.

    Raises:
        UnreadableReplyError: if there is nothing, something longer or something else (a refusal, words that are neither
            in the query nor in the instruction), or the reply was cut off.
    """
    text, heading = kept_text(reply), _HEADINGS[form]
    lines = [line for line in text.splitlines() if any(c.isalnum() for c in line)]
    headed = [place for place, line in enumerate(lines) if heading.match(line)]
    own = [heading.sub("", line, count=1) for line in lines[headed[-1] if headed else 0 :]]
    said = [line for line in map(paragraph, own) if any(c.isalnum() for c in line)]
    if not said:
        raise UnreadableReplyError(f"the reply holds no words: {text[:80]!r}")
    if len(said) > 1:
        raise UnreadableReplyError(f"the reply holds more than one line, so it is unclear which counts: {text[:80]!r}")
    if _MARKED.match(said[0]) or declines(said[0]) or (not headed and _OTHER_HEADING.match(said[0])):
        raise UnreadableReplyError(f"the reply holds something else than the {form} form: {text[:80]!r}")
    if len(said[0]) > len(full):
        raise UnreadableReplyError(f"the reply is longer than the instruction: {said[0][:80]!r}")
    own_words, given = _words(said[0]), set(_words(f"{query} {full}"))
    if sum(word in given for word in own_words) < _LEAST_SHARED[form] * len(own_words):
        raise UnreadableReplyError(
            f"the reply has few words of query and instruction, so it is no {form} form of it: {said[0][:80]!r}"
        )
    return said[0]


def _words(text: str) -> list[str]:
    """The beginnings of the words, since many languages inflect their ends.

    Of scripts without small and capital letters, some of which have no blanks, pairs of characters.
    """
    out: list[str] = []
    for word in words(text):
        if any(unicodedata.category(c) == "Lo" for c in word):
            out += [word[at : at + 2] for at in range(max(len(word) - 1, 1))]
        else:
            out.append(word[:_STEM])
    return out


def forms_of(read: Mapping[Wanted, str]) -> dict[str, QueryForms]:
    """The forms by query, once all have been read.

    Raises:
        KeyError: for a query that lacks one.
    """
    queries = dict.fromkeys(wanted.query for wanted in read)
    return {query: QueryForms(*(read[Wanted(query, form)] for form in KEPT)) for query in queries}
