"""The vocabulary of a domain, read from JSON: topics, and the axes along which their passages differ.

A passage has one topic and one value on each axis of its domain. A query asks for one topic and has one wish
per axis. Axes have a level: a passage meets level ``n`` of a query if it has the topic and satisfies every
axis up to level ``n``. So the levels are nested by construction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

DOMAINS = ("finance", "science", "law", "health", "nutrition")

Facets = Mapping[str, str]


@dataclass(frozen=True)
class Axis:
    """One property in which passages differ.

    Attributes:
        name: for instance ``age``.
        level: the first level that asks for it, 2 or 3.
        kind: ``equal`` (the value itself, or ``any``), ``range`` ("18-65" around an age) or ``rule``
            ("require:chemo", "exclude:chemo" or "allow:chemo" against a history such as "chemo+radio").
        phrases: the wordings of each value (``equal``) or each item (``rule``).
        templates: sentences around a wording, ``{v}``; without any, the wordings are sentences themselves.
        rules: for ``rule``, the sentences of each verb.
        cap: for ``range``, sentences that state the range by exclusion.
        bands: for ``range``, the values passages may have.
        deny: sentences that rule a wording out.
    """

    name: str
    level: int
    kind: str
    phrases: Mapping[str, list[str]]
    templates: list[str]
    rules: Mapping[str, list[str]]
    cap: list[str]
    bands: list[str]
    deny: list[str]

    def values(self) -> list[str]:
        """Every value a passage may have."""
        if self.kind == "range":
            return self.bands
        if self.kind == "rule":
            return [f"{verb}:{item}" for verb in self.rules for item in self.phrases]
        return list(self.phrases)

    def satisfied(self, wanted: str, value: str) -> bool:
        """Whether a passage with ``value`` meets the wish ``wanted``."""
        if self.kind == "range":
            low, high = map(int, value.split("-"))
            return low <= int(wanted) <= high
        if self.kind == "rule":
            verb, item = value.split(":")
            return verb == "allow" or (item in wanted.split("+")) == (verb == "require")
        return value in (wanted, "any")


@dataclass(frozen=True)
class Topic:
    """The topic of one base query, with the axes as they are worded for it."""

    number: int
    query: str
    names: list[str]
    fillers: list[str]
    sibling: int
    want: Facets
    instructions: Mapping[str, str]
    parties: Mapping[str, list[str]]
    axes: list[Axis]

    def score(self, topic: int, facets: Facets) -> int:
        """How many levels a passage of topic number ``topic`` with ``facets`` meets, 0 to 3."""
        if topic != self.number:
            return 0
        for level in (2, 3):
            if not all(a.satisfied(self.want[a.name], facets[a.name]) for a in self.axes if a.level == level):
                return level - 1
        return 3


@dataclass(frozen=True)
class Domain:
    """The topics and the shared wordings of a domain."""

    name: str
    tag: str
    titles: list[str]
    openers: list[str]
    asides: list[str]
    joint: list[dict[str, Any]]
    fillers: list[str]
    generic: list[str]
    forbid: list[dict[str, str]]
    topics: list[Topic]


def load(name: str) -> Domain:
    """Read a domain of ``DOMAINS``."""
    data = json.loads(files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
    topics = [_topic(data, number, raw) for number, raw in enumerate(data["topics"])]
    keys = ("tag", "titles", "openers", "asides", "joint", "fillers", "generic")
    return Domain(name=name, topics=topics, forbid=data.get("forbid", []), **{k: data[k] for k in keys})


def _topic(data: dict[str, Any], number: int, raw: dict[str, Any]) -> Topic:
    # A topic words an axis itself, or names a group that shares wordings; both add to those of the domain.
    extra = {**data.get("shared", {}).get(raw.get("shared"), {}), **raw}
    axes = [_axis(a, {**a.get("values", a.get("items", {})), **extra.get(a["name"], {})}) for a in data["axes"]]
    return Topic(
        number=number,
        query=raw["query"],
        names=raw["names"],
        fillers=raw["fillers"],
        sibling=raw["sibling"],
        want=raw["want"],
        instructions={v: raw[v] for v in ("v0", "v2", "v3") if v in raw},
        parties={side: raw[side] for side in ("p", "d") if side in raw},
        axes=axes,
    )


def _axis(raw: dict[str, Any], phrases: dict[str, list[str]]) -> Axis:
    if raw["kind"] == "range":
        phrases = {}
    return Axis(
        name=raw["name"],
        level=raw["level"],
        kind=raw["kind"],
        phrases=phrases,
        templates=raw.get("templates", []),
        rules=raw.get("rules", {}),
        cap=raw.get("cap", []),
        bands=raw.get("bands", []),
        deny=raw.get("deny", []),
    )
