"""Results that repeat the published numbers of IFIR, and its report as a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from result_files import write_result

from ifir_tasks.report import add_report_command
from ifir_tasks.report.published import AVERAGE, SUBSET_TASK_NAMES, Measure, Setting, published_tables

__all__ = ["OWN_KEYS", "published_scores", "run", "write_published", "write_result"]

OWN_KEYS: dict[Measure, str] = {"ndcg": "paper_ndcg_at_20", "mrr": "paper_mrr_at_20", "instfol": "paper_instfol_at_20"}


def run(*arguments: str) -> int:
    """Carry out ``report`` or ``errors``, as ``mteb-beyond ifir`` does."""
    parser = argparse.ArgumentParser()
    add_report_command(parser.add_subparsers())
    parsed = parser.parse_args(list(arguments))
    command: Callable[[argparse.Namespace], int] = parsed.func
    return command(parsed)


def published_scores(model: str, setting: Setting = "end-to-end") -> dict[str, dict[str, float]]:
    """What our result files would hold if a run gave exactly the paper's numbers, by task; 0.5 for standard nDCG."""
    out: dict[str, dict[str, float]] = {task: {"ndcg_at_20": 0.5} for task in SUBSET_TASK_NAMES.values()}
    for table in published_tables().values():
        for row in table.rows:
            if (row.model, row.setting) != (model, setting):
                continue
            for column, value in row.values.items():
                if column.subset != AVERAGE:
                    key = OWN_KEYS[column.measure]
                    level = "" if column.level is None else f"level_{column.level}_"
                    scale = 100 if column.measure == "instfol" else 1
                    out[SUBSET_TASK_NAMES[column.subset]][level + key] = value / scale
    return out


def write_published(folder: Path, model: str, setting: Setting = "end-to-end", **kwargs: Any) -> None:
    """Results of a model that repeat its published numbers."""
    for task, scores in published_scores(model, setting).items():
        write_result(folder, task, scores, **kwargs)
