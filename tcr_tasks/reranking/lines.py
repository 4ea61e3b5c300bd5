"""One line of a reranking's results: a first stage, alone or with a reranker and a budget behind it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.metrics.bootstrap import SiblingBootstrap
from tcr_tasks.asking import MARK, is_doubtful
from tcr_tasks.reranking.pool import UNUSABLE, Budget, budget_label
from tcr_tasks.tasks import K_VALUES

__all__ = ["KEPT_ORDER", "Cost", "Line", "as_csv"]

# What the mark means.
KEPT_ORDER = "such tables keep the first stage's order"
_SCORES = ("recall_at_1", "gr_at_1", "ds_at_1")


@dataclass(frozen=True)
class Cost:
    """What a query costs on average.

    Attributes:
        calls: forward passes of a cross-encoder, or calls of a language model.
        prompt_tokens, completion_tokens: as the server counted them; ``None`` for a cross-encoder.
        seconds: wall-clock time, by the mean time of a call in every run so far; ``None`` if no call was made in any.
    """

    calls: float
    prompt_tokens: float | None
    completion_tokens: float | None
    seconds: float | None


@dataclass(frozen=True)
class Line:
    """Scores on the scale 0..1, and what they took.

    Attributes:
        method: ``AAR-CE`` and so on; empty for the first stage alone.
        model: the model that reranks; empty for the first stage alone.
        stage: the first stage's model.
        budget: how many of its best tables are reranked; ``None``: all.
        scores: the task's scores.
        difference: of the first stage on the same queries, by paired bootstrap; ``None`` for the first stage itself.
        cost: ``None`` for the first stage, whose cost is not measured.
        counts: what went wrong or was left out.
        protocol: of a listwise method.
        n_prompts: of a language model, whether or not anything came of them.
    """

    method: str
    model: str
    stage: str
    budget: Budget
    scores: Mapping[str, Any]
    difference: SiblingBootstrap | None = None
    cost: Cost | None = None
    counts: Mapping[str, int] | None = None
    protocol: str = ""
    n_prompts: int = 0

    @property
    def name(self) -> str:
        """``AAR-CE (T10)``, or what stands for the first stage alone; with a mark where the scores are doubtful."""
        return f"{self._unmarked} {MARK}" if self.is_doubtful else self._unmarked

    @property
    def _unmarked(self) -> str:
        if not self.method:
            return "first stage alone"
        protocol = f", {self.protocol}" if self.protocol else ""
        return f"{self.method} ({budget_label(self.budget)}{protocol})"

    @property
    def n_unusable(self) -> int:
        """Prompts without a reply that can be used; what they were about keeps the first stage's order."""
        return sum((self.counts or {}).get(name, 0) for name in UNUSABLE)

    @property
    def is_doubtful(self) -> bool:
        """Whether so much of the order is the first stage's that the scores must not stand without a mark."""
        return is_doubtful(self.n_unusable, self.n_prompts)

    @property
    def told_unusable(self) -> str:
        """What the mark says."""
        return f"{self._unmarked}: {self.n_unusable} of {self.n_prompts} prompts without a usable reply"

    def at(self, metric: str, k: int) -> float | None:
        """``recall`` or ``gr`` at k; ``None`` beyond the budget, where the first stage's order is left."""
        if self.method and self.budget is not None and k > self.budget:
            return None
        return float(self.scores[f"{metric}_at_{k}"])


def as_csv(lines: Sequence[Line], data: Mapping[str, str]) -> str:
    """All lines with every number, a header first; a number that there is not is empty.

    Args:
        lines: of one run.
        data: what they are scores on, as further columns.
    """
    rows = [_row(line) | dict(data) for line in lines]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(line: Line) -> dict[str, Any]:
    row: dict[str, Any] = {
        "method": line.method or "first stage",
        "model": line.model,
        "first_stage": line.stage,
        "budget": ("all" if line.budget is None else line.budget) if line.method else "",
        "protocol": line.protocol,
        "n_queries": line.scores["n_queries"],
    }
    row |= {f"{metric}_at_{k}": line.at(metric, k) for metric in ("recall", "gr") for k in K_VALUES}
    row["ds_at_1"] = line.scores["ds_at_1"]
    row |= {f"{name}_{end}": line.scores[f"{name}_{end}"] for name in _SCORES for end in ("low", "high")}
    row |= {name: line.scores[name] for name in ("chance_ds_at_1", "ds_at_1_p_bootstrap", "ds_at_1_p_null")}
    for name in _SCORES:
        found = None if line.difference is None else getattr(line.difference, name)
        low, high = (None, None) if found is None else found.interval()
        row |= {
            f"{name}_minus_first_stage": None if found is None else found.value,
            f"{name}_minus_first_stage_low": low,
            f"{name}_minus_first_stage_high": high,
            f"{name}_minus_first_stage_p": None if found is None else found.p_bootstrap(),
        }
    cost = line.cost
    for name in ("calls", "prompt_tokens", "completion_tokens", "seconds"):
        row[f"{name}_per_query"] = None if cost is None else getattr(cost, name)
    row["prompts"] = line.n_prompts or None
    row["prompts_without_usable_reply"] = line.n_unusable if line.n_prompts else None
    row["mark"] = f"{MARK} {line.told_unusable}; {KEPT_ORDER}" if line.is_doubtful else ""
    row["counts"] = json.dumps(dict(sorted((line.counts or {}).items())))
    return row
