"""mteb's result files below a folder, as one entry per model and variant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mteb.cache import ResultCache
from mteb.results import TaskResult

from evaluators.plugin.results import output_folder
from evaluators.plugin.task import RECORD_KEY, SPLIT
from ifir_tasks.report.published import SUBSET_TASK_NAMES

SAMPLE_TASK = "IFIRSample"
TASK_NAMES = (*SUBSET_TASK_NAMES.values(), SAMPLE_TASK)
_EXPERIMENTS = "experiments"
_SHOWN_OPTION = 40
# The option in which a hybrid states its parts, as `name@revision`.
_PARTS = "models"


@dataclass(frozen=True)
class ModelScores:
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

    @property
    def has_prompt(self) -> bool:
        """Whether a prompt was put before the queries (the paper's Table 9)."""
        return any(map(_is_prompt, self.options))

    @property
    def without_prompt(self) -> tuple[str, str, str]:
        """What this entry shares with its counterpart without prompt, as a key."""
        others = {name: value for name, value in self.options.items() if not _is_prompt(name)}
        return self.name, self.revision, json.dumps(others, sort_keys=True, default=str)

    def missing_subsets(self) -> list[str]:
        """The paper's names of the subsets without a result."""
        return [subset for subset, task in SUBSET_TASK_NAMES.items() if task not in self.scores]


@dataclass(frozen=True)
class Loaded:
    """All entries of a folder, and what a reader of their numbers should know."""

    models: tuple[ModelScores, ...]
    notes: tuple[str, ...] = field(default=())


def load_results(folder: str | Path) -> Loaded:
    """Read the IFIR results below mteb's output folder (which holds ``results``) or that ``results`` folder itself.

    Raises:
        FileNotFoundError: if there is no such folder, or no IFIR result in it.
        ValueError: if a result file or a model's record cannot be read; the message names it.
    """
    cache = ResultCache(output_folder(Path(folder).expanduser()))
    paths = cache.get_cache_paths(
        tasks=TASK_NAMES, require_model_meta=False, include_remote=False, load_experiments="match_name"
    )
    if not paths:
        raise FileNotFoundError(
            f"{folder} holds no result of {', '.join(TASK_NAMES)}; run for instance "
            f"`mteb-beyond run -m MODEL -b 'IFIR(InstFol)' --output-folder {folder}`"
        )
    notes: list[str] = []
    scores: dict[Path, dict[str, Mapping[str, Any]]] = {}
    revisions: dict[str, set[str]] = {}
    for path in sorted(paths):
        if path.parent.parent.name == _EXPERIMENTS and not (path.parent / "model_meta.json").is_file():
            notes.append(f"{path} is left out: without a model_meta.json beside it, its variant is unknown")
            continue
        result = _read(path)
        entry = result.scores[SPLIT][0]
        scores.setdefault(path.parent, {})[path.stem] = entry
        revisions.setdefault(path.stem, set()).add(str(result.dataset_revision))
        notes += [f"{path.stem}: {note}" for note in (entry.get(RECORD_KEY) or {}).get("notes", ())]
    for task, found in revisions.items():
        if len(found) > 1:
            notes.append(f"{task}: results come from different data revisions, {', '.join(sorted(found))}")
    models = [_model(place, found) for place, found in scores.items()]
    return Loaded(_labelled(models), tuple(dict.fromkeys(notes)))


def _read(path: Path) -> TaskResult:
    try:
        result = TaskResult.from_disk(path)
    except Exception as error:
        raise ValueError(f"{path} is no readable result of mteb ({type(error).__name__}: {error})") from error
    if len(result.scores.get(SPLIT, ())) != 1:
        raise ValueError(f"{path} must hold one set of scores of the split {SPLIT!r}; it has {sorted(result.scores)}")
    return result


def _model(place: Path, scores: Mapping[str, Mapping[str, Any]]) -> ModelScores:
    record = place / "model_meta.json"
    if not record.is_file():
        return ModelScores(place.parent.name.replace("__", "/"), place.name, {}, False, scores)
    try:
        meta = json.loads(record.read_text(encoding="utf-8"))
        options = dict(meta.get("experiment_kwargs") or {})
        is_hybrid = "hybrid" in (meta.get("model_type") or ()) or any("hybrid" in name for name in options)
        return ModelScores(str(meta["name"]), str(meta["revision"]), options, is_hybrid, scores)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{record} is no readable record of a model ({type(error).__name__}: {error})") from error


def _is_prompt(option: str) -> bool:
    return "prompt" in option.lower()


def _labelled(models: Iterable[ModelScores]) -> tuple[ModelScores, ...]:
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
