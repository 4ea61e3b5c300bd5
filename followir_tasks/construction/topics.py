"""TREC topics: a number, a title, a description and a narrative, in the forms in which they are published.

========== ==========================================================================================================
form       fields
========== ==========================================================================================================
SGML       ``<top>`` with ``<num>``, ``<title>``, ``<desc>``, ``<narr>``, with or without closing tags; labels such as
           ``Number:`` are dropped
XML        ``topic`` elements with the number as attribute ``number`` (``num``, ``id``) or in an element ``num``
JSON lines an object a topic; fields may also stand in its ``metadata``, as in sets of BEIR's
========== ==========================================================================================================

Other names of the fields in use are known, too: ``description``, ``question``, ``narrative``, ``query`` and so on. What
is called ``query`` or ``text`` is the title, the description or both, whichever the topic lacks. Files may be packed by
gzip.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from evaluators.metrics.standard import is_plain_text
from evaluators.plugin.checks import DatasetError, shown
from evaluators.plugin.jsonl import JSON_LINES, json_rows, text_id
from followir_tasks.construction.entities import resolved
from followir_tasks.construction.trec_documents import opened

__all__ = ["Topic", "read_topics"]

_NAMES = {
    "number": ("num", "number", "_id", "id", "topic", "topic_id", "query_id", "query-id", "qid"),
    "title": ("title", "query", "text"),
    "description": ("desc", "description", "question", "text", "query"),
    "narrative": ("narr", "narrative", "instruction"),
}
_LABELS = {"number": "number", "title": "title|topic", "description": "description", "narrative": "narrative"}
_TOP = re.compile(r"<top\b[^>]*>(.*?)(?=</top\s*>|<top\b|\Z)", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"<(num|title|desc|narr)\b[^>]*>", re.IGNORECASE)
# A field without closing tag ends where a line begins with a tag, such as News's <subtopics>, that is none of markup; a
# sign < within a line does not end it.
_MARKUP = "p|b|i|u|em|strong|br|sub|sup|span|a|ul|ol|li"
_FIELD_END = re.compile(rf"[\r\n]\s*<(?!/|(?:{_MARKUP})\b)[a-z][\w-]*\b[^>]*>", re.IGNORECASE)
_TAG = re.compile(rf"</?(?:{_MARKUP})\b[^<>]*>", re.IGNORECASE)
_XML = re.compile(r"\s*(?:<\?xml|<!--|<!doctype|<topics\b|<topic\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Topic:
    """A topic.

    Attributes:
        number: as in the judgements, for instance ``301``.
        title, description, narrative: one line each; empty if the file has none.
    """

    number: str
    title: str
    description: str
    narrative: str


def read_topics(path: Path, needed: Collection[str] = ()) -> list[Topic]:
    """The topics of a file, in its order.

    Args:
        path: the file.
        needed: fields (``title``, ``description``, ``narrative``) that at least one topic must have.

    Raises:
        FileNotFoundError: if there is no such file.
        DatasetError: if it holds no topics, a topic has no number or holds what no file can keep, a number occurs more
            than once, or no topic has a field that is needed, or any text.
    """
    path = path.expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of topics {path}")
    found = list(_read(path))
    if not found:
        raise DatasetError(
            str(path),
            [f"it holds no topics: neither <top> nor <topic> elements nor JSON lines ({', '.join(JSON_LINES)})"],
        )
    twice = [number for number, n in Counter(topic.number for topic, _ in found).items() if n > 1]
    if twice:
        raise DatasetError(str(path), [f"{len(twice)} topics occur more than once: {shown(twice)}"])
    texts = [name for name in _NAMES if name != "number"]
    absent = [name for name in texts if not any(getattr(topic, name) for topic, _ in found)]
    lacking = absent if absent == texts else [name for name in absent if name in needed]
    if lacking:
        raise DatasetError(str(path), [_lacks(name, {n for _, names in found for n in names}) for name in lacking])
    return [topic for topic, _ in found]


def _lacks(name: str, there: Collection[str]) -> str:
    return f"no topic has a {name}: expected a field {' or '.join(_NAMES[name])}, found {', '.join(sorted(there))}"


def _read(path: Path) -> Iterator[tuple[Topic, tuple[str, ...]]]:
    """The topics, each with the names of its fields in the file."""
    with opened(path) as content:
        if path.name.removesuffix(".gz").endswith(JSON_LINES):
            for number, row in json_rows(path, content):
                metadata = row.get("metadata")
                fields = {**metadata, **row} if isinstance(metadata, dict) else row
                yield _topic(fields, path, f"line {number}"), tuple(fields)
            return
        raw = content.read()
    text = _decoded(raw)
    if "\0" in text:
        raise DatasetError(str(path), ["it holds NULs: if it is UTF-16 without a byte order mark, write it as UTF-8"])
    topics = _read_xml(path, raw) if _XML.match(text) else _read_sgml(path, text)
    for place, found in enumerate(topics, 1):
        yield _topic(found, path, f"topic {place}", labelled=True), tuple(found)


def _decoded(content: bytes) -> str:
    """TREC's older files are in Latin-1."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _read_xml(path: Path, content: bytes) -> Iterator[Mapping[str, str]]:
    """The content as it is: it may declare its encoding."""
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise DatasetError(str(path), [f"it is not well-formed XML: {error}"]) from error
    for element in (e for e in root.iter() if _name(e) in ("topic", "top")):
        yield {_name(child): "".join(child.itertext()) for child in element} | element.attrib


def _name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace; a comment has none."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _read_sgml(path: Path, text: str) -> Iterator[Mapping[str, str]]:
    for place, found in enumerate(_TOP.finditer(text), 1):
        pieces = _FIELD.split(found[1])
        names = [name.lower() for name in pieces[1::2]]
        twice = [name for name, n in Counter(names).items() if n > 1]
        if twice:
            raise DatasetError(str(path), [f"topic {place}: it has <{twice[0]}> more than once: is a </top> missing?"])
        yield {name: _content(name, piece) for name, piece in zip(names, pieces[2::2], strict=True)}


def _content(name: str, text: str) -> str:
    """What stands after an opening tag: up to the closing one or, without it, to the field's end; without markup."""
    closed = re.search(rf"</{name}\s*>", text, re.IGNORECASE)
    own = text[: closed.start()] if closed else _FIELD_END.split(text, maxsplit=1)[0]
    return resolved(_TAG.sub(" ", own))


def _topic(fields: Mapping[str, object], path: Path, where: str, *, labelled: bool = False) -> Topic:
    def field(name: str) -> object:
        return next((fields[n] for n in _NAMES[name] if fields.get(n) not in (None, "")), None)

    found = {name: field(name) for name in _NAMES}
    if labelled:
        found = {name: _unlabelled(name, value) for name, value in found.items()}
    number, *_ = found.values()
    number = " ".join(number.split()) if isinstance(number, str) else number
    texts = {name: value for name, value in found.items() if name != "number"}
    strange = [name for name, value in texts.items() if not isinstance(value, str | None)]
    if strange:
        raise DatasetError(str(path), [f"{where}: {', '.join(strange)} must be strings"])
    odd = [name for name, value in texts.items() if isinstance(value, str) and not is_plain_text(value)]
    if odd:
        told = "a NUL or half a character (a lone surrogate, such as \\ud800)"
        raise DatasetError(str(path), [f"{where}: {', '.join(odd)} of topic {number!r} holds {told}; remove it"])
    lines = {name: " ".join(str(value or "").split()) for name, value in texts.items()}
    return Topic(text_id(path, where, number), **lines)


def _unlabelled(name: str, value: object) -> object:
    """A field without the label that TREC prints before its text."""
    label = rf"\A\s*(?:{_LABELS[name]})\s*:"
    return re.sub(label, "", value, count=1, flags=re.IGNORECASE) if isinstance(value, str) else value
