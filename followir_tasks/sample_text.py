"""Writes the passages of the FollowIR sample: small text templates and the order of their sentences.

A template is plain text with two kinds of marks: ``[this|that]`` is one of the alternatives, and ``{name}`` is a
slot. ``{n:5-90}`` is a random number, ``{y:1990-2004}`` a random year (a number without a thousands separator).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
_NUMBER = re.compile(r"\{([ny]):(\d+)-(\d+)\}")
_SLOT = re.compile(r"\{(\w+)\}")

# Where the kinds of sentences may stand. The fact follows the lead, to which its pronouns refer; everything else
# moves, so that the place of a sentence does not give away its role.
_ORDERS: tuple[tuple[str, ...], ...] = (
    ("lead", "fact", "facet", "detail", "filler", "detail2", "filler2", "extra"),
    ("lead", "fact", "detail", "facet", "filler2", "detail2", "filler", "extra"),
    ("filler", "lead", "fact", "detail", "detail2", "facet", "extra", "filler2"),
    ("lead", "fact", "filler", "detail", "extra", "facet", "detail2", "filler2"),
    ("extra", "lead", "fact", "facet", "filler", "detail", "filler2", "detail2"),
    ("lead", "fact", "detail", "extra", "filler", "filler2", "detail2", "facet"),
)

# Ends of document ids. Drawn from the text's digest, they look like news outlets and mean nothing.
_TAGS = ("wire", "post", "news", "echo", "star")


def expand(template: str, slots: Mapping[str, str], rng: Random) -> str:
    """The template with alternatives chosen, numbers drawn and slots filled."""
    text = _ALTERNATIVES.sub(lambda m: rng.choice(m[1].split("|")), template)
    text = _NUMBER.sub(lambda m: _number(m[1], rng.randint(int(m[2]), int(m[3]))), text)
    text = _SLOT.sub(lambda m: slots[m[1]], text)
    return text[0].upper() + text[1:]


def _number(kind: str, value: int) -> str:
    return str(value) if kind == "y" else f"{value:,}"


def write_passage(
    common: Mapping[str, Any],
    family: Mapping[str, Any],
    topic: Mapping[str, Any],
    kind: Mapping[str, Any],
    side: str,
    rng: Random,
) -> dict[str, str]:
    """One document of the topic: a row of the corpus.

    Args:
        common: names, places and quotes that all families share.
        family: the topic's family, for background sentences that the sister topics use too.
        topic: the topic, for the constraint's sentences and the details.
        kind: the kind of document, relevant or a near-miss.
        side: ``keep`` if the document shall meet the added constraint, otherwise ``drop``.
        rng: the only source of chance.
    """
    slots = _draw_slots(common, topic, side, rng)
    details = rng.sample(topic["details"], 3)
    fillers = rng.sample(family["fillers"], 3)
    # A bare kind could not carry the constraint's sentences without contradicting itself; a third detail takes
    # their place, so that length tells nothing.
    facet = details[2] if kind.get("bare", False) else rng.choice(_facet_sentences(topic, kind, side))
    templates = {
        "lead": rng.choice(kind["leads"]),
        "fact": rng.choice(kind["facts"]),
        "facet": facet,
        "detail": details[0],
        "detail2": details[1],
        "filler": fillers[0],
        "filler2": fillers[1],
        "extra": rng.choice([fillers[2], rng.choice(common["quotes"])]),
    }
    order = rng.choice(_ORDERS)
    text = " ".join(expand(templates[part], slots, rng) for part in order)
    title = expand(rng.choice(kind["titles"]), slots, rng)
    return {"_id": _document_id(title, text), "title": title, "text": text}


def _facet_sentences(topic: Mapping[str, Any], kind: Mapping[str, Any], side: str) -> Sequence[str]:
    """The sentences that tell whether the constraint is met: of the kind, of this side, or of both sides."""
    if side in kind:
        sentences: Sequence[str] = kind[side]
    else:
        sentences = topic[side].get("sentences") or topic["either"]
    return sentences


def _draw_slots(common: Mapping[str, Any], topic: Mapping[str, Any], side: str, rng: Random) -> dict[str, str]:
    choices: dict[str, Sequence[str]] = {"town": common["towns"], "country": common["countries"]}
    choices |= topic.get("slots", {})
    choices |= topic[side].get("slots", {})
    slots = {name: expand(rng.choice(values), {}, rng) for name, values in choices.items()}
    for name in ("person", "person2"):
        slots[name] = f"{rng.choice(common['first_names'])} {rng.choice(common['last_names'])}"
    return slots


def _document_id(title: str, text: str) -> str:
    """An id that follows from the content alone: its order tells nothing about topic or relevance."""
    digest = hashlib.sha256(f"{title}\n{text}".encode()).digest()
    return f"{digest[:4].hex()}-{_TAGS[digest[4] % len(_TAGS)]}"
