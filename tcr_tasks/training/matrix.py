"""The cross-distribution matrix: every model on every evaluation set, in the shape of the paper's Tables 31 to 41."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluators.files import write_text
from evaluators.training.doubts import Size
from evaluators.training.running import GridRun
from evaluators.training.selection import Scores
from tcr_tasks.training.config import TrainingConfig
from tcr_tasks.training.evaluating import EvaluationSet

__all__ = ["MATRIX", "REPORT", "Row", "write_matrix"]

REPORT, MATRIX = "report.md", "matrix.csv"
_SCORES = {"recall_at_1": "R@1", "gr_at_1": "GR@1", "ds_at_1": "DS@1", "ndcg_at_10": "nDCG@10"}
_GEOMETRY = {
    "median_distance": "local distance (median)",
    "mean_margin": "margin (mean)",
    "positive_margin_share": "margin > 0",
    "global_mean_distance": "distance of all tables (mean)",
}
_NONE = "—"


@dataclass(frozen=True)
class Row:
    """A model and its scores.

    Attributes:
        training: what it is trained on; for a model that is not trained here, its name.
        selection: the set that its checkpoint was chosen on; empty for a model that is not trained here.
        run: learning rate and seed, where it is trained here.
        epoch: from 1, where it is trained here.
        place: where the model is, relative to the report.
        scores: evaluation set -> metric -> value.
    """

    training: str
    selection: str
    run: GridRun | None
    epoch: int | None
    place: str
    scores: Mapping[str, Scores]


def write_matrix(
    out: Path,
    rows: Sequence[Row],
    sets: Sequence[EvaluationSet],
    sizes: Mapping[str, Size],
    config: TrainingConfig,
    notes: Sequence[str],
    doubts: Sequence[str] = (),
) -> list[Path]:
    """Write the report (Markdown) and all its numbers (CSV, a line a number); returns both paths."""
    write_text(out / MATRIX, _csv(rows, sizes))
    text = [f"# {config.name}: {config.base} before and after training", ""]
    text += ["All values are on the scale 0..1, margins -2..2; ± is the standard deviation over seeds.", ""]
    text += _about(sets, sizes)
    text += [f"- {note}" for note in notes]
    if doubts:
        text += ["", "**Mind:**", "", *(f"- {doubt}." for doubt in doubts)]
    means = _over_seeds(rows)
    text += ["", "## Scores (Tables 31, 33 and 37 in shape)", "", *_scores_table(means, sets)]
    if geometry := _geometry_table(means, sets):
        text += ["", "## Geometry of target and siblings (Table 32 in shape)", "", *geometry]
    text += ["", "## Models", "", *_models_table(rows)]
    write_text(out / REPORT, "\n".join(text) + "\n")
    return [out / REPORT, out / MATRIX]


def _about(sets: Sequence[EvaluationSet], sizes: Mapping[str, Size]) -> list[str]:
    return [
        f"- {data.name}: {sizes[data.name].n} questions over {len(data.documents)} documents"
        + (f"; {sizes[data.name].n_trained_on} of them trained on" if sizes[data.name].n_trained_on else "")
        + ("" if data.groups is not None else "; no groups, so R@1 and nDCG@10 only")
        + ("; checkpoints are chosen on it (R@1)" if data.select else "")
        for data in sets
    ]


def _over_seeds(rows: Sequence[Row]) -> list[tuple[Row, int, dict[str, dict[str, list[float]]]]]:
    """Rows that differ in their seed alone as one, with the values of all."""
    bundles: dict[tuple[str, str, float | None, str], list[Row]] = {}
    for row in rows:
        place = row.place if row.run is None else ""
        bundles.setdefault((row.training, row.selection, row.run.rate if row.run else None, place), []).append(row)
    out = []
    for bundle in bundles.values():
        values: dict[str, dict[str, list[float]]] = {}
        for row in bundle:
            for name, scores in row.scores.items():
                for metric, value in scores.items():
                    values.setdefault(name, {}).setdefault(metric, []).append(value)
        out.append((bundle[0], len(bundle), values))
    return out


def _scores_table(
    means: Sequence[tuple[Row, int, dict[str, dict[str, list[float]]]]], sets: Sequence[EvaluationSet]
) -> list[str]:
    shown = [m for m in _SCORES if any(m in found for _, _, values in means for found in values.values())]
    header = ["Training", "Evaluation", "n", "Selection", "learning rate", *(_SCORES[m] for m in shown)]
    lines = [
        [
            row.training,
            data.name,
            str(len(data.queries)),
            _chosen_on(row),
            f"{row.run.rate:g}" if row.run else _NONE,
            *(_cell(values[data.name].get(metric)) for metric in shown),
        ]
        for data in sets
        for row, _, values in means
    ]
    return _table(header, lines)


def _geometry_table(
    means: Sequence[tuple[Row, int, dict[str, dict[str, list[float]]]]], sets: Sequence[EvaluationSet]
) -> list[str]:
    lines = [
        [
            row.training,
            data.name,
            _chosen_on(row),
            *(_cell(values[data.name].get(m)) for m in _GEOMETRY),
        ]
        for data in sets
        for row, _, values in means
        if any(metric in values[data.name] for metric in _GEOMETRY)
    ]
    return _table(["Training", "Evaluation", "Selection", *_GEOMETRY.values()], lines) if lines else []


def _models_table(rows: Sequence[Row]) -> list[str]:
    lines = [
        [row.training, row.selection, f"{row.run.rate:g}", str(row.run.seed), str(row.epoch), f"`{row.place}`"]
        for row in rows
        if row.run is not None
    ]
    if not lines:
        return ["None is trained yet."]
    return _table(["Training", "Selection", "learning rate", "seed", "epoch", "model"], lines)


def _chosen_on(row: Row) -> str:
    return f"{row.selection} R@1" if row.selection else _NONE


def _cell(values: Sequence[float] | None) -> str:
    if not values:
        return _NONE
    mean = f"{np.mean(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.3f}"


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    cells = [header, ["---"] * len(header), *lines]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells]


def _csv(rows: Sequence[Row], sizes: Mapping[str, Size]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    of_row = ("training", "selection", "learning_rate", "seed", "epoch", "model")
    writer.writerow([*of_row, "evaluation", "n", "n_trained_on", "metric", "value"])
    for row in rows:
        run = (row.run.rate, row.run.seed) if row.run else ("", "")
        for name, scores in row.scores.items():
            for metric, value in scores.items():
                place = (row.epoch or "", row.place, name, sizes[name].n, sizes[name].n_trained_on)
                writer.writerow([row.training, row.selection, *run, *place, metric, value])
    return buffer.getvalue()
