"""What a task's result is made of: its options, its special scores, the table of scores per query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluators.files import unfinished
from evaluators.metrics.bootstrap import Bootstrapped

_PROVENANCE, _SETTINGS = "mteb_beyond", "mteb_beyond_settings"
# What follows a task's name in the files that a run saves: mteb's rankings, and our table of scores per query.
PREDICTIONS, PER_QUERY = "_predictions.json", "_per_query.parquet"
SAVED_BY = "`mteb-beyond run --prediction-folder DIR` saves rankings and scores per query"
# The column that names the subset, in tables of tasks that have several.
SUBSET = "subset"
# What follows a score's key in the keys of its 95 % interval.
BOUNDS = ("_low", "_high")


@dataclass(frozen=True)
class TaskOption:
    """An option of a task family that changes its numbers, for attribute and command line alike.

    Attributes:
        name: attribute of the task, and ``--name`` of ``mteb-beyond run``.
        choices: allowed values; the first one is the default.
        help: one sentence for ``--help``.
    """

    name: str
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class SpecialScores:
    """What a task adds to mteb's scores.

    Attributes:
        scores: flat (or, as upstream does, ``og`` / ``changed`` nested) values, Python floats on the 0-1 scale. Beside
            a score may stand its 95 % interval, as ``<key>_low`` and ``<key>_high``.
        per_query: query id -> the same values for that query alone, for the per-query table.
    """

    scores: dict[str, Any]
    per_query: dict[str, dict[str, Any]]


def bounds(key: str, drawn: Bootstrapped | None) -> dict[str, float]:
    """A score's interval as results have it, under ``<key>_low`` and ``<key>_high``; nothing where there is none."""
    return {} if drawn is None else {key + end: bound for end, bound in zip(BOUNDS, drawn.interval(), strict=True)}


def bounded(key: str) -> str:
    """The key of the score that a key is about: itself, or the one whose interval it belongs to."""
    return next((key.removesuffix(end) for end in BOUNDS if key.endswith(end)), key)


def output_folder(folder: Path) -> Path:
    """mteb's output folder, given itself or the folder ``results`` that mteb makes in it.

    Raises:
        FileNotFoundError: if it is neither.
    """
    if (folder / "results").is_dir():
        return folder
    if folder.is_dir() and folder.resolve().name == "results":
        return folder.parent
    raise FileNotFoundError(
        f"{folder} is no result folder of mteb: there is no folder 'results' in it; name the --output-folder of "
        "`mteb-beyond run` (`results` unless given)"
    )


def write_per_query(
    path: Path,
    rows: Mapping[str, Mapping[str, Any]],
    provenance: Mapping[str, Any],
    subset: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write one row per query: ``query-id`` and the special scores; a value that a query lacks is null.

    ``provenance`` goes into the file's schema metadata. With a ``subset`` of a task that has several, its rows name it
    in the column ``subset`` and join those of the other subsets, where these are of the same provenance. ``settings``:
    those of the model (mteb's ``experiment_kwargs``), for :func:`read_settings`; ``None`` if they are not known.
    """
    columns: list[str] = list(dict.fromkeys(name for row in rows.values() for name in row))
    values: dict[str, Sequence[Any]] = {} if subset is None else {SUBSET: [subset] * len(rows)}
    values["query-id"] = list(rows)
    for name in columns:
        values[name] = [row.get(name) for row in rows.values()]
    table = pa.table(values)
    if subset is not None and read_provenance(path) == dict(provenance):
        earlier = pq.read_table(path)
        others = earlier.filter(pc.not_equal(earlier[SUBSET], subset))
        table = pa.concat_tables([others, table], promote_options="permissive")
    write_table(path, table, provenance, settings)


def write_table(
    path: Path, table: pa.Table, provenance: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> None:
    """Write a table as a whole; ``provenance`` and ``settings`` go into the file's schema metadata."""
    about = {_PROVENANCE: json.dumps(provenance)}
    if settings is not None:
        about[_SETTINGS] = json.dumps(settings, default=str)
    with unfinished(path) as part:
        pq.write_table(table.replace_schema_metadata(about), part)


def read_provenance(path: Path) -> dict[str, Any]:
    """What :func:`write_table` was told, or an empty dictionary if there is no such file or it says nothing."""
    return _metadata(path, _PROVENANCE) or {}


def read_settings(path: Path) -> dict[str, Any] | None:
    """The model's settings that :func:`write_per_query` was told; ``None`` if there is no such file or it has none."""
    return _metadata(path, _SETTINGS)


def _metadata(path: Path, key: str) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    found = (pq.read_schema(path).metadata or {}).get(key.encode())
    return dict(json.loads(found)) if found else None
