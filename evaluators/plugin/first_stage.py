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
from evaluators.plugin.predictions import read_predictions


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
    """The best documents of a file ``<task>_predictions.json`` that mteb wrote.

    Raises:
        FileNotFoundError, ValueError: as :func:`read_predictions`; or if ``top_k`` is not a whole number of at least 1.
    """
    k = check_k(top_k)
    saved = read_predictions(path, subset, split)
    return FirstStage(saved.model, k, {query: top(scores, k, query) for query, scores in saved.run.items()})
