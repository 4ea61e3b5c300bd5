"""mteb's result files below a folder, one entry a file, with the variant of the model that made it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mteb.models import ModelMeta
from mteb.results import TaskResult
from pydantic import ValidationError

from evaluators.plugin.results import output_folder
from evaluators.plugin.task import SPLIT
from evaluators.plugin.variants import UNRECORDED, distinct_names, names_of_run, variant_from, variant_words

META_FILE = "model_meta.json"
EXPERIMENTS = "experiments"


@dataclass(frozen=True)
class Result:
    """One result file.

    Attributes:
        path: the file.
        model, revision: as the record of the model beside the file says, or else the folders' names.
        variant: settings that tell this run from one of the plain model (mteb's ``experiment_kwargs``, without the
            prefix that marks task options); empty for the plain model.
        task: what the file holds. Scores are 0..1 unless their metric says otherwise.
        meta: the record of the model beside the file; ``None`` if there is none.
        name: the model with its variant in words, with the revision where two of a folder would else share it.
    """

    path: Path
    model: str
    revision: str
    variant: Mapping[str, Any]
    task: TaskResult
    meta: ModelMeta | None
    name: str = ""

    @property
    def run(self) -> tuple[str, str, str]:
        """Model, revision and variant: what results of one run have in common, and no other result has."""
        return self.model, self.revision, variant_words(self.variant)

    def scores(self, subset: str = "default", split: str = SPLIT) -> dict[str, Any]:
        """The scores of one subset and split.

        Raises:
            ValueError: naming the file and what it holds, if that subset and split are not in it, or twice.
        """
        found = [s for s in self.task.scores.get(split, ()) if s["hf_subset"] == subset]
        if len(found) != 1:
            held = [f"{s}/{scores['hf_subset']}" for s, listed in self.task.scores.items() for scores in listed]
            raise ValueError(
                f"{self.path}: expected one set of scores of split {split!r} and subset {subset!r}, found "
                f"{len(found)}; it holds {', '.join(held) or 'none'}"
            )
        return dict(found[0])


def read_results(folder: Path) -> list[Result]:
    """Every result file below mteb's output folder, those of variants too, sorted by path.

    Results that were set aside (``*.json.stale-*``) are left out.

    Args:
        folder: mteb's output folder, or the folder ``results`` in it.

    Raises:
        FileNotFoundError: if it is no such folder, or holds no result.
        ValueError: naming the file, if a result or a model's record cannot be read.
    """
    paths = result_paths(output_folder(folder.expanduser()) / "results")
    if not paths:
        raise FileNotFoundError(
            f"{folder} holds no result (results/<model>/<revision>/<task>.json); run for instance "
            f"`mteb-beyond run -m MODEL -b 'Beyond(sample)' --output-folder {folder}`"
        )
    records = {place: read_meta(place) for place in {path.parent for path in paths}}
    return _named([_result(path, records[path.parent]) for path in paths])


def result_paths(results: Path) -> list[Path]:
    """Result files in mteb's layout below the folder ``results``, sorted."""
    found = [*results.glob("*/*/*.json"), *results.glob(f"*/*/{EXPERIMENTS}/*/*.json")]
    return sorted(path for path in found if path.name != META_FILE)


def read_meta(place: Path) -> ModelMeta | None:
    """The record of the model in a folder of results, or ``None`` if there is none.

    Raises:
        ValueError: naming the file, if it cannot be read.
    """
    path = place / META_FILE
    if not path.is_file():
        return None
    try:
        return ModelMeta.model_validate_json_resolved(path.read_bytes())
    except Exception as error:
        raise ValueError(f"{path} is no readable record of a model: {_reason(error)}") from error


def read_task_result(path: Path) -> TaskResult:
    """One result file.

    Raises:
        ValueError: naming the file, if it cannot be read.
    """
    try:
        if not isinstance(json.loads(path.read_bytes()), dict):
            raise ValueError("its JSON is no object")
        return TaskResult.from_disk(path)
    except Exception as error:
        raise ValueError(f"{path} is no readable result of mteb: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What is wrong, on one line."""
    if isinstance(error, ValidationError):
        faults = [(".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors()]
        return "; ".join(f"{place}: {text}" if place else text for place, text in faults)
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return " ".join((str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}").split())


def variant_of(place: Path, meta: ModelMeta | None) -> dict[str, Any]:
    """The settings of the run whose results lie in a folder; empty for the plain model."""
    if meta is not None:
        return variant_from(meta.experiment_kwargs)
    return {UNRECORDED: place.name} if place.parent.name == EXPERIMENTS else {}


def _result(path: Path, meta: ModelMeta | None) -> Result:
    place = path.parent
    revision_folder = place.parent.parent if place.parent.name == EXPERIMENTS else place
    model = revision_folder.parent.name.replace("__", "/") if meta is None or meta.name is None else meta.name
    if any("\ud800" <= letter <= "\udfff" for letter in model):
        raise ValueError(f"{place / META_FILE}: the model's name {model!r} holds half a character (a lone surrogate)")
    revision = revision_folder.name if meta is None or meta.revision is None else meta.revision
    return Result(path, model, revision, variant_of(place, meta), read_task_result(path), meta)


def _named(results: Iterable[Result]) -> list[Result]:
    """The results with names: two different runs never share one, two results of a run always do."""
    listed = list(results)
    names = distinct_names({r.run: names_of_run(r.model, r.revision, r.variant) for r in listed})
    return [replace(r, name=names[r.run]) for r in listed]
