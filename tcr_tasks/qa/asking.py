"""What a reader is asked: each question with the tables of a setting."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from evaluators.judge import Asking, Prompt, Request, read_prompt
from evaluators.metrics.ranking import check_k, top
from evaluators.plugin.checks import shown
from evaluators.plugin.predictions import Predictions
from evaluators.plugin.variants import distinct_names, names_of_run, variant_beside
from tcr_tasks.asking import Planned
from tcr_tasks.builder.tokens import default_counter
from tcr_tasks.cutting import Cutter, ShownTable
from tcr_tasks.data import Question
from tcr_tasks.qa.reply import read_answer
from tcr_tasks.qa.values import Value, read_value
from tcr_tasks.tables import Table
from tcr_tasks.tasks import TCRTask

__all__ = [
    "FIELDS",
    "NO_TABLE",
    "ORACLE",
    "PROMPT",
    "Asked",
    "Exam",
    "Retriever",
    "Setting",
    "expected_answers",
    "read_retrievers",
    "settings_of",
]

PROMPT = Path(__file__).parent / "prompts" / "answer.txt"
FIELDS = ("tables", "question")
ORACLE, NO_TABLE = "oracle", "no_table"
_NO_TABLES = "(no table is shown)"
# For what a server's chat template puts around the messages.
_TEMPLATE_TOKENS = 50


@dataclass(frozen=True)
class Retriever:
    """A ranking of the tables for every question, under a name that no other one has."""

    name: str
    predictions: Predictions


@dataclass(frozen=True)
class Setting:
    """Which tables a reader is shown.

    Attributes:
        name: ``oracle`` (the target alone), ``no_table``, ``top_3`` (the three best, in the retriever's order).
        retriever: whose; ``None`` where none is needed.
        k: how many; ``None`` where no retriever is needed.
    """

    name: str
    retriever: Retriever | None = None
    k: int | None = None

    def tables(self, question: Question) -> list[str]:
        """The tables for a question, by id."""
        if self.retriever is not None and self.k is not None:
            return top(self.retriever.predictions.run[question.id], self.k, question.id)
        return [question.target] if self.name == ORACLE else []


@dataclass(frozen=True)
class Asked:
    """A question as it is asked."""

    question: Question
    tables: tuple[ShownTable, ...]
    request: Request

    @property
    def planned(self) -> Planned[tuple[Value, ...]]:
        """The same as what asking needs."""
        return Planned(self.request, [table.text for table in self.tables], read_answer)


@dataclass(frozen=True)
class Exam:
    """How a reader is asked the questions of a task.

    Attributes:
        task: with its data loaded.
        asking: who is asked, and how.
        prompt: with the fields ``tables`` and ``question``.
        context_tokens: the longest prompt and reply together; ``None``: as long as the tables are.
        again: whether to ask once more where a stored reply cannot be read.
    """

    task: TCRTask
    asking: Asking
    prompt: Prompt = field(default_factory=lambda: read_prompt(PROMPT, FIELDS))
    context_tokens: int | None = None
    again: bool = False
    cutter: Cutter = field(default_factory=lambda: Cutter(default_counter()), repr=False)

    @cached_property
    def _texts(self) -> dict[str, str]:
        assert self.task.data is not None
        corpus = self.task.data.corpus
        return dict(zip(corpus["id"], corpus["text"], strict=True))

    @property
    def questions(self) -> list[Question]:
        """The questions of the task."""
        assert self.task.data is not None
        return list(self.task.data.side["questions"])

    @property
    def _tables(self) -> Mapping[str, Table]:
        assert self.task.data is not None
        tables: Mapping[str, Table] = self.task.data.side["tables"]
        return tables

    def asked(self, setting: Setting) -> list[Asked]:
        """Every question with the setting's tables.

        Raises:
            ValueError: naming question and table, if not even the tables' headers fit into ``context_tokens``.
        """
        out = []
        for question in self.questions:
            try:
                tables = self._shown(setting.tables(question), question)
            except ValueError as error:
                raise ValueError(f"question {question.id!r}, {setting.name}: {error}") from None
            texts = [table.text for table in tables]
            out.append(Asked(question, tuple(tables), self._request([t.id for t in tables], texts, question)))
        return out

    def _shown(self, tables: Sequence[str], question: Question) -> list[ShownTable]:
        texts = {key: self._texts[key] for key in tables}
        left = None
        if self.context_tokens is not None:
            bare = self._request(tables, [""] * len(tables), question)
            around = sum(self.cutter.counter.count(message["content"]) for message in bare.messages) + _TEMPLATE_TOKENS
            left = self.context_tokens - self.asking.sampling.max_tokens - around
        found = self.cutter.shown(texts, left)
        if found is None:
            heads = {key: self.cutter.header_tokens(text) for key, text in texts.items()}
            longest = max(heads, key=lambda key: heads[key])
            raise ValueError(
                f"table {self._tables[longest].key!r}: its header alone has {heads[longest]} tokens, and {left} are "
                f"left for {len(tables)} table(s); allow a longer prompt, or fewer tables in it"
            )
        return found

    def _request(self, ids: Sequence[str], texts: Sequence[str], question: Question) -> Request:
        blocks = [
            "\n".join([f"Table {n} of {len(ids)}", *self._tables[key].notes, "", text.strip("\n")])
            for n, (key, text) in enumerate(zip(ids, texts, strict=True), 1)
        ]
        return self.asking.request(self.prompt, tables="\n\n".join(blocks) or _NO_TABLES, question=question.text)


def expected_answers(questions: Sequence[Question]) -> dict[str, tuple[Value, ...]]:
    """The values that answer each question.

    Raises:
        ValueError: naming the questions whose answer the dataset does not have, or of which a value cannot be read.
    """
    lacking = [q.id for q in questions if not q.answer]
    if lacking:
        raise ValueError(
            f"{len(lacking)} of {len(questions)} questions have no answer in the dataset: {shown(lacking)}; answers "
            "stand in the column 'answer' of the config 'groups', or in the field 'answer' of data/TCR_Questions.json"
        )
    out, bad = {}, []
    for question in questions:
        try:
            values = tuple(map(read_value, question.answer or ()))
        except TypeError:
            values = ()
        if not values or any(value.kind == "missing" for value in values):
            bad.append(question.id)
        out[question.id] = values
    if bad:
        raise ValueError(f"{len(bad)} questions have an answer that is no list of texts and numbers: {shown(bad)}")
    return out


def read_retrievers(saved: Sequence[Predictions]) -> list[Retriever]:
    """Rankings under names that tell them apart: the model's, with its settings, its revision or, where all are the
    same, the place of the file below the folder that holds these files.
    """
    places = _places([predictions.path.resolve() for predictions in saved])
    choices: dict[int, tuple[str, ...]] = {}
    for at, (predictions, place) in enumerate(zip(saved, places, strict=True)):
        model, revision = str(predictions.model["model_name"]), str(predictions.model["revision"])
        told = names_of_run(model, revision, variant_beside(predictions.path, model, revision))
        choices[at] = (*told, f"{told[0]} [{place}]")
    names = distinct_names(choices)
    return [Retriever(names[at], predictions) for at, predictions in enumerate(saved)]


def _places(paths: Sequence[Path]) -> list[str]:
    """Where each file is below the folder that holds all: by its folder where every file has one of its own."""
    own = len({path.parent for path in paths}) == len(paths)
    shown = [path.parent if own else path for path in paths]
    return [Path(os.path.relpath(p, os.path.commonpath([q.parent for q in shown]))).as_posix() for p in shown]


def settings_of(retrievers: Sequence[Retriever], ks: Sequence[int]) -> list[Setting]:
    """Target alone, no table, then the best tables of each retriever."""
    found = [Setting(f"top_{check_k(k)}", retriever, k) for retriever in retrievers for k in ks]
    return [Setting(ORACLE), Setting(NO_TABLE), *found]
