"""Saved predictions of a first stage, read and checked before anything is reranked with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.metrics.ranking import check_k, top
from evaluators.plugin.checks import shown


@dataclass(frozen=True)
class FirstStage:
    """The best documents that a model found, as candidates for another one.

    Attributes:
        model: mteb's record of the model that made them (``model_name``, ``revision``).
        top_k: how many are kept per query.
        candidates: query id -> its ``top_k`` best documents, cut by (score, document id).
    """

    model: dict[str, Any]
    top_k: int
    candidates: dict[str, list[str]]

    @property
    def name(self) -> str:
        """``model@revision:top_k#fingerprint`` of the candidates: what a result is filed under.

        The fingerprint tells runs of one model apart, such as runs with other task options or data.
        """
        digest = hashlib.sha256(json.dumps(self.candidates, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.model['model_name']}@{self.model['revision']}:{self.top_k}#{digest}"

    def check(self, queries: Collection[str], documents: Collection[str]) -> None:
        """Check that every query has candidates and every candidate exists.

        Raises:
            ValueError: naming queries without candidates, or candidates that are not in the corpus.
        """
        lacking = sorted(q for q in queries if not self.candidates.get(q))
        if lacking:
            raise ValueError(f"first stage {self.name}: no candidates for {len(lacking)} queries: {shown(lacking)}")
        strangers = [(q, d) for q in queries for d in self.candidates[q] if d not in documents]
        if strangers:
            raise ValueError(
                f"first stage {self.name}: {len(strangers)} candidates are not in the corpus, as (query, document): "
                f"{shown(strangers)}; its predictions come from other data"
            )


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
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    model = saved.get("mteb_model_meta") if isinstance(saved, dict) else None
    if not (isinstance(model, dict) and {"model_name", "revision"} <= model.keys()):
        raise ValueError(f"{path} does not say which model made it (mteb_model_meta); is it a prediction file of mteb?")
    splits = saved.get(subset)
    run = splits.get(split) if isinstance(splits, dict) else None
    if not isinstance(run, dict):
        raise ValueError(f"{path} holds no predictions for subset {subset!r} and split {split!r}")
    candidates: dict[str, list[str]] = {}
    for query, scores in run.items():
        if not isinstance(scores, dict):
            raise ValueError(f"{path}: the predictions of query {query!r} are not scores by document")
        try:
            candidates[query] = top(scores, k, query)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return FirstStage(model, k, candidates)
