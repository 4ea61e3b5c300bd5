"""Result files in mteb's form with scores that a test writes down."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mteb.cache import ResultCache
from mteb.models import ModelMeta
from mteb.results import TaskResult

from ifir_tasks.report import add_report_command
from ifir_tasks.report.published import AVERAGE, SUBSET_TASK_NAMES, Measure, Setting, published_tables

OWN_KEYS: dict[Measure, str] = {"ndcg": "paper_ndcg_at_20", "mrr": "paper_mrr_at_20", "instfol": "paper_instfol_at_20"}


def run(*arguments: str) -> int:
    """Carry out ``report`` or ``errors``, as ``mteb-beyond ifir`` does."""
    parser = argparse.ArgumentParser()
    add_report_command(parser.add_subparsers())
    parsed = parser.parse_args(list(arguments))
    command: Callable[[argparse.Namespace], int] = parsed.func
    return command(parsed)


def write_result(
    folder: Path,
    task: str,
    scores: Mapping[str, Any],
    name: str = "test/model",
    *,
    revision: str = "1",
    options: Mapping[str, Any] | None = None,
    model_type: str = "dense",
    data: str = "r1",
) -> Path:
    """Save scores as mteb saves a result, and return the file."""
    entry = {"main_score": 0.0, "hf_subset": "default", "languages": ["eng-Latn"], **scores}
    result = TaskResult(
        dataset_revision=data, task_name=task, mteb_version="2.26.24", scores={"test": [entry]}, evaluation_time=1.0
    )
    meta = ModelMeta.create_empty(
        {"name": name, "revision": revision, "experiment_kwargs": options, "model_type": [model_type]}
    )
    cache = ResultCache(folder)
    cache.save_to_cache(result, meta)
    return cache.get_task_result_path(task, meta)


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
