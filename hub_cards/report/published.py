"""The papers' own values as points of reference: numbers only, each with its table, on the scale of result files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from followir_tasks.report.published import AVERAGE as FOLLOWIR_AVERAGE
from followir_tasks.report.published import published_table
from hub_cards.values import Score
from ifir_tasks.report.published import AVERAGE, SUBSET_TASK_NAMES, published_tables
from tcr_tasks.diagnostics.catalogue import FORMAT_NAMES
from tcr_tasks.tasks import SETTINGS

FILE = Path(__file__).parent / "published.json"
_IFIR_KEYS = {"ndcg": "paper_ndcg_at_20", "mrr": "paper_mrr_at_20", "instfol": "paper_instfol_at_20"}
_INSTFOL_PRINTED = 100
# Tasks on all questions -> how the paper calls their format.
FORMATS = {s.name: FORMAT_NAMES[s.format or "mixed"] for s in SETTINGS if not s.part}
_BY_TYPE = "TCRBenchMixed"
_DIAGNOSTIC = "TCRBenchDiagnosticMixed"
_FOLLOWIR_TASKS = ("FollowIRRobust04", "FollowIRNews21", "FollowIRCore17")


class Average(NamedTuple):
    """A mean over tasks that a paper reports, too."""

    name: str
    family: str
    tasks: tuple[str, ...]


AVERAGES = (
    Average("average of IFIR's seven subsets", "IFIR", tuple(SUBSET_TASK_NAMES.values())),
    Average("average of FollowIR's three subsets", "FollowIR", _FOLLOWIR_TASKS),
)


class Reference(NamedTuple):
    """What a paper printed about a model on a task.

    Attributes:
        model: as the paper calls it.
        source: the tables.
        scores: by the keys of our result files.
    """

    model: str
    source: str
    scores: Mapping[str, Score]


@cache
def published(task: str) -> tuple[Reference, ...]:
    """The published values for a task, or an average over tasks; empty where there are none."""
    if task in FORMATS:
        return tuple(_tcr("tcr_formats", FORMATS[task], task == _BY_TYPE))
    if task == _DIAGNOSTIC:
        return tuple(_tcr("tcr_diagnostic", "Diagnostic Mixed", False))
    if task in _FOLLOWIR_TASKS or task == AVERAGES[1].name:
        return tuple(_followir(task if task in _FOLLOWIR_TASKS else FOLLOWIR_AVERAGE))
    names = {average.name: AVERAGE for average in AVERAGES}
    subset = {name: key for key, name in SUBSET_TASK_NAMES.items()}.get(task) or names.get(task)
    return tuple(_ifir(subset)) if subset else ()


def _ifir(subset: str) -> Iterable[Reference]:
    found: dict[str, dict[str, Score]] = {}
    sources: dict[str, list[str]] = {}
    for number in (3, 8, 10, 11):
        for row in published_tables()[number].rows:
            if row.setting != "end-to-end":
                continue
            for column, value in row.values.items():
                if column.subset != subset:
                    continue
                level = "" if column.level is None else f"level_{column.level}_"
                key = level + _IFIR_KEYS[column.measure]
                scale = _INSTFOL_PRINTED if column.measure == "instfol" else 1
                # Table 3 comes first; Table 8 prints the same nDCG again.
                found.setdefault(row.model, {}).setdefault(key, _scaled(value, scale))
                sources.setdefault(row.model, []).append(str(number))
    for model, scores in found.items():
        tables = ", ".join(dict.fromkeys(sources[model]))
        yield Reference(model, f"IFIR, Tables {tables}", scores)


def _followir(task: str) -> Iterable[Reference]:
    table = published_table("2")
    for model, values in table.rows.items():
        cells = zip(table.columns, values, strict=True)
        scores = {column.score: _scaled(value, table.scale) for column, value in cells if column.place == task}
        yield Reference(model, table.source, scores)


def _tcr(name: str, text: str, by_type: bool) -> Iterable[Reference]:
    tables = _tables()
    table = tables[name]
    intervals = {row[0]: row[1:] for row in tables["tcr_intervals"]["rows"]}
    for model, of_format, *values in table["rows"]:
        if of_format != text:
            continue
        scores = {key: Score(value) for key, value in zip(table["columns"], values, strict=True)}
        source = table["source"]
        if by_type and model in intervals:
            scores["ds_at_1"] = Score(*intervals[model])
            source += ", interval Table 42"
        if by_type and model == tables["tcr_types"]["model"]:
            scores |= _by_type(tables["tcr_types"])
            source += ", types Table 11"
        yield Reference(model, source, scores)


def _by_type(table: Mapping[str, Any]) -> dict[str, Score]:
    return {
        f"{kind}_{key}": Score(value)
        for kind, *values in table["rows"]
        if kind != "All"
        for key, value in zip(table["columns"], values, strict=True)
    }


def _scaled(printed: float, scale: int) -> Score:
    """A printed value divided, without the last digits that a division adds."""
    return Score(round(printed / scale, 6))


@cache
def _tables() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))
