"""Turning the facets of a passage into a title and a paragraph."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ifir_tasks.sample_source.model import Axis, Domain, Facets, Topic

_DECADES = {20: "twenties", 30: "thirties", 40: "forties", 50: "fifties", 60: "sixties", 70: "seventies"}
_NUMBERS = {40: "forty", 50: "fifty", 60: "sixty", 65: "sixty-five"}
_SURNAMES = (
    *("Ashdown", "Berwick", "Calloway", "Dunmore", "Ellery", "Farrant", "Grieve", "Holloway", "Iverson"),
    *("Jessop", "Kinnear", "Lomax", "Marchetti", "Norris", "Oakley", "Pargeter", "Quayle", "Rostova"),
    *("Selby", "Thackeray", "Ullman", "Varga", "Whitlock", "Yardley", "Zeller"),
)
_PLACES = ("Alder", "Brenta", "Corvey", "Dalsland", "Elmet", "Fenwick", "Garonne", "Hollin", "Isel", "Juniper")
_UNTITLED = 0.15  # share of passages without a title, as in real corpora
MIN_WORDS, MAX_WORDS = 60, 200


def age_phrase(band: str, rng: random.Random) -> str:
    """A wording of an age range, for instance ``in their thirties or forties`` for ``30-49``."""
    low, high = map(int, band.split("-"))
    if (low, high) == (18, 99):
        return "of any age"
    if high == 99:
        return rng.choice([f"aged {low} or older", f"of at least {_NUMBERS[low]} years"])
    forms = [f"aged {low} to {high}", f"between {low} and {high} years old"]
    if low == 18 and high + 1 in _NUMBERS:
        forms = [f"under {_NUMBERS[high + 1]}", f"younger than {high + 1}"]
    elif low % 10 == 0 and high == low + 9:
        forms.append(f"in their {_DECADES[low]}")
    elif low % 10 == 0 and high == low + 19:
        forms.append(f"in their {_DECADES[low]} or {_DECADES[low + 10]}")
    return rng.choice(forms)


def write(domain: Domain, topic: Topic, facets: Facets, rng: random.Random) -> tuple[str, str]:
    """The title (may be empty) and the text of a passage."""
    first, second = rng.sample(_SURNAMES, 2)
    other = rng.choice(domain.topics[topic.sibling].names)
    slots = {
        "topic": rng.choice(topic.names),
        "other": other,
        "Other": _capital(other),
        "code": f"{first[:2].upper()}-{rng.randrange(1000, 9999)}",
        "place": rng.choice(_PLACES),
        **{side: rng.choice(names) for side, names in topic.parties.items()},
    }
    title = rng.choice(domain.titles) if domain.titles else f"{first} v. {second}"
    title = "" if rng.random() < _UNTITLED else title.format(**slots)
    body = _facet_sentences(domain, topic, facets, rng)
    rng.shuffle(body)
    sentences = _padded(rng.choice(domain.openers), body, domain, topic, rng)
    return title, " ".join(_capital(sentence.format(**slots)) for sentence in sentences)


def _padded(opener: str, body: list[str], domain: Domain, topic: Topic, rng: random.Random) -> list[str]:
    """Opener and body, with context sentences among them up to a random length."""
    wanted = rng.randrange(75, 140)
    pool = rng.sample(topic.fillers, len(topic.fillers)) + rng.sample(domain.fillers, len(domain.fillers))
    rng.shuffle(pool)
    sentences = [opener, *body]
    while sum(len(s.split()) for s in sentences) < wanted and pool:
        sentences.insert(rng.randrange(1, len(sentences) + 1), pool.pop())
    # Last, so that no facet can seem to be said of the other topic.
    if rng.random() < 0.4:
        sentences.append(rng.choice(domain.asides))
    # Some passages begin with context and come to their subject in the second sentence.
    if pool and rng.random() < 0.3:
        sentences.insert(0, pool.pop())
    return sentences


def _facet_sentences(domain: Domain, topic: Topic, facets: Facets, rng: random.Random) -> list[str]:
    wordings = {axis.name: _wording(axis, facets[axis.name], rng) for axis in topic.axes}
    open_axes = list(topic.axes)
    sentences = []
    if domain.joint and rng.random() < 0.6:
        joint = rng.choice(domain.joint)
        sentences.append(joint["text"].format(**{name: wordings[name] for name in joint["axes"]}))
        open_axes = [axis for axis in open_axes if axis.name not in joint["axes"]]
    for axis in open_axes:
        sentences.append(_sentence(axis, facets[axis.name], wordings[axis.name], rng))
    for axis in topic.axes:
        wish = topic.want[axis.name]
        if axis.deny and not axis.satisfied(wish, facets[axis.name]) and rng.random() < 0.4:
            sentences.append(rng.choice(axis.deny).format(v=rng.choice(axis.phrases[wish])))
    return sentences


def _wording(axis: Axis, value: str, rng: random.Random) -> str:
    if axis.kind == "range":
        return age_phrase(value, rng)
    return rng.choice(axis.phrases[value.split(":")[-1]])


def _sentence(axis: Axis, value: str, wording: str, rng: random.Random) -> str:
    templates: Sequence[str] = axis.templates or ["{v}"]
    if axis.kind == "rule":
        templates = axis.rules[value.split(":")[0]]
    if axis.kind == "range":
        low, high = map(int, value.split("-"))
        if high < 99 and rng.random() < 0.4:
            return rng.choice(axis.cap).format(lo=low, hi=high, next=high + 1)
    # Law wordings keep their {p} and {d}, which the caller fills: hence a replacement and no format().
    return rng.choice(templates).replace("{v}", wording)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
