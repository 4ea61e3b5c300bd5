"""A causal language model that learns to answer "true" for relevant documents and "false" for others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from mteb.models import ModelMeta
from torch.nn.functional import cross_entropy
from transformers import Trainer, TrainingArguments

from evaluators.causal.loading import load_parts, reading_of
from evaluators.causal.reading import Reading
from evaluators.causal.reranker import CausalReranker, with_base_revision
from evaluators.causal.scoring import answer_logits
from evaluators.causal.settings import FIELDS, PROMPT, CausalSettings, write_settings
from evaluators.judge import read_prompt
from followir_tasks.teaching.config import TeachingConfig
from followir_tasks.teaching.instances import Instance

__all__ = ["CausalTeaching"]

_ADAPTER, _WEIGHTS = "adapter", "model"
# Not "labels": of these the trainer would count one too few, as of the next words of a text, and divide by that.
_ANSWER = "answer"


class CausalTeaching:
    """A causal reranker, with LoRA or all weights, for :mod:`followir_tasks.teaching.kinds`."""

    tags = ("causal-reranker", "mteb-beyond", "followir")

    def __init__(self, config: TeachingConfig) -> None:
        asked = config.answering
        self.config = config
        self.prompt = asked.prompt or PROMPT
        base = Path(config.base).expanduser()
        self.settings = with_base_revision(
            CausalSettings(
                base=str(base.resolve()) if base.is_dir() else config.base,
                revision=asked.revision,
                true=asked.true,
                false=asked.false,
                chat=asked.chat,
                max_length=config.max_length,
            )
        )
        self._reading: Reading | None = None
        self._tokenizer: Any = None

    def start(self) -> Any:
        """The base, with new adapters if there is a ``[lora]``."""
        model, self._tokenizer = load_parts(self.settings)
        self._reading = reading_of(self.settings, read_prompt(self.prompt, FIELDS), model.config, self._tokenizer)
        if self.config.lora is None:
            return model
        from peft import LoraConfig, TaskType, get_peft_model

        adaptation = self.config.lora
        return get_peft_model(
            model,
            LoraConfig(
                task_type=TaskType.CAUSAL_LM,
                r=adaptation.r,
                lora_alpha=adaptation.alpha,
                lora_dropout=adaptation.dropout,
                target_modules="all-linear",
            ),
        )

    def trainer(self, model: Any, instances: Sequence[Instance], arguments: dict[str, Any]) -> Trainer:
        """transformers' Trainer, with the loss over the two answers."""
        reading = self._read_with()
        rows = [(reading.read(i.query, i.instruction, i.document), int(i.relevant)) for i in instances]
        data = Dataset.from_dict({"ids": [tokens.ids for tokens, _ in rows], "label": [label for _, label in rows]})

        def batch(rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
            return {**reading.padded([r["ids"] for r in rows]), _ANSWER: torch.tensor([r["label"] for r in rows])}

        return _Trainer(
            reading,
            model=model,
            args=TrainingArguments(**arguments, remove_unused_columns=False, label_names=[_ANSWER]),
            train_dataset=data,
            data_collator=batch,
        )

    def scored(self, model: Any) -> CausalReranker:
        """The model as a reranker."""
        meta = ModelMeta.create_empty({"name": "local/in-training", "revision": "unsaved"})
        return CausalReranker(model, self._read_with(), meta, self.config.encode_batch_size)

    def save(self, model: Any, folder: Path) -> None:
        """Write adapters, which name their base and its revision, or all weights; and the settings."""
        settings = self.settings
        if self.config.lora is not None:
            for adaptation in model.peft_config.values():  # a set, whose order is another in every process
                adaptation.target_modules = sorted(adaptation.target_modules)
            model.save_pretrained(str(folder / _ADAPTER))
            settings = settings.model_copy(update={"adapter": _ADAPTER})
        else:
            model.save_pretrained(str(folder / _WEIGHTS))
            self._tokenizer.save_pretrained(str(folder / _WEIGHTS))
            settings = settings.model_copy(update={"base": _WEIGHTS, "revision": None, "base_fingerprint": None})
        write_settings(folder, settings, self.prompt)

    def _read_with(self) -> Reading:
        assert self._reading is not None  # start() comes first
        return self._reading


class _Trainer(Trainer):
    def __init__(self, reading: Reading, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reading = reading

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Cross-entropy over (false, true), the mean over the rows."""
        answers = inputs.pop(_ANSWER)
        logits = answer_logits(model, inputs, self.reading.answers)
        loss = cross_entropy(logits, answers)
        return (loss, logits) if return_outputs else loss
