"""The values that the FollowIR paper published, read from ``published.json``: numbers only, each with its table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

FILE = Path(__file__).parent / "published.json"

TableName = Literal["2", "3", "4", "instructir"]
# Which of the paper's models a table shows: those that are among ours, all, or none.
Which = Literal["matching", "all", "none"]
WHICH: tuple[Which, ...] = ("matching", "all", "none")

AVERAGE = "Average"
# Columns of Tables 3 and 4: the score without what is added, and what adding it changes.
ORIGINAL, DIFFERENCE = "original", "difference"


class Column(NamedTuple):
    """What a published cell is about: a task or subset (or ``AVERAGE``), and a score."""

    place: str
    score: str


class PublishedModel(NamedTuple):
    """A model of Table 2.

    Attributes:
        name: as Table 2 spells it, here in the other tables, too.
        group: the paper's grouping.
        mteb_names: its names in mteb and on the hub; empty where the paper does not make it certain.
        note: what to know when comparing with it, or ``None``.
    """

    name: str
    group: str
    mteb_names: tuple[str, ...]
    note: str | None


@dataclass(frozen=True)
class PublishedTable:
    """A published table.

    Attributes:
        source: what it is in the paper.
        scale: printed values are scores times this.
        columns: of each row.
        rows: model -> its values as printed, in the paper's order.
    """

    source: str
    scale: int
    columns: tuple[Column, ...]
    rows: Mapping[str, tuple[float, ...]]

    def value(self, model: str, column: Column) -> float:
        """A printed value.

        Raises:
            KeyError: if the table has no such model or column.
        """
        if column not in self.columns:
            raise KeyError(f"{self.source} has no column {column}")
        return self.rows[model][self.columns.index(column)]


@cache
def published_models() -> tuple[PublishedModel, ...]:
    """The models of Table 2, in its order."""
    return tuple(
        PublishedModel(entry["name"], entry["group"], tuple(entry["mteb_names"]), entry["note"])
        for entry in _content()["models"]
    )


@cache
def published_table(name: TableName) -> PublishedTable:
    """Table 2 (FollowIR), 3 (keywords on BEIR), 4 (whole collections), or Figure 4 (InstructIR)."""
    entry = _content()["tables"][name]
    columns = tuple(Column(*column) for column in entry["columns"])
    rows = {model: tuple(values) for model, *values in entry["rows"]}
    uneven = [model for model, values in rows.items() if len(values) != len(columns)]
    if uneven or len(rows) != len(entry["rows"]):
        raise ValueError(f"{FILE}: rows of {entry['source']} are uneven or stand twice: {uneven}")
    return PublishedTable(entry["source"], int(entry["scale"]), columns, rows)


def shown_models(table: PublishedTable, ours: Iterable[str], which: Which) -> list[str]:
    """The models of a table whose published row is shown, in the paper's order.

    Args:
        table: the table.
        ours: the names, in mteb, of the models that have results.
        which: the user's choice.
    """
    if which == "none":
        return []
    there = set(ours)
    known = {model.name for model in published_models() if there & set(model.mteb_names)}
    return [name for name in table.rows if which == "all" or name in known]


def published_notes(names: Iterable[str]) -> list[str]:
    """What to know when comparing with these models."""
    chosen = set(names)
    return [f"published {m.name}: {m.note}." for m in published_models() if m.name in chosen and m.note]


@cache
def _content() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))
