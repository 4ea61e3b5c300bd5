"""Writes a built benchmark: in the project's layout, and in that of the authors of TCR-Bench.

Both are written into an unfinished folder beside the wanted one and get their name when they are complete: a build that
is interrupted leaves no half dataset. Both load with :mod:`tcr_tasks.data`.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.plugin.dataset import Card, write_dataset
from tcr_tasks.data import TABLE_FOLDER, Question, group_problems
from tcr_tasks.queries import Query
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import Table, corpus_id

__all__ = ["COLUMNS", "BuiltQuestion", "BuiltTable", "completed", "layout_rows", "write_layout", "write_tcr_open"]

# What a file system or a URL may trip over, ":" also because it parts the two halves of a table's key.
_UNSAFE = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f]')
_LONGEST_NAME = 200
_CONDITION_TYPES = {"EM": "exact_match", "SF": "selective_filtering", "SA": "selective_aggregation"}

# For the card of a dataset in the project's layout.
COLUMNS = """**Columns.** Ids in `corpus`, `qrels` and `groups` are 8 hex digits, `::` and the table's key.

| config | column | content |
|---|---|---|
| `tables` | `table-key` | `db_id::table_path` |
| | `table_name`, `table_format` | printed before the table; its format in the Mixed setting |
| | `csv` | the table as printed, headers and values reworded |
| | `canonical_csv` | the same rows under the source's names and in plain values: ask the queries of these |
| | `canonical_columns` | JSON: the source's name of each header |
| | `source`, `strategy` | where the rows come from; `target` or how the sibling was made |
| | `prompt_notes` | JSON list: what a reader must be told of shifted numbers |
| `corpus` | `_id`, `title`, `text` | what is encoded |
| `queries` | `_id`, `text` | the questions |
| `qrels` | `query-id`, `corpus-id`, `score` | the one table that answers |
| `groups` | `query-id`, `target`, `corpus-ids`, `strategies` | the target and, in order of id, its group |
| | `question_type`, `question_template`, `question_sentence` | EM, SF or SA; other forms of the question |
| | `query` | JSON: `conditions` (column, operator, value), `target`, `aggregate`, in the source's names |
| | `answer` | JSON list: a value for each answering row of the target, or one aggregate |
"""


@dataclass(frozen=True)
class BuiltTable:
    """A table as it is written.

    Attributes:
        db_id, table_path: where it is; they name its file.
        table_name: the name that is printed.
        table_format: its format in the Mixed setting.
        csv: its content as printed.
        canonical_csv: the same cells under the source's names and in their plain form.
        canonical_columns: the source's names by header.
        source: where its rows come from.
        strategy: how it was made (``target``, ``row_deletion``, ...).
        prompt_notes: what a prompt that shows the table must say of shifted numbers.
    """

    db_id: str
    table_path: str
    table_name: str
    table_format: TableFormat
    csv: str
    canonical_csv: str
    canonical_columns: Mapping[str, str]
    source: str
    strategy: str
    prompt_notes: Sequence[str] = ()

    @property
    def key(self) -> str:
        """``db_id::table_path``."""
        return f"{self.db_id}::{self.table_path}"

    def text(self) -> str:
        """What is encoded."""
        return Table(self.db_id, self.table_path, self.table_name, self.table_format, self.csv).text()


@dataclass(frozen=True)
class BuiltQuestion:
    """A question as it is written.

    Attributes:
        id: unique.
        text: the question in natural form.
        query: what it means, in the source's names and values.
        target_key: the key of the one table that answers it.
        group_keys: the keys of target and siblings, two or more.
        template: one of the query's template forms.
        sentence: its sentential form.
        answer: as the query gives it on the target's canonical table.
        answer_rows: rows of the target's CSV that hold it, the first below the header is 0.
    """

    id: str
    text: str
    query: Query
    target_key: str
    group_keys: Sequence[str]
    template: str
    sentence: str
    answer: Sequence[str | int | float]
    answer_rows: Sequence[int]


def write_layout(directory: Path, tables: Sequence[BuiltTable], questions: Sequence[BuiltQuestion], card: Card) -> None:
    """Write the project's layout: configs tables, corpus, queries, qrels and groups, and a card.

    Raises:
        ValueError: if the directory holds something already, or listing what is wrong with tables and questions.
    """
    _check(tables, questions)
    with completed(directory) as unfinished:
        write_dataset(unfinished, layout_rows(tables, questions), card)


def layout_rows(tables: Sequence[BuiltTable], questions: Sequence[BuiltQuestion]) -> dict[str, list[dict[str, Any]]]:
    """The rows of the project's layout by config: tables, corpus, queries, qrels, groups."""
    strategies = {table.key: table.strategy for table in tables}
    return {
        "tables": [_table_row(table) for table in tables],
        "corpus": [{"_id": corpus_id(table.key), "title": "", "text": table.text()} for table in tables],
        "queries": [{"_id": question.id, "text": question.text} for question in questions],
        "qrels": [{"query-id": q.id, "corpus-id": corpus_id(q.target_key), "score": 1} for q in questions],
        "groups": [_group_row(question, strategies) for question in questions],
    }


def write_tcr_open(directory: Path, tables: Sequence[BuiltTable], questions: Sequence[BuiltQuestion]) -> None:
    """Write the authors' layout: questions and tables as JSON, those of EM questions once more, and a CSV per table.

    Every question, not only those of the EM files, has its template, its sentence and ``construct_information``; where
    the authors released none (SF, SA), its fields extend those of EM by ``conditions`` and ``aggregate``.

    Raises:
        ValueError: if the directory holds something already, a group lies in several databases, two files would differ
            in case only, or listing what is wrong with tables and questions.
    """
    _check(tables, questions, files=True)
    exact = [question for question in questions if question.query.question_type == "EM"]
    used = {key for question in exact for key in question.group_keys}
    with completed(directory) as unfinished:
        (unfinished / "data").mkdir()
        for part, some_questions, some_tables in (
            ("", questions, tables),
            ("_EM", exact, [table for table in tables if table.key in used]),
        ):
            _write_json(unfinished / "data" / f"TCR_Questions{part}.json", map(_open_question, some_questions))
            _write_json(unfinished / "data" / f"TCR_Tables{part}.json", map(_open_table, some_tables))
        for table in tables:
            file = unfinished / TABLE_FOLDER / table.db_id / f"{table.table_path}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(table.csv, encoding="utf-8", newline="")


@contextmanager
def completed(directory: Path) -> Iterator[Path]:
    """A new folder to write into, which becomes ``directory`` if the block ends well and is removed if it does not.

    Raises:
        ValueError: if the directory holds something already.
    """
    if directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        raise ValueError(f"{directory} exists and is not an empty folder; name another one with --out")
    unfinished = directory.absolute().with_name(f".{directory.absolute().name}.unfinished")
    # Left by a build that was killed.
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        if directory.exists():
            directory.rmdir()
        unfinished.rename(directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


# --- rows --------------------------------------------------------------------------------------------------------


def _table_row(table: BuiltTable) -> dict[str, Any]:
    return {
        "table-key": table.key,
        "db_id": table.db_id,
        "table_path": table.table_path,
        "table_name": table.table_name,
        "table_format": str(table.table_format),
        "csv": table.csv,
        "canonical_csv": table.canonical_csv,
        "canonical_columns": json.dumps(dict(table.canonical_columns), ensure_ascii=False),
        "source": table.source,
        "strategy": table.strategy,
        "prompt_notes": json.dumps(list(table.prompt_notes), ensure_ascii=False),
    }


def _group_row(question: BuiltQuestion, strategies: Mapping[str, str]) -> dict[str, Any]:
    # By id, that is by a hash: no rule that orders ids may favour the target.
    members = sorted((corpus_id(key), key) for key in question.group_keys)
    return {
        "query-id": question.id,
        "corpus-ids": [member for member, _ in members],
        "target": corpus_id(question.target_key),
        "question_type": question.query.question_type,
        "strategies": ["target" if key == question.target_key else strategies[key] for _, key in members],
        "question_template": question.template,
        "question_sentence": question.sentence,
        "query": question.query.to_json(),
        "answer": json.dumps(list(question.answer), ensure_ascii=False, allow_nan=False),
    }


def _open_table(table: BuiltTable) -> dict[str, Any]:
    return {
        "db_id": table.db_id,
        "table_path": table.table_path,
        "table_name": table.table_name,
        "table_format": str(table.table_format),
    }


def _open_question(question: BuiltQuestion) -> dict[str, Any]:
    db_id, target = question.target_key.split("::", 1)
    rows, answer = list(question.answer_rows), list(question.answer)
    return {
        "question_id": question.id,
        "db_id": db_id,
        "highlighted_table": [target],
        "all_tables_in_group": [key.split("::", 1)[1] for key in question.group_keys],
        "question": question.text,
        "question_template": question.template,
        "answer": answer,
        "question_type": question.query.question_type,
        "construct_information": _construct_information(question),
        "template": _pattern(question),
        "answer_index": rows,
        "question_sentence": question.sentence,
    }


def _construct_information(question: BuiltQuestion) -> dict[str, Any]:
    """As released for EM; ``conditions`` and ``aggregate`` are ours.

    ``selected_values`` has one value per column, as released: of several conditions on a column the last one's.
    ``row_filter_count`` is read as the number of conditions.
    """
    query = question.query
    return {
        "selected_columns": list(dict.fromkeys(c.column for c in query.conditions)),
        "selected_values": {c.column: c.value for c in query.conditions},
        "target_column": query.target,
        "row_filter_count": len(query.conditions),
        "row_indices": list(question.answer_rows),
        "answer_values": list(question.answer),
        "template_filled": question.template,
        "condition_type": _CONDITION_TYPES[query.question_type],
        "conditions": [{"column": c.column, "operator": c.operator, "value": c.value} for c in query.conditions],
        "aggregate": query.aggregate,
    }


def _pattern(question: BuiltQuestion) -> str:
    """The pattern that the question's template form fills."""
    for form, pattern in enumerate(question.query.templates()):
        if question.query.template(form) == question.template:
            return pattern
    raise ValueError(f"question {question.id!r}: {question.template!r} is none of its query's template forms")


def _write_json(file: Path, entries: Any) -> None:
    text = json.dumps(list(entries), ensure_ascii=False, allow_nan=False, indent=2)
    file.write_text(f"{text}\n", encoding="utf-8", newline="")


# --- checks ------------------------------------------------------------------------------------------------------


def _check(tables: Sequence[BuiltTable], questions: Sequence[BuiltQuestion], *, files: bool = False) -> None:
    problems = [problem for table in tables for problem in _name_problems(table)]
    keys = Counter(table.key for table in tables)
    problems += [f"table {key!r} is listed twice" for key, n in keys.items() if n > 1]
    problems += [
        f"question {key!r} is listed twice"
        for key, n in Counter(question.id for question in questions).items()
        if n > 1
    ]
    problems += group_problems([_as_read(question) for question in questions], {corpus_id(key) for key in keys})
    if files:
        folded = Counter(key.casefold() for key in keys)
        problems += [f"table {key!r}: another one differs in case only" for key in keys if folded[key.casefold()] > 1]
        databases_folded = Counter(db_id.casefold() for db_id in {table.db_id for table in tables})
        problems += [
            f"table {table.key!r}: its db_id differs from another one in case only"
            for table in tables
            if databases_folded[table.db_id.casefold()] > 1
        ]
        for question in questions:
            databases = sorted({key.split("::", 1)[0] for key in question.group_keys})
            if len(databases) > 1:
                problems.append(f"question {question.id!r}: its group lies in several databases: {databases}")
    if problems:
        more = f" (and {len(problems) - 20} more)" if len(problems) > 20 else ""
        raise ValueError(f"this benchmark cannot be written: {'; '.join(problems[:20])}{more}")


def _name_problems(table: BuiltTable) -> Iterator[str]:
    for what, name in (("db_id", table.db_id), ("table_path", table.table_path)):
        if not name or name != name.strip(" .") or _UNSAFE.search(name) or len(name.encode()) > _LONGEST_NAME:
            yield (
                f"{what} {name!r} does not make a file name: it must have 1 to {_LONGEST_NAME} bytes, none of "
                '\\ / : * ? " < > | and no control characters, and neither begin nor end with a blank or a dot'
            )


def _as_read(question: BuiltQuestion) -> Question:
    group = tuple(corpus_id(key) for key in question.group_keys)
    target = corpus_id(question.target_key)
    return Question(question.id, question.text, question.query.question_type, target, group, {})
