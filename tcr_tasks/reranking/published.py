"""The values that TCR-Bench prints of its rerankings, to stand beside one's own as points of reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from tcr_tasks.reranking.pool import Budget, budget_label

__all__ = ["ABOUT", "ROWS", "TABLE_4", "PublishedRow"]

ABOUT = (
    "Published rows: Tables 29 and 4 of the paper, all 209 questions in the Mixed format; Qwen3-R of the first stage's "
    "size as cross-encoder, Qwen3-30B as language model, shown the candidates in first-stage order: for orientation "
    "beside runs on the same data, no result of this project."
)


class PublishedRow(NamedTuple):
    """A row of Table 29.

    Attributes:
        stage: the first stage.
        method, budget: ``AAR-CE`` and how many tables it reranks; ``None``: all.
        recall, group_recall: R@k and GR@k at k = 1..5; ``None`` where the paper has a dash.
        ds_at_1: DS@1.
    """

    stage: str
    method: str
    budget: Budget
    recall: tuple[float | None, ...]
    group_recall: tuple[float | None, ...]
    ds_at_1: float

    @property
    def name(self) -> str:
        """``AAR-CE (T10)``."""
        return f"{self.method} ({budget_label(self.budget)})"


def _read() -> tuple[PublishedRow, ...]:
    rows = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return tuple(
        PublishedRow(stage, method, budget, tuple(recall), tuple(group_recall), ds)
        for stage, method, budget, recall, group_recall, ds in rows
    )


# Table 29, as printed.
ROWS = _read()
# The first stage and the budget of Table 4, whose values are those of Table 29.
TABLE_4 = ("Qwen3-E8B", 10)
