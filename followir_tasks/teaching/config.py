"""What a training to follow instructions is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from evaluators.training.config import Adaptation, Checked, Count, Name, Schedule, require_distinct
from evaluators.training.reading import read_checked

__all__ = ["Answering", "Evaluation", "TeachingConfig", "read_config"]

KINDS = ("causal", "encoder", "cross-encoder")


class Evaluation(Checked):
    """A FollowIR-style set in the project's layout that models are scored on.

    Attributes:
        name: how the report calls it.
        data: its directory.
        select: whether the checkpoint with the best p-MRR on it is kept.
    """

    name: Name
    data: Path
    select: bool = False


class Answering(Checked):
    """How a causal language model is asked; see :class:`evaluators.causal.settings.CausalSettings`.

    Attributes:
        prompt: a file; default: ours.
        true, false, chat: the answers, and whether the prompt goes through the chat template.
        revision: of a base on the hub.
    """

    prompt: Path | None = None
    true: str | None = None
    false: str | None = None
    chat: bool = False
    revision: str | None = None


class TeachingConfig(Schedule):
    """A training: one run for each learning rate and seed.

    The paper trains Mistral-7B-Instruct-v0.2 with LoRA; further values of its appendix A are not in our copy of it, so
    every default here is ours.

    Attributes:
        name: of the training.
        kind: ``causal`` (the two answers' logits), ``encoder`` or ``cross-encoder``.
        train: datasets with instructions in the project's layout, or files of ``followir teach``.
        evaluations: what is scored: those with ``select`` after each epoch, all at the end.
        max_length: tokens of a prompt, a pair or a text, at most.
        most_per_pair: relevant documents of a query-instruction pair, at most.
        lora: adapters in place of all weights, for ``causal``.
        answering: how a causal model is asked.
    """

    name: Name
    kind: Literal["causal", "encoder", "cross-encoder"]
    train: tuple[Path, ...] = Field(min_length=1)
    evaluations: tuple[Evaluation, ...] = Field(min_length=1)
    max_length: Count = 512
    most_per_pair: Count | None = None
    lora: Adaptation | None = None
    answering: Answering = Answering()

    @model_validator(mode="after")
    def _fits_together(self) -> TeachingConfig:
        require_distinct("evaluations", [evaluation.name for evaluation in self.evaluations])
        if not any(evaluation.select for evaluation in self.evaluations):
            raise ValueError("no evaluation has `select = true`, so that no checkpoint could be kept")
        if self.kind != "causal" and (self.lora is not None or self.answering != Answering()):
            raise ValueError(f"[lora] and [answering] concern the kind 'causal', not {self.kind!r}")
        return self


def read_config(path: Path) -> TeachingConfig:
    """Read a TOML or JSON file; relative places lie beside it.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: listing what is wrong with it.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no configuration at {path}; name a TOML or JSON file")
    config = read_checked(path, TeachingConfig)
    folder = path.parent

    def placed(place: Path) -> Path:
        return folder / place.expanduser()

    answering = config.answering
    if answering.prompt is not None:
        answering = answering.model_copy(update={"prompt": placed(answering.prompt)})
    return config.model_copy(
        update={
            "train": tuple(map(placed, config.train)),
            "evaluations": tuple(e.model_copy(update={"data": placed(e.data)}) for e in config.evaluations),
            "answering": answering,
        }
    )
