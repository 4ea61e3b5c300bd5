"""What is trained on: each question with the table that answers and siblings that do not.

A document is its text here: that is all that a model sees of it, and two tables that print the same cannot be told
apart. So a text that answers a question is no negative of it, under whatever name it comes.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcr_tasks.training.collection import Collection, Problem
from tcr_tasks.training.config import Source, TrainingConfig
from tcr_tasks.training.splits import part_of

__all__ = ["Example", "Examples", "make_examples"]


@dataclass(frozen=True)
class Example:
    """One query to train on.

    Attributes:
        source: the source's name.
        id: the question's id there.
        query: its text with the source's prefix.
        question: its text.
        positive: a text that answers it.
        negatives: siblings that do not, at most ``max_negatives``.
        barred: every text that is known to answer it, so that none of them is a negative; ``positive`` is among them.
        group: names the tables it is about: questions on the same ones have the same.
    """

    source: str
    id: str
    query: str
    question: str
    positive: str
    negatives: tuple[str, ...]
    barred: frozenset[str]
    group: str


@dataclass(frozen=True)
class Examples:
    """All examples of an epoch, in a fixed order, and what a reader of the results should know.

    Attributes:
        rows: the examples.
        notes: counts of what was drawn and left out.
    """

    rows: tuple[Example, ...]
    notes: tuple[str, ...]


def make_examples(config: TrainingConfig, collections: Mapping[str, Collection], seed: int) -> Examples:
    """The examples of all sources.

    Args:
        config: the training.
        collections: source name -> its dataset.
        seed: of the draw of siblings and of examples.

    Raises:
        ValueError: if a source has no examples, or none with a negative although only siblings are negatives.
    """
    notes: list[str] = []
    rows: list[Example] = []
    for source in config.sources:
        found = _of_source(source, config, collections[source.name], seed, notes)
        if not config.in_batch and not any(example.negatives for example in found):
            raise ValueError(
                f"source {source.name!r}: its questions have no siblings, and in_batch = false leaves no other "
                "negatives"
            )
        rows += _drawn(found, source, seed, notes)
    return Examples(tuple(_bar_elsewhere(rows, config, collections)), tuple(notes))


def _of_source(
    source: Source, config: TrainingConfig, collection: Collection, seed: int, notes: list[str]
) -> list[Example]:
    texts = collection.printed(source.format)
    out: list[Example] = []
    dropped = without = 0
    for problem in part_of(collection, source.part, config.split):
        barred = frozenset(texts[d] for d in problem.answering)
        without += not problem.positives
        for positive in problem.positives:
            siblings = [d for d in problem.group or () if d not in problem.positives]
            unanswering = [d for d in siblings if texts[d] not in barred]
            dropped += len(siblings) - len(unanswering)
            negatives = _sampled(unanswering, config.max_negatives, f"{seed} {source.name} {problem.id}")
            out.append(
                Example(
                    source=source.name,
                    id=problem.id,
                    query=source.prefix + problem.text,
                    question=problem.text,
                    positive=texts[positive],
                    negatives=tuple(dict.fromkeys(texts[d] for d in negatives)),
                    barred=barred,
                    group=_group_name(collection, problem, positive),
                )
            )
    if not out:
        raise ValueError(f"source {source.name!r}: no question of the part {source.part!r} has a document that answers")
    if dropped:
        notes.append(f"{source.name}: {dropped} siblings that answer the question are no negatives")
    if without:
        notes.append(f"{source.name}: {without} questions without a document that answers are left out")
    return out


def _group_name(collection: Collection, problem: Problem, positive: str) -> str:
    members = " ".join(sorted(problem.group)) if problem.group is not None else positive
    return f"{collection.directory} {members}"


def _sampled(members: Sequence[str], most: int, seed: str) -> list[str]:
    """At most ``most`` members, in their order; which ones depends on the seed alone, not on other questions."""
    if len(members) <= most:
        return list(members)
    chosen = set(random.Random(seed).sample(range(len(members)), most))
    return [member for place, member in enumerate(members) if place in chosen]


def _drawn(found: list[Example], source: Source, seed: int, notes: list[str]) -> list[Example]:
    """As many examples as the source is to give: a random part, or all of them and more by drawing again."""
    wanted = source.examples
    if wanted is None or wanted == len(found):
        return found
    rng = random.Random(f"{seed} {source.name}")
    if wanted < len(found):
        notes.append(f"{source.name}: {wanted} of {len(found)} examples, drawn")
        return rng.sample(found, wanted)
    notes.append(f"{source.name}: {wanted} examples, drawn with replacement from {len(found)}")
    return rng.choices(found, k=wanted)


def _bar_elsewhere(
    rows: Sequence[Example], config: TrainingConfig, collections: Mapping[str, Collection]
) -> list[Example]:
    """With what other sources know: an answer printed in their format, and the positives of the same question."""
    by_question: defaultdict[str, set[str]] = defaultdict(set)
    for example in rows:
        by_question[example.question] |= example.barred
    for one in config.sources:
        collection = collections[one.name]
        same = [s for s in config.sources if collections[s.name].directory == collection.directory and s != one]
        for printed in (collection.printed(other.format) for other in same):
            for problem in collection.problems:
                if problem.text in by_question:
                    by_question[problem.text] |= {printed[d] for d in problem.answering}
    out = []
    for example in rows:
        barred = frozenset(by_question[example.question])
        negatives = tuple(n for n in example.negatives if n not in barred)
        out.append(replace(example, barred=barred, negatives=negatives))
    return out
