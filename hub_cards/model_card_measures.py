"""Which scores a model card says about a task, under which names and on which scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import mteb
from mteb.abstasks import AbsTask

from hub_cards.measures import MEASURES, OTHER, OWN, Measure, benchmark_of, scale_of
from hub_cards.values import chance_of, value_of


@cache
def known_task(name: str) -> AbsTask | None:
    """The task of that name, without data, or ``None`` if mteb and this project know none."""
    try:
        return mteb.get_task(name)
    except KeyError:
        return None


def measures(task: AbsTask) -> tuple[Measure, ...]:
    """What cards show of a task: its benchmark's measures, or the main score of a task of no benchmark of ours."""
    benchmark = benchmark_of(type(task))
    if benchmark != OTHER:
        return tuple(m for m in MEASURES[benchmark] if m.on_card)
    main = str(task.metadata.main_score)
    return (Measure(main, main, "the main score", scale=scale_of(main) or OWN, name=main),)


def eval_ids(task: AbsTask) -> list[tuple[str, str, str]]:
    """Id, subset and split that a dataset's ``eval.yaml`` needs beside mteb's own, for each further measure."""
    return [
        (metric_id(task, subset, split, measure), subset, split)
        for subset in task.metadata.hf_subsets
        for split in task.metadata.eval_splits
        for measure in measures(task)
        if measure.key != task.metadata.main_score
    ]


def metric_id(task: AbsTask, subset: str, split: str, measure: Measure) -> str:
    """The id of a measure that is not the main score; mteb's ids do not name a measure."""
    return f"{task.metadata.name}_{subset}_{split}_{measure.key}"


# ---- a result ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scored:
    """One measure of one split and subset of a result.

    Attributes:
        value: as in the result file.
        low, high: ends of the 95 % interval; ``None`` if the file has none.
        chance: what a random ranking is expected to get; ``None`` if the file does not say.
    """

    measure: Measure
    value: float
    low: float | None
    high: float | None
    chance: float | None

    @property
    def scale(self) -> str:
        """The range of the value, and how to read it."""
        return "; ".join(filter(None, (self.measure.scale, self.measure.meaning)))

    @property
    def words(self) -> str:
        """Name, scale, interval and chance level."""
        return f"{self.measure.name} ({self.scale}){self._beside(1, 3)}"

    @property
    def words_times_100(self) -> str:
        """The same for a value that stands times 100."""
        return f"{self.measure.name} times 100 ({self.scale}, before that){self._beside(100, 1)}"

    def _beside(self, factor: int, digits: int) -> str:
        out = ""
        if self.low is not None and self.high is not None:
            out += f", 95 % interval {self.low * factor:z.{digits}f} to {self.high * factor:z.{digits}f}"
        return out if self.chance is None else f"{out}, chance {self.chance * factor:z.{digits}f}"


def scored(task: AbsTask, block: Mapping[str, Any]) -> list[Scored]:
    """The measures that a set of scores holds, the main score first.

    Args:
        task: the task of the scores.
        block: flat scores of one split and subset, in which ``check-submission`` finds no fault.
    """
    main = task.metadata.main_score
    chosen = sorted((m for m in measures(task) if m.key in block), key=lambda m: m.key != main)
    return [Scored(m, block[m.key], *value_of(block, m.key)[1:], chance_of(block, m.key)) for m in chosen]
