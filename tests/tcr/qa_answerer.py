"""A reader without a language model: it executes a question's query on the tables that a prompt shows."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tcr_tasks.diagnostics.base import Base, BaseQuestion, BaseTable, matching_rows
from tcr_tasks.queries import Query

Messages = Sequence[Mapping[str, Any]]

_PROMPT = re.compile(r"<tables>\n(.*)\n</tables>\n\n<question>\n(.*)\n</question>", re.DOTALL)
_HEAD = re.compile(r"^Table \d+ of \d+\n", re.MULTILINE)


class Answerer:
    """Answers with what the query of a question gives on each table in the prompt.

    A table is found by its printed text, with all rows or its first ones; the query runs on these rows of its canonical
    form, or (the real part) on the printed cells of the columns that ``construct_information`` names.

    Args:
        base: the dataset.
        conditions: question's text -> values of the printed condition columns, in their order, where there is no query.
    """

    def __init__(self, base: Base, conditions: Mapping[str, Sequence[Any]] | None = None) -> None:
        self.questions = {q.text: q for q in base.main.questions}
        self.tables = base.main.tables
        self.whole = {text.strip("\n"): key for key, text in base.main.texts(None).items()}
        self.counterparts = base.main.counterparts
        self.conditions = conditions or {}
        self.seen: list[list[str]] = []
        self._answers: dict[tuple[str, str, int], list[Any]] = {}

    def __call__(self, messages: Messages) -> str:
        found = _PROMPT.search(messages[-1]["content"])
        assert found is not None
        question = self.questions[found[2]]
        shown = [self.table(block) for block in _HEAD.split(found[1])[1:]]
        self.seen.append([key for key, _ in shown])
        values = [value for place in shown for value in self._known(question, *place)]
        return f"I looked at {len(shown)} tables.\nAnswer: {json.dumps(values)}"

    def table(self, block: str) -> tuple[str, int]:
        """The id of a table in the prompt, and how many of its rows are there."""
        notes, _, text = ("\n" + block.strip("\n")).rpartition("\n\n")
        text = text.strip("\n")
        name, _, body = text.partition(":\n")
        rows = _rows(body)
        key = self.whole.get(text)
        if key is None:
            (key,) = [
                key
                for whole, key in self.whole.items()
                if whole.startswith(text.removesuffix("\n </tbody>\n</table>")) and self.tables[key].table.name == name
            ]
        assert tuple(notes.split("\n")[1:]) == self.tables[key].table.notes
        return key, rows

    def _known(self, question: BaseQuestion, key: str, rows: int) -> list[Any]:
        """The answer, found once: settings show the same tables again."""
        place = question.text, key, rows
        if place not in self._answers:
            self._answers[place] = self.answer(question, key, rows)
        return self._answers[place]

    def answer(self, question: BaseQuestion, key: str, rows: int) -> list[Any]:
        table = self.tables[key]
        structure = question.structure
        if structure is None:
            return []
        if structure.query is not None:
            return _executed(structure.query, table, rows)
        headers = self.counterparts(question, key)
        if not set(structure.columns) <= headers.keys():
            return []
        frame = table.frame.iloc[:rows]
        wanted = dict(zip(structure.conditions, self.conditions[question.text], strict=True))
        meets = pd.Series(True, index=frame.index)
        for header, value in wanted.items():
            meets &= frame[headers[header]].astype(str) == str(value)
        return frame[headers[structure.target]][meets].tolist()


def _executed(query: Query, table: BaseTable, rows: int) -> list[Any]:
    assert table.canonical is not None
    canonical = table.canonical.iloc[:rows]
    found = matching_rows(query, canonical)
    if not found:
        return []
    cells = canonical[query.target].iloc[list(found)]
    numbers = pd.to_numeric(cells, errors="coerce")
    return query.answer_from((cells if numbers.isna().any() else numbers).tolist())


def _rows(body: str) -> int:
    """How many rows a printed table has below its header."""
    if body.startswith("<table"):
        return body.count("<tr") - 1
    if body.startswith("|"):
        return len(body.split("\n")) - 2
    return len(list(csv.reader(io.StringIO(body)))) - 1
