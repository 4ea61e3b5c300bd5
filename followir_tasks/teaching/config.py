"""What a training to follow instructions is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from evaluators.causal.settings import Asking, Length
from evaluators.training.config import (
    Adaptation,
    Count,
    Name,
    Place,
    Schedule,
    Shares,
    require_distinct,
    require_split,
)
from evaluators.training.reading import read_checked, ready_file

__all__ = ["READY", "SAMPLE_TASK", "Answering", "Data", "Evaluation", "TeachingConfig", "config_file", "read_config"]

KINDS = ("causal", "encoder", "cross-encoder")
CONFIGS = Path(__file__).parent / "configs"
# An example of every key, by the name under which the command takes it.
READY = {"small": "small.toml"}
SAMPLE_TASK = "FollowIRSample"


class Data(Place):
    """Topics of a set in the project's layout, or, to train on, a file of ``followir teach``.

    Attributes:
        data: a directory or file.
        task: ``FollowIRSample``, in place of ``data``.
        part: which topics; anything but ``all`` needs ``[split]`` and a directory.
    """

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if self.data is None and self.task != SAMPLE_TASK:
            raise ValueError(f"name a directory with `data`, or the sample with task = {SAMPLE_TASK!r}")
        return self


class Evaluation(Data):
    """A FollowIR-style set that models are scored on.

    Attributes:
        name: how the report calls it.
        select: whether the checkpoint with the best p-MRR on it is kept.
    """

    name: Name
    select: bool = False


def _source(given: Any) -> Any:
    return {"data": given} if isinstance(given, str | Path) else given


class Answering(Asking):
    """How a causal language model is asked.

    Attributes:
        prompt: a file; default: ours.
    """

    prompt: Path | None = None


class TeachingConfig(Schedule):
    """A training: one run for each learning rate and seed.

    The paper trains Mistral-7B-Instruct-v0.2 with LoRA; further values of its appendix A are not in our copy of it, so
    every default here is ours.

    Attributes:
        name: of the training.
        kind: ``causal`` (the two answers' logits), ``encoder`` or ``cross-encoder``.
        train: datasets with instructions in the project's layout, or files of ``followir teach``; a path stands for
            ``{ data = path }``.
        evaluations: what is scored: those with ``select`` after each epoch, all at the end.
        max_length: tokens of a prompt, a pair or a text, at most.
        most_per_pair: relevant documents of a query-instruction pair, at most.
        lora: adapters in place of all weights, for ``causal``.
        answering: how a causal model is asked.
        split: which topics are kept from training, where a ``part`` is named; topics with the same query or a common
            relevant document stay together.
    """

    name: Name
    kind: Literal["causal", "encoder", "cross-encoder"]
    train: tuple[Annotated[Data, BeforeValidator(_source)], ...] = Field(min_length=1)
    evaluations: tuple[Evaluation, ...] = Field(min_length=1)
    max_length: Length = 512
    most_per_pair: Count | None = None
    lora: Adaptation | None = None
    answering: Answering = Answering()
    split: Shares | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> TeachingConfig:
        require_distinct("evaluations", [evaluation.name for evaluation in self.evaluations])
        require_split(self.split, (("train", data) for data in self.train))
        require_split(self.split, ((evaluation.name, evaluation) for evaluation in self.evaluations))
        if not any(evaluation.select for evaluation in self.evaluations):
            raise ValueError("no evaluation has `select = true`, so that no checkpoint could be kept")
        if self.kind != "causal" and (self.lora is not None or self.answering != Answering()):
            raise ValueError(f"[lora] and [answering] concern the kind 'causal', not {self.kind!r}")
        return self


def config_file(given: str | Path) -> Path:
    """The file itself, or that of a ready configuration.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    return ready_file(given, CONFIGS, READY)


def read_config(given: str | Path) -> TeachingConfig:
    """Read a TOML or JSON file, or a ready one by its name; relative places lie beside it.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: listing what is wrong with it.
    """
    path = config_file(given)
    config = read_checked(path, TeachingConfig)

    def placed(place: Path) -> Path:
        return path.parent / place.expanduser()

    def beside(data: Any) -> Any:
        return data if data.data is None else data.model_copy(update={"data": placed(data.data)})

    answering = config.answering
    if answering.prompt is not None:
        answering = answering.model_copy(update={"prompt": placed(answering.prompt)})
    return config.model_copy(
        update={
            "train": tuple(map(beside, config.train)),
            "evaluations": tuple(map(beside, config.evaluations)),
            "answering": answering,
        }
    )
