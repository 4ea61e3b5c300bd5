"""Which topics go into a set: judged, with a narrative, in no other set, a seeded number (FollowIR, section 3)."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaluators.construction.counts import counted
from followir_tasks.construction.exclusion import QueryField, query_of, without_topics_of_others
from followir_tasks.construction.topics import Topic

__all__ = ["Band", "Chosen", "QueryField", "Selection", "select"]


@dataclass(frozen=True)
class Band:
    """The shares of a topic's relevant documents that may stay relevant, both ends included, within 0..1.

    Raises:
        ValueError: if the ends are not in order, or allow that all or none stay.
    """

    least: float
    most: float

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most < 1:
            raise ValueError(
                f"the share that stays relevant must lie in 0..1 without its ends, the lower bound first; got "
                f"{self.least:g} to {self.most:g}"
            )

    def holds(self, stay: int, of: int) -> bool:
        """Whether this many of so many lie in the band."""
        return of > 0 and self.least <= stay / of <= self.most

    def attainable(self, of: int) -> bool:
        """Whether any number of so many lies in the band."""
        return any(self.holds(n, of) for n in (math.floor(self.most * of), math.ceil(self.least * of)))

    @property
    def told(self) -> str:
        """For messages, in percent."""
        return f"{self.least:.0%}-{self.most:.0%}"


@dataclass(frozen=True)
class Chosen:
    """A topic of the set.

    Attributes:
        topic: its number.
        query, instruction: description (or title) and narrative.
        relevant: relevant documents with their grades, in the order of the judgements.
        judged: documents judged and not relevant.
    """

    topic: str
    query: str
    instruction: str
    relevant: Mapping[str, int]
    judged: Sequence[str]


@dataclass(frozen=True)
class Selection:
    """The topics of the set, and counts of those that are not in it, by reason.

    ``excluded``: number of each topic that another set has -> why it was left out.
    """

    chosen: list[Chosen]
    counts: dict[str, int]
    excluded: dict[str, str] = field(default_factory=dict)


def select(
    topics: Sequence[Topic],
    judgements: Mapping[str, Mapping[str, int]],
    *,
    query: QueryField,
    min_grade: int,
    band: Band,
    excluded: Sequence[Topic] = (),
    number: int | None = None,
    seed: int = 0,
) -> Selection:
    """Choose topics; the order of the source is kept.

    Args:
        topics: of the source.
        judgements: topic -> {document: grade}.
        query: the field that becomes the query.
        min_grade: the lowest grade that is relevant.
        band: a topic is left out if it has too few relevant documents for any share in it.
        excluded: topics of other sets, which are left out.
        number: how many to draw of those left; ``None``: all.
        seed: of the draw.

    Raises:
        ValueError: if fewer are left than are wanted, or none.
    """
    kept = without_topics_of_others(topics, excluded, query)
    unknown = judgements.keys() - {topic.number for topic in topics}
    known = {"n_source_topics": len(topics), "n_judged_topics_not_in_source": len(unknown)}
    counts = {**known, **kept.counts} | dict.fromkeys(
        (
            "n_topics_without_query_or_narrative",
            "n_topics_without_relevant",
            "n_topics_with_too_few_relevant",
            "n_topics_not_drawn",
        ),
        0,
    )
    left: list[Chosen] = []
    for topic in kept.topics:
        judged = judgements.get(topic.number, {})
        relevant = {d: grade for d, grade in judged.items() if grade >= min_grade}
        text = query_of(topic, query)
        if not (text and topic.narrative):
            counts["n_topics_without_query_or_narrative"] += 1
        elif not relevant:
            counts["n_topics_without_relevant"] += 1
        elif not band.attainable(len(relevant)):
            counts["n_topics_with_too_few_relevant"] += 1
        else:
            rest = [d for d in judged if d not in relevant]
            left.append(Chosen(topic.number, text, topic.narrative, relevant, rest))
    if not left or (number is not None and number > len(left)):
        raise ValueError(f"{len(left)} topics can be used, {number or 'at least 1'} are wanted ({counted(counts)})")
    if number is not None:
        drawn = set(random.Random(seed).sample(sorted(c.topic for c in left), number))
        counts["n_topics_not_drawn"] = len(left) - number
        left = [c for c in left if c.topic in drawn]
    return Selection(left, counts, kept.excluded)
