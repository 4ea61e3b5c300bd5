"""The values that the IFIR paper published, read from ``published.json``: numbers only, each with its table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

FILE = Path(__file__).parent / "published.json"

Measure = Literal["ndcg", "mrr", "instfol"]
Setting = Literal["end-to-end", "hybrid", "without prompt", "with prompt"]

AVERAGE = "Average"
# The paper's names of the subsets, in its order, and our tasks.
SUBSET_TASK_NAMES = {
    "FiQA": "IFIRFiQAInstFol",
    "SciFact-open": "IFIRScifactOpenInstFol",
    "NFCorpus": "IFIRNFCorpusInstFol",
    "AILA": "IFIRAilaInstFol",
    "FIRE": "IFIRFireInstFol",
    "TREC-PM": "IFIRPmInstFol",
    "TREC-CDS": "IFIRCdsInstFol",
}
# Those with instructions in three levels, in the order of Tables 10 and 11.
LEVELLED = ("FiQA", "AILA", "TREC-PM", "SciFact-open")
LEVELS = (1, 2, 3)


class Column(NamedTuple):
    """What a published cell is about.

    Attributes:
        subset: the paper's name of the subset, or ``AVERAGE`` over all seven.
        measure: nDCG@20 and MRR@20 lie in 0..1; InstFol@20 is printed times 100.
        level: 1, 2, 3, or ``None`` over all instructions.
    """

    subset: str
    measure: Measure
    level: int | None = None


class PublishedModel(NamedTuple):
    """A model of the paper.

    Attributes:
        name: as Table 3 writes it (Tables 8 to 11 write ``E5-mistral-7b-inst`` for ``E5-mistral-7B``).
        group: the paper's grouping.
        mteb_name: its name in mteb and on the hub; ``None`` where the paper does not make it certain.
        note: what to know when comparing with it, or ``None``.
    """

    name: str
    group: str
    mteb_name: str | None
    note: str | None


@dataclass(frozen=True)
class PublishedRow:
    """One line of a published table: the numbers as printed."""

    model: str
    setting: Setting
    values: Mapping[Column, float]


@dataclass(frozen=True)
class PublishedTable:
    """A published table; ``source`` names it, and ``rows`` keep the paper's order."""

    source: str
    columns: tuple[Column, ...]
    rows: tuple[PublishedRow, ...]

    def row(self, model: str, setting: Setting = "end-to-end") -> Mapping[Column, float]:
        """The values of a model in a setting.

        Raises:
            KeyError: if the table has no such line.
        """
        for row in self.rows:
            if (row.model, row.setting) == (model, setting):
                return row.values
        raise KeyError(f"{self.source} has no line {model!r}, {setting}")


@cache
def published_models() -> tuple[PublishedModel, ...]:
    """The fifteen models, in the order of Table 3."""
    return tuple(PublishedModel(**entry) for entry in json.loads(FILE.read_text(encoding="utf-8"))["models"])


@cache
def published_tables() -> Mapping[int, PublishedTable]:
    """Tables 3, 8, 9, 10 and 11 by number."""
    tables: dict[int, PublishedTable] = {}
    for entry in json.loads(FILE.read_text(encoding="utf-8"))["tables"]:
        columns = tuple(Column(*column) for column in entry["columns"])
        rows = tuple(
            PublishedRow(model, setting, dict(zip(columns, values, strict=True)))
            for model, setting, *values in entry["rows"]
        )
        tables[int(entry["source"].rsplit(" ", 1)[1])] = PublishedTable(entry["source"], columns, rows)
    return tables
