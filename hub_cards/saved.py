"""Predictions that mteb saved, found by folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.plugin.running import prediction_folder_of
from hub_cards.results import Result

SUFFIX = "_predictions.json"
PER_QUERY = "_per_query.parquet"
WRITTEN_BY = "`mteb-beyond run --prediction-folder DIR` writes them"


@dataclass(frozen=True)
class Saved:
    """A file ``<task>_predictions.json`` of mteb.

    Attributes:
        path: the file.
        task: name of the task.
    """

    path: Path
    task: str

    @property
    def per_query(self) -> Path:
        """The table of scores per query that our tasks write beside it."""
        return self.path.with_name(self.task + PER_QUERY)

    def content(self) -> dict[str, Any]:
        """The whole file: ``mteb_model_meta``, and subset -> split -> query -> {document: score}.

        Raises:
            ValueError: naming the file, if it is no prediction file.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} cannot be read as JSON: {error}") from error
        meta = content.get("mteb_model_meta") if isinstance(content, dict) else None
        if not (isinstance(meta, dict) and {"model_name", "revision"} <= meta.keys()):
            raise ValueError(f"{self.path} does not say which model made it (mteb_model_meta): no predictions of mteb")
        return dict(content)


def saved_below(folder: Path) -> list[Saved]:
    """All prediction files at or below a folder, sorted.

    Raises:
        FileNotFoundError: if there are none.
    """
    found = sorted(folder.rglob(f"*{SUFFIX}")) if folder.is_dir() else []
    if not found:
        raise FileNotFoundError(f"no <task>{SUFFIX} at or below {folder}; {WRITTEN_BY}")
    return [Saved(path, path.name.removesuffix(SUFFIX)) for path in found]


def saved_for(result: Result, bases: Iterable[Path]) -> Saved | None:
    """The predictions behind a result: in the model's own folder below a base, or in the base itself."""
    task = result.task.task_name
    for base in bases:
        places = [base]
        if result.meta is not None:
            places.insert(0, prediction_folder_of(base, result.meta))
        for place in places:
            saved = Saved(place / f"{task}{SUFFIX}", task)
            if saved.path.is_file() and (place != base or _is_of(saved, result)):
                return saved
    return None


def _is_of(saved: Saved, result: Result) -> bool:
    meta = saved.content()["mteb_model_meta"]
    return (meta["model_name"], meta["revision"]) == (result.model, result.revision)
