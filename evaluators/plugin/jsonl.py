"""Corpora in BEIR's JSON lines, converted once to a memory-mapped Arrow file."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from evaluators.cache import cache_directory
from evaluators.metrics.standard import is_plain_text
from evaluators.plugin.checks import DatasetError, shown
from evaluators.whole import half_character

# What names of such files end in.
JSON_LINES = (".jsonl", ".jl", ".ndjson")

# Rows per written batch: a few ten megabytes of text in memory at a time.
_BATCH = 20_000
# Part of the cached file's name: raise it when the conversion changes.
_FORMAT = 1
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


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file of JSON lines with their line numbers; blank lines are passed over.

    A line ends in LF, CR LF, or CR alone, which JSON allows within no text.

    Raises:
        DatasetError: naming file and line, if a line is not UTF-8 or not a JSON object.
    """
    with path.open("rb") as lines:
        yield from json_rows(path, lines)


def json_rows(path: Path, lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same of lines that somebody has opened; the path is for messages."""
    apart = (part for line in lines for part in line.rstrip(b"\r\n").split(b"\r"))
    for number, line in enumerate(apart, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except (ValueError, RecursionError) as error:  # of decoding or of JSON
            raise DatasetError(str(path), [f"line {number} is not JSON in UTF-8: {error}"]) from error
        if not isinstance(row, dict):
            raise DatasetError(str(path), [f"line {number} is a JSON {type(row).__name__}, not an object"])
        yield number, row


def text_id(path: Path, where: str, value: Any) -> str:
    """An id as a string; whole numbers are accepted, since published files have them.

    Raises:
        DatasetError: for anything else than a non-blank string or a whole number, or if it holds a NUL or a surrogate.
    """
    problem = id_problem(value)
    if problem is not None:
        raise DatasetError(str(path), [f"{where}: {problem}"])
    return str(value)


def id_problem(value: Any) -> str | None:
    """Why a value cannot be an id, or ``None``."""
    if isinstance(value, str) and value.strip():
        return None if is_plain_text(value) else f"the id {value!a} holds a NUL or half a character (a lone surrogate)"
    if isinstance(value, int) and not isinstance(value, bool):
        return None
    return f"the id {value!r} is neither a non-blank string nor a whole number"


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
    arrow, report = (folder / f"{digest}-{_FORMAT}.{kind}" for kind in ("arrow", "json"))
    if not (arrow.is_file() and report.is_file()):
        _convert(path, arrow, report)
    told = json.loads(report.read_text(encoding="utf-8"))
    return JsonlCorpus(Dataset.from_file(str(arrow)), told["n_lines"], frozenset(told["dropped"]))


def _convert(path: Path, arrow: Path, report: Path) -> None:
    # Written under another name and moved into place, so that an interrupted conversion is never taken for whole.
    dropped: list[str] = []
    count = 0
    with tempfile.TemporaryDirectory(dir=arrow.parent) as scratch:
        unfinished = Path(scratch) / "corpus.arrow"
        with pa.OSFile(str(unfinished), "wb") as sink, pa.ipc.new_stream(sink, _SCHEMA) as writer:
            batch: list[tuple[str, str, str]] = []
            for number, row in read_json_lines(path):
                count += 1
                document, title, text = _passage(path, number, row)
                if not text.strip():
                    dropped.append(document)
                    continue
                batch.append((document, title, text))
                if len(batch) == _BATCH:
                    writer.write_batch(_record_batch(batch))
                    batch = []
            if batch:
                writer.write_batch(_record_batch(batch))
        twice = [document for document, n in Counter(dropped).items() if n > 1]
        if twice:
            raise DatasetError(str(path), [f"passages without text whose id occurs more than once: {shown(twice)}"])
        report.write_text(json.dumps({"n_lines": count, "dropped": dropped}), encoding="utf-8")
        unfinished.replace(arrow)


def _passage(path: Path, number: int, row: dict[str, Any]) -> tuple[str, str, str]:
    document = text_id(path, f"line {number}", row.get("_id"))
    title, text = (row.get(key) if row.get(key) is not None else "" for key in ("title", "text"))
    if not isinstance(title, str) or not isinstance(text, str):
        raise DatasetError(str(path), [f"line {number}: title and text of {document!r} must be strings"])
    for name, value in (("title", title), ("text", text)):
        if half := half_character(value):
            raise DatasetError(str(path), [f"line {number}: {name} of {document!r} holds {half}; remove it"])
    return document, title, text


def _record_batch(rows: list[tuple[str, str, str]]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.string()) for values in zip(*rows, strict=True)], schema=_SCHEMA)
