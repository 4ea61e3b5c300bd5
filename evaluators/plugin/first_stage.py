"""Saved predictions of a first stage, read and checked before anything is reranked with them."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.metrics.ranking import Run, check_k, score_array, top
from evaluators.plugin.checks import shown


@dataclass(frozen=True)
class FirstStage:
    """The best documents that a model found, as candidates for another one.

    Attributes:
        model: mteb's record of the model that made them (``model_name``, ``revision``).
        top_k: how many are kept per query.
        run: all its saved scores.
    """

    model: dict[str, Any]
    top_k: int
    run: Run

    @property
    def name(self) -> str:
        """``model@revision:top_k``: what a result is filed under."""
        return f"{self.model['model_name']}@{self.model['revision']}:{self.top_k}"

    def candidates(self, queries: Collection[str], documents: Collection[str]) -> dict[str, list[str]]:
        """The ``top_k`` best documents of each query, cut by (score, document id).

        Raises:
            ValueError: naming queries without candidates, or candidates that are not in the corpus.
        """
        lacking = sorted(q for q in queries if not self.run.get(q))
        if lacking:
            raise ValueError(f"first stage {self.name}: no candidates for {len(lacking)} queries: {shown(lacking)}")
        kept = {q: top(self.run[q], self.top_k, q) for q in queries}
        strangers = [(q, d) for q, docs in kept.items() for d in docs if d not in documents]
        if strangers:
            raise ValueError(
                f"first stage {self.name}: {len(strangers)} candidates are not in the corpus, as (query, document): "
                f"{shown(strangers)}; its predictions come from other data"
            )
        return kept


def read_first_stage(path: Path, subset: str, split: str, top_k: int) -> FirstStage:
    """Read a file ``<task>_predictions.json`` that mteb wrote.

    Raises:
        FileNotFoundError: if it does not exist.
        ValueError: naming file and fault, if it is not such a file, lacks the subset or split, or holds scores that
            are not finite numbers; or if ``top_k`` is not a whole number of at least 1.
    """
    k = check_k(top_k)
    if not path.is_file():
        raise FileNotFoundError(f"no saved predictions of a first stage at {path}")
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    model = saved.get("mteb_model_meta") if isinstance(saved, dict) else None
    if not (isinstance(model, dict) and {"model_name", "revision"} <= model.keys()):
        raise ValueError(f"{path} does not say which model made it (mteb_model_meta); is it a prediction file of mteb?")
    splits = saved.get(subset)
    run = splits.get(split) if isinstance(splits, dict) else None
    if not isinstance(run, dict):
        raise ValueError(f"{path} holds no predictions for subset {subset!r} and split {split!r}")
    for query, scores in run.items():
        if not isinstance(scores, dict):
            raise ValueError(f"{path}: the predictions of query {query!r} are not scores by document")
        try:
            score_array(scores, query)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return FirstStage(model, k, run)
