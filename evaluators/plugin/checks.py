"""What can be wrong with a dataset, found before it is scored, each with the id that is at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from datasets import Dataset

from evaluators.metrics.ranking import MAX_GRADE
from evaluators.metrics.standard import is_plain_text

# Enough to see the pattern of a fault without burying the other faults.
SHOWN_PER_FAULT = 5


class DatasetError(ValueError):
    """A dataset that must not be scored. ``problems`` lists everything that is wrong with it."""

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        listed = "\n".join(f"  - {p}" for p in self.problems)
        super().__init__(f"{name}: {len(self.problems)} problem(s) in the data:\n{listed}")


def shown(ids: Iterable[Any]) -> str:
    """A few ids for a message, and how many more there are."""
    listed = list(ids)
    text = ", ".join(repr(i) for i in listed[:SHOWN_PER_FAULT])
    more = len(listed) - SHOWN_PER_FAULT
    return text + (f" and {more} more" if more > 0 else "")


def size_note(first: str, second: str, found: tuple[int, int], published: tuple[int, int]) -> str:
    """The sentence that says that data are not the whole of what was published."""
    return (
        f"{found[0]} {first} and {found[1]} {second}, while {published[0]} and {published[1]} were published: this is "
        "a subset or another edition, and its scores are not comparable with the published ones"
    )


def column(table: Dataset, name: str) -> Iterator[Any]:
    """The values of a column, read in batches: iterating ``table[name]`` would decode every whole row."""
    for batch in table.select_columns([name]).with_format("arrow").iter(batch_size=10_000):
        yield from batch[name].to_pylist()


def table_problems(what: str, table: Dataset, text_column: str = "text") -> list[str]:
    """Duplicate or unusable ids and empty texts of a corpus or of queries (columns ``id`` and ``text``)."""
    out: list[str] = []
    if len(table) == 0:
        return [f"{what}: it is empty"]
    ids = list(column(table, "id"))
    bad = [i for i in ids if not isinstance(i, str) or not i.strip() or not is_plain_text(i)]
    if bad:
        out.append(f"{what}: {len(bad)} ids are missing, blank, no strings or hold a NUL or surrogate: {shown(bad)}")
    twice = [i for i, n in Counter(ids).items() if n > 1]
    if twice:
        out.append(f"{what}: {len(twice)} ids occur more than once: {shown(twice)}")
    texts = zip(ids, column(table, text_column), strict=True)
    empty = [i for i, text in texts if not isinstance(text, str) or not text.strip()]
    if empty:
        out.append(f"{what}: {len(empty)} have no text: {shown(empty)}")
    return out


def pointer_problems(
    what: str,
    lists: Mapping[str, Iterable[str]],
    queries: set[str],
    documents: set[str],
    query_name: Callable[[str], bool] | None = None,
) -> list[str]:
    """Lists of documents by query that point nowhere or name a document twice.

    ``query_name`` says whether a key is a known query; by default it must be among ``queries``.
    """
    out: list[str] = []
    known = query_name or queries.__contains__
    strangers = [q for q in lists if not known(q)]
    if strangers:
        out.append(f"{what}: {len(strangers)} unknown queries: {shown(strangers)}")
    missing: list[tuple[str, str]] = []
    twice: list[tuple[str, str]] = []
    for query, docs in lists.items():
        listed = list(docs)
        missing += [(query, d) for d in listed if d not in documents]
        twice += [(query, d) for d, n in Counter(listed).items() if n > 1]
    if missing:
        out.append(f"{what}: {len(missing)} documents are not in the corpus, as (query, document): {shown(missing)}")
    if twice:
        out.append(f"{what}: {len(twice)} documents are listed twice, as (query, document): {shown(twice)}")
    return out


def retrieval_problems(
    corpus: Dataset,
    queries: Dataset,
    relevant_docs: Mapping[str, Mapping[str, int]],
    top_ranked: Mapping[str, Sequence[str]] | None,
    dropped: frozenset[str] = frozenset(),
) -> list[str]:
    """What is wrong with the parts that every retrieval task has; ``dropped`` are ids of passages left out."""
    out = table_problems("corpus", corpus) + table_problems("queries", queries)
    query_ids, document_ids = set(column(queries, "id")), set(column(corpus, "id"))
    both = sorted(dropped & document_ids)
    if both:
        out.append(f"corpus: {len(both)} ids occur more than once, once without text: {shown(both)}")
    out += pointer_problems("qrels", relevant_docs, query_ids, document_ids)
    negative = [(q, d) for q, docs in relevant_docs.items() for d, grade in docs.items() if grade < 0]
    if negative:
        out.append(f"qrels: {len(negative)} negative grades, as (query, document): {shown(negative)}")
    huge = [(q, d) for q, docs in relevant_docs.items() for d, grade in docs.items() if grade > MAX_GRADE]
    if huge:
        out.append(f"qrels: {len(huge)} grades beyond {MAX_GRADE}, as (query, document): {shown(huge)}")
    if "instruction" in queries.column_names:
        blank = [
            q
            for q, text in zip(column(queries, "id"), column(queries, "instruction"), strict=True)
            if not isinstance(text, str) or not text.strip()
        ]
        if blank:
            out.append(f"instruction: {len(blank)} queries have none: {shown(blank)}")
    if top_ranked is not None:
        out += pointer_problems("top_ranked", top_ranked, query_ids, document_ids)
        without = [q for q in query_ids if not top_ranked.get(q)]
        if without:
            out.append(f"top_ranked: {len(without)} queries have no candidates: {shown(sorted(without))}")
    return out
