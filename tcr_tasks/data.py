"""Reading TCR-Bench: the authors' repository, and the project's layout."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from evaluators.plugin.checks import DatasetError, retrieval_problems, shown
from evaluators.plugin.data import TaskData, read_layout
from evaluators.whole import whole
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import Table, corpus_id

QUESTION_TYPES = ("EM", "SF", "SA")
# The formats that the Mixed setting mixes.
MIXED_FORMATS = (TableFormat.CSV, TableFormat.HTML, TableFormat.MARKDOWN)
# Published sizes: questions by type, tables searched. (Diagnostic subset: the union of the groups of EM questions.)
PUBLISHED_SIZES: dict[str, tuple[dict[str, int], int]] = {
    "": ({"EM": 98, "SF": 55, "SA": 56}, 637),
    "_EM": ({"EM": 70}, 271),
}
TABLE_FOLDER = Path("tables") / "TCR_8k"


@dataclass(frozen=True)
class Question:
    """A question with its target and siblings, all as corpus ids.

    Attributes:
        id, text: as in the dataset.
        type: EM, SF or SA.
        target: the one table that answers.
        group: target and siblings.
        strategies: table -> how it was made, where that is known.
        answer: the values that the target gives, as the dataset has them; ``None`` where it has none.
    """

    id: str
    text: str
    type: str
    target: str
    group: tuple[str, ...]
    strategies: dict[str, str]
    answer: tuple[Any, ...] | None = None


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


def read_own(directory: Path, fmt: TableFormat | None, part: str = "", *, published: bool = False) -> TaskData:
    """Read a dataset in the project's layout, which keeps the tables in a config of their own.

    Args:
        directory: the dataset.
        fmt, part: as in :func:`read_authors`; the diagnostic subset is that of the exact-match questions.
        published: note it when the sizes are not those of the published set.

    Raises:
        DatasetError: listing everything that is wrong, with question or table.
    """
    layout = read_layout(directory, ("groups", "tables"))
    problems = retrieval_problems(layout.corpus, layout.queries, layout.relevant_docs, layout.top_ranked)
    tables: dict[str, Table] = {}
    for row in layout.side["tables"].to_pylist():
        db_id, path, name, own = (row[k] for k in ("db_id", "table_path", "table_name", "table_format"))
        notes = _json_list(row.get("prompt_notes"), f"table {db_id}::{path}: its prompt_notes", problems)
        _add_table(tables, db_id, path, name, own, row["csv"], problems, tuple(map(str, notes or ())))
    texts = dict(zip(layout.queries["id"], layout.queries["text"], strict=True))
    questions: dict[str, Question] = {}
    for row in layout.side["groups"].to_pylist():
        question = _own_question(row, texts, problems)
        if question is None:
            continue
        if question.id in questions:
            problems.append(f"groups: question {question.id!r} occurs more than once")
        questions[question.id] = question
        judged = layout.relevant_docs.get(question.id)
        if judged != {question.target: 1}:
            problems.append(f"question {question.id!r}: its qrels {judged} are not its target {question.target!r}")
    problems += [f"question {key!r} has no group" for key in texts if key not in questions]
    problems += group_problems(questions.values(), {table.id for table in tables.values()})
    printed = _printed(tables, problems)
    if len(printed) == len(tables):
        problems += _text_problems(layout.corpus, printed)
    if problems:
        raise DatasetError(str(directory), problems)
    kept = [q for q in questions.values() if not part or q.type == "EM"]
    if part:
        used = {table for q in kept for table in q.group}
        tables = {key: table for key, table in tables.items() if table.id in used}
    data = _task_data(list(tables.values()), kept, fmt, printed)
    if published:
        _compare_sizes(data, kept, part)
    return data


def _own_question(row: dict[str, Any], texts: dict[str, str], problems: list[str]) -> Question | None:
    key, group = row["query-id"], row["corpus-ids"]
    if key not in texts:
        problems.append(f"groups: unknown query {key!r}")
        return None
    if not group or not all(isinstance(member, str) for member in (*group, row["target"])):
        problems.append(
            f"question {key!r}: target and members of its group must be table ids, got {row['target']!r}, {group}"
        )
        return None
    strategies = row.get("strategies")
    if strategies is not None and not all(isinstance(label, str) for label in strategies):
        problems.append(f"question {key!r}: strategies must be strings, got {strategies}")
        strategies = None
    if strategies is not None and len(strategies) != len(group):
        problems.append(f"question {key!r}: {len(strategies)} strategies for {len(group)} tables")
    labels = dict(zip(group, strategies or (), strict=False))
    answer = _json_list(row.get("answer"), f"question {key!r}: its answer", problems)
    return Question(key, texts[key], str(row["question_type"]), row["target"], tuple(group), labels, answer)


def _json_list(text: Any, what: str, problems: list[str]) -> tuple[Any, ...] | None:
    """The values of a list in JSON; ``None`` without a text, or for one that is no such list, which is a problem."""
    if text is None:
        return None
    try:
        read = json.loads(text)
        is_whole = whole(read) == read
    except (TypeError, ValueError, RecursionError):
        read = None
    if not isinstance(read, list):
        problems.append(f"{what} must be a list in JSON, got {str(text)[:80]!r}")
        return None
    if not is_whole:
        problems.append(f"{what} holds half a character (a lone surrogate): {str(text)[:80]!r}")
        return None
    return tuple(read)


def _printed(tables: dict[str, Table], problems: list[str]) -> dict[str, str]:
    """What the tables print in their own formats, by id, without those that cannot be read, which is a problem."""
    printed: dict[str, str] = {}
    for table in tables.values():
        try:
            printed[table.id] = table.text()
        except ValueError as error:
            problems.append(str(error))
    return printed


def _text_problems(corpus: Dataset, printed: dict[str, str]) -> list[str]:
    """Where the stored corpus is not what its tables print in their own formats."""
    stored = {i: (title, text) for i, title, text in zip(corpus["id"], corpus["title"], corpus["text"], strict=True)}
    other = sorted(i for i in printed.keys() | stored.keys() if ("", printed.get(i)) != stored.get(i))
    return [f"corpus: texts that differ, title included, from what their tables print: {shown(other)}"] if other else []


def group_problems(questions: Collection[Question], documents: Collection[str]) -> list[str]:
    """Groups that are empty, list a table twice, lack their target or name a table that does not exist."""
    out: list[str] = []
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
            out.append(f"question {q.id!r}: its group has no sibling; give it one, or leave the question out")
        if q.type not in QUESTION_TYPES:
            out.append(f"question {q.id!r}: its type {q.type!r} is none of {', '.join(QUESTION_TYPES)}")
    shared = [t for t, n in Counter(q.target for q in questions).items() if n > 1]
    if shared:
        out.append(f"tables that are the target of several questions: {shown(shared)}")
    return out


def _records(path: Path) -> list[dict[str, Any]]:
    try:
        read = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise DatasetError(str(path), [f"cannot be read as JSON: {error}"]) from error
    if not isinstance(read, list) or not all(isinstance(entry, dict) for entry in read):
        raise DatasetError(str(path), ["expected a JSON list of objects"])
    halves = [
        f"entry {n} holds half a character (a lone surrogate)" for n, one in enumerate(read, 1) if whole(one) != one
    ]
    if halves:
        raise DatasetError(str(path), halves)
    return read


def _tables(directory: Path, records: list[dict[str, Any]], problems: list[str]) -> dict[str, Table]:
    out: dict[str, Table] = {}
    for entry in records:
        db_id, path, name, fmt = (entry.get(k) for k in ("db_id", "table_path", "table_name", "table_format"))
        csv = directory / TABLE_FOLDER / str(db_id) / f"{path}.csv"
        _add_table(out, db_id, path, name, fmt, csv, problems)
    return out


def _add_table(
    tables: dict[str, Table],
    db_id: Any,
    path: Any,
    name: Any,
    fmt: Any,
    csv: Any,
    problems: list[str],
    notes: tuple[str, ...] = (),
) -> None:
    """Add a table by its key, or say what is wrong with it."""
    key = f"{db_id}::{path}"
    label = f"table {key!r}"
    if not all(isinstance(v, str) and v for v in (db_id, path, name)):
        problems.append(f"a table without db_id, table_path or table_name (non-empty strings): {(db_id, path, name)}")
    elif "/" in db_id + path or "\\" in db_id + path:
        problems.append(f"{label}: a slash in db_id or table_path")
    elif fmt not in MIXED_FORMATS:
        problems.append(f"{label} has the unknown format {fmt!r}; one of {', '.join(MIXED_FORMATS)}")
    elif isinstance(csv, Path) and not csv.is_file():
        problems.append(f"{label} has no file {csv}")
    elif not isinstance(csv, str | Path):
        problems.append(f"{label} has no content (csv)")
    else:
        table = Table(db_id, path, name, TableFormat(fmt), csv, notes)
        if table.key in tables:
            problems.append(f"{label} is listed twice")
        tables[table.key] = table


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
    odd = [t for t in (*target, *group) if not isinstance(t, str)]
    if odd:
        problems.append(f"question {name!r}: table names must be strings: {shown(odd)}")
        return None
    unknown = [t for t in (*target, *group) if f"{db_id}::{t}" not in tables]
    if unknown:
        problems.append(f"question {name!r}: tables that are not listed: {shown(dict.fromkeys(unknown))}")
        return None
    ids = tuple(corpus_id(f"{db_id}::{t}") for t in group)
    found = entry.get("answer")
    answer = None if found is None else tuple(found) if isinstance(found, list) else (found,)
    kind = str(entry.get("question_type"))
    return Question(name, text, kind, corpus_id(f"{db_id}::{target[0]}"), ids, {}, answer)


def _task_data(
    tables: list[Table], questions: list[Question], fmt: TableFormat | None, printed: Mapping[str, str] | None = None
) -> TaskData:
    """The data of a task; ``printed``: what tables print in their own formats, by id, as far as it is known."""
    known = (printed or {}) if fmt is None else {}
    # By id, that is by hash: the order of files would put a group's target before its siblings.
    ordered = sorted(tables, key=lambda table: table.id)
    problems: list[str] = []
    texts = []
    for table in ordered:
        try:
            texts.append(known[table.id] if table.id in known else table.text(fmt))
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
            f"{published[0]} over {published[1]} were published: these are other data, and their scores are not "
            "comparable with the published ones"
        )
