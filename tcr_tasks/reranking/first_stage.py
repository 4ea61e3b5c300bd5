"""First stages: rankings that were saved before, or any mteb model, as something that searches."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from mteb.models import ModelMeta

from evaluators.plugin.given import given_model
from evaluators.plugin.models import recorded
from evaluators.plugin.mteb_internals import is_cross_encoder
from evaluators.plugin.predictions import one_prediction_file, read_predictions
from evaluators.plugin.results import PER_QUERY, PREDICTIONS, read_provenance
from evaluators.plugin.searching import is_searcher, searcher

__all__ = ["SavedRun", "first_stage"]


class SavedRun:
    """A search model that answers with rankings which mteb saved before.

    Its record is that of the model that made them, with the run's fingerprint as an experiment.

    Args:
        folder: the prediction folder of one model's run.
        task: whose rankings to read.

    Raises:
        FileNotFoundError, ValueError: as :func:`evaluators.plugin.predictions.read_predictions`, or if the folder holds
            the rankings of several models.
    """

    def __init__(self, folder: str | Path, task: str, subset: str = "default", split: str = "test") -> None:
        self.predictions = read_predictions(one_prediction_file(Path(folder).expanduser(), task), subset, split)
        self.task = task
        made_by = self.predictions.model
        text = json.dumps(self.predictions.run, sort_keys=True)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()[:8]
        name = str(made_by["model_name"])
        meta = ModelMeta.create_empty(
            {
                "name": name
                if re.fullmatch(r"[^/\s]+/[^/\s]+", name)
                else f"saved/{re.sub(r'[^.A-Za-z0-9-]', '_', name)}",
                "revision": str(made_by["revision"]),
                "model_type": list(made_by.get("model_type") or ["dense"]),
            }
        )
        self.mteb_model_meta = meta.model_copy(update={"experiment_kwargs": {"saved": self.fingerprint}})

    def index(self, corpus: Any, *, task_metadata: Any, **kwargs: Any) -> None:
        """Check that the rankings are of this task and its data."""
        if task_metadata.name != self.task:
            raise ValueError(f"{self.predictions.path} holds rankings of {self.task}, not of {task_metadata.name}")
        path = self.predictions.path
        made = read_provenance(path.with_name(path.name.removesuffix(PREDICTIONS) + PER_QUERY)).get("revision")
        if made is not None and made != task_metadata.revision:
            raise ValueError(
                f"{path} was made on other data (revision {made}, the task has {task_metadata.revision}); run the "
                "first stage again on these"
            )
        self._documents = frozenset(corpus["id"])

    def search(self, queries: Any, *, top_ranked: Any = None, **kwargs: Any) -> dict[str, dict[str, float]]:
        """The saved ranking of every query, of its given candidates only where it has any."""
        run = self.predictions.run
        self.predictions.check(self.task, set(queries["id"]), self._documents)
        if top_ranked is None:
            return {query: dict(run[query]) for query in queries["id"]}
        return {q: {t: s for t, s in run[q].items() if t in set(top_ranked[q])} for q in queries["id"]}


def first_stage(model: Any) -> Any:
    """A model as something that searches.

    Args:
        model: what mteb runs, but no cross-encoder, which ranks given candidates only; a ``ModelMeta`` is loaded.

    Raises:
        ValueError: if it is a cross-encoder, or has no name.
        TypeError: if it is no model.
    """
    given = given_model(model)
    if is_cross_encoder(given):
        raise ValueError(f"{given.mteb_model_meta.name} is a cross-encoder, which cannot be a first stage")
    return given if is_searcher(given) else recorded(searcher(given), given.mteb_model_meta, {})
