"""Corpora in BEIR's JSON lines, converted once to a memory-mapped Arrow file."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.sources import cache_directory

# Rows per written batch: a few ten megabytes of text in memory at a time.
_BATCH = 20_000
_SCHEMA = pa.schema([("id", pa.string()), ("title", pa.string()), ("text", pa.string())])


@dataclass(frozen=True)
class JsonlCorpus:
    """A corpus read from JSON lines.

    Attributes:
        passages: columns ``id``, ``title``, ``text``, memory-mapped.
        n_lines: passages in the file, dropped ones included.
        dropped: ids of the passages that were dropped because their text is empty.
    """

    passages: Dataset
    n_lines: int
    dropped: frozenset[str]


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """All objects of a small file of JSON lines; blank lines are passed over.

    Raises:
        DatasetError: naming file and line, if a line is not a JSON object.
    """
    rows = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                rows.append(_parsed(path, number, line))
    return rows


def text_id(path: Path, where: str, value: Any) -> str:
    """An id as a string; whole numbers are accepted, since published files have them.

    Raises:
        DatasetError: for anything else than a non-blank string or a whole number.
    """
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise DatasetError(str(path), [f"{where}: the id {value!r} is neither a non-blank string nor a whole number"])


def read_corpus(path: Path) -> JsonlCorpus:
    """Read ``{"_id", "title", "text"}`` lines; passages without text are dropped and counted.

    The first reading writes an Arrow file into the cache directory, under a hash of the content, and later ones map
    it, so that a corpus of a gigabyte takes little memory.

    Raises:
        DatasetError: naming file and line, if a line is not a JSON object, an id is unusable, or title or text are
            not strings.
    """
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()[:40]
    folder = cache_directory() / "corpus"
    folder.mkdir(exist_ok=True)
    arrow, report = folder / f"{digest}.arrow", folder / f"{digest}.json"
    if not (arrow.is_file() and report.is_file()):
        _convert(path, arrow, report)
    told = json.loads(report.read_text(encoding="utf-8"))
    return JsonlCorpus(Dataset.from_file(str(arrow)), told["n_lines"], frozenset(told["dropped"]))


def _convert(path: Path, arrow: Path, report: Path) -> None:
    # Written under another name and moved into place, so that an interrupted conversion is never taken for whole.
    unfinished = arrow.with_suffix(f".{os.getpid()}.tmp")
    dropped: list[str] = []
    count = 0
    try:
        with (
            path.open(encoding="utf-8") as lines,
            pa.OSFile(str(unfinished), "wb") as sink,
            pa.ipc.new_stream(sink, _SCHEMA) as writer,
        ):
            batch: list[tuple[str, str, str]] = []
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                count += 1
                document, title, text = _passage(path, number, line)
                if not text.strip():
                    dropped.append(document)
                    continue
                batch.append((document, title, text))
                if len(batch) == _BATCH:
                    writer.write_batch(_record_batch(batch))
                    batch = []
            if batch:
                writer.write_batch(_record_batch(batch))
        report.write_text(json.dumps({"n_lines": count, "dropped": dropped}), encoding="utf-8")
        unfinished.replace(arrow)
    finally:
        unfinished.unlink(missing_ok=True)


def _passage(path: Path, number: int, line: str) -> tuple[str, str, str]:
    row = _parsed(path, number, line)
    document = text_id(path, f"line {number}", row.get("_id"))
    title, text = (row.get(key) if row.get(key) is not None else "" for key in ("title", "text"))
    if not isinstance(title, str) or not isinstance(text, str):
        raise DatasetError(str(path), [f"line {number}: title and text of {document!r} must be strings"])
    return document, title, text


def _parsed(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DatasetError(str(path), [f"line {number} is not JSON: {error}"]) from error
    if not isinstance(row, dict):
        raise DatasetError(str(path), [f"line {number} is a JSON {type(row).__name__}, not an object"])
    return row


def _record_batch(rows: list[tuple[str, str, str]]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], schema=_SCHEMA)
