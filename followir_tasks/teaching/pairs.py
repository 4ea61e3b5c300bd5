"""An encoder and a cross-encoder that learn from pairs of query with instruction, and document.

Among the pairs are instruction negatives: a document that is relevant under one instruction and not under another one
of the same query, once with each. Nothing but the instruction tells these two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from sentence_transformers import CrossEncoder, SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers import SentenceTransformerTrainingArguments as EncoderArguments
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from sentence_transformers.sentence_transformer.losses import CoSENTLoss
from transformers import Trainer

from evaluators.plugin.mteb_internals import query_texts
from evaluators.training.models import load_cross_encoder, load_encoder
from evaluators.training.trainers import Resumable
from followir_tasks.teaching.config import TeachingConfig
from followir_tasks.teaching.instances import Instance

__all__ = ["CrossEncoderTeaching", "EncoderTeaching"]


class _EncoderTrainer(Resumable, SentenceTransformerTrainer):
    pass


class _CrossEncoderTrainer(Resumable, CrossEncoderTrainer):
    pass


class EncoderTeaching:
    """An encoder, by CoSENT: in a batch every relevant pair shall be closer than every other pair.

    A batch holds the pairs of as few queries as possible, so that most comparisons are among instructions and documents
    of one query. There are no in-batch negatives: another document of the same query may well be relevant.
    """

    tags = ("sentence-transformers", "mteb-beyond", "followir")

    def __init__(self, config: TeachingConfig) -> None:
        self.config = config

    def start(self) -> SentenceTransformer:
        """The base."""
        model = load_encoder(self.config.base)
        model.max_seq_length = min(self.config.max_length, model.max_seq_length or self.config.max_length)
        return model

    def trainer(self, model: Any, instances: Sequence[Instance], arguments: dict[str, Any]) -> Trainer:
        """sentence-transformers' trainer."""
        trainer = _EncoderTrainer(
            model=model, args=EncoderArguments(**arguments), train_dataset=_pairs(instances), loss=CoSENTLoss(model)
        )
        trainer.groups = [instance.query for instance in instances]
        return trainer

    def scored(self, model: Any) -> SentenceTransformer:
        """The model itself."""
        scored: SentenceTransformer = model
        return scored

    def save(self, model: Any, folder: Path) -> None:
        """Write the model."""
        model.save_pretrained(str(folder), create_model_card=False)


class CrossEncoderTeaching:
    """A cross-encoder, by binary cross-entropy of each pair."""

    tags = ("cross-encoder", "mteb-beyond", "followir")

    def __init__(self, config: TeachingConfig) -> None:
        self.config = config

    def start(self) -> CrossEncoder:
        """The base; an encoder gets a head with random weights."""
        return load_cross_encoder(self.config.base, self.config.max_length)

    def trainer(self, model: Any, instances: Sequence[Instance], arguments: dict[str, Any]) -> Trainer:
        """sentence-transformers' trainer of cross-encoders."""
        return _CrossEncoderTrainer(
            model=model,
            args=CrossEncoderTrainingArguments(**arguments),
            train_dataset=_pairs(instances),
            loss=BinaryCrossEntropyLoss(model),
        )

    def scored(self, model: Any) -> CrossEncoder:
        """The model itself."""
        scored: CrossEncoder = model
        return scored

    def save(self, model: Any, folder: Path) -> None:
        """Write the model."""
        model.save_pretrained(str(folder), create_model_card=False)


def _pairs(instances: Sequence[Instance]) -> Dataset:
    asked = Dataset.from_dict({"text": [i.query for i in instances], "instruction": [i.instruction for i in instances]})
    return Dataset.from_dict(
        {
            "query": query_texts(asked),  # as mteb hands them to models
            "document": [i.document for i in instances],
            "label": [float(i.relevant) for i in instances],
        }
    )
