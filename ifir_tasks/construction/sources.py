"""What a dataset is built from: a retrieval set in the project's layout, or in BEIR's files, or TREC's judgements."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from evaluators.construction.readers import (
    LABEL,
    config_file,
    digest,
    is_parquet,
    judgements_file,
    parquet_table,
    read_judgements,
)
from evaluators.plugin.checks import DatasetError, column, pointer_problems, shown, table_problems
from evaluators.plugin.data import passage_texts
from evaluators.plugin.jsonl import read_corpus, read_json_lines, text_id
from ifir_tasks.ids import parse_query_id, query_id

Row = dict[str, Any]


@dataclass(frozen=True)
class SourceQuery:
    """A query of the source.

    Attributes:
        id, text: as in the source; the text is its ``summary`` where the source gives no text.
        fields: what the source knows beside the text (``age``, ``gender``, ``label``, ...), each with its possible
            values: a claim with supporting and contradicting passages has two labels.
    """

    id: str
    text: str
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A retrieval set, checked.

    Attributes:
        corpus: columns ``id``, ``title``, ``text``; passages without text are left out.
        queries: the queries that have a relevant passage, in the source's order.
        relevant: query id -> {passage id: its label, or an empty text}.
        counts: what was dropped.
        fingerprint: changes with any byte of the corpus.
    """

    corpus: Dataset
    queries: list[SourceQuery]
    relevant: dict[str, dict[str, str]]
    counts: dict[str, int]
    fingerprint: str

    @cached_property
    def passages(self) -> dict[str, str]:
        """The text of every relevant passage, title included, as a retriever reads it."""
        return passage_texts(self.corpus, {d for documents in self.relevant.values() for d in documents})

    @cached_property
    def relevance_fingerprint(self) -> str:
        """Changes with any relevant passage, its text or its label."""
        told = [[q, d, label, self.passages[d]] for q, docs in self.relevant.items() for d, label in docs.items()]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def read_source(corpus: Path, queries: Path, qrels: Path, min_grade: int = 1) -> Source:
    """Read corpus, queries and judgements; the files are never changed.

    Each place is a file, or a directory with a dataset in the project's layout (``corpus.parquet``, ...) or in BEIR's
    (``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``). Judgements may be TREC's (``query 0 passage grade``).
    A column ``label`` of the judgements, or SciFact's ``metadata`` of a query, labels passages. A query's other columns
    and its ``metadata`` become its fields.

    Args:
        corpus, queries, qrels: the places.
        min_grade: the lowest grade that counts as relevant.

    Raises:
        FileNotFoundError: if a place holds no such file.
        DatasetError: naming everything that is wrong with the data.
    """
    corpus_file = config_file(corpus, "corpus", ("corpus.jsonl",))
    passages, dropped = _corpus(corpus_file)
    rows = list(_rows(config_file(queries, "queries", ("queries.jsonl",))))
    judged = read_judgements(judgements_file(qrels))
    _check(passages, rows, judged, dropped)
    labels = {q: _scifact_labels(row) for q, row in rows}
    relevant = {
        q: {d: label or labels[q].get(d, "") for d, (grade, label) in documents.items() if grade >= min_grade}
        for q, documents in judged.items()
    }
    on_dropped = sum(d in dropped for documents in relevant.values() for d in documents)
    relevant = {q: {d: label for d, label in ds.items() if d not in dropped} for q, ds in relevant.items()}
    found = [_query(q, row, relevant[q].values()) for q, row in rows if relevant.get(q)]
    if not found:
        raise DatasetError(str(qrels), [f"no query has a relevant passage (grade {min_grade} or more)"])
    blank = [q.id for q in found if not q.text.strip()]
    if blank:
        raise DatasetError(str(queries), [f"{len(blank)} queries have no text: {shown(blank)}"])
    return Source(
        corpus=passages,
        queries=found,
        relevant={q.id: relevant[q.id] for q in found},
        counts={
            "n_source_queries": len(rows),
            "n_queries_without_relevant": len(rows) - len(found),
            "n_dropped_empty_passages": len(dropped),
            "n_judgements_on_dropped_passages": on_dropped,
        },
        fingerprint=digest(corpus_file),
    )


def _corpus(path: Path) -> tuple[Dataset, frozenset[str]]:
    """The passages that have a text, and the ids of those that have none."""
    if not is_parquet(path):
        read = read_corpus(path)
        return read.passages, read.dropped
    table = parquet_table(path, "corpus")
    table = pa.table({"id": table.column("_id"), "title": table.column("title"), "text": table.column("text")})
    trimmed = pc.utf8_trim_whitespace(pc.fill_null(table.column("text"), ""))
    has_text = pc.greater(pc.utf8_length(trimmed), 0)
    empty = frozenset(table.filter(pc.invert(has_text)).column("id").to_pylist())
    return Dataset(table.filter(has_text)), empty


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    rows = enumerate(parquet_table(path, "queries").to_pylist(), 1) if is_parquet(path) else read_json_lines(path)
    for number, row in rows:
        yield text_id(path, f"query {number}", row.get("_id")), row


def _check(
    corpus: Dataset,
    rows: list[tuple[str, Row]],
    judged: Mapping[str, Mapping[str, tuple[int, str]]],
    dropped: frozenset[str],
) -> None:
    problems = table_problems("corpus", corpus)
    twice = [q for q, n in Counter(q for q, _ in rows).items() if n > 1]
    if twice:
        problems.append(f"queries: {len(twice)} ids occur more than once: {shown(twice)}")
    odd = [q for q, _ in rows if parse_query_id(query_id(q, 1)).base != q]
    if odd:
        problems.append(f"queries: ids that end like a numbered instruction (~2); rename them: {shown(odd)}")
    documents = set(column(corpus, "id")) | dropped
    problems += pointer_problems("qrels", judged, {q for q, _ in rows}, documents)
    if problems:
        raise DatasetError("the source", problems)


def _scifact_labels(row: Row) -> dict[str, str]:
    """Labels by passage from SciFact's metadata, ``{passage: [{"sentences": [...], "label": "SUPPORT"}]}``."""
    metadata = row.get("metadata")
    out: dict[str, str] = {}
    for document, evidence in metadata.items() if isinstance(metadata, dict) else ():
        if isinstance(evidence, list):
            labels = [str(e[LABEL]) for e in evidence if isinstance(e, dict) and e.get(LABEL)]
            if labels:
                out[document] = labels[0]
    return out


def _query(identifier: str, row: Row, labels: Iterable[str]) -> SourceQuery:
    metadata = row.get("metadata")
    flat = {**(metadata if isinstance(metadata, dict) else {}), **row}
    fields: dict[str, tuple[str, ...]] = {
        name: (str(value),)
        for name, value in flat.items()
        if name not in ("_id", "text") and isinstance(value, str | int | float) and str(value).strip()
    }
    of_passages = tuple(sorted({label for label in labels if label}))
    if of_passages:
        fields[LABEL] = of_passages
    return SourceQuery(identifier, str(row.get("text") or fields.get("summary", ("",))[0]), fields)
