"""Reads a file of settings as a checked object, and says what is wrong with it and what was probably meant."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

__all__ = ["checked", "nearest", "read_checked", "ready_file"]

T = TypeVar("T", bound=BaseModel)


def ready_file(given: str | Path, folder: Path, ready: Mapping[str, str]) -> Path:
    """A configuration's file itself, or that of a ready one.

    Args:
        given: a file, or the name of a ready one.
        folder: where the ready ones are.
        ready: their names -> files.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    path = folder / ready[str(given)] if str(given) in ready else Path(given).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no configuration at {path}; name a TOML or JSON file, or one of {', '.join(ready)}")
    return path


def read_checked(path: Path, model: type[T]) -> T:
    """Read a TOML or JSON file as a pydantic model.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no TOML or JSON, or listing every key that is unknown, missing or out of range.
    """
    text = path.read_text(encoding="utf-8-sig")
    try:
        fields: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is no {'JSON' if path.suffix == '.json' else 'TOML'}: {error}") from error
    return checked(fields, model, str(path))


def checked(fields: Any, model: type[T], source: str) -> T:
    """Fields as a pydantic model.

    Args:
        fields: as they were given.
        model: what they must be.
        source: where they were given.

    Raises:
        ValueError: listing every key that is unknown, missing or out of range.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise ValueError(f"{source}:\n  " + "\n  ".join(_told(error, model))) from error


def nearest(name: str, known: Sequence[str]) -> str:
    """The end of a sentence that says which of the known names was probably meant."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    return f"; did you mean {near[0]!r}?" if near else f"; one of {', '.join(sorted(known))}"


def _told(error: ValidationError, model: type[BaseModel]) -> list[str]:
    out = []
    for entry in error.errors():
        place = ".".join(map(str, entry["loc"]))
        if entry["type"] == "extra_forbidden":
            known = _fields_at(model, entry["loc"][:-1])
            out.append(f"unknown key {place!r}{nearest(str(entry['loc'][-1]), known)}")
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


def _fields_at(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """The keys that a table of the file may have."""
    for step in place:
        if isinstance(step, str):
            model = next(m for m in _models_in(model.model_fields[step].annotation))
    return list(model.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _models_in(inner)]
