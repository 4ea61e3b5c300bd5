"""Prompts as text files with named fields."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.judge.request import Message

_FIELD = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9_-]*)>")
_SCALE = re.compile(r"(-?[0-9]{1,3})\s*-\s*(-?[0-9]{1,3})")
_LINE = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Prompt:
    """A system and a user text with named fields.

    A file has a header of lines ``key: value`` (which may be empty), a line ``---``, the system text, a line ``---``
    and the user text. ``{name}`` in small letters is a field; other braces stand for themselves.

    Attributes:
        name: the file's name without suffix.
        header: the header's keys and values.
        system, user: the texts; an empty system text is not sent.
    """

    name: str
    header: Mapping[str, str]
    system: str
    user: str

    @property
    def fields(self) -> frozenset[str]:
        """Names of the fields."""
        return frozenset(_FIELD.findall(self.system) + _FIELD.findall(self.user))

    @property
    def version(self) -> str:
        """Eight hex digits that change with any word of the texts or the header."""
        text = "\0".join([self.system, self.user, *(f"{k}={v}" for k, v in sorted(self.header.items()))])
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def scale(self) -> tuple[int, int] | None:
        """Lowest and highest score that the header's ``scale: 0-3`` allows, ``None`` if there is no such line."""
        found = _SCALE.fullmatch(self.header["scale"].strip()) if "scale" in self.header else None
        return (int(found[1]), int(found[2])) if found else None

    def messages(self, **values: str) -> tuple[Message, ...]:
        """The prompt with its fields filled in.

        A value is data: where it holds a tag that the prompt itself uses, such as ``</passage>``, the tag's ``<``
        becomes ``&lt;``, so that no passage can end the place it stands in. Fields inside a value are not filled.

        Raises:
            ValueError: if a field has no value, or a value no field.
        """
        if self.fields != values.keys():
            raise ValueError(f"prompt {self.name!r} has the fields {sorted(self.fields)}, got {sorted(values)}")
        tags = set(_TAG.findall(self.system) + _TAG.findall(self.user))
        safe = {name: _without_tags(value, tags) for name, value in values.items()}

        def filled(text: str) -> str:
            return _FIELD.sub(lambda found: safe[found[1]], text)

        parts = (("system", filled(self.system)), ("user", filled(self.user)))
        return tuple({"role": role, "content": text} for role, text in parts if text)


def read_prompt(path: Path, fields: Collection[str]) -> Prompt:
    """Read a prompt file that must have exactly these fields.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming the file, if its form or its fields are others.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no prompt file {path}")
    try:
        parts = _LINE.split(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from error
    if len(parts) != 3:
        raise ValueError(
            f"{path}: expected a header, the system text and the user text, with a line --- between two of them; "
            f"found {len(parts)} part(s)"
        )
    header: dict[str, str] = {}
    for line in filter(str.strip, parts[0].splitlines()):
        key, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"{path}: the header line {line!r} is not of the form 'key: value'")
        if key.strip() in header:
            raise ValueError(f"{path}: the header has two lines {key.strip()!r}")
        header[key.strip()] = value.strip()
    prompt = Prompt(path.stem, header, parts[1].strip(), parts[2].strip())
    if prompt.fields != frozenset(fields):
        raise ValueError(f"{path}: expected the fields {sorted(fields)}, found {sorted(prompt.fields)}")
    if "scale" in header and (prompt.scale is None or prompt.scale[0] >= prompt.scale[1]):
        raise ValueError(f"{path}: the scale {header['scale']!r} is not of the form 'lowest-highest', such as 0-3")
    return prompt


def package_prompts(package: Path, fields: Mapping[str, Sequence[str]], own: Path | None = None) -> dict[str, Prompt]:
    """The prompts of a package, or those of the same name in the user's folder where it has them.

    Args:
        package: the package's folder of prompts.
        fields: a prompt's name -> its fields.
        own: the user's folder.

    Raises:
        FileNotFoundError: if there is no such folder, or it holds none of them.
        ValueError: naming a file whose form or fields are others.
    """
    found = {name for name in fields if own is not None and (own / f"{name}.txt").is_file()}
    if own is not None and not found:
        raise FileNotFoundError(f"{own} holds none of {', '.join(f'{name}.txt' for name in fields)}")
    return {
        name: read_prompt((own if own is not None and name in found else package) / f"{name}.txt", wanted)
        for name, wanted in fields.items()
    }


def _without_tags(value: str, tags: Collection[str]) -> str:
    if not tags:
        return value
    names = "|".join(map(re.escape, sorted(tags)))
    return re.sub(rf"<(?=\s*/?\s*(?:{names})\b)", "&lt;", value, flags=re.IGNORECASE)
