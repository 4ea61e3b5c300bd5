"""Documents of TREC's collections, read one at a time: ``<DOC>`` with ``<DOCNO>``, a headline and ``<TEXT>``."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

from evaluators.plugin.checks import DatasetError
from followir_tasks.construction.entities import resolved

__all__ = ["Document", "opened", "plain", "read_trec_documents"]

_BEGIN, _END = re.compile(rb"<doc(?:\s[^>]*)?>", re.IGNORECASE), re.compile(rb"</doc\s*>", re.IGNORECASE)
_NUMBER = re.compile(r"<docno>\s*(.*?)\s*</docno>", re.IGNORECASE | re.DOTALL)
# By collection: FT and LA Times; Federal Register and others; FBIS; AP, WSJ.
_HEADLINES = re.compile(r"<(headline|title|ttl|ti|hl|head)\b[^>]*>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_TEXT = re.compile(r"<text\b[^>]*>(.*?)</text\s*>", re.IGNORECASE | re.DOTALL)
_HEADER = re.compile(r"<(docno|docid|docoldno|dochdr)\b[^>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[!/]?[A-Za-z][^<>]*>|<!--.*?-->", re.DOTALL)
_BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")  # tags between paragraphs leave several
_GZIP, _COMPRESS = b"\x1f\x8b", b"\x1f\x9d"


class Document(NamedTuple):
    """A document: its id, a title that may be empty, and its text."""

    id: str
    title: str
    text: str


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file, unpacked if it is gzip's.

    Raises:
        DatasetError: if it is packed otherwise, or is not whole.
    """
    with path.open("rb") as plain:
        start = plain.read(2)
    if start == _COMPRESS:
        raise DatasetError(str(path), ["it is packed by `compress`, as on TREC's disks; unpack it: gzip -d FILE.Z"])
    try:
        with gzip.open(path) if start == _GZIP else path.open("rb") as content:
            yield cast(IO[bytes], content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DatasetError(str(path), [f"it cannot be unpacked: {error}"]) from error


def read_trec_documents(path: Path) -> Iterator[Document]:
    """The documents of a file, none if it has no ``<DOC>``. Memory: one document.

    The text is what the ``<TEXT>`` elements hold, or everything but the header where there are none; tags are taken out
    and entities resolved (those that nobody knows stay). Bytes that are not UTF-8 are read as Latin-1.

    Raises:
        DatasetError: naming file and line of a document that has no number or no end.
    """
    with opened(path) as lines:
        kept: list[bytes] = []
        began = 0
        for number, line in enumerate(lines, 1):
            # One line may hold the end of a document and the beginning of the next one.
            for piece in _pieces(line):
                if _BEGIN.search(piece):
                    if began:
                        raise DatasetError(
                            str(path), [f"line {began}: the document has no </DOC> before line {number}"]
                        )
                    began = number
                if began:
                    kept.append(piece)
                    if _END.search(piece):
                        yield _document(path, began, b"".join(kept))
                        kept, began = [], 0
        if began:
            raise DatasetError(str(path), [f"line {began}: the document has no </DOC>; the file may be cut off"])


def _pieces(line: bytes) -> Iterator[bytes]:
    """The line cut behind each end of a document."""
    at = 0
    for found in _END.finditer(line):
        yield line[at : found.end()]
        at = found.end()
    yield line[at:]


def _document(path: Path, line: int, content: bytes) -> Document:
    try:
        raw = content.decode("utf-8")
    except UnicodeDecodeError:
        raw = content.decode("latin-1")
    number = _NUMBER.search(raw)
    if number is None or not number[1]:
        raise DatasetError(str(path), [f"line {line}: the document has no <DOCNO>"])
    headlines = list(dict.fromkeys(plain(found[2], one_line=True) for found in _HEADLINES.finditer(raw)))
    texts = _TEXT.findall(raw) or [_HEADLINES.sub(" ", _HEADER.sub(" ", raw))]
    return Document(number[1], headlines[0] if headlines else "", "\n".join(map(plain, texts)).strip())


def plain(text: str, one_line: bool = False) -> str:
    """Text without tags, entities resolved."""
    found = resolved(_TAG.sub(" ", text))
    return " ".join(found.split()) if one_line else _BLANK_LINES.sub("\n\n", found).strip()
