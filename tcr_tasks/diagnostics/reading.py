"""Reads the base of the diagnostics from a TCR dataset directory, in the project's layout or in the authors'."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from evaluators.plugin.checks import DatasetError, shown
from evaluators.plugin.data import TaskData, read_layout
from evaluators.plugin.dataset import is_dataset_directory
from tcr_tasks.data import Question, is_authors_layout, read_authors, read_own
from tcr_tasks.diagnostics.base import (
    COLUMN_DELETION,
    SIBLING,
    TARGET,
    Base,
    BaseQuestion,
    BaseTable,
    QuestionSet,
    Structure,
    matching_rows,
)
from tcr_tasks.diagnostics.columns import find_column
from tcr_tasks.queries import Query
from tcr_tasks.serialize import read_table, read_text_table
from tcr_tasks.tables import Table, corpus_id
from tcr_tasks.tasks import SAMPLE

__all__ = ["read_base"]


def read_base(directory: Path | None = None) -> Base:
    """Read a dataset, by default the embedded sample.

    In the authors' layout the diagnostic questions are those of ``data/TCR_Questions_EM.json``, whose tables have other
    formats there; without that file, and in the project's layout, the exact-match questions of the whole.

    Raises:
        FileNotFoundError: if the directory does not exist.
        DatasetError: if it is no TCR dataset, or listing everything that is wrong with it.
        ValueError: if canonical tables and queries, where the dataset keeps them, do not fit the printed ones.
    """
    directory = directory or SAMPLE
    if not directory.is_dir():
        raise FileNotFoundError(f"no TCR dataset at {directory}: the directory does not exist")
    if is_dataset_directory(directory):
        return _own(directory)
    if is_authors_layout(directory):
        return _authors(directory)
    raise DatasetError(
        str(directory),
        ["no TCR dataset: expected data/TCR_Questions.json and tables/TCR_8k, or corpus, queries, qrels"],
    )


# --- the project's layout -----------------------------------------------------------------------------------------


def _own(directory: Path) -> Base:
    data = read_own(directory, None)
    side = read_layout(directory, ("groups", "tables")).side
    kept = {corpus_id(f"{row['db_id']}::{row['table_path']}"): row for row in side["tables"].to_pylist()}
    tables = {key: _own_table(table, kept[key]) for key, table in data.side["tables"].items()}
    rows = {row["query-id"]: row for row in side["groups"].to_pylist()}
    questions = tuple(_own_question(q, rows[q.id], tables) for q in data.side["questions"])
    unanswered = [q.id for q in questions if rows[q.id].get("query") is not None and q.answer_rows is None]
    notes = [*data.notes]
    if unanswered:
        notes.append(
            f"{len(unanswered)} of {len(questions)} questions: their query finds no answer in the canonical table of "
            f"their target, or there is no such table: {shown(unanswered)}"
        )
    main = _with_strategies(QuestionSet(questions, tables))
    return Base(directory.name, main, _exact_match(main), tuple(notes))


def _own_table(table: Table, row: Mapping[str, Any]) -> BaseTable:
    frame = _frame(table)
    if row.get("canonical_csv") is None or row.get("canonical_columns") is None:
        return BaseTable(table, frame)
    canonical = read_text_table(io.StringIO(row["canonical_csv"]))
    columns: dict[str, str] = json.loads(row["canonical_columns"])
    if len(canonical) != len(frame) or set(columns) != set(frame) or set(columns.values()) != set(canonical):
        raise ValueError(
            f"table {table.key!r}: its canonical table has {len(canonical)} rows of {list(canonical)}, which do not "
            f"fit the printed {len(frame)} rows of {list(frame)} by its canonical_columns {columns}"
        )
    return BaseTable(table, frame, canonical, columns)


def _own_question(question: Question, row: Mapping[str, Any], tables: Mapping[str, BaseTable]) -> BaseQuestion:
    out = _plain_question(question, row.get("question_template"), row.get("question_sentence"))
    target = tables[question.target]
    if row.get("query") is None or target.canonical is None or not target.columns:
        return out
    query = Query.from_json(row["query"])
    rows = matching_rows(query, target.canonical)
    if not rows:
        return out
    headers = {canonical: header for header, canonical in target.columns.items()}
    conditions = tuple(dict.fromkeys(headers[c.column] for c in query.conditions))
    return replace(out, answer_rows=rows, structure=Structure(conditions, headers[query.target], query))


# --- the authors' layout ------------------------------------------------------------------------------------------


def _authors(directory: Path) -> Base:
    data = read_authors(directory, None)
    entries = _entries(directory, "")
    if not (directory / "data" / "TCR_Questions_EM.json").is_file():
        main = _authors_set(data, entries, {})
        return Base(directory.name, main, _exact_match(main), tuple(data.notes))
    exact, exact_entries = read_authors(directory, None, "_EM"), _entries(directory, "_EM")
    # The main file does not say what a question is made of; for the same target the diagnostic file does.
    known = {q.target: exact_entries[q.id] for q in exact.side["questions"]}
    main, diagnostic = _authors_set(data, entries, known), _authors_set(exact, exact_entries, {})
    return Base(directory.name, main, diagnostic, tuple(dict.fromkeys([*data.notes, *exact.notes])))


def _entries(directory: Path, part: str) -> dict[str, dict[str, Any]]:
    text = (directory / "data" / f"TCR_Questions{part}.json").read_text(encoding="utf-8-sig")
    return {entry["question_id"]: entry for entry in json.loads(text)}


def _authors_set(
    data: TaskData, entries: Mapping[str, Mapping[str, Any]], known: Mapping[str, Mapping[str, Any]]
) -> QuestionSet:
    tables = {key: BaseTable(table, _frame(table)) for key, table in data.side["tables"].items()}
    questions = []
    for question in data.side["questions"]:
        entry = {**_same_question(known.get(question.target, {}), question), **entries[question.id]}
        questions.append(_authors_question(question, entry, tables[question.target].frame))
    return _with_strategies(QuestionSet(tuple(questions), tables))


def _same_question(entry: Mapping[str, Any], question: Question) -> Mapping[str, Any]:
    return entry if entry.get("question") == question.text else {}


def _authors_question(question: Question, entry: Mapping[str, Any], frame: pd.DataFrame) -> BaseQuestion:
    out = _plain_question(question, entry.get("question_template"), entry.get("question_sentence"))
    rows = entry.get("answer_index")
    if not isinstance(rows, list) or not rows or not all(isinstance(r, int) and 0 <= r < len(frame) for r in rows):
        return out
    out = replace(out, answer_rows=tuple(dict.fromkeys(sorted(rows))))
    made = entry.get("construct_information")
    return replace(out, structure=_structure(made, entry.get("answer"), frame, rows)) if made else out


def _structure(made: Mapping[str, Any], answer: Any, frame: pd.DataFrame, rows: list[int]) -> Structure | None:
    """The query's columns by their headers in the target; ``None`` unless all are found."""
    values = made.get("selected_values") or {}
    found: list[str] = []
    for name in dict.fromkeys(made.get("selected_columns") or ()):
        header = find_column(name, frame, rows, [values[name]] if name in values else [], found)
        if header is None:
            return None
        found.append(header)
    answers = answer if isinstance(answer, list) else [answer]
    asked = find_column(str(made.get("target_column")), frame, rows, answers, found)
    return Structure(tuple(found), asked) if found and asked is not None else None


# --- both ---------------------------------------------------------------------------------------------------------


def _frame(table: Table) -> pd.DataFrame:
    return read_table(io.StringIO(table.csv) if isinstance(table.csv, str) else table.csv)


def _plain_question(question: Question, template: str | None, sentence: str | None) -> BaseQuestion:
    q = question
    return BaseQuestion(q.id, q.text, q.type, q.target, q.group, q.strategies, template or None, sentence or None)


def _exact_match(main: QuestionSet) -> QuestionSet:
    questions = tuple(q for q in main.questions if q.type == "EM")
    used = {table for q in questions for table in q.group}
    return QuestionSet(questions, {key: table for key, table in main.tables.items() if key in used})


def _with_strategies(questions: QuestionSet) -> QuestionSet:
    return replace(questions, questions=tuple(_labelled(q, questions) for q in questions.questions))


def _labelled(question: BaseQuestion, questions: QuestionSet) -> BaseQuestion:
    """The question with a strategy for each member of its group: as given, otherwise inferred from the columns."""
    if set(question.strategies) == set(question.group):
        return question
    labels = {
        table: TARGET if table == question.target else _strategy(question, table, questions) for table in question.group
    }
    return replace(question, strategies=labels, inferred=True)


def _strategy(question: BaseQuestion, table_id: str, questions: QuestionSet) -> str:
    """``column_deletion`` for a sibling that lacks one of the question's columns.

    Where headers are reworded, a column is taken for missing only if the sibling has fewer columns than the target. A
    sibling is made by leaving out one of the question's columns (A.3), so fewer columns are enough where those are not
    known.
    """
    target, table = questions.tables[question.target], questions.tables[table_id]
    fewer = len(table.frame.columns) < len(target.frame.columns)
    if question.structure is None:
        return COLUMN_DELETION if fewer else SIBLING
    lacks = not set(question.structure.columns) <= questions.counterparts(question, table_id).keys()
    known = bool(target.columns and table.columns)
    return COLUMN_DELETION if lacks and (known or fewer) else SIBLING
