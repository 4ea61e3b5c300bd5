"""Where documents come from, read as a stream: TREC's files, JSON lines, a dataset directory, or ``ir_datasets``."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evaluators.construction.readers import digest_of
from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import config_files
from evaluators.plugin.jsonl import JSON_LINES, id_problem, json_rows, text_id
from evaluators.whole import half_character
from followir_tasks.construction.trec_documents import Document, opened, plain, read_trec_documents

__all__ = ["IR_DATASETS", "Documents", "find_documents"]

IR_DATASETS = "ir_datasets:"
_ROWS = 2_000
_ID, _TEXT = ("_id", "id", "docno", "doc_id"), ("text", "contents", "body")
# The pieces of an article of TREC's Washington Post that are its text; others are kickers, bylines, dates, pictures.
_PARAGRAPH = "sanitized_html"


@dataclass(frozen=True)
class Documents:
    """A collection that can be read again and again, a document at a time.

    Attributes:
        name: for messages.
        files: in the order in which they are read; none for ``ir_datasets``.
        dataset: an ``ir_datasets`` object, or ``None``.
        without: files in which the last reading found no document, such as a disk's read-me files.
    """

    name: str
    files: tuple[Path, ...] = ()
    dataset: Any = None
    without: list[str] = field(default_factory=list, compare=False)

    def fingerprint(self) -> str:
        """Changes with any byte of the files; of ``ir_datasets``, with id and version of the package."""
        if self.dataset is None:
            return digest_of(self.files)
        version = getattr(importlib.import_module("ir_datasets"), "__version__", "")
        return hashlib.sha256(f"{self.name} {version}".encode()).hexdigest()

    def __iter__(self) -> Iterator[Document]:
        """The documents, those without text included.

        Raises:
            DatasetError: naming file and place of what cannot be read, or if there is no document at all.
        """
        self.without.clear()
        found = False
        for name, stream in self._streams():
            empty = True
            for document in stream:
                empty = False
                yield _checked(name, document)
            if empty:
                self.without.append(name)
            found = found or not empty
        if not found:
            sought = f"no <DOC> elements, JSON lines ({', '.join(JSON_LINES)}) or rows"
            raise DatasetError(self.name, [f"it holds no documents: {sought}"])

    def _streams(self) -> Iterator[tuple[str, Iterator[Document]]]:
        if self.dataset is not None:
            yield self.name, _of_ir_datasets(self.dataset)
        for path in self.files:
            yield str(path), _of_file(path)


def _checked(name: str, document: Document) -> Document:
    """The document without NULs, which no model reads.

    Raises:
        DatasetError: if its id is unusable, or a text of it cannot be kept in a file.
    """
    if problem := id_problem(document.id):
        raise DatasetError(name, [problem])
    for what, text in (("title", document.title), ("text", document.text)):
        if half := half_character(text):
            raise DatasetError(name, [f"the {what} of document {document.id!r} holds {half}; remove it"])
    if "\0" not in document.title + document.text:
        return document
    return document._replace(title=document.title.replace("\0", ""), text=document.text.replace("\0", ""))


def find_documents(place: str) -> Documents:
    """The documents at a place.

    Args:
        place: a file or a folder (looked through to its depths) of TREC's SGML, plain or gzip, or of JSON lines; a
            dataset directory in the project's layout or in BEIR's; or ``ir_datasets:ID``.

    Raises:
        FileNotFoundError: if there is no such file or folder, or it is empty.
        ModuleNotFoundError: if ``ir_datasets`` is asked for and not installed.
        ValueError: if it does not know the id.
    """
    if place.startswith(IR_DATASETS):
        return Documents(place, dataset=_ir_dataset(place.removeprefix(IR_DATASETS)))
    path = Path(place).expanduser()
    if path.is_file():
        return Documents(place, (path,))
    if not path.is_dir():
        raise FileNotFoundError(f"there is no file or folder of documents {place}; for ir_datasets: {IR_DATASETS}ID")
    files = config_files(path, "corpus")
    if not files and (path / "corpus.jsonl").is_file():
        files = [path / "corpus.jsonl"]
    if not files:
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    if not files:
        raise FileNotFoundError(f"{place} holds no files")
    return Documents(place, tuple(files))


def _ir_dataset(identifier: str) -> Any:
    try:
        package = importlib.import_module("ir_datasets")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{IR_DATASETS}{identifier} needs the package ir_datasets; run: pip install ir_datasets"
        ) from None
    try:
        return package.load(identifier)
    except KeyError as error:
        raise ValueError(f"ir_datasets knows no dataset {identifier!r} ({error})") from error


def _of_ir_datasets(dataset: Any) -> Iterator[Document]:
    for found in dataset.docs_iter():
        title = getattr(found, "title", "") or getattr(found, "headline", "") or ""
        text = next((t for name in (*_TEXT, "body_content") if isinstance(t := getattr(found, name, None), str)), None)
        yield Document(found.doc_id, title, found.default_text() if text is None else text)


def _of_file(path: Path) -> Iterator[Document]:
    if path.suffix == ".parquet":
        return _of_parquet(path)
    if path.name.removesuffix(".gz").endswith(JSON_LINES):
        return _of_json_lines(path)
    return read_trec_documents(path)


def _of_parquet(path: Path) -> Iterator[Document]:
    file = pq.ParquetFile(path)
    lacking = {"_id", "text"} - set(file.schema_arrow.names)
    if lacking:
        raise DatasetError(str(path), [f"it lacks the columns {', '.join(sorted(lacking))}"])
    columns = [name for name in ("_id", "title", "text") if name in file.schema_arrow.names]
    for batch in file.iter_batches(_ROWS, columns=columns):
        for row in batch.to_pylist():
            yield Document(text_id(path, "a row", row["_id"]), row.get("title") or "", row["text"] or "")


def _of_json_lines(path: Path) -> Iterator[Document]:
    with opened(path) as lines:
        for number, row in json_rows(path, lines):
            where = f"line {number}"
            identifier = text_id(path, where, next((row[n] for n in _ID if n in row), None))
            title = row.get("title") or ""
            there = [row[n] for n in _TEXT if n in row]
            text = next((value for value in there if value is not None), "" if there else None)
            if isinstance(text, list):
                text = _of_pieces(text)
            if not isinstance(title, str) or not isinstance(text, str):
                problem = (
                    f"{where}: title and text of {identifier!r} must be strings; expected the text as "
                    f"{', '.join(_TEXT)}, or contents as in TREC's Washington Post; found the fields {', '.join(row)}"
                )
                raise DatasetError(str(path), [problem])
            yield Document(identifier, title, text)


def _of_pieces(pieces: list[Any]) -> str | None:
    """The paragraphs of ``contents`` of TREC's Washington Post, without tags; ``None`` if it is no such list."""
    there = [piece for piece in pieces if piece is not None]
    if not all(isinstance(piece, dict) and "type" in piece for piece in there):
        return None
    texts = [piece.get("content") for piece in there if piece["type"] == _PARAGRAPH]
    if not all(isinstance(text, str | None) for text in texts):
        return None
    return "\n".join(found for text in texts if text and (found := plain(text)))
