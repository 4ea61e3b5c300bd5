"""A dataset as training and scoring use it: questions, texts, and which texts answer which question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from datasets import Dataset

from evaluators.plugin.checks import DatasetError, retrieval_problems
from evaluators.plugin.data import TaskData, read_layout
from evaluators.plugin.dataset import config_files, fingerprint, is_dataset_directory, read_config
from evaluators.plugin.mteb_internals import document_texts
from evaluators.plugin.sources import fetch_git_archive
from tcr_tasks.data import authors_patterns, is_authors_layout
from tcr_tasks.diagnostics.base import Base, BaseQuestion, BaseTable, matching_rows
from tcr_tasks.diagnostics.reading import read_base
from tcr_tasks.loaded import find_tcr
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import corpus_id
from tcr_tasks.training.config import Data

__all__ = ["Collection", "Problem", "read_collection", "read_texts"]


@dataclass(frozen=True, eq=False)
class Problem:
    """A question of a collection, with ids of its documents.

    Attributes:
        id, text: as in the dataset.
        positives: what answers it, by its judgements.
        answering: what answers it, by its judgements or, where its query and the tables are known, by execution.
        group: target and siblings; ``None`` in data without groups.
        type: EM, SF or SA; empty in data without groups.
        units: what it must not share with a question of another part: databases and source tables, or documents.
    """

    id: str
    text: str
    positives: tuple[str, ...]
    answering: frozenset[str]
    group: tuple[str, ...] | None
    type: str
    units: frozenset[str]


@dataclass(frozen=True, eq=False)
class Collection:
    """A dataset.

    Attributes:
        directory: where it is.
        revision: a fingerprint of its content.
        problems: its questions.
        tables: table id -> table, where it is a TCR dataset.
        texts: document id -> text as stored; TCR tables each in its own format.
    """

    directory: Path
    revision: str
    problems: tuple[Problem, ...]
    tables: Mapping[str, BaseTable]
    texts: Mapping[str, str]

    def printed(self, fmt: TableFormat | None) -> Mapping[str, str]:
        """Document id -> text in a format; ``None``: as stored.

        Raises:
            ValueError: if a format is asked of data without tables.
        """
        if fmt is None:
            return self.texts
        if not self.tables:
            raise ValueError(f"{self.directory} holds texts, not tables, so they cannot be printed as {fmt}")
        return {key: table.table.text(fmt) for key, table in self.tables.items()}


def directory_of(data: Data) -> Path:
    """Where the data of a source or evaluation lie; a published task's are fetched.

    Raises:
        ValueError: if there is no such task.
    """
    if data.task is None:
        assert data.data is not None
        return data.data
    try:
        task = find_tcr(task_name=data.task)
    except ValueError as error:
        raise ValueError(f"{data.name}: {error}") from None
    source = task.source().fetched()
    return source.directory or fetch_git_archive(source.repository, source.revision)


def read_collection(directory: Path) -> Collection:
    """Read a TCR dataset in either layout, or another dataset in the project's.

    Raises:
        FileNotFoundError: if the directory does not exist.
        DatasetError: if it is no dataset, or listing everything that is wrong with it.
    """
    if not directory.is_dir():
        raise FileNotFoundError(f"no dataset at {directory}: the directory does not exist")
    own = is_dataset_directory(directory)
    if own and not config_files(directory, "groups"):
        return _plain(directory)
    if not own and not is_authors_layout(directory):
        raise DatasetError(
            str(directory),
            ["no dataset: expected corpus, queries and qrels as parquet, or data/TCR_Questions.json and tables/TCR_8k"],
        )
    base = read_base(directory)
    origins = _origins(directory) if own else {}
    revision = fingerprint(directory) if own else fingerprint(directory, authors_patterns())
    problems = tuple(_tcr_problem(q, base, origins) for q in base.main.questions)
    return Collection(directory, revision, problems, base.main.tables, base.main.texts(None))


def read_texts(directory: Path) -> list[str]:
    """The documents of a dataset in the project's layout, as text; nothing else of it is read.

    Raises:
        FileNotFoundError: if there are none.
    """
    corpus = read_config(directory, "corpus")
    if corpus is None:
        raise FileNotFoundError(f"no corpus in {directory}: expected corpus.parquet")
    named = corpus.rename_columns(["id" if name == "_id" else name for name in corpus.column_names])
    return list(document_texts(Dataset(named)))


def _plain(directory: Path) -> Collection:
    data: TaskData = read_layout(directory)
    if wrong := retrieval_problems(data.corpus, data.queries, data.relevant_docs, data.top_ranked):
        raise DatasetError(str(directory), wrong)
    texts = dict(zip(data.corpus["id"], document_texts(data.corpus), strict=True))
    problems = []
    for key, text in zip(data.queries["id"], data.queries["text"], strict=True):
        positives = tuple(d for d, grade in data.relevant_docs.get(key, {}).items() if grade > 0)
        problems.append(Problem(key, text, positives, frozenset(positives), None, "", frozenset(positives)))
    return Collection(directory, fingerprint(directory), tuple(problems), {}, texts)


def _tcr_problem(question: BaseQuestion, base: Base, origins: Mapping[str, str]) -> Problem:
    tables = base.main.tables
    query = question.structure.query if question.structure else None
    answering = {question.target}
    if query is not None:
        needed = set(query.columns)
        answering |= {
            key
            for key, table in tables.items()
            if table.canonical is not None
            and needed <= set(table.canonical.columns)
            and matching_rows(query, table.canonical)
        }
    units = {f"database {tables[question.target].table.db_id}"}
    units |= {f"source {origins[key]}" for key in question.group if origins.get(key)}
    return Problem(
        id=question.id,
        text=question.text,
        positives=(question.target,),
        answering=frozenset(answering),
        group=question.group,
        type=question.type,
        units=frozenset(units),
    )


def _origins(directory: Path) -> dict[str, str]:
    """Table id -> the source table that its rows come from, where the dataset keeps it."""
    out: dict[str, str] = {}
    for file in config_files(directory, "tables"):
        for row in pq.read_table(file).to_pylist():
            out[corpus_id(f"{row['db_id']}::{row['table_path']}")] = row.get("source") or ""
    return out
