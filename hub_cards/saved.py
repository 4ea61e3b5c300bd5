"""Predictions that mteb saved, found by folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evaluators.plugin.results import PER_QUERY, PREDICTIONS, SAVED_BY, read_provenance
from evaluators.plugin.running import prediction_folder_of
from hub_cards.results import Result


@dataclass(frozen=True)
class Saved:
    """A file ``<task>_predictions.json`` of mteb.

    Attributes:
        path: the file.
        task: name of the task.
    """

    path: Path
    task: str

    @property
    def per_query(self) -> Path:
        """The table of scores per query that our tasks write beside it."""
        return self.path.with_name(self.task + PER_QUERY)

    def provenance(self) -> dict[str, Any]:
        """What the table of scores per query says it was made from; empty without a table.

        Raises:
            ValueError: naming the table, if it cannot be read.
        """
        return self._of_table(read_provenance)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The table of scores per query: query or topic id -> its row.

        Raises:
            ValueError: naming the table, if it cannot be read.
        """
        return self._of_table(lambda path: {row["query-id"]: row for row in pq.read_table(path).to_pylist()})

    def _of_table(self, read: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        try:
            return read(self.per_query)
        except (OSError, ValueError, TypeError, KeyError) as error:
            told = f"{type(error).__name__}: {error}"
            raise ValueError(f"{self.per_query} is no readable table of scores per query ({told})") from error

    def content(self) -> dict[str, Any]:
        """The whole file: ``mteb_model_meta``, and subset -> split -> query -> {document: score}.

        Raises:
            ValueError: naming the file, if it is no prediction file.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} cannot be read as JSON: {error}") from error
        meta = content.get("mteb_model_meta") if isinstance(content, dict) else None
        if not (isinstance(meta, dict) and {"model_name", "revision"} <= meta.keys()):
            raise ValueError(f"{self.path} does not say which model made it (mteb_model_meta): no predictions of mteb")
        return dict(content)


def saved_below(folder: Path) -> list[Saved]:
    """All prediction files at or below a folder, sorted.

    Raises:
        FileNotFoundError: if there are none.
    """
    found = sorted(folder.rglob(f"*{PREDICTIONS}")) if folder.is_dir() else []
    if not found:
        raise FileNotFoundError(f"no <task>{PREDICTIONS} at or below {folder}; {SAVED_BY}")
    return [Saved(path, path.name.removesuffix(PREDICTIONS)) for path in found]


def saved_for(result: Result, bases: Iterable[Path]) -> Iterator[Saved]:
    """What may be the predictions behind a result: in the model's own folder below a base, or in the base itself.

    Several bases may hold predictions of the model for the task, on different data. A file in a base is given only if
    it says that the model made it; one in the model's own folder is for the caller to check by :func:`made_by`, since
    reading it takes long.

    Raises:
        ValueError: at the end, naming the file, if one in a base is no prediction file.
    """
    task = result.task.task_name
    broken: list[ValueError] = []
    for base in bases:
        own = [] if result.meta is None else [prediction_folder_of(base, result.meta)]
        for place in (*own, base):
            saved = Saved(place / f"{task}{PREDICTIONS}", task)
            try:
                fits = _is_file(saved.path) and (place != base or made_by(result, saved.content()["mteb_model_meta"]))
            except ValueError as error:
                broken.append(error)  # another base may hold a whole one
                continue
            if fits:
                yield saved
    if broken:
        raise broken[0]


def made_by(result: Result, made: Mapping[str, Any]) -> bool:
    """Whether a prediction file's ``mteb_model_meta`` names the model of a result."""
    revision = result.revision if result.meta is None else result.meta.revision
    return (made["model_name"], made["revision"]) == (result.model, revision)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a model's name may be longer than a file's name can be
        return False
