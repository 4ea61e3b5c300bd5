"""Reading TCR-Bench: the authors' repository, and the project's layout."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from evaluators.plugin.checks import DatasetError, shown
from evaluators.plugin.data import TaskData, read_layout
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import Table, corpus_id

QUESTION_TYPES = ("EM", "SF", "SA")
# Published sizes: questions by type, tables searched. (Diagnostic subset: the union of the groups of EM questions.)
PUBLISHED_SIZES: dict[str, tuple[dict[str, int], int]] = {
    "": ({"EM": 98, "SF": 55, "SA": 56}, 637),
    "_EM": ({"EM": 70}, 271),
}
TABLE_FOLDER = Path("tables") / "TCR_8k"


@dataclass(frozen=True)
class Question:
    """A question with its target and siblings, all as corpus ids."""

    id: str
    text: str
    type: str
    target: str
    group: tuple[str, ...]
    strategies: dict[str, str]


def is_authors_layout(directory: Path) -> bool:
    """Whether the directory looks like the authors' repository."""
    return (directory / "data" / "TCR_Questions.json").is_file() and (directory / TABLE_FOLDER).is_dir()


def authors_patterns() -> tuple[str, ...]:
    """The files that :func:`read_authors` may read, as glob patterns."""
    return ("data/TCR_*.json", f"{TABLE_FOLDER.as_posix()}/*/*.csv")


def read_authors(directory: Path, fmt: TableFormat | None, part: str = "") -> TaskData:
    """Read ``data/TCR_Questions{part}.json``, ``data/TCR_Tables{part}.json`` and the tables' CSV files.

    Args:
        directory: the repository.
        fmt: how to print every table; ``None`` prints each in the format that the file of tables gives it (Mixed).
        part: ``""`` for all questions and tables, ``"_EM"`` for the diagnostic subset, whose corpus is the union of
            its questions' groups.

    Raises:
        DatasetError: listing everything that is wrong, with question or table.
    """
    problems: list[str] = []
    tables = _tables(directory, _records(directory / "data" / f"TCR_Tables{part}.json"), problems)
    questions = [
        q
        for entry in _records(directory / "data" / f"TCR_Questions{part}.json")
        if (q := _question(entry, tables, problems)) is not None
    ]
    if part:
        used = {table for q in questions for table in q.group}
        tables = {key: table for key, table in tables.items() if table.id in used}
    if problems:
        raise DatasetError(str(directory), problems)
    data = _task_data(list(tables.values()), questions, fmt)
    _compare_sizes(data, questions, part)
    return data


def read_own(directory: Path, fmt: TableFormat | None) -> TaskData:
    """Read a dataset in the project's layout, which keeps the tables in a config of their own.

    Raises:
        DatasetError: listing everything that is wrong, with question or table.
    """
    layout = read_layout(directory, ("groups", "tables"))
    problems: list[str] = []
    tables: dict[str, Table] = {}
    for row in layout.side["tables"].to_pylist():
        table = _table(row["db_id"], row["table_path"], row["table_name"], row["table_format"], row["csv"], problems)
        if table is not None:
            tables[table.key] = table
    texts = dict(zip(layout.queries["id"], layout.queries["text"], strict=True))
    questions = []
    for row in layout.side["groups"].to_pylist():
        labels = dict(zip(row["corpus-ids"], row.get("strategies") or (), strict=False))
        key = row["query-id"]
        if key not in texts:
            problems.append(f"groups: unknown query {key!r}")
            continue
        group = tuple(row["corpus-ids"])
        questions.append(Question(key, texts[key], row["question_type"], row["target"], group, labels))
    problems += [f"question {key!r} has no group" for key in texts if key not in {q.id for q in questions}]
    for q in questions:
        judged = layout.relevant_docs.get(q.id)
        if judged != {q.target: 1}:
            problems.append(f"question {q.id!r}: its qrels {judged} are not its target {q.target!r}")
    if problems:
        raise DatasetError(str(directory), problems)
    data = _task_data(list(tables.values()), questions, fmt)
    data.side["layout_corpus"] = dict(zip(layout.corpus["id"], layout.corpus["text"], strict=True))
    return data


def group_problems(data: TaskData) -> list[str]:
    """Groups that are empty, list a table twice, lack their target or name a table that does not exist."""
    out: list[str] = []
    documents = set(data.corpus["id"])
    questions: list[Question] = data.side["questions"]
    for q in questions:
        missing = [t for t in (*q.group, q.target) if t not in documents]
        if missing:
            out.append(f"question {q.id!r}: tables that do not exist: {shown(dict.fromkeys(missing))}")
        if q.target not in q.group:
            out.append(f"question {q.id!r}: its target {q.target!r} is not in its group")
        twice = [t for t, n in Counter(q.group).items() if n > 1]
        if twice:
            out.append(f"question {q.id!r}: tables that are twice in its group: {shown(twice)}")
        if len(q.group) < 2:
            out.append(f"question {q.id!r}: its group has no sibling")
        if q.type not in QUESTION_TYPES:
            out.append(f"question {q.id!r}: its type {q.type!r} is none of {', '.join(QUESTION_TYPES)}")
    shared = [t for t, n in Counter(q.target for q in questions).items() if n > 1]
    if shared:
        out.append(f"tables that are the target of several questions: {shown(shared)}")
    return out


def _records(path: Path) -> list[dict[str, Any]]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(str(path), [f"cannot be read as JSON: {error}"]) from error
    if not isinstance(read, list) or not all(isinstance(entry, dict) for entry in read):
        raise DatasetError(str(path), ["expected a JSON list of objects"])
    return read


def _tables(directory: Path, records: list[dict[str, Any]], problems: list[str]) -> dict[str, Table]:
    out: dict[str, Table] = {}
    for entry in records:
        db_id, path, name = (entry.get(k) for k in ("db_id", "table_path", "table_name"))
        if not all(isinstance(v, str) and v for v in (db_id, path, name)):
            problems.append(f"a table without db_id, table_path or table_name: {entry}")
            continue
        csv = directory / TABLE_FOLDER / str(db_id) / f"{path}.csv"
        if not csv.is_file():
            problems.append(f"table {db_id}::{path} has no file {csv}")
            continue
        table = _table(str(db_id), str(path), str(name), entry.get("table_format"), csv, problems)
        if table is None:
            continue
        if table.key in out:
            problems.append(f"table {table.key!r} is listed twice")
        out[table.key] = table
    return out


def _table(db_id: str, path: str, name: str, fmt: Any, csv: Path | str, problems: list[str]) -> Table | None:
    try:
        return Table(db_id, path, name, TableFormat(fmt), csv)
    except ValueError:
        problems.append(f"table {db_id}::{path} has the unknown format {fmt!r}")
        return None


def _question(entry: dict[str, Any], tables: dict[str, Table], problems: list[str]) -> Question | None:
    name = entry.get("question_id")
    text, db_id, target, group = (
        entry.get(k) for k in ("question", "db_id", "highlighted_table", "all_tables_in_group")
    )
    if not isinstance(name, str) or not name:
        problems.append(f"a question without question_id: {str(entry)[:120]}")
        return None
    if not isinstance(text, str) or not text.strip():
        problems.append(f"question {name!r} has no text")
        return None
    if not (isinstance(target, list) and len(target) == 1 and isinstance(group, list)):
        problems.append(f"question {name!r}: expected one highlighted_table and a list all_tables_in_group")
        return None
    unknown = [t for t in (*target, *group) if f"{db_id}::{t}" not in tables]
    if unknown:
        problems.append(f"question {name!r}: tables that are not listed: {shown(dict.fromkeys(unknown))}")
        return None
    ids = tuple(corpus_id(f"{db_id}::{t}") for t in group)
    return Question(name, text, str(entry.get("question_type")), corpus_id(f"{db_id}::{target[0]}"), ids, {})


def _task_data(tables: list[Table], questions: list[Question], fmt: TableFormat | None) -> TaskData:
    # By id, that is by hash: the order of files would put a group's target before its siblings.
    ordered = sorted(tables, key=lambda table: table.id)
    problems: list[str] = []
    texts = []
    for table in ordered:
        try:
            texts.append(table.text(fmt))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise DatasetError("tables", problems)
    return TaskData(
        corpus=Dataset(pa.table({"id": [t.id for t in ordered], "title": [""] * len(ordered), "text": texts})),
        queries=Dataset(pa.table({"id": [q.id for q in questions], "text": [q.text for q in questions]})),
        relevant_docs={q.id: {q.target: 1} for q in questions},
        side={"questions": questions, "tables": {t.id: t for t in ordered}},
    )


def _compare_sizes(data: TaskData, questions: list[Question], part: str) -> None:
    """State in the notes when this is not the whole published set."""
    by_type = {t: n for t in QUESTION_TYPES if (n := sum(q.type == t for q in questions))}
    published = PUBLISHED_SIZES[part]
    if (by_type, len(data.corpus)) != published:
        data.notes.append(
            f"{len(questions)} questions {by_type} over {len(data.corpus)} tables, while {sum(published[0].values())} "
            f"{published[0]} over {published[1]} were published: this is a subset or another edition, and its scores "
            "are not comparable with the published ones"
        )
