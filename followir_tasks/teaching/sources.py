"""Which narratives a training set is made from: those of topics that no evaluation set holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluators.plugin.dataset import is_dataset_directory, read_config
from followir_tasks.construction.topics import Topic, read_topics
from followir_tasks.ids import parse_query_id

__all__ = ["Asked", "Chosen", "choose_topics"]

QueryField = Literal["description", "title"]


@dataclass(frozen=True)
class Asked:
    """A query with an instruction.

    Attributes:
        id: file and number of its topic.
        query, instruction: one line each.
    """

    id: str
    query: str
    instruction: str


@dataclass(frozen=True)
class Chosen:
    """The query-instruction pairs to write documents for, and how many topics were left out for which reason."""

    pairs: tuple[Asked, ...]
    counts: dict[str, int]


def choose_topics(topics: Sequence[Path], excluded: Sequence[Path], query: QueryField) -> Chosen:
    """The topics of some files but for those of evaluation sets.

    A topic is left out if its number, its query or its narrative is one of an evaluation set's (texts are compared
    without case and spacing; a title only where titles are the queries, since topics share titles), if it lacks query
    or narrative, or if an earlier one has the same query and narrative.

    Args:
        topics: files as :func:`~followir_tasks.construction.topics.read_topics` reads them.
        excluded: evaluation sets: such files, or directories in the project's layout.
        query: the field that is the query; the narrative is the instruction.

    Raises:
        FileNotFoundError, DatasetError: if a file cannot be read.
        ValueError: if two files have the same name, or no topic is left.
    """
    stems = [path.stem for path in topics]
    if len(set(stems)) < len(stems):
        raise ValueError(f"files of topics must differ in their names, which become part of ids; got {stems}")
    numbers, texts = _of_evaluation(excluded, query)
    counts = dict.fromkeys(
        ("n_topics", "n_excluded_by_text", "n_excluded_by_number", "n_without_query_or_narrative", "n_repeated"), 0
    )
    out: dict[tuple[str, str], Asked] = {}
    for path in topics:
        for topic in read_topics(path):
            counts["n_topics"] += 1
            asked = _query(topic, query)
            if not (asked and topic.narrative):
                counts["n_without_query_or_narrative"] += 1
            elif {_plain(asked), _plain(topic.narrative)} & texts:
                counts["n_excluded_by_text"] += 1
            elif topic.number in numbers:
                counts["n_excluded_by_number"] += 1
            elif (key := (_plain(asked), _plain(topic.narrative))) in out:
                counts["n_repeated"] += 1
            else:
                out[key] = Asked(f"{path.stem}-{topic.number}", asked, topic.narrative)
    if not out:
        raise ValueError(f"no topic is left to write documents for: {counts}")
    return Chosen(tuple(out.values()), {**counts, "n_pairs": len(out)})


def _query(topic: Topic, field: QueryField) -> str:
    return topic.description if field == "description" else topic.title


def _of_evaluation(places: Iterable[Path], query: QueryField) -> tuple[set[str], set[str]]:
    numbers: set[str] = set()
    texts: set[str] = set()
    for place in places:
        if is_dataset_directory(place):
            queries, instructions = read_config(place, "queries"), read_config(place, "instruction")
            assert queries is not None
            numbers |= {_number(key) for key in queries.column("_id").to_pylist()}
            texts |= {_plain(text) for text in queries.column("text").to_pylist()}
            if instructions is not None:
                texts |= {_plain(text) for text in instructions.column("instruction").to_pylist() if text}
        else:
            for topic in read_topics(place):
                numbers.add(topic.number)
                texts |= {_plain(text) for text in (_query(topic, query), topic.narrative) if text}
    return numbers, texts


def _number(query_id: str) -> str:
    try:
        return parse_query_id(query_id)[0]
    except ValueError:
        return query_id


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
