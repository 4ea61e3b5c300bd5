"""A cross-encoder as something to train on the same data: it reads query and table together and reranks."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from datasets import Dataset
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, ListNetLoss

from evaluators.metrics.ranking import top
from evaluators.training.models import load_cross_encoder, load_encoder
from evaluators.training.trainers import Resumable
from tcr_tasks.diagnostics.geometry import Embedded
from tcr_tasks.training.config import TrainingConfig
from tcr_tasks.training.evaluating import EmbeddingRanker, EvaluationSet, Ranker, Run
from tcr_tasks.training.examples import Example, Examples

if TYPE_CHECKING:
    from transformers import Trainer

__all__ = ["CrossEncoderRanker", "CrossEncoderTraining"]


class _Trainer(Resumable, CrossEncoderTrainer):
    pass


class CrossEncoderRanker:
    """Reranks a first stage's best documents; the others are not ranked."""

    def __init__(self, model: Any, config: TrainingConfig, first_stage: EmbeddingRanker) -> None:
        assert config.cross_encoder is not None
        self.model = model
        self.config = config
        self.depth = config.cross_encoder.depth
        self.first_stage = first_stage

    def rank(self, data: EvaluationSet) -> tuple[Run, Embedded | None]:
        """Each query's candidates with this model's scores; there are no embeddings."""
        first, _ = self.first_stage.rank(data)
        pairs = [(q, d) for q in data.queries for d in top(first[q], self.depth, q)]
        scores = self.model.predict(
            [(data.queries[q], data.documents[d]) for q, d in pairs],
            batch_size=self.config.encode_batch_size,
            show_progress_bar=False,
        )
        run: Run = {q: {} for q in data.queries}
        for (query, document), value in zip(pairs, np.asarray(scores, np.float64).reshape(-1), strict=True):
            run[query][document] = float(value)
        return run, None


class CrossEncoderTraining:
    """How a cross-encoder is trained and scored, for :mod:`tcr_tasks.training.running`."""

    baseline_name = "first stage"

    def __init__(self, config: TrainingConfig) -> None:
        assert config.cross_encoder is not None
        self.config = config
        self.settings = config.cross_encoder

    def load(self, name: str) -> CrossEncoder:
        """A cross-encoder in a directory or on the hub; an encoder gets a head with random weights."""
        return load_cross_encoder(name, self.config.query_length + self.config.passage_length)

    def baseline(self) -> Ranker:
        """The first stage's own ranking."""
        return self._first_stage

    def start(self) -> CrossEncoder:
        """The base, ready to be trained."""
        return self.load(self.config.base)

    @cached_property
    def _first_stage(self) -> EmbeddingRanker:
        return EmbeddingRanker(load_encoder(self.settings.first_stage or self.config.base), self.config)

    def ranker(self, model: Any) -> Ranker:
        """The model as it is scored: behind the first stage."""
        return CrossEncoderRanker(model, self.config, self._first_stage)

    def trainer(self, model: Any, examples: Examples, arguments: dict[str, Any], seed: int) -> Trainer:
        """A trainer of the model on examples; ``arguments`` are those of every kind of training."""
        rows = list(_with_negatives(examples, self.config, seed))
        if self.settings.loss == "listwise":
            columns: dict[str, list[Any]] = {
                "query": [e.query for e in rows],
                "documents": [[e.positive, *e.negatives] for e in rows],
                # ListNet compares with the softmax of the labels: of 1 and 0s it would be nearly uniform.
                "labels": [[0.0] + [-math.inf] * len(e.negatives) for e in rows],
            }
            loss: Any = ListNetLoss(model, mini_batch_size=self.config.encode_batch_size)
        else:
            pairs = [(e.query, t, float(t == e.positive)) for e in rows for t in (e.positive, *e.negatives)]
            columns = dict(zip(("query", "document", "label"), map(list, zip(*pairs, strict=True)), strict=True))
            loss = BinaryCrossEntropyLoss(model)
        dataset = Dataset.from_dict(columns)
        return _Trainer(
            model=model,
            args=CrossEncoderTrainingArguments(**arguments),
            train_dataset=dataset,
            loss=loss,
        )

    def save(self, model: Any, folder: Path) -> None:
        """Write the model as a directory that sentence-transformers and mteb load."""
        model.save_pretrained(str(folder), create_model_card=False)


def _with_negatives(examples: Examples, config: TrainingConfig, seed: int) -> Iterator[Example]:
    """The examples with documents of other questions, too, where in-batch negatives are wanted.

    A cross-encoder has no in-batch negatives: as many as siblings, and ``batch_size - 1`` without siblings, are drawn
    from the positives of others, none of them known to answer.
    """
    others = list(dict.fromkeys(e.positive for e in examples.rows))
    for number, example in enumerate(examples.rows):
        if not config.in_batch:
            yield example
            continue
        rng = random.Random(f"{seed} {number}")
        wanted = len(example.negatives) or config.batch_size - 1
        taken = {*example.negatives, *example.barred}
        drawn = [text for text in rng.sample(others, min(len(others), wanted + len(taken))) if text not in taken]
        yield replace(example, negatives=(*example.negatives, *drawn[:wanted]))
