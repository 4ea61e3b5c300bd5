"""What single queries of our task families are about: conditions to compare, and documents worth marking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mteb

from evaluators.plugin.data import TaskData, passage_texts
from evaluators.plugin.task import BeyondTask
from followir_tasks.ids import parse_query_id as parse_followir
from followir_tasks.tasks import FollowIRTask
from hub_cards.report.collect import Place
from ifir_tasks.ids import parse_query_id as parse_ifir
from ifir_tasks.tasks import IFIRTask
from tcr_tasks.diagnostics.tasks import DiagnosticTask
from tcr_tasks.tasks import TCRTask

RELEVANT = "relevant"
UNTIL_CHANGE = "relevant until the change"
_QUERY_LETTERS, _INSTRUCTION_LETTERS, _PASSAGE_LETTERS = 600, 1500, 220


@dataclass(frozen=True)
class Condition:
    """One form of a query, with its ranking.

    Attributes:
        query: id in the predictions.
        text: the instruction; empty for none.
        marks: document id -> what it is: :data:`RELEVANT`, :data:`UNTIL_CHANGE`, ``excluded``, ``target`` or a kind of
            sibling.
    """

    query: str
    label: str
    text: str = ""
    marks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    """A query with its conditions; all others are compared with the first.

    Attributes:
        id: of the query, topic or question.
        about: what is known of it, in words.
        traced: documents whose rank is shown under every condition.
    """

    id: str
    text: str
    conditions: tuple[Condition, ...]
    about: str = ""
    traced: tuple[str, ...] = ()


class Texts:
    """Queries and passages of a task whose data lie on this machine; without data ids only."""

    def __init__(self, data: TaskData | None) -> None:
        self.data = data
        self.queries: dict[str, Mapping[str, Any]] = {}
        if data is not None:
            self.queries = {row["id"]: row for row in data.queries}

    def query(self, query: str) -> str:
        return _cut(str(self.queries.get(query, {}).get("text", "")), _QUERY_LETTERS)

    def instruction(self, query: str) -> str:
        return _cut(str(self.queries.get(query, {}).get("instruction", "") or ""), _INSTRUCTION_LETTERS)

    def relevant(self, query: str) -> list[str]:
        """Ids of the relevant documents."""
        judged = {} if self.data is None else self.data.relevant_docs.get(query, {})
        return [doc for doc, grade in judged.items() if grade > 0]

    def passages(self, wanted: Iterable[str]) -> dict[str, str]:
        """The beginnings of documents by id."""
        if self.data is None:
            return {}
        return {doc: _cut(text, _PASSAGE_LETTERS) for doc, text in passage_texts(self.data.corpus, set(wanted)).items()}


def has_items(place: Place) -> bool:
    """Whether single queries of a task can be shown."""
    task = _task(place.task)
    return isinstance(task, IFIRTask | FollowIRTask | TCRTask) and not isinstance(task, DiagnosticTask)


def load_texts(place: Place, directories: Sequence[Path]) -> Texts:
    """The data that a result was computed on, if they lie on this machine: nothing is fetched.

    Args:
        place: the task and the revision of its data.
        directories: where else data may lie, for ``data_path``.
    """
    for directory in (None, *directories):
        task = _task(place.task)
        assert isinstance(task, BeyondTask)
        task.data_path = directory
        try:
            fits = task.source().directory is not None and task.current_revision() == place.revision
        except (ValueError, FileNotFoundError):  # another task's data
            continue
        if fits:
            task.load_data()
            data = task.data
            return Texts(data)
    return Texts(None)


def items_of(place: Place, texts: Texts, queries: Sequence[str]) -> list[Item]:
    """The items among ranked queries, in the order of the data.

    Args:
        place: the task.
        texts: its data.
        queries: ids in saved predictions.

    Raises:
        ValueError: if an id is not of the task's form.
    """
    task = _task(place.task)
    known = set(queries)
    order = [q for q in texts.queries if q in known] or list(queries)
    if isinstance(task, IFIRTask):
        return list(_ifir_items(order, texts))
    if isinstance(task, FollowIRTask):
        return list(_followir_items(order, texts))
    return list(_tcr_items(order, texts))


def _ifir_items(order: Sequence[str], texts: Texts) -> Iterable[Item]:
    by_base: dict[str, list[str]] = {}
    for query in order:
        by_base.setdefault(parse_ifir(query).base, []).append(query)
    for base, queries in by_base.items():
        plain = parse_ifir(queries[0]).plain
        instructed = sorted((q for q in queries if q != plain), key=lambda q: (parse_ifir(q).level, parse_ifir(q)[2]))
        if plain not in queries:
            continue
        conditions = [Condition(plain, "plain query")]
        for query in instructed:
            parts = parse_ifir(query)
            label = f"level {parts.level}" if parts.level else "instruction"
            marks = dict.fromkeys(texts.relevant(query), RELEVANT)
            label += f", no. {parts.number}" if parts.number > 1 else ""
            conditions.append(Condition(query, label, _without(texts.query(plain), texts.query(query)), marks))
        yield Item(base, texts.query(plain), tuple(conditions))


def _followir_items(order: Sequence[str], texts: Texts) -> Iterable[Item]:
    changed_docs = {} if texts.data is None else texts.data.side["qrel_diff"]
    topics: dict[str, dict[bool, str]] = {}
    for query in order:
        topic, changed = parse_followir(query)
        topics.setdefault(topic, {})[changed] = query
    for topic, found in topics.items():
        if len(found) < 2:
            continue
        excluded = tuple(changed_docs.get(topic, ()))
        conditions = []
        for changed, label in ((False, "original instruction"), (True, "changed instruction")):
            query = found[changed]
            of_excluded = dict.fromkeys(excluded, "excluded" if changed else UNTIL_CHANGE)
            marks = dict.fromkeys(texts.relevant(query), RELEVANT) | of_excluded
            conditions.append(Condition(query, label, texts.instruction(query), marks))
        about = f"{len(excluded)} documents that the changed instruction excludes" if excluded else ""
        yield Item(topic, texts.query(found[False]), tuple(conditions), about, excluded)


def _tcr_items(order: Sequence[str], texts: Texts) -> Iterable[Item]:
    questions = {} if texts.data is None else {q.id: q for q in texts.data.side["questions"]}
    for query in order:
        question = questions.get(query)
        if question is None:
            yield Item(query, "", (Condition(query, "ranking"),))
            continue
        marks = {t: "target" if t == question.target else _sibling(question.strategies.get(t)) for t in question.group}
        about = f"question type {question.type}; a target and {len(question.group) - 1} siblings"
        traced = (question.target, *(t for t in question.group if t != question.target))
        yield Item(query, texts.query(query), (Condition(query, "ranking", "", marks),), about, traced)


def _sibling(strategy: str | None) -> str:
    return "sibling" if strategy is None else f"sibling ({strategy.replace('_', ' ')})"


def _task(name: str) -> Any:
    try:
        return mteb.get_task(name)
    except KeyError:
        return None


def _without(start: str, text: str) -> str:
    """The instruction behind a plain query."""
    return text.removeprefix(start).strip() if start else text


def _cut(text: str, letters: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"
