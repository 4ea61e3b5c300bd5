"""What a report is made of: measures, lines, blocks and sections, as plain values without layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from ifir_tasks.report.published import AVERAGE, SUBSET_TASK_NAMES, Column, Measure, PublishedRow
from ifir_tasks.report.results import ModelScores


class OwnMeasure(NamedTuple):
    """A score of our result files.

    Attributes:
        key: its name there; with ``level_<n>_`` before it for one level.
        text: what it is.
        published: the published measure that it is to be compared with, ``None`` for none.
        percent: whether tables show it times 100.
    """

    key: str
    text: str
    published: Measure | None = None
    percent: bool = False


PAPER_NDCG = OwnMeasure("paper_ndcg_at_20", "nDCG@20 (0..1) as the authors' code computes it", "ndcg")
NDCG = OwnMeasure("ndcg_at_20", "standard nDCG@20 (0..1), a mean over all instructed queries")
PAPER_MRR = OwnMeasure("paper_mrr_at_20", "MRR@20 (0..1) as the authors' code computes it", "mrr")
MRR = OwnMeasure("mrr_at_20", "standard MRR@20 (0..1)")
PLAIN_NDCG = OwnMeasure("query_only_ndcg_at_20", "standard nDCG@20 (0..1) of the query without instruction")
PAPER_INSTFOL = OwnMeasure(
    "paper_instfol_at_20", "InstFol@20 times 100, with the paper's maximum of 3 everywhere", "instfol", True
)
INSTFOL = OwnMeasure(
    "instfol_at_20",
    "InstFol@20 times 100, with each rubric's own maximum; over levels the mean of their means",
    None,
    True,
)


class Place(NamedTuple):
    """A column: a subset (the paper's name), ``AVERAGE`` or the sample; one level, or ``None`` for all."""

    subset: str
    level: int | None = None


@dataclass(frozen=True)
class Line:
    """A line of a block; a line without values is a heading. ``None`` among the values is a missing one."""

    label: str
    values: tuple[float | None, ...] = ()
    published: bool = False


@dataclass(frozen=True)
class Block:
    """Lines that show one measure."""

    title: str
    places: tuple[Place, ...]
    decimals: int
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Section:
    """A table of the paper, or another part of the report."""

    title: str
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()


def value(model: ModelScores, measure: OwnMeasure, place: Place) -> float | None:
    """A model's score as tables show it, ``None`` where it has none.

    The average is the plain mean of the seven subsets, as in the paper, and exists only when all seven do.
    """
    if place.subset == AVERAGE:
        parts = [value(model, measure, Place(subset, place.level)) for subset in SUBSET_TASK_NAMES]
        known = [part for part in parts if part is not None]
        return fmean(known) if len(known) == len(parts) else None
    task = SUBSET_TASK_NAMES.get(place.subset, place.subset)
    key = measure.key if place.level is None else f"level_{place.level}_{measure.key}"
    found = model.scores.get(task, {}).get(key)
    return None if found is None else float(found) * (100 if measure.percent else 1)


def own_lines(models: Iterable[ModelScores], measure: OwnMeasure, places: Sequence[Place]) -> list[Line]:
    """One line per entry."""
    return [Line(m.label, tuple(value(m, measure, place) for place in places)) for m in models]


def published_line(row: PublishedRow, measure: OwnMeasure, places: Sequence[Place], label: str | None = None) -> Line:
    """The paper's numbers that compare with a measure of ours.

    Raises:
        ValueError: if the paper has nothing that compares with it.
    """
    if measure.published is None:
        raise ValueError(f"no published value compares with {measure.key}")
    cells = (row.values.get(Column(place.subset, measure.published, place.level)) for place in places)
    return Line(label or row.model, tuple(cells), published=True)
