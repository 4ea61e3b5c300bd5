"""How scores grow with the budget: the paper's Figure 9."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.figures import Figure, Marks, Panel
from tcr_tasks.asking import MARK
from tcr_tasks.reranking.lines import Line
from tcr_tasks.reranking.pool import budget_label

__all__ = ["scaling_figures"]

_NO_RERANKING = "none"
_WITH_INTERVALS = {"R@1": "recall_at_1", "GR@1": "gr_at_1", "DS@1": "ds_at_1"}


def scaling_figures(lines: Sequence[Line], task: str) -> list[Figure]:
    """A figure for every method and model with several budgets.

    Args:
        lines: the first stage alone, then its rerankings, each method's by rising budget.
        task: what they were scored on.
    """
    stage, *reranked = lines
    by_method: dict[tuple[str, str, str], list[Line]] = {}
    for line in reranked:
        by_method.setdefault((line.method, line.model, line.protocol), []).append(line)
    return [
        _figure(number, stage, found, task)
        for number, found in enumerate(by_method.values(), 1)
        if len({line.budget for line in found}) > 1
    ]


def _figure(number: int, stage: Line, found: Sequence[Line], task: str) -> Figure:
    every = [stage, *found]
    marked = any(line.is_doubtful for line in found)
    places = [
        _NO_RERANKING,
        *(f"{budget_label(line.budget)}{f' {MARK}' if line.is_doubtful else ''}" for line in found),
    ]
    marks = [
        Marks(
            "line",
            name,
            places,
            [line.scores[key] for line in every],
            [line.scores[f"{key}_low"] for line in every],
            [line.scores[f"{key}_high"] for line in every],
        )
        for name, key in _WITH_INTERVALS.items()
    ]
    within = [(place, line.at("recall", 5)) for place, line in zip(places, every, strict=True)]
    known = [(place, value) for place, value in within if value is not None]
    marks.append(Marks("line", "R@5", [place for place, _ in known], [value for _, value in known]))
    marks.append(Marks("line", "chance DS@1", places, [stage.scores["chance_ds_at_1"]] * len(places), faint=True))
    first = found[0]
    return Figure(
        f"figure-9-{first.method.lower()}-{number}",
        f"{first.method} by budget (Figure 9)",
        f"{first.model} behind {stage.stage}, {task}, n = {stage.scores['n_queries']} questions; bands: 95% intervals"
        f"{f'; {MARK}: many replies are unusable' if marked else ''}",
        [Panel("", marks, "tables reranked", "score", share=True)],
    )
