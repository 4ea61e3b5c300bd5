"""The one directory layout of this project's datasets: a card and one parquet file per config.

The same layout serves the samples inside the package, directories on disk and repositories on the hub:

================= ============================================= ====================================
config            columns                                       present
================= ============================================= ====================================
corpus            ``_id``, ``title``, ``text``                  always
queries           ``_id``, ``text``                             always
qrels             ``query-id``, ``corpus-id``, ``score``        always
instruction       ``query-id``, ``instruction``                 instructions kept apart from queries
instruction_forms ``query-id``, ``keywords``, ``short``         FollowIR: shorter forms of them
top_ranked        ``query-id``, ``corpus-ids``                  reranking tasks
qrel_diff         ``query-id``, ``corpus-ids``                  FollowIR: documents that lose relevance
groups            ``query-id``, ``corpus-ids``, ``target``,     TCR-Bench: target and siblings
                  ``question_type``, ...
tables            ``db_id``, ``table_path``, ``table_name``,    TCR-Bench: the tables themselves
                  ``table_format``, ``csv``
facets            ``query-id``, ``corpus-id``, ``score``        samples: exact judge scores
================= ============================================= ====================================

A config may also be a folder of parquet files, as the hub stores large ones. Files are found by name and read
with pyarrow: no network, and no cache that could serve rows of an earlier version of the directory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import DatasetCardData

SPLIT = "test"
REQUIRED_CONFIGS = ("corpus", "queries", "qrels")
# Beside the configs of a set that is made to train on: its judgements as JSON lines with their texts.
TRAINING_LINES = "train.jsonl"

_ID_LIST = pa.list_(pa.string())
# Column types of the known configs; a config may carry further columns.
SCHEMAS: dict[str, dict[str, pa.DataType]] = {
    "corpus": {"_id": pa.string(), "title": pa.string(), "text": pa.string()},
    "queries": {"_id": pa.string(), "text": pa.string()},
    "qrels": {"query-id": pa.string(), "corpus-id": pa.string(), "score": pa.int32()},
    "instruction": {"query-id": pa.string(), "instruction": pa.string()},
    "instruction_forms": {"query-id": pa.string(), "keywords": pa.string(), "short": pa.string()},
    "top_ranked": {"query-id": pa.string(), "corpus-ids": _ID_LIST},
    "qrel_diff": {"query-id": pa.string(), "corpus-ids": _ID_LIST},
    "groups": {
        "query-id": pa.string(),
        "corpus-ids": _ID_LIST,
        "target": pa.string(),
        "question_type": pa.string(),
    },
    "tables": {
        "db_id": pa.string(),
        "table_path": pa.string(),
        "table_name": pa.string(),
        "table_format": pa.string(),
        "csv": pa.string(),
    },
    "facets": {"query-id": pa.string(), "corpus-id": pa.string(), "score": pa.int32()},
}


@dataclass(frozen=True)
class Card:
    """What a dataset's README says beside the list of its configs.

    Attributes:
        title: the heading, also the hub's ``pretty_name``.
        body: Markdown below the heading.
        license: a hub licence id, for instance ``mit`` or ``cc-by-4.0``.
        tags: hub tags.
        metadata: further keys of the YAML header.
    """

    title: str
    body: str
    license: str
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def write_dataset(directory: Path, configs: Mapping[str, Iterable[Mapping[str, Any]]], card: Card) -> None:
    """Write rows and card into ``directory`` in the layout above. The rows' order is kept.

    Raises:
        ValueError: if a required config is missing, a known column is missing, or rows disagree in columns.
    """
    missing = [name for name in REQUIRED_CONFIGS if name not in configs]
    if missing:
        raise ValueError(f"{directory}: cannot write a dataset without {', '.join(missing)}")
    directory.mkdir(parents=True, exist_ok=True)
    for name, rows in configs.items():
        table = _table(name, list(rows))
        pq.write_table(table, directory / f"{name}.parquet", compression="zstd", write_statistics=False)
    (directory / "README.md").write_text(card_text(card, list(configs)), encoding="utf-8")


def _table(name: str, rows: list[Mapping[str, Any]]) -> pa.Table:
    known = SCHEMAS.get(name, {})
    columns = list(known) if not rows else list(rows[0])
    for column in known:
        if column not in columns:
            raise ValueError(f"config {name!r} needs a column {column!r}; it has {columns}")
    for i, row in enumerate(rows):
        if list(row) != columns:
            raise ValueError(f"config {name!r}, row {i}: columns {list(row)} differ from {columns}")
    arrays = {c: pa.array([row[c] for row in rows], type=known.get(c)) for c in columns}
    return pa.table(arrays)


def card_text(card: Card, configs: Sequence[str]) -> str:
    """The README of a dataset directory: YAML header with one entry per config, heading and body."""
    data = DatasetCardData(
        language=["en"],
        license=card.license,
        pretty_name=card.title,
        tags=["mteb", "text", *card.tags],
        configs=[
            {"config_name": name, "data_files": [{"split": SPLIT, "path": f"{name}.parquet"}]} for name in configs
        ],
        **card.metadata,
    )
    return f"---\n{data.to_yaml(line_break=chr(10))}\n---\n\n# {card.title}\n\n{card.body.strip()}\n"


def config_files(directory: Path, name: str) -> list[Path]:
    """The parquet files of a config, or an empty list if the directory has no such config."""
    single = directory / f"{name}.parquet"
    if single.is_file():
        return [single]
    return sorted((directory / name).glob("*.parquet"))


def read_config(directory: Path, name: str) -> pa.Table | None:
    """All rows of a config, or ``None`` if the directory has no such config.

    Raises:
        ValueError: if a file cannot be read, or lacks a column that the config needs, or holds another type.
    """
    files = config_files(directory, name)
    if not files:
        return None
    try:
        table = pa.concat_tables([pq.read_table(f) for f in files], promote_options="default")
    except (OSError, pa.ArrowInvalid) as error:
        raise ValueError(f"{files[0].parent}: cannot read config {name!r}: {error}") from error
    for column, kind in SCHEMAS.get(name, {}).items():
        if column not in table.column_names:
            if (name, column) == ("corpus", "title"):
                table = table.append_column("title", pa.array([""] * len(table), pa.string()))
                continue
            raise ValueError(f"{files[0]}: config {name!r} lacks the column {column!r}; it has {table.column_names}")
        at = table.column_names.index(column)
        if table.schema.field(at).type != kind:
            try:
                table = table.set_column(at, column, table.column(at).cast(kind))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise ValueError(
                    f"{files[0]}: column {column!r} of config {name!r} has the type "
                    f"{table.schema.field(at).type}, which does not become {kind}: {error}"
                ) from error
    return table


def is_dataset_directory(directory: Path) -> bool:
    """Whether the directory holds a dataset in this layout."""
    return directory.is_dir() and all(config_files(directory, name) for name in REQUIRED_CONFIGS)


def fingerprint(directory: Path, patterns: Sequence[str] = ("*.parquet", "*/*.parquet")) -> str:
    """A revision for local data: the first 40 hex digits of a SHA-256 over names and contents of the data files.

    It changes when a file is added, removed, renamed or edited, and with nothing else: not with the place of
    the directory and not with its README.
    """
    files = sorted({f for pattern in patterns for f in directory.glob(pattern) if f.is_file()})
    if not files:
        raise ValueError(f"{directory}: no file matches {', '.join(patterns)}")
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            content = hashlib.file_digest(handle, "sha256").hexdigest()
        digest.update(f"{file.relative_to(directory).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()[:40]


def embedded_revision(directory: Path) -> str:
    """The fingerprint of a sample inside the package; ``unbuilt`` before its builder has run for the first time."""
    return fingerprint(directory) if config_files(directory, "corpus") else "unbuilt"
