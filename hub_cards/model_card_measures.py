"""Which scores a model card says about a task, under which names and on which scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import mteb
from mteb.abstasks import AbsTask

from evaluators.plugin.task import BeyondTask

_UNIT, _SIGNED, _INSTFOL = "0..1", "-1..1", "at most 1; 0: the instruction made no difference"
_TYPES = {"EM": "exact match", "SF": "selective filtering", "SA": "selective aggregation"}


@dataclass(frozen=True)
class Measure:
    """A score that goes onto cards.

    Attributes:
        key: its name in result files, where its interval is ``<key>_low`` and ``<key>_high``.
        name: how people call it.
        scale: the range of the value in result files and in a model-index, in words.
        chance: key of the score that a random ranking is expected to get, if there is one.
        judged: whether a judge gave it.
    """

    key: str
    name: str
    scale: str = _UNIT
    chance: str | None = None
    judged: bool = False


def _ifir(prefix: str, words: str) -> list[Measure]:
    return [
        Measure(f"{prefix}ndcg_at_20", f"nDCG@20{words}", chance=f"{prefix}chance_ndcg_at_20"),
        Measure(f"{prefix}query_only_ndcg_at_20", f"nDCG@20 of the query without instruction{words}"),
        Measure(f"{prefix}paper_ndcg_at_20", f"nDCG@20 as the authors compute it{words}"),
        Measure(f"{prefix}instfol_at_20", f"InstFol@20{words}", _INSTFOL, judged=True),
    ]


def _siblings(prefix: str, words: str) -> list[Measure]:
    chance = "chance_recall_at_1" if not prefix else None
    return [
        Measure(f"{prefix}recall_at_1", f"R@1{words}", chance=chance),
        Measure(f"{prefix}gr_at_1", f"GR@1{words}"),
        Measure(f"{prefix}ds_at_1", f"DS@1{words}", chance=f"{prefix}chance_ds_at_1"),
    ]


# By the main score of our tasks, whose families each have one of their own.
_MEASURES: Mapping[str, tuple[Measure, ...]] = {
    "ndcg_at_20": (
        *_ifir("", ""),
        Measure("paper_instfol_at_20", "InstFol@20 with the paper's maximum of 3", _INSTFOL, judged=True),
        *(m for level in (1, 2, 3) for m in _ifir(f"level_{level}_", f", level {level}")),
    ),
    "p-MRR": (
        Measure("p-MRR", "p-MRR", f"{_SIGNED}; positive: excluded documents move down"),
        Measure("followir_score", "FollowIR score", chance="chance_followir_score"),
        Measure("followir_score_changed_qrels", "FollowIR score against the changed judgements"),
    ),
    "recall_at_1": (
        *_siblings("", ""),
        *(m for key, words in _TYPES.items() for m in _siblings(f"{key}_", f", {words} ({key})")),
    ),
    "robustness_at_10": (Measure("robustness_at_10", "Robustness@10"),),
}


@cache
def known_task(name: str) -> AbsTask | None:
    """The task of that name, without data, or ``None`` if mteb and this project know none."""
    try:
        return mteb.get_task(name)
    except KeyError:
        return None


def measures(task: AbsTask) -> tuple[Measure, ...]:
    """What cards show of a task: the family's measures, or the main score of a task that is mteb's own."""
    main = str(task.metadata.main_score)
    if isinstance(task, BeyondTask):
        return _MEASURES.get(main, (Measure(main, main),))
    # mteb's tasks score 0..1, but for p-MRR.
    return (Measure(main, main, _SIGNED if main == "p-MRR" else _UNIT),)


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
    def words(self) -> str:
        """Name, scale, interval and chance level."""
        parts = [f"{self.measure.name} ({self.measure.scale})"]
        if self.low is not None and self.high is not None:
            parts.append(f"95 % interval {self.low:.3f} to {self.high:.3f}")
        if self.chance is not None:
            parts.append(f"chance {self.chance:.3f}")
        return ", ".join(parts)


def scored(task: AbsTask, block: Mapping[str, Any]) -> list[Scored]:
    """The measures that a set of scores holds, the main score first.

    Args:
        task: the task of the scores.
        block: flat scores of one split and subset, in which ``check-submission`` finds no fault.
    """
    main = task.metadata.main_score
    chosen = sorted((m for m in measures(task) if m.key in block), key=lambda m: m.key != main)
    return [
        Scored(m, block[m.key], block.get(f"{m.key}_low"), block.get(f"{m.key}_high"), block.get(m.chance or ""))
        for m in chosen
    ]


def is_number(value: Any) -> bool:
    """Whether a score is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
