"""Result files in mteb's form with scores that a test writes down."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mteb.cache import ResultCache
from mteb.models import ModelMeta
from mteb.results import TaskResult


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
