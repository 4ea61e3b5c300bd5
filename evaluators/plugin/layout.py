"""Writes loaded data in the project's layout (:mod:`evaluators.plugin.dataset`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset

from evaluators.files import unfinished
from evaluators.plugin.data import TaskData
from evaluators.plugin.dataset import SCHEMAS

_BATCH = 20_000


def batches(table: Dataset) -> Iterator[pa.Table]:
    """The rows in batches, since a corpus may be larger than memory."""
    yield from table.with_format("arrow").iter(batch_size=_BATCH)


def write_config(folder: Path, config: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write a config's rows; known columns come first, with their types."""
    listed = list(rows)
    known = SCHEMAS[config]
    columns = dict.fromkeys([*known, *(listed[0] if listed else ())])
    table = pa.table({c: pa.array([row[c] for row in listed], type=known.get(c)) for c in columns})
    with unfinished(folder / f"{config}.parquet") as part:
        pq.write_table(table, part, compression="zstd", write_statistics=False)


def write_common(folder: Path, data: TaskData) -> None:
    """Write ``corpus`` in batches, since it may be larger than memory, and ``qrels``."""
    schema = pa.schema(SCHEMAS["corpus"].items())
    options = {"compression": "zstd", "write_statistics": False}
    with pq.ParquetWriter(folder / "corpus.parquet", schema, **options) as out:
        for batch in batches(data.corpus.select_columns(["id", "title", "text"])):
            out.write_table(batch.rename_columns(schema.names).cast(schema))
    write_config(
        folder,
        "qrels",
        ({"query-id": q, "corpus-id": d, "score": score} for q, d, score in judgements(data.relevant_docs)),
    )


def judgements(relevant: dict[str, dict[str, int]]) -> Iterator[tuple[str, str, int]]:
    """Query, document and grade of every judgement."""
    yield from ((query, document, score) for query, docs in relevant.items() for document, score in docs.items())
