"""Scoring a model on evaluation sets while and after it is trained, with what its embeddings look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluators.metrics.geometry import unit
from evaluators.metrics.ranking import top
from evaluators.metrics.siblings import sibling_queries, summarise
from evaluators.metrics.standard import trec_measure
from evaluators.training.selection import Scores
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.geometry import Embedded, measure
from tcr_tasks.training.batches import limited
from tcr_tasks.training.collection import Collection
from tcr_tasks.training.config import Evaluation, TrainingConfig
from tcr_tasks.training.splits import part_of

__all__ = ["METRIC", "EmbeddingRanker", "EvaluationSet", "Ranker", "evaluation_set", "score"]

# Documents of a ranking that are kept: R@1 to nDCG@10 look at fewer.
DEPTH = 100
# Table 32's columns by the names that the measures have here.
GEOMETRY = ("median_distance", "mean_margin", "positive_margin_share", "global_mean_distance")

Vectors = NDArray[np.float64]
Run = dict[str, dict[str, float]]
# By which the best epoch is chosen.
METRIC = "recall_at_1"


@dataclass(frozen=True)
class EvaluationSet:
    """Questions to score, and all documents of their dataset.

    Attributes:
        name: of the evaluation.
        select: whether checkpoints are chosen on it.
        documents: id -> text.
        queries: id -> text with the set's prefix.
        positives: query id -> documents that answer.
        groups: query id -> target and siblings; ``None`` in data without groups.
    """

    name: str
    select: bool
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    positives: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, tuple[str, ...]] | None


class Ranker(Protocol):
    """A model as it is scored."""

    def rank(self, data: EvaluationSet) -> tuple[Run, Embedded | None]:
        """Each query's best documents with their scores, and the embeddings where there are any."""
        ...


def evaluation_set(evaluation: Evaluation, config: TrainingConfig, collection: Collection) -> EvaluationSet:
    """The questions of an evaluation's part over all documents of its dataset: held-out ones are searched for among
    the tables that were trained on, too, so that the numbers of different parts differ by the questions alone.

    Raises:
        ValueError: if the part is empty, or no question has a document that answers.
    """
    problems = [p for p in part_of(collection, evaluation.part, config.split) if p.positives]
    if not problems:
        raise ValueError(f"evaluation {evaluation.name!r}: no question has a document that answers")
    grouped = all(p.group is not None for p in problems)
    return EvaluationSet(
        name=evaluation.name,
        select=evaluation.select,
        documents=collection.printed(evaluation.format),
        queries={p.id: evaluation.prefix + p.text for p in problems},
        positives={p.id: p.positives for p in problems},
        groups={p.id: p.group or () for p in problems} if grouped else None,
    )


class EmbeddingRanker:
    """Ranks by cosine; a text is encoded once in the life of this object, which belongs to one state of the model."""

    def __init__(self, model: Any, config: TrainingConfig) -> None:
        self.model = model
        self.config = config
        self._known: dict[tuple[int, str], Vectors] = {}

    def rank(self, data: EvaluationSet) -> tuple[Run, Embedded | None]:
        queries = self.vectors(list(data.queries.values()), self.config.query_length)
        documents = self.vectors(list(data.documents.values()), self.config.passage_length)
        cosines = (unit(queries) @ unit(documents).T).astype(np.float32)
        names = list(data.documents)
        run = {query: _best(names, row) for query, row in zip(data.queries, cosines, strict=True)}
        embedded = Embedded(dict(zip(names, documents, strict=True)), dict(zip(data.queries, queries, strict=True)))
        return run, embedded

    def vectors(self, texts: Sequence[str], length: int) -> Vectors:
        """One row a text, cut at a number of tokens."""
        new = [text for text in dict.fromkeys(texts) if (length, text) not in self._known]
        if new:
            with limited(self.model, length):
                rows = self.model.encode(
                    new, batch_size=self.config.encode_batch_size, show_progress_bar=False, convert_to_numpy=True
                )
            self._known |= {(length, t): row for t, row in zip(new, np.asarray(rows, np.float64), strict=True)}
        return np.stack([self._known[(length, text)] for text in texts])


def score(ranker: Ranker, sets: Sequence[EvaluationSet]) -> dict[str, Scores]:
    """Evaluation set -> its scores.

    ``recall_at_1``: share of queries whose best document answers. With groups also ``gr_at_1``, ``ds_at_1`` (0 when
    ``gr_at_1`` is 0) and, for embeddings, Table 32's ``median_distance`` (within groups), ``mean_margin``,
    ``positive_margin_share`` and ``global_mean_distance``; without groups ``ndcg_at_10``.
    """
    return {data.name: _scores(data, *ranker.rank(data)) for data in sets}


def _scores(data: EvaluationSet, run: Run, embedded: Embedded | None) -> Scores:
    if data.groups is None:
        first = [top(run[q], 1, q)[:1] for q in data.queries]
        hits = [bool(set(best) & set(data.positives[q])) for q, best in zip(data.queries, first, strict=True)]
        qrels = {q: dict.fromkeys(documents, 1) for q, documents in data.positives.items()}
        ndcg = trec_measure(run, qrels, "ndcg_cut.10")
        return {"recall_at_1": float(np.mean(hits)), "ndcg_at_10": float(np.mean(list(ndcg.values())))}
    targets = {q: documents[0] for q, documents in data.positives.items()}
    per_query = sibling_queries(run, targets, data.groups)
    whole = summarise(list(per_query.values()))
    out: Scores = {name: float(whole[name]) for name in ("recall_at_1", "gr_at_1", "ds_at_1")}
    if embedded is not None:
        case = Case(data.documents, data.queries, {q: (t,) for q, t in targets.items()}, data.groups)
        measured = {s.metric: s.value for s in measure(case, embedded, per_query).scores}
        out |= {name: measured[name] for name in GEOMETRY if name in measured}
    return out


def _best(names: Sequence[str], row: NDArray[np.float32]) -> dict[str, float]:
    kept = np.argpartition(-row, DEPTH)[:DEPTH] if len(row) > DEPTH else range(len(row))
    return {names[at]: float(row[at]) for at in kept}
