"""mteb's result files below a folder, as one entry per model and variant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mteb.cache import ResultCache
from mteb.results import TaskResult

from evaluators.plugin.results import output_folder
from evaluators.plugin.task import RECORD_KEY, SPLIT

_EXPERIMENTS = "experiments"
_SHOWN_OPTION = 40
# The option in which a hybrid states its parts, as `name@revision`.
_PARTS = "models"


@dataclass(frozen=True)
class StoredScores:
    """What one model, in one variant, scored.

    Attributes:
        name, revision: as mteb files the model.
        options: mteb's ``experiment_kwargs``, which tell variants of a model apart; empty for the plain model.
        is_hybrid: whether it joins several models' rankings.
        scores: task name -> the flat scores of its result file.
        label: how tables call it; unique within one report.
    """

    name: str
    revision: str
    options: Mapping[str, Any]
    is_hybrid: bool
    scores: Mapping[str, Mapping[str, Any]]
    label: str = ""

    @property
    def model_names(self) -> frozenset[str]:
        """The models behind it: its parts for a hybrid that states them, otherwise itself."""
        parts = str(self.options.get(_PARTS, "")) if self.is_hybrid else ""
        return frozenset({self.name, *(part.split("@")[0] for part in parts.split() if "@" in part)})


@dataclass(frozen=True)
class Stored:
    """All entries of a folder, and what a reader of their numbers should know."""

    models: tuple[StoredScores, ...]
    notes: tuple[str, ...] = field(default=())


def stored_scores(folder: str | Path, tasks: Sequence[str], hint: str) -> Stored:
    """Read the results of some tasks below mteb's output folder (which holds ``results``) or that ``results`` folder.

    Args:
        folder: where.
        tasks: names of tasks with one subset.
        hint: a command that makes such results, for the message where there is none.

    Raises:
        FileNotFoundError: if there is no such folder, or no result of these tasks in it.
        ValueError: if a result file or a model's record cannot be read; the message names it.
    """
    cache = ResultCache(output_folder(Path(folder).expanduser()))
    paths = cache.get_cache_paths(
        tasks=tasks, require_model_meta=False, include_remote=False, load_experiments="match_name"
    )
    if not paths:
        raise FileNotFoundError(f"{folder} holds no result of {', '.join(tasks)}; run for instance `{hint}`")
    notes: list[str] = []
    scores: dict[Path, dict[str, Mapping[str, Any]]] = {}
    revisions: dict[str, dict[str, list[Path]]] = {}
    for path in sorted(paths):
        if path.parent.parent.name == _EXPERIMENTS and not (path.parent / "model_meta.json").is_file():
            notes.append(f"{path} is left out: without a model_meta.json beside it, its variant is unknown")
            continue
        result = _read(path)
        entry = result.scores[SPLIT][0]
        scores.setdefault(path.parent, {})[path.stem] = entry
        revisions.setdefault(path.stem, {}).setdefault(str(result.dataset_revision), []).append(path.parent)
        notes += [f"{path.stem}: {note}" for note in (entry.get(RECORD_KEY) or {}).get("notes", ())]
    models = {place: _model(place, found) for place, found in scores.items()}
    for task, places_of in revisions.items():
        if len(places_of) > 1:
            names = {revision: dict.fromkeys(models[p].name for p in places) for revision, places in places_of.items()}
            told = "; ".join(f"{revision} ({', '.join(who)})" for revision, who in sorted(names.items()))
            notes.append(f"{task}: results come from different data revisions: {told}")
    return Stored(_labelled(models.values()), tuple(dict.fromkeys(notes)))


def _read(path: Path) -> TaskResult:
    try:
        result = TaskResult.from_disk(path)
    except Exception as error:
        raise ValueError(f"{path} is no readable result of mteb ({type(error).__name__}: {error})") from error
    if len(result.scores.get(SPLIT, ())) != 1:
        raise ValueError(f"{path} must hold one set of scores of the split {SPLIT!r}; it has {sorted(result.scores)}")
    return result


def _model(place: Path, scores: Mapping[str, Mapping[str, Any]]) -> StoredScores:
    record = place / "model_meta.json"
    if not record.is_file():
        return StoredScores(place.parent.name.replace("__", "/"), place.name, {}, False, scores)
    try:
        meta = json.loads(record.read_text(encoding="utf-8"))
        options = dict(meta.get("experiment_kwargs") or {})
        is_hybrid = "hybrid" in (meta.get("model_type") or ()) or any("hybrid" in name for name in options)
        return StoredScores(str(meta["name"]), str(meta["revision"]), options, is_hybrid, scores)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{record} is no readable record of a model ({type(error).__name__}: {error})") from error


def _labelled(models: Iterable[StoredScores]) -> tuple[StoredScores, ...]:
    """The entries with unique labels: name and options; revision and whole options where these are shared."""
    listed = list(models)
    choices = [
        [m.name + _options_text(m.options, _SHOWN_OPTION) for m in listed],
        [f"{m.name}{_options_text(m.options, _SHOWN_OPTION)} @{m.revision[:8]}" for m in listed],
        [f"{m.name}{_options_text(m.options)} @{m.revision}" for m in listed],
    ]
    counts = [Counter(labels) for labels in choices]
    labels = [
        next((label for label, count in zip(of_model, counts, strict=True) if count[label] == 1), of_model[-1])
        for of_model in zip(*choices, strict=True)
    ]
    return tuple(replace(model, label=label) for model, label in zip(listed, labels, strict=True))


def _options_text(options: Mapping[str, Any], longest: int | None = None) -> str:
    """Options in brackets; the parts of a hybrid, which its name says, only where all is to be told."""
    texts = [f"{k}={v}" for k, v in sorted(options.items()) if longest is None or k != _PARTS]
    if not texts:
        return ""
    return f" ({', '.join(t if longest is None or len(t) <= longest else t[:longest] + '…' for t in texts)})"
