"""What a training is made of, as checked objects; :mod:`tcr_tasks.training.reading` makes them of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from evaluators.training.config import (
    Adaptation,
    Checked,
    Count,
    Name,
    Place,
    Positive,
    Schedule,
    Shares,
    require_distinct,
    require_split,
)
from tcr_tasks.serialize import TableFormat

__all__ = [
    "CrossEncoding",
    "Evaluation",
    "Keeping",
    "NamedModel",
    "Source",
    "TrainingConfig",
]


class Data(Place):
    """Questions of a dataset.

    Attributes:
        name: how reports and file names call it.
        data: a directory: a TCR dataset, or another one in the project's layout (corpus, queries, qrels).
        task: a TCR task whose data these are, in place of ``data``.
        part: which questions, by source database; anything but ``all`` needs ``[split]``.
        prefix: put before every query.
        format: how tables are printed; default: each in its own format, texts of other datasets as they are.
    """

    name: Name
    prefix: str = ""
    format: TableFormat | None = None


class Source(Data):
    """Training data.

    Attributes:
        examples: how many examples an epoch takes of it: all, or so many drawn (with replacement if there are fewer).
    """

    examples: Count | None = None


class Evaluation(Data):
    """A set that models are scored on.

    Attributes:
        select: whether the best checkpoint on it is kept.
    """

    select: bool = False


class Keeping(Checked):
    """Hold the base encoder's similarities across groups, while target and siblings are told apart.

    Attributes:
        weight: of that term beside the contrastive loss.
        texts: directories with a ``corpus`` whose texts are held, too; their queries and judgements are not looked at.
        per_step: texts of them that are drawn for a batch.
    """

    weight: Positive = 1.0
    texts: tuple[Path, ...] = ()
    per_step: Count = 16


class CrossEncoding(Checked):
    """Train a cross-encoder in place of an embedding model.

    Attributes:
        loss: ``listwise`` (ListNet over target and siblings) or ``binary`` (each pair on its own).
        first_stage: the retriever whose best tables it reranks wherever it is scored; default: the base.
        depth: how many of them.
    """

    loss: Literal["listwise", "binary"] = "listwise"
    first_stage: str | None = None
    depth: Count = 10


class NamedModel(Checked):
    """One more model to score, such as one of another training."""

    name: Name
    path: str


class TrainingConfig(Schedule):
    """A training: one run for each learning rate and seed.

    Attributes:
        name: how reports call the data that the models are trained on.
        temperature: of the contrastive loss over cosines.
        batches: ``random``, or ``groups``: questions on the same tables go together, so that each is encoded once.
        query_length, passage_length: tokens at most.
        max_negatives: siblings of a query that are negatives, drawn by the seed if there are more.
        in_batch: whether the other tables of a batch are negatives, too.
        lora, keep, cross_encoder, split: see there; absent: all weights, contrast only, an embedding model, no split.
        sources, evaluations, models: what is trained on, what is scored on, and further models to score.
    """

    name: Name
    temperature: Positive = 0.1
    batches: Literal["random", "groups"] = "random"
    query_length: Count = 512
    passage_length: Count = 512
    max_negatives: Annotated[int, Field(ge=0)] = 16
    in_batch: bool = True
    lora: Adaptation | None = None
    keep: Keeping | None = None
    cross_encoder: CrossEncoding | None = None
    split: Shares | None = None
    sources: tuple[Source, ...] = Field(min_length=1)
    evaluations: tuple[Evaluation, ...] = Field(min_length=1)
    models: tuple[NamedModel, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> TrainingConfig:
        for kind, named in (("sources", self.sources), ("evaluations", self.evaluations), ("models", self.models)):
            require_distinct(kind, [entry.name for entry in named])
        if not any(evaluation.select for evaluation in self.evaluations):
            raise ValueError("no evaluation has `select = true`, so that no checkpoint could be kept")
        require_split(self.split, ((entry.name, entry) for entry in (*self.sources, *self.evaluations)))
        if self.cross_encoder is not None and (self.keep is not None or self.lora is not None):
            raise ValueError("[cross_encoder] trains all weights of a reranker: leave out [keep] and [lora]")
        if not self.in_batch and self.max_negatives == 0:
            raise ValueError("without siblings (max_negatives = 0) and in-batch negatives there is nothing to learn")
        return self
