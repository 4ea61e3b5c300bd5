"""The report as Markdown, and as a tidy CSV table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from evaluators.plugin.results import BOUNDS, bounded
from hub_cards.measures import COUNT, MEASURES, OTHER, OWN, SCALE, UNIT, scale_of
from hub_cards.report.best import BEST, best
from hub_cards.report.collect import Collected, Entry, family_of
from hub_cards.report.page import TITLE
from hub_cards.report.queries import Sheet
from hub_cards.report.tables import (
    Cell,
    Column,
    Row,
    Table,
    by_family,
    overview,
    place_table,
    published_notes,
    references,
)
from hub_cards.values import chance_of, number

COLUMNS = (
    "source",
    "model",
    "revision",
    "variant",
    "benchmark",
    "task",
    "data_revision",
    "split",
    "subset",
    "metric",
    "value",
    "low",
    "high",
    "chance",
    "scale",
)
_OWN = "result"
_P_VALUE = "p-value, 0..1"
# Abstention scores of mteb: more than half of a file's numbers, and of no use here.
_LEFT_OUT = "nauc_"


def markdown(collected: Collected, sheets: Sequence[Sheet], notes: Sequence[str], with_published: bool = True) -> str:
    """The overview and the table of each task as Markdown; single queries are in the HTML page only."""
    parts = [f"# {TITLE}", SCALE, f"**Bold** {BEST}", "## Overview", *markdown_table(overview(collected))]
    for family, places in by_family(collected):
        parts.append(f"## {'Other tasks' if family == OTHER else family}")
        for place in places:
            parts.append(f"### {_escaped(collected.label(place))}")
            parts += markdown_table(place_table(collected, place, with_published))
    told = [_escaped(note) for note in (*published_notes(collected, with_published), *notes)]
    if sheets:
        told.append("Single queries with their rankings are in the HTML page: `--out report.html`.")
    return "\n\n".join([*parts, "## Notes", _bullets(told)]) + "\n"


def csv_text(collected: Collected, with_published: bool = True) -> str:
    """One row per model, task, subset and metric, values as in the result files (0..1 unless ``scale`` says otherwise).

    Every number of a result file is a row of its own, but for bounds of intervals, which are columns, and mteb's
    abstention scores (``nauc_...``), which are left out. A number that is no number (NaN) has an empty ``value``.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for place in collected.places:
        for entry in collected.at(place).values():
            writer.writerows(_own_rows(entry))
        if with_published:
            writer.writerows(_published_rows(collected, place))
    return out.getvalue()


def _own_rows(entry: Entry) -> Iterable[dict[str, Any]]:
    place, result = entry.place, entry.result
    head = {
        "source": _OWN if result is not None else "mean of results",
        "model": entry.model if result is None else result.model,
        "revision": "" if result is None else result.revision,
        "variant": "" if result is None else ", ".join(f"{k}={v}" for k, v in sorted(result.variant.items())),
        **_place_columns(place),
    }
    for key, value in _numbers(entry.scores):
        bounds = {name.strip("_"): number(entry.scores.get(key + name)) for name in BOUNDS}
        yield (
            head
            | bounds
            | {
                "metric": key,
                "value": number(value),
                "chance": None if "chance_" in key or key.endswith("main_score") else chance_of(entry.scores, key),
                "scale": _scale(family_of(place.task), key),
            }
        )


def _published_rows(collected: Collected, place: Any) -> Iterable[dict[str, Any]]:
    for reference in references(collected, place):
        for key, score in reference.scores.items():
            yield {
                "source": f"published: {reference.source}",
                "model": reference.model,
                **_place_columns(place),
                "data_revision": "",
                "metric": key,
                "value": score.value,
                "low": score.low,
                "high": score.high,
                "scale": _scale(family_of(place.task), key),
            }


def _place_columns(place: Any) -> dict[str, str]:
    return {
        "benchmark": family_of(place.task),
        "task": place.task,
        "data_revision": place.revision,
        "split": place.split,
        "subset": place.subset,
    }


def _numbers(scores: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """The numbers of a result file; those of nested ``og`` and ``changed`` under joined keys."""
    for key, value in scores.items():
        if isinstance(value, Mapping) and not prefix and key in ("og", "changed"):
            yield from _numbers(value, f"{key}.")
        is_bound = bounded(key) != key and bounded(key) in scores
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not is_bound and not key.startswith(_LEFT_OUT):
            yield prefix + key, value


def _scale(family: str, key: str) -> str:
    known = {m.key: m for m in MEASURES[family]}
    if key in known:
        measure = known[key]
        return _P_VALUE if measure.kind == "p" else measure.scale
    plain = key.rsplit(".", 1)[-1]
    if plain.startswith("n_") or "_n_" in plain or plain == "p_null_n":
        return COUNT
    if plain == "main_score":
        return MEASURES[family][0].scale
    if "_p_" in plain:
        return _P_VALUE
    return scale_of(key) or (OWN if family == OTHER else UNIT)


# ---- Markdown --------------------------------------------------------------------------------------------------


def markdown_table(table: Table) -> list[str]:
    """The table, its notes, and what its columns are, as blocks of Markdown."""
    heads = ["model", *map(_head, table.columns)]
    marked = best(table)
    rows = [[_name(row), *(_cell(c, row is marked[at]) for at, c in enumerate(row.cells))] for row in table.rows]
    align = ("left", *("right" for _ in table.columns))
    text = tabulate(rows, heads, tablefmt="pipe", disable_numparse=True, colalign=align)
    words = _bullets(f"{_head(column)}: {_escaped(column.about)}" for column in table.columns)
    notes = [_bullets(map(_escaped, table.notes))] if table.notes else []
    return [text, *notes, "The columns:", words]


def _head(column: Column) -> str:
    return _escaped(f"{column.group}: {column.label}" if column.group else column.label)


def _name(row: Row) -> str:
    if row.kind == "published":
        return f"published: {_escaped(row.label)} ({_escaped(row.source)})"
    return _escaped(row.label)


def _cell(cell: Cell, is_best: bool) -> str:
    text = f"**{cell.text}**" if is_best else cell.text
    return f"{text} {cell.interval}" if cell.interval else text


def _escaped(text: str) -> str:
    for letter in "\\|*_`<>[~&#":
        text = text.replace(letter, f"\\{letter}")
    return " ".join(text.split())


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)
