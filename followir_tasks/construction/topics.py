"""TREC topics: a number, a title, a description and a narrative, in the forms in which they are published.

========== ==========================================================================================================
form       fields
========== ==========================================================================================================
SGML       ``<top>`` with ``<num>``, ``<title>``, ``<desc>``, ``<narr>``, with or without closing tags; labels such as
           ``Number:`` are dropped
XML        ``topic`` elements with the number as attribute ``number`` (``num``, ``id``) or in an element ``num``
JSON lines an object a topic
========== ==========================================================================================================

Other names of the fields in use are known, too: ``description``, ``question``, ``narrative``, ``query`` and so on.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from evaluators.plugin.checks import DatasetError, shown
from evaluators.plugin.jsonl import read_json_lines, text_id

__all__ = ["Topic", "read_topics"]

_NAMES = {
    "number": ("num", "number", "_id", "id", "topic", "query_id", "qid"),
    "title": ("title", "query"),
    "description": ("desc", "description", "question"),
    "narrative": ("narr", "narrative", "instruction"),
}
_TOP = re.compile(r"<top\b[^>]*>(.*?)(?=</top\s*>|<top\b|\Z)", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"<(num|title|desc|narr)\b[^>]*>", re.IGNORECASE)
_LABEL = re.compile(r"\A\s*(?:number|topic|title|description|narrative)\s*:", re.IGNORECASE)
# A field without closing tag ends where a line begins with a tag, such as News's <subtopics>; a sign < within a line
# does not end it.
_FIELD_END = re.compile(r"</(?:num|title|desc|narr)\s*>|\n\s*<[a-z][\w-]*\b[^>]*>", re.IGNORECASE)


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


def read_topics(path: Path) -> list[Topic]:
    """The topics of a file, in its order.

    Raises:
        FileNotFoundError: if there is no such file.
        DatasetError: if it holds no topics, a topic has no number, or a number occurs more than once.
    """
    path = path.expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of topics {path}")
    if path.suffix == ".jsonl":
        found = [_topic(row, path, f"line {number}") for number, row in read_json_lines(path)]
    else:
        text = _decoded(path.read_bytes())
        found = list(_read_xml(path, text) if _is_xml(text) else _read_sgml(path, text))
    if not found:
        raise DatasetError(
            str(path), ["it holds no topics: neither <top> nor <topic> elements nor JSON lines (.jsonl)"]
        )
    twice = [number for number, n in Counter(topic.number for topic in found).items() if n > 1]
    if twice:
        raise DatasetError(str(path), [f"{len(twice)} topics occur more than once: {shown(twice)}"])
    return found


def _decoded(content: bytes) -> str:
    """TREC's older files are in Latin-1."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _is_xml(text: str) -> bool:
    return re.match(r"\s*(<\?xml|<topics\b)", text, re.IGNORECASE) is not None


def _read_xml(path: Path, text: str) -> Iterator[Topic]:
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise DatasetError(str(path), [f"it is not well-formed XML: {error}"]) from error
    for place, element in enumerate((e for e in root.iter() if e.tag.lower() in ("topic", "top")), 1):
        fields = {child.tag.lower(): "".join(child.itertext()) for child in element}
        yield _topic({**fields, **element.attrib}, path, f"topic {place}")


def _read_sgml(path: Path, text: str) -> Iterator[Topic]:
    for place, found in enumerate(_TOP.finditer(text), 1):
        pieces = _FIELD.split(found[1])
        names = [name.lower() for name in pieces[1::2]]
        twice = [name for name, n in Counter(names).items() if n > 1]
        if twice:
            raise DatasetError(str(path), [f"topic {place}: it has <{twice[0]}> more than once: is a </top> missing?"])
        fields = dict(zip(names, map(_content, pieces[2::2]), strict=True))
        yield _topic(fields, path, f"topic {place}")


def _content(text: str) -> str:
    """What stands after an opening tag: up to its end, without label and entities."""
    return html.unescape(_LABEL.sub("", _FIELD_END.split(text, maxsplit=1)[0], count=1))


def _topic(fields: Mapping[str, object], path: Path, where: str) -> Topic:
    def field(name: str) -> object:
        return next((fields[n] for n in _NAMES[name] if fields.get(n) is not None), None)

    number = field("number")
    number = " ".join(_LABEL.sub("", number, count=1).split()) if isinstance(number, str) else number
    texts = {name: field(name) for name in ("title", "description", "narrative")}
    strange = [name for name, value in texts.items() if not isinstance(value, str | None)]
    if strange:
        raise DatasetError(str(path), [f"{where}: {', '.join(strange)} must be strings"])
    lines = {name: " ".join(str(value or "").split()) for name, value in texts.items()}
    return Topic(text_id(path, where, number), **lines)
