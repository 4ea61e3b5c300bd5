"""What a finished dataset is like: FollowIR's table 1, before and after, and what was left out on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tabulate import tabulate

from followir_tasks.construction.exclusion import QueryField, query_of
from followir_tasks.construction.selection import Band
from followir_tasks.construction.topics import Topic

__all__ = ["Size", "as_json", "markdown", "size", "size_of_source"]


@dataclass(frozen=True)
class Size:
    """A row of table 1.

    Attributes:
        n_queries: # Q.
        query_words, instruction_words: mean numbers of words, |Q| and |I|; a word is what stands between blanks.
        relevant_per_query: mean number of relevant documents, Rel. D/Q.
    """

    n_queries: int
    query_words: float
    instruction_words: float
    relevant_per_query: float


def size(queries: Sequence[str], instructions: Sequence[str], relevant: Sequence[int]) -> Size:
    """The row of queries, given by their texts, their instructions and their numbers of relevant documents.

    Raises:
        ValueError: if there is no query.
    """
    if not queries:
        raise ValueError("there are no queries to count words of")

    def words(texts: Sequence[str]) -> float:
        return sum(len(text.split()) for text in texts) / len(texts)

    return Size(len(queries), words(queries), words(instructions), sum(relevant) / len(relevant))


def size_of_source(
    topics: Sequence[Topic], judgements: Mapping[str, Mapping[str, int]], *, query: QueryField, min_grade: int
) -> Size:
    """The left side of table 1: all topics of the source that have a relevant document."""
    relevant = {t.number: sum(g >= min_grade for g in judgements.get(t.number, {}).values()) for t in topics}
    known = [t for t in topics if relevant[t.number]]
    return size(
        [query_of(t, query) for t in known],
        [t.narrative for t in known],
        [relevant[t.number] for t in known],
    )


def markdown(report: Mapping[str, Any], band: Band) -> str:
    """The report as tables."""
    rows = [
        [name, s["n_queries"], *(f"{s[c]:.1f}" for c in ("query_words", "instruction_words", "relevant_per_query"))]
        for name, s in report["size"].items()
    ]
    topics = [[t, s["relevant"], s["stay"], s["leave"], f"{s['share']:.0%}"] for t, s in report["topics"].items()]
    return (
        "\n\n".join(
            [
                "# FollowIR-style dataset",
                "As FollowIR's table 1 (numbers of words and of relevant documents are means):",
                _table(rows, ["", "# Q", "|Q|", "|I|", "Rel. D/Q"]),
                f"Relevant documents by topic; the share that stays was to lie in {band.told}:",
                _table(topics, ["topic", "relevant", "stay", "leave", "share that stays"]),
                _table([[name[2:].replace("_", " "), n] for name, n in report["counts"].items()], ["count of", ""]),
                *_told(report["excluded"]),
            ]
        )
        + "\n"
    )


def _told(excluded: Mapping[str, str]) -> list[str]:
    named = ", ".join(f"{topic} ({why})" for topic, why in excluded.items())
    return [f"Topics left out since other sets have them: {named}."] if named else []


def _table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    return str(tabulate(rows, headers, tablefmt="github", disable_numparse=True))


def as_json(report: Mapping[str, Any]) -> str:
    """The report as JSON."""
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"
