"""Reads the configuration of a training, and puts its data in their places."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.training.reading import nearest, read_checked, ready_file
from tcr_tasks.training.config import TrainingConfig

__all__ = ["READY", "config_file", "read_config", "with_places"]

CONFIGS = Path(__file__).parent / "configs"
# An example of every key, and the paper's settings, by the names under which the command takes them.
READY = {
    "small": "small.toml",
    "table-30": "table_30.toml",
    "table-35": "table_35.toml",
    "table-38": "table_38.toml",
}


def read_config(given: str | Path) -> TrainingConfig:
    """Read a configuration file, or a ready one by its name (:data:`READY`).

    Relative ``data`` and ``texts`` are looked for beside the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no TOML or JSON, or listing every key that is unknown, missing or out of range.
    """
    path = config_file(given)
    return _beside(read_checked(path, TrainingConfig), path.parent)


def config_file(given: str | Path) -> Path:
    """The file itself, or that of a ready configuration.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    return ready_file(given, CONFIGS, READY)


def with_places(config: TrainingConfig, places: Mapping[str, Path]) -> TrainingConfig:
    """The configuration with the directories of some of its sources and evaluations, by their names.

    Raises:
        ValueError: if a name is none of theirs, or data still have no place.
    """
    known = [entry.name for entry in (*config.sources, *config.evaluations)]
    if strangers := sorted(set(places) - set(known)):
        raise ValueError(f"no source or evaluation is called {strangers[0]!r}{nearest(strangers[0], known)}")

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
