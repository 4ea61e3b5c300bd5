"""What every training is made of, as checked objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "Adaptation",
    "Checked",
    "Count",
    "Name",
    "Part",
    "Place",
    "Positive",
    "Schedule",
    "Seed",
    "Share",
    "Shares",
    "require_distinct",
    "require_split",
]

Part = Literal["all", "train", "validation", "test"]
Share = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
# As torch and numpy take them.
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w. +-]*$")]


class Checked(BaseModel):
    """Settings that refuse keys they do not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Adaptation(Checked):
    """LoRA in place of training all weights."""

    r: Count = 16
    alpha: Count = 32
    dropout: Share = 0.05


class Shares(Checked):
    """Shares of the questions that are kept from training; those that depend on each other stay together.

    Attributes:
        validation: to choose checkpoints on.
        test: for nothing but a last look.
        seed: decides which ones.
    """

    validation: Share = 0.0
    test: Share = 0.0
    seed: int = 0

    @model_validator(mode="after")
    def _leaves_something(self) -> Shares:
        if self.validation + self.test >= 1:
            raise ValueError("validation and test together leave nothing to train on")
        return self


class Place(Checked):
    """Where questions are.

    Attributes:
        data: a directory.
        task: a task whose data these are, in place of ``data``.
        part: which questions; anything but ``all`` needs a split.
    """

    data: Path | None = None
    task: str | None = None
    part: Part = "all"

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.data is not None and self.task is not None:
            raise ValueError("there are both `data` and `task`; one of them says where the data are")
        return self


def require_split(split: Shares | None, places: Iterable[tuple[str, Place]]) -> None:
    """Check that there is a split where a part is asked for.

    Raises:
        ValueError: naming what asks for one.
    """
    for name, place in places:
        if place.part != "all" and split is None:
            raise ValueError(f"{name!r} is the part {place.part!r}, but there is no [split]")


def require_distinct(kind: str, names: Sequence[str]) -> None:
    """Check that names differ, also where blanks become underscores in names of folders.

    Raises:
        ValueError: naming those that do not.
    """
    folders = [name.replace(" ", "_") for name in names]
    if twice := sorted({name for name, folder in zip(names, folders, strict=True) if folders.count(folder) > 1}):
        raise ValueError(f"{kind}: names that occur twice (a blank is an underscore): {', '.join(twice)}")


class Schedule(Checked):
    """How a model is optimised: one run for each learning rate and seed.

    Attributes:
        base: the model to start from: a name that mteb or the hub knows, or a directory.
        learning_rates, seeds: the grid.
        epochs, batch_size, gradient_accumulation, warmup_ratio, weight_decay: of the optimisation (AdamW; the rate
            falls linearly to 0). ``batch_size`` counts rows of the training data:
            queries, or pairs where each is learnt by itself.
        precision: of the computation.
        checkpoint_steps: steps between the states that a killed run goes on from; default: an epoch.
        encode_batch_size: texts at a time where models are scored.
    """

    base: str
    learning_rates: tuple[Positive, ...] = Field(min_length=1)
    seeds: tuple[Seed, ...] = Field(default=(42,), min_length=1)
    epochs: Count = 5
    batch_size: Count = 8
    gradient_accumulation: Count = 1
    warmup_ratio: Share = 0.05
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.01
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    checkpoint_steps: Count | None = None
    encode_batch_size: Count = 32

    @model_validator(mode="after")
    def _no_run_twice(self) -> Schedule:
        for name, values in (("learning_rates", self.learning_rates), ("seeds", self.seeds)):
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: a value occurs twice: {list(values)}")
        return self
