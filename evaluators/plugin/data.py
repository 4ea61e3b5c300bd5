"""A loaded dataset in the form that mteb scores, with its side data; and how to read the project's own layout."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from evaluators.plugin.checks import DatasetError, column
from evaluators.plugin.dataset import REQUIRED_CONFIGS, read_config
from evaluators.plugin.mteb_internals import document_texts


@dataclass
class TaskData:
    """Everything a task needs, loaded before the first query is searched.

    Attributes:
        corpus: columns ``id``, ``title``, ``text``.
        queries: columns ``id``, ``text`` and, where the task keeps them apart, ``instruction``.
        relevant_docs: query id -> {document id: grade}.
        top_ranked: query id -> candidates, for reranking tasks.
        side: further tables by config name (``groups``, ``qrel_diff``, ``facets``, ...).
        counts: what was dropped or counted while reading, for the result's record.
        notes: sentences for the log: what differs from what was published, what was dropped.
        dropped: ids of passages that were left out because they have no text.
    """

    corpus: Dataset
    queries: Dataset
    relevant_docs: dict[str, dict[str, int]]
    top_ranked: dict[str, list[str]] | None = None
    side: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    dropped: frozenset[str] = frozenset()


def passage_texts(corpus: Dataset, wanted: Container[str]) -> dict[str, str]:
    """The texts, as a model reads them, of some of a corpus's documents by id."""
    chosen = corpus.select([place for place, document in enumerate(column(corpus, "id")) if document in wanted])
    return dict(zip(chosen["id"], document_texts(chosen), strict=True))


def read_layout(directory: Path, side_configs: Sequence[str] = ()) -> TaskData:
    """Read a directory in the project's layout; ``side_configs`` are required beside the usual ones.

    Raises:
        DatasetError: if a required config is missing or repeats a query, or a judgement is given twice.
        ValueError: if a file cannot be read or a column is missing.
    """
    read = {name: read_config(directory, name) for name in (*REQUIRED_CONFIGS, *side_configs)}
    tables = {name: table for name, table in read.items() if table is not None}
    missing = [name for name in read if name not in tables]
    if missing:
        raise DatasetError(str(directory), [f"config {name!r} is missing" for name in missing])
    corpus, queries = (tables[name].rename_columns(_renamed(tables[name])) for name in ("corpus", "queries"))
    instruction = read_config(directory, "instruction")
    if instruction is not None:
        queries = _with_instruction(directory, queries, instruction)
    top_ranked = read_config(directory, "top_ranked")
    return TaskData(
        corpus=Dataset(corpus.select(["id", "title", "text"])),
        queries=Dataset(queries),
        relevant_docs=_qrels(directory, tables["qrels"]),
        top_ranked=None if top_ranked is None else lists_by_query(directory, "top_ranked", top_ranked),
        side={name: tables[name] for name in side_configs},
    )


def lists_by_query(directory: Path, name: str, table: pa.Table) -> dict[str, list[str]]:
    """A config with the columns ``query-id`` and ``corpus-ids`` as a mapping; a repeated query is an error."""
    out: dict[str, list[str]] = {}
    problems: list[str] = []
    for query, documents in zip(
        table.column("query-id").to_pylist(), table.column("corpus-ids").to_pylist(), strict=True
    ):
        if query is None or documents is None or None in documents:
            problems.append(f"{name}: query {query!r} has a missing id or list of documents")
        elif query in out:
            problems.append(f"{name}: query {query!r} occurs more than once")
        else:
            out[query] = documents
    if problems:
        raise DatasetError(str(directory), problems)
    return out


def _renamed(table: pa.Table) -> list[str]:
    return ["id" if column == "_id" else column for column in table.column_names]


def _with_instruction(directory: Path, queries: pa.Table, instruction: pa.Table) -> pa.Table:
    by_query: Mapping[str, str] = dict(
        zip(instruction.column("query-id").to_pylist(), instruction.column("instruction").to_pylist(), strict=True)
    )
    if len(by_query) != len(instruction):
        raise DatasetError(str(directory), ["instruction: a query has more than one row"])
    ids = queries.column("id").to_pylist()
    strangers = sorted(set(by_query) - set(ids))
    if strangers:
        raise DatasetError(str(directory), [f"instruction: unknown query {q!r}" for q in strangers[:5]])
    return queries.append_column("instruction", pa.array([by_query.get(q) for q in ids], pa.string()))


def _qrels(directory: Path, table: pa.Table) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    columns = (table.column(c).to_pylist() for c in ("query-id", "corpus-id", "score"))
    for query, document, score in zip(*columns, strict=True):
        judged = out.setdefault(query, {})
        if score is None:
            problems.append(f"qrels: query {query!r}, document {document!r} has no score")
        elif document in judged:
            problems.append(f"qrels: document {document!r} is judged twice for query {query!r}")
        else:
            judged[document] = score
    if problems:
        raise DatasetError(str(directory), problems)
    return out
