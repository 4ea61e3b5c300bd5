"""Topics that other sets have, too: no topic of an evaluation set may come into a training set or another one.

One rule for both: a topic is left out if an other topic has its number, its query or its narrative (compared without
case, punctuation, plurals in -s and the order of words), or mostly its words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluators.plugin.dataset import is_dataset_directory, read_config
from followir_tasks.construction.topics import Topic, read_topics
from followir_tasks.ids import parse_query_id
from followir_tasks.words import words

__all__ = ["Kept", "QueryField", "plain", "query_of", "topics_of_others", "without_topics_of_others"]

QueryField = Literal["description", "title"]
# Share of common words, by weight, from which two topics are one. Robust04 and Core17 have 50 topics in common, some
# with another wording: these share 0.73 or more, different topics of the two 0.19 at most. Unweighted it were 0.80 and
# 0.35, and topics that follow a template would be alike.
_SAME = 0.5


@dataclass(frozen=True)
class Kept:
    """What is left of topics.

    Attributes:
        topics: those that no other set has, in their order.
        counts: of the others, by reason.
        excluded: number of each of the others -> why it was left out.
    """

    topics: list[Topic]
    counts: dict[str, int]
    excluded: dict[str, str]


def query_of(topic: Topic, field: QueryField) -> str:
    """The text that is the topic's query."""
    return topic.title if field == "title" else topic.description


def topics_of_others(places: Iterable[Path]) -> list[Topic]:
    """The topics of other sets: files of topics, or dataset directories in the project's layout.

    A directory's query with its instruction is a topic, its text both title and description: nobody knows which it was.

    Raises:
        FileNotFoundError: if there is neither at a place.
        DatasetError: as the readers.
    """
    out: list[Topic] = []
    for place in places:
        out += _of_directory(place) if place.expanduser().is_dir() else read_topics(place)
    return out


def _of_directory(place: Path) -> list[Topic]:
    folder = place.expanduser()
    queries = read_config(folder, "queries") if is_dataset_directory(folder) else None
    if queries is None:
        raise FileNotFoundError(
            f"{place} is neither a file of topics nor a dataset directory in the project's layout (queries.parquet)"
        )
    instructions = read_config(folder, "instruction")
    told = {} if instructions is None else {r["query-id"]: r["instruction"] or "" for r in instructions.to_pylist()}
    return [
        Topic(_number(row["_id"]), row["text"] or "", row["text"] or "", told.get(row["_id"], ""))
        for row in queries.to_pylist()
    ]


def _number(query_id: str) -> str:
    try:
        return parse_query_id(query_id)[0]
    except ValueError:
        return query_id


def without_topics_of_others(topics: Sequence[Topic], others: Sequence[Topic], query: QueryField) -> Kept:
    """Leave out topics that others have.

    Args:
        topics: to choose from.
        others: topics of other sets.
        query: the field that is the query. Titles are compared only where they are queries: topics share titles.
    """
    numbers = {topic.number for topic in others}
    texts = {plain(text): o.number for o in reversed(others) for text in (query_of(o, query), o.narrative) if text}
    alike = _Alike(topics)
    wordings = [(o.number, _wordings(o)) for o in others]

    def same(topic: Topic) -> str | None:
        """The number of the first one that asks for the same, whatever its own."""
        equal = [plain(text) for text in (query_of(topic, query), topic.narrative) if text]
        mine = _wordings(topic)
        found = [texts[text] for text in equal if text in texts]
        return found[0] if found else next((n for n, w in wordings if any(map(alike, mine, w))), None)

    left: list[Topic] = []
    excluded: dict[str, str] = {}
    by = "n_topics_excluded_by"
    counts = dict.fromkeys((f"{by}_number", f"{by}_number_with_another_wording", f"{by}_wording"), 0)
    for topic in topics:
        other = same(topic)
        if topic.number in numbers:
            excluded[topic.number] = "number" if other is not None else "number, with another wording"
            counts[f"{by}_number"] += 1
            counts[f"{by}_number_with_another_wording"] += other is None
        elif other is not None:
            excluded[topic.number] = f"wording of {other}"
            counts[f"{by}_wording"] += 1
        else:
            left.append(topic)
    return Kept(left, counts, excluded)


def _wordings(topic: Topic) -> tuple[frozenset[str], frozenset[str]]:
    """The words of description and narrative, and of the narrative alone, each once, in small letters."""
    found = [frozenset(words(text)) for text in (topic.description, topic.narrative)]
    return found[0] | found[1], found[1]


class _Alike:
    """Whether two sets of words have half of their words in common, each word weighing more the rarer it is.

    Args:
        topics: in which words are counted: what stands in all of them (``relevant``, ``document``) weighs very little.
    """

    def __init__(self, topics: Sequence[Topic]) -> None:
        counts = Counter(word for topic in topics for word in _wordings(topic)[0])
        self._weights = {word: math.log((len(topics) + 1) / n) for word, n in counts.items()}
        self._unknown = math.log(len(topics) + 1)
        self._totals: dict[frozenset[str], float] = {}

    def __call__(self, one: frozenset[str], other: frozenset[str]) -> bool:
        shared = self._weight(one & other)
        return shared > 0 and shared >= _SAME * (self._total(one) + self._total(other) - shared)

    def _total(self, words: frozenset[str]) -> float:
        if words not in self._totals:
            self._totals[words] = self._weight(words)
        return self._totals[words]

    def _weight(self, words: frozenset[str]) -> float:
        return math.fsum(self._weights.get(word, self._unknown) for word in words)


def plain(text: str) -> str:
    """A text as topics are compared: its words in small letters, sorted; a text without words as it is."""
    return " ".join(sorted(words(text))) or text.strip()
