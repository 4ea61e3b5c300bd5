"""What a diagnostic asks a retriever: documents, queries, and which documents are right for each query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One retrieval problem, made from a TCR dataset by one transformation.

    Attributes:
        documents: document id -> text.
        queries: query id -> text.
        targets: query id -> documents that are a hit; one table, or every row or chunk that holds an answer.
        groups: query id -> the targets and their look-alikes.
        candidates: query id -> the documents to rank; ``None``: all of them for every query.
        labels: query id -> {document id: what the document is to the query, such as ``column_deletion``}.
        strata: query id -> label by which scores are broken down, such as the question type.
        pairwise: whether the group is a target with its one variant, whose order is to be read as a preference:
            chance is 0.5, equal scores count one half.
        not_measurable: query id -> why its result says nothing, for instance that the changed rows lie beyond the
            length limit.
        notes: what a reader of the scores should know: how many queries were left out and why.
    """

    documents: Mapping[str, str]
    queries: Mapping[str, str]
    targets: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, tuple[str, ...]]
    candidates: Mapping[str, tuple[str, ...]] | None = None
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    strata: Mapping[str, str] = field(default_factory=dict)
    pairwise: bool = False
    not_measurable: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
