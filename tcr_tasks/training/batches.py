"""Batches: every text once, and what each of them is to each query."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from tcr_tasks.training.examples import Example

__all__ = ["IN_BATCH", "POSITIVE", "SIBLING", "UNUSED", "Collator", "limited", "roles"]

# What a document is to a query.
UNUSED, POSITIVE, SIBLING, IN_BATCH = 0, 1, 2, 3


def roles(examples: Sequence[Example]) -> tuple[list[str], torch.Tensor]:
    """The documents of a batch, each once, and a matrix (queries x documents) of what each is to each query.

    ``SIBLING``: one of the query's own negatives; ``IN_BATCH``: a document of another query of the batch that is not
    known to answer this one; ``UNUSED``: known to answer it, but not its positive here.
    """
    documents = list(dict.fromkeys(text for e in examples for text in (e.positive, *e.negatives)))
    place = {text: at for at, text in enumerate(documents)}
    matrix = torch.full((len(examples), len(documents)), IN_BATCH, dtype=torch.int8)
    for row, example in enumerate(examples):
        for text in example.negatives:
            matrix[row, place[text]] = SIBLING
        for text in example.barred:
            if text in place:
                matrix[row, place[text]] = UNUSED
        matrix[row, place[example.positive]] = POSITIVE
    return documents, matrix


@contextmanager
def limited(model: Any, length: int) -> Iterator[None]:
    """The model's tokenizer with another limit."""
    before = model.max_seq_length
    model.max_seq_length = length
    try:
        yield
    finally:
        model.max_seq_length = before


@dataclass
class Collator:
    """Makes a batch of rows that name an example by its number.

    Attributes:
        model: whose tokenizer is used.
        examples: all of them.
        query_length, passage_length: tokens at most.
        kept_texts: texts whose similarities are held; ``per_step`` of them, drawn by the batch's content, join a batch.
        teacher: text -> the base encoder's unit vector, where similarities are held.
    """

    model: Any
    examples: Sequence[Example]
    query_length: int
    passage_length: int
    kept_texts: Sequence[str] = ()
    per_step: int = 0
    teacher: Callable[[Sequence[str]], torch.Tensor] | None = None
    # What sentence-transformers' trainer asks of a collator.
    valid_label_columns: list[str] = field(default_factory=list)

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        batch = [self.examples[row["example"]] for row in rows]
        documents, matrix = roles(batch)
        label: dict[str, torch.Tensor] = {"roles": matrix}
        queries = [example.query for example in batch]
        if self.teacher is not None:
            drawn = self.drawn([row["example"] for row in rows])
            documents = documents + [text for text in drawn if text not in set(documents)]
            groups = _groups(batch, documents)
            label |= {"teacher": self.teacher([*queries, *documents]), "groups": groups}
        out: dict[str, Any] = {"label": label}
        for name, texts, length in (
            ("query", queries, self.query_length),
            ("document", documents, self.passage_length),
        ):
            with limited(self.model, length):
                out |= {f"{name}_{key}": value for key, value in self.model.preprocess(texts).items()}
        return out

    def drawn(self, numbers: Sequence[int]) -> list[str]:
        """The kept texts that join the batch of these examples."""
        # By the batch's content, not by a generator whose state a resumed run would have to restore.
        rng = random.Random(" ".join(map(str, numbers)))
        return list(dict.fromkeys(rng.sample(self.kept_texts, min(self.per_step, len(self.kept_texts)))))


def _groups(batch: Sequence[Example], documents: Sequence[str]) -> torch.Tensor:
    """A number for each query and document: equal within a group of siblings, else different."""
    number: dict[str, int] = {}
    of_text: dict[str, int] = {}
    queries = []
    for example in batch:
        group = number.setdefault(example.group, len(number))
        queries.append(group)
        of_text |= dict.fromkeys((example.positive, *example.negatives), group)
    for text in documents:
        of_text.setdefault(text, len(number) + len(of_text))
    return torch.tensor([*queries, *(of_text[text] for text in documents)])
