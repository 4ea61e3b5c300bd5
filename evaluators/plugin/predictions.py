"""Rankings that mteb saved, read and checked."""

from __future__ import annotations

import json
from collections.abc import Collection, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.metrics.ranking import score_array
from evaluators.plugin.checks import shown
from evaluators.plugin.results import PREDICTIONS, SAVED_BY


@dataclass(frozen=True)
class Predictions:
    """What a model ranked.

    Attributes:
        path: the file.
        model: mteb's record of the model that made them (``model_name``, ``revision``).
        run: query id -> {document id: score}.
    """

    path: Path
    model: dict[str, Any]
    run: dict[str, dict[str, float]]

    def check(self, task: str, queries: Set[str], documents: Collection[str]) -> None:
        """Check that every query is ranked, and every document that is ranked for any exists.

        Raises:
            ValueError: naming the file, and queries or documents.
        """
        if queries and not queries & self.run.keys():
            raise ValueError(
                f"{self.path} ranks the queries {shown(sorted(self.run))}, none of those of {task}, "
                f"{shown(sorted(queries))}: it holds predictions of another task or of other data"
            )
        lacking = sorted(q for q in queries if not self.run.get(q))
        if lacking:
            raise ValueError(f"{self.path}: no ranking for {len(lacking)} queries of {task}: {shown(lacking)}")
        strangers = sorted({d for scores in self.run.values() for d in scores} - set(documents))
        if strangers:
            raise ValueError(
                f"{self.path}: {len(strangers)} documents are not in the corpus of {task}: {shown(strangers)}; its "
                "predictions come from other data"
            )


def prediction_files(given: Path, task: str) -> list[Path]:
    """The files with rankings of a task that a path stands for.

    A file stands for itself. A folder with such a file directly in it is that of one run, and stands for this one
    alone: below it lie runs of the model's variants. Any other folder stands for all such files below it.

    Raises:
        FileNotFoundError: if there is none; the message says of which tasks predictions were found.
        ValueError: if the file's name is that of another task's.
    """
    name = f"{task}{PREDICTIONS}"
    if given.is_file():
        if given.name.endswith(PREDICTIONS) and given.name != name:
            other = given.name.removesuffix(PREDICTIONS)
            raise ValueError(f"{given} holds predictions of {other}; expected those of {task}, {name}")
        return [given]
    if (given / name).is_file():
        return [given / name]
    found = sorted(given.rglob(name))
    if not found:
        others = sorted({path.name.removesuffix(PREDICTIONS) for path in given.rglob(f"*{PREDICTIONS}")})
        there = f"found predictions of {shown(others)}" if others else "it holds no predictions at all"
        told = there if given.is_dir() else "there is no such file or folder"
        raise FileNotFoundError(f"no {name} at or below {given}: {told}; expected those of {task}: {SAVED_BY}")
    return found


def one_prediction_file(given: Path, task: str) -> Path:
    """The file with one run's rankings of a task, at a path or in or below a folder.

    Raises:
        FileNotFoundError, ValueError: as :func:`prediction_files`; or if the folder holds several runs.
    """
    found = prediction_files(given, task)
    if len(found) > 1:
        listed = "\n  ".join(str(path.parent) for path in found)
        raise ValueError(f"{given} holds several runs' predictions of {task}; name one of\n  {listed}")
    return found[0]


def read_predictions(path: Path, subset: str, split: str) -> Predictions:
    """Read a file ``<task>_predictions.json`` that mteb wrote.

    Raises:
        FileNotFoundError: if it does not exist.
        ValueError: naming file and fault, if it is not such a file, lacks the subset or split, or holds scores that
            are not finite numbers.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no saved predictions at {path}")
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    model = saved.get("mteb_model_meta") if isinstance(saved, dict) else None
    if not (isinstance(model, dict) and {"model_name", "revision"} <= model.keys()):
        raise ValueError(f"{path} does not say which model made it (mteb_model_meta); is it a prediction file of mteb?")
    splits = saved.get(subset)
    run = splits.get(split) if isinstance(splits, dict) else None
    if not isinstance(run, dict):
        raise ValueError(f"{path} holds no predictions for subset {subset!r} and split {split!r}")
    for query, scores in run.items():
        if not isinstance(scores, dict):
            raise ValueError(f"{path}: the predictions of query {query!r} are not scores by document")
        try:
            score_array(scores, query)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return Predictions(path, model, run)
