"""Reads the configuration of a training, and says what is wrong with it and what was probably meant."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from tcr_tasks.training.config import TrainingConfig

__all__ = ["READY", "read_config", "with_places"]

CONFIGS = Path(__file__).parent / "configs"
# The paper's settings, by the names under which the command takes them.
READY = {"table-30": "table_30.toml", "table-35": "table_35.toml", "table-38": "table_38.toml"}


def read_config(given: str | Path) -> TrainingConfig:
    """Read a configuration file, or a ready one by its name (:data:`READY`).

    Relative ``data`` and ``texts`` are looked for beside the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no TOML or JSON, or listing every key that is unknown, missing or out of range.
    """
    path = CONFIGS / READY[str(given)] if str(given) in READY else Path(given).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no configuration at {path}; name a TOML or JSON file, or one of {', '.join(READY)}")
    text = path.read_text(encoding="utf-8")
    try:
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is no {'JSON' if path.suffix == '.json' else 'TOML'}: {error}") from error
    try:
        config = TrainingConfig.model_validate(fields)
    except ValidationError as error:
        raise ValueError(f"{path}:\n  " + "\n  ".join(_told(error))) from error
    return _beside(config, path.parent)


def with_places(config: TrainingConfig, places: Mapping[str, Path]) -> TrainingConfig:
    """The configuration with the directories of some of its sources and evaluations, by their names.

    Raises:
        ValueError: if a name is none of theirs, or data still have no place.
    """
    known = [entry.name for entry in (*config.sources, *config.evaluations)]
    if strangers := sorted(set(places) - set(known)):
        raise ValueError(f"no source or evaluation is called {strangers[0]!r}{_nearest(strangers[0], known)}")

    def placed(entry: Any) -> Any:
        return entry.model_copy(update={"data": places[entry.name], "task": None}) if entry.name in places else entry

    out = config.model_copy(
        update={
            "sources": tuple(placed(s) for s in config.sources),
            "evaluations": tuple(placed(e) for e in config.evaluations),
        }
    )
    if homeless := [e.name for e in (*out.sources, *out.evaluations) if e.data is None and e.task is None]:
        told = " ".join(f"--data {name!r}=DIR" for name in dict.fromkeys(homeless))
        raise ValueError(f"it is not said where {', '.join(dict.fromkeys(homeless))} lies; say it with {told}")
    return out


def _beside(config: TrainingConfig, folder: Path) -> TrainingConfig:
    def placed(entry: Any) -> Any:
        return entry if entry.data is None else entry.model_copy(update={"data": folder / entry.data.expanduser()})

    changed: dict[str, Any] = {
        "sources": tuple(placed(s) for s in config.sources),
        "evaluations": tuple(placed(e) for e in config.evaluations),
    }
    if config.keep is not None:
        texts = tuple(folder / text.expanduser() for text in config.keep.texts)
        changed["keep"] = config.keep.model_copy(update={"texts": texts})
    return config.model_copy(update=changed)


def _told(error: ValidationError) -> list[str]:
    out = []
    for entry in error.errors():
        place = ".".join(map(str, entry["loc"]))
        if entry["type"] == "extra_forbidden":
            known = _fields_at(entry["loc"][:-1])
            out.append(f"unknown key {place!r}{_nearest(str(entry['loc'][-1]), known)}")
        elif entry["type"] == "missing":
            out.append(f"the key {place!r} is missing")
        else:
            text = entry["msg"].removeprefix("Value error, ")
            out.append(
                f"{place}: {text}, got {entry['input']!r}"
                if place and "ctx" in entry
                else f"{place or ''}: {text}".lstrip(": ")
            )
    return out


def _fields_at(place: tuple[int | str, ...]) -> list[str]:
    """The keys that a table of the file may have."""
    model: type[BaseModel] = TrainingConfig
    for step in place:
        if isinstance(step, str):
            model = next(m for m in _models_in(model.model_fields[step].annotation))
    return list(model.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _models_in(inner)]


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    return f"; did you mean {near[0]!r}?" if near else f"; one of {', '.join(sorted(known))}"
