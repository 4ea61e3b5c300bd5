"""Which narratives a training set is made from: those of topics that no evaluation set holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.construction.counts import counted
from followir_tasks.construction.exclusion import QueryField, query_of, topics_of_others, without_topics_of_others
from followir_tasks.construction.topics import read_topics

__all__ = ["Asked", "Chosen", "choose_topics"]


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
    """The query-instruction pairs to write documents for, and how many topics were left out for which reason.

    ``excluded``: each topic that an evaluation set has (as its pair's id would be) -> why it was left out.
    """

    pairs: tuple[Asked, ...]
    counts: dict[str, int]
    excluded: dict[str, str]


def choose_topics(topics: Sequence[Path], excluded: Sequence[Path], query: QueryField) -> Chosen:
    """The topics of some files but for those that an evaluation set has, too.

    A topic is also left out if it lacks query or narrative, or if an earlier one has the same query and narrative.

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
    others = topics_of_others(excluded)
    counts: Counter[str] = Counter(n_source_topics=0)
    named: dict[str, str] = {}
    out: dict[tuple[str, str], Asked] = {}
    for path in topics:
        found = read_topics(path, (query, "narrative"))
        kept = without_topics_of_others(found, others, query)
        counts.update({"n_source_topics": len(found), **kept.counts})
        counts.update(dict.fromkeys(("n_topics_without_query_or_narrative", "n_topics_repeated"), 0))
        named |= {f"{path.stem}-{number}": why for number, why in kept.excluded.items()}
        for topic in kept.topics:
            asked = query_of(topic, query)
            if not (asked and topic.narrative):
                counts["n_topics_without_query_or_narrative"] += 1
            elif (key := (asked.casefold(), topic.narrative.casefold())) in out:
                counts["n_topics_repeated"] += 1
            else:
                out[key] = Asked(f"{path.stem}-{topic.number}", asked, topic.narrative)
    if not out:
        raise ValueError(f"no topic is left to write documents for: {counted(counts)}")
    return Chosen(tuple(out.values()), {**counts, "n_pairs": len(out)}, named)
