"""Domains: what an expert of a field may ask for at each level, in files that a user can add to.

A file holds one domain as a JSON object. ``levels`` maps a level (``1`` to ``3``, or ``0`` for a domain's single
instruction) to either ``templates``, from which one is taken, or a ``task`` with ``conditions``, which a language model
puts into words. ``choose`` says how many of the conditions are drawn at least and at most.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

FOLDER = Path(__file__).parent / "domains"
_FIELD = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_LEVELS = ("0", "1", "2", "3")


@dataclass(frozen=True)
class Condition:
    """Something that an instruction may ask for.

    Attributes:
        name: one word.
        text: what it is, for the language model.
        fields: the query's fields that settle it; what they say is used as it is, and always.
        values: closed choice: key -> wording. The field must hold one of the keys; without a field one is drawn.
    """

    name: str
    text: str
    fields: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """A condition chosen for an instruction, with its value if it has one, and the source's fields behind it."""

    name: str
    text: str
    value: str | None
    given: Mapping[str, str]

    @property
    def line(self) -> str:
        """The condition as the prompt lists it."""
        return f"- {self.text}" if self.value is None else f"- {self.text}: {self.value}"


@dataclass(frozen=True)
class Level:
    """How the instructions of one level come about: from a template, or from conditions by a language model."""

    templates: tuple[str, ...]
    task: str
    conditions: tuple[Condition, ...]
    choose: tuple[int, int]

    def draw(self, fields: Mapping[str, tuple[str, ...]], rng: random.Random, query: str) -> list[Chosen]:
        """Conditions for one query: those that its fields settle, and a random choice of the others.

        Raises:
            ValueError: naming query and field, if a field's value is not in a closed choice.
        """
        settled = [c for c in self.conditions if any(f in fields for f in c.fields)]
        others = [c for c in self.conditions if c not in settled]
        least, most = (min(n, len(others)) for n in self.choose)
        drawn = rng.sample(others, rng.randint(least, most))
        return [_settle(c, fields, rng, query) for c in self.conditions if c in settled or c in drawn]


@dataclass(frozen=True)
class Domain:
    """A field of expertise.

    Attributes:
        name: as in ``--domain``.
        expert: "You are an expert in ...".
        asker: who asks, for instance "a person who seeks advice on money".
        query: what a query is, for instance "financial question".
        passage: what a passage is, for instance "passage with financial advice".
        levels: by number.
        version: eight hex digits that change with any word of the file.
    """

    name: str
    expert: str
    asker: str
    query: str
    passage: str
    levels: Mapping[int, Level]
    version: str


def read_domains(extra: Path | None = None) -> dict[str, Domain]:
    """The domains of the package, with those of a user's file or folder added; the user's replace ours of that name.

    Raises:
        FileNotFoundError: if there is no such file or folder, or the folder has no JSON file.
        ValueError: naming file and place of what is wrong with a domain.
    """
    files = sorted(FOLDER.glob("*.json"))
    if extra is not None:
        added = sorted(extra.glob("*.json")) if extra.is_dir() else [extra]
        if not added or not added[0].is_file():
            raise FileNotFoundError(f"{extra} is neither a domain file nor a folder with domain files (*.json)")
        files += added
    return {domain.name: domain for domain in map(_read, files)}


def choose_domain(name: str, extra: Path | None = None) -> Domain:
    """The domain of that name.

    Raises:
        ValueError: listing the known domains if there is none.
    """
    known = read_domains(extra)
    if name not in known:
        raise ValueError(
            f"unknown domain {name!r}; known are {', '.join(sorted(known))}; add yours with --domains FILE"
        )
    return known[name]


def _settle(condition: Condition, fields: Mapping[str, tuple[str, ...]], rng: random.Random, query: str) -> Chosen:
    given = {name: rng.choice(fields[name]) for name in condition.fields if name in fields}
    value = ", ".join(v if len(given) == 1 else f"{k} {v}" for k, v in given.items()) or None
    if condition.values:
        if value is None:
            value = rng.choice(sorted(condition.values))
        by_key = {key.casefold(): wording for key, wording in condition.values.items()}
        if value.casefold() not in by_key:
            raise ValueError(
                f"query {query!r}: {' and '.join(condition.fields)} is {value!r}, but the condition {condition.name!r} "
                f"knows {', '.join(sorted(condition.values))} only; add it to a domain file of your own (--domains)"
            )
        value = by_key[value.casefold()]
    return Chosen(condition.name, condition.text, value, given)


def _read(path: Path) -> Domain:
    try:
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    texts = ("name", "expert", "asker", "query", "passage")
    _keys(path, "the domain", raw, {*texts, "levels"}, set())
    for key in texts:
        if not isinstance(raw[key], str) or not raw[key].strip():
            _refuse(path, f"{key!r} must be a text")
    levels = raw["levels"]
    if not isinstance(levels, dict) or not levels or not set(levels) <= set(_LEVELS):
        _refuse(path, f"'levels' must be an object with keys among {', '.join(_LEVELS)}")
    if sorted(set(levels) - {"0"}) != [str(n) for n in range(1, len(set(levels) - {"0"}) + 1)]:
        _refuse(path, f"levels must begin at 1 and leave none out, found {', '.join(sorted(levels))}")
    version = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()[:8]
    read = {int(number): _level(path, number, level) for number, level in sorted(levels.items())}
    return Domain(**{key: raw[key] for key in texts}, levels=read, version=version)


def _level(path: Path, number: str, raw: Any) -> Level:
    where = f"level {number}"
    _keys(path, where, raw, set(), {"templates", "task", "conditions", "choose"})
    templates, task = raw.get("templates", []), raw.get("task", "")
    if bool(templates) == bool(task):
        _refuse(path, f"{where} needs either 'templates' or a 'task'")
    conditions = tuple(_condition(path, where, c) for c in raw.get("conditions", []))
    if not isinstance(task, str) or not isinstance(templates, list) or not all(isinstance(t, str) for t in templates):
        _refuse(path, f"{where}: 'templates' must be a list of texts and 'task' a text")
    choose = raw.get("choose", [len(conditions), len(conditions)])
    sound = isinstance(choose, list) and len(choose) == 2 and all(type(n) is int for n in choose)
    if not sound or not 0 <= choose[0] <= choose[1]:
        _refuse(path, f"{where}: 'choose' must be two numbers, the fewest and the most, got {choose!r}")
    with_value = {c.name for c in conditions if c.values}
    for template in templates:
        unknown = set(_FIELD.findall(template)) - with_value
        if unknown:
            _refuse(path, f"{where}: the template {template!r} names {sorted(unknown)}, no condition with 'values'")
    if templates and conditions and choose[0] < len(conditions):
        _refuse(path, f"{where}: templates need every condition; leave 'choose' out")
    return Level(tuple(templates), task, conditions, (choose[0], choose[1]))


def _condition(path: Path, where: str, raw: Any) -> Condition:
    _keys(path, f"a condition of {where}", raw, {"name", "text"}, {"fields", "values"})
    fields, values = raw.get("fields", []), raw.get("values", {})
    if not isinstance(fields, list) or not isinstance(values, dict):
        _refuse(path, f"{where}, condition {raw['name']!r}: 'fields' must be a list and 'values' an object")
    return Condition(raw["name"], raw["text"], tuple(fields), values)


def _keys(path: Path, where: str, raw: Any, needed: set[str], allowed: set[str]) -> None:
    if not isinstance(raw, dict):
        _refuse(path, f"{where} must be a JSON object")
    missing, unknown = needed - set(raw), set(raw) - needed - allowed
    if missing or unknown:
        told = [
            f"{word} {', '.join(sorted(keys))}" for word, keys in (("lacks", missing), ("has unknown", unknown)) if keys
        ]
        _refuse(path, f"{where} {' and '.join(told)}")


def _refuse(path: Path, what: str) -> NoReturn:
    raise ValueError(f"{path}: {what}")


def filled(template: str, chosen: list[Chosen]) -> str:
    """A template with the values of its conditions."""
    values = {c.name: c.value or "" for c in chosen}
    return _FIELD.sub(lambda found: values[found[1]], template)
