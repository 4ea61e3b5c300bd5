"""An embedding model as something to train: loaded, adapted, its trainer, saved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from transformers import set_seed

from evaluators.metrics.geometry import unit
from evaluators.training.config import Adaptation
from evaluators.training.models import load_encoder
from evaluators.training.trainers import Resumable
from tcr_tasks.training.batches import Collator
from tcr_tasks.training.collection import read_texts
from tcr_tasks.training.config import TrainingConfig
from tcr_tasks.training.evaluating import EmbeddingRanker, Ranker
from tcr_tasks.training.examples import Examples
from tcr_tasks.training.objective import AnswerabilityLoss

if TYPE_CHECKING:
    from transformers import Trainer

__all__ = ["EmbeddingTraining", "merged"]


class _Trainer(Resumable, SentenceTransformerTrainer):
    pass


class EmbeddingTraining:
    """How an embedding model is trained and scored, for :mod:`tcr_tasks.training.running`."""

    baseline_name = "base"

    def __init__(self, config: TrainingConfig) -> None:
        self.config = config
        # By seed: a seed decides the examples and the batches.
        self._teachers: dict[int, Callable[[Sequence[str]], torch.Tensor]] = {}

    def load(self, name: str) -> SentenceTransformer:
        """A model by its name."""
        return load_encoder(name)

    def baseline(self) -> Ranker:
        """The base as it is."""
        return self.ranker(load_encoder(self.config.base))

    def start(self) -> SentenceTransformer:
        """The base, ready to be trained."""
        model = load_encoder(self.config.base)
        if self.config.lora is not None:
            add_lora(model, self.config.lora)
        return model

    def ranker(self, model: Any) -> Ranker:
        """The model as it is scored."""
        return EmbeddingRanker(model, self.config)

    def trainer(self, model: Any, examples: Examples, arguments: dict[str, Any], seed: int) -> Trainer:
        """A trainer of the model on examples; ``arguments`` are those of every kind of training."""
        config = self.config
        collator: Any = Collator(model, examples.rows, config.query_length, config.passage_length)
        if config.keep is not None:
            collator.kept_texts = [text for place in config.keep.texts for text in read_texts(place)]
            collator.per_step = config.keep.per_step
        trainer = _Trainer(
            model=model,
            args=SentenceTransformerTrainingArguments(**arguments),
            train_dataset=Dataset.from_dict({"example": list(range(len(examples.rows)))}),
            loss=AnswerabilityLoss(
                model, config.temperature, config.in_batch, config.keep.weight if config.keep is not None else 0.0
            ),
            data_collator=collator,
        )
        if config.batches == "groups":
            trainer.groups = [example.group for example in examples.rows]
        if config.keep is not None:
            if seed not in self._teachers:
                batches = trainer.batches_of_all_epochs()
                self._teachers[seed] = self._teaching(examples, [t for b in batches for t in collator.drawn(b)])
            # As the trainer did when it was made: loading the base draws random numbers, and only the first run loads.
            set_seed(seed)
            collator.teacher = self._teachers[seed]
        return trainer

    def save(self, model: Any, folder: Path) -> None:
        """Write the model as a directory that sentence-transformers and mteb load, adapters merged into its weights.

        A prefix that all sources share becomes the model's prompt for queries, so that it is used wherever the model is
        run; prefixes that differ are left to whoever runs it.
        """
        whole = merged(model) if self.config.lora is not None else model
        prefixes = {source.prefix for source in self.config.sources}
        prompts, length = whole.prompts, whole.max_seq_length
        whole.prompts = {"query": prefixes.pop() if len(prefixes) == 1 else "", "document": ""}
        whole.max_seq_length = max(self.config.query_length, self.config.passage_length)
        try:
            whole.save_pretrained(str(folder), create_model_card=False)
        finally:
            whole.prompts, whole.max_seq_length = prompts, length

    def _teaching(self, examples: Examples, kept: Sequence[str]) -> Callable[[Sequence[str]], torch.Tensor]:
        """Looks up the base encoder's unit vectors of the examples' texts and of the kept texts that batches draw.

        All at once, before the first step: a text's vector depends in its last digits on what it is encoded with, and
        a run that was killed must go on with the same.
        """
        ranker = EmbeddingRanker(load_encoder(self.config.base), self.config)
        queries = list(dict.fromkeys(e.query for e in examples.rows))
        own = [t for e in examples.rows for t in (e.positive, *e.negatives)]
        passages = list(dict.fromkeys([*own, *kept]))
        rows = np.concatenate(
            [
                ranker.vectors(queries, self.config.query_length),
                ranker.vectors(passages, self.config.passage_length),
            ]
        )
        return partial(_looked_up, dict(zip([*queries, *passages], unit(rows), strict=True)))


def _looked_up(known: dict[str, Any], texts: Sequence[str]) -> torch.Tensor:
    return torch.tensor(np.stack([known[text] for text in texts]), dtype=torch.float32)


def add_lora(model: SentenceTransformer, adaptation: Adaptation) -> None:
    """Adapters of low rank, on the layers that peft chooses for the model's kind; all other weights are frozen.

    By peft itself: transformers' own way in asks for a peft that is newer than the one it can be installed with.
    """
    from peft import LoraConfig, TaskType, inject_adapter_in_model

    settings = LoraConfig(
        task_type=TaskType.FEATURE_EXTRACTION,
        r=adaptation.r,
        lora_alpha=adaptation.alpha,
        lora_dropout=adaptation.dropout,
    )
    inner: Any = model.transformers_model
    inject_adapter_in_model(settings, inner)


def merged(model: SentenceTransformer) -> SentenceTransformer:
    """A copy with the adapters' weights added to those of the layers they adapt, and no adapter left."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    out = copy.deepcopy(model)
    for module in list(out.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, BaseTunerLayer):
                layer.merge()
                setattr(module, name, layer.get_base_layer())
    return out
