"""Scores that stand in cards: what we measured on the samples, and what a paper prints."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from evaluators.files import write_text
from evaluators.plugin.task import RECORD_KEY
from hub_cards.cards.families import FAMILIES, Family
from hub_cards.cards.statistics import DATASETS
from hub_cards.results import read_results
from ifir_tasks.report.published import published_tables

FILE = DATASETS / "scores.json"


@cache
def kept() -> dict[str, Any]:
    """The measured scores in the project's file: task -> data revision, and score by model and key."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def measure(folder: Path) -> dict[str, Any]:
    """The scores of the samples from results of mteb, such as those of `mteb-beyond demo`.

    Raises:
        ValueError: if a sample has no result, or one of other data or another metric version than the package has.
    """
    results = read_results(folder)
    found: dict[str, Any] = {}
    for family in FAMILIES:
        if not family.measured:
            continue
        cls = family.tasks[0]
        task = cls.metadata
        own = [r for r in results if r.task.task_name == task.name and not r.variant]
        if not own:
            raise ValueError(f"{folder} holds no result of {task.name}; run `mteb-beyond demo`")
        for result in own:
            if result.task.dataset_revision != task.revision:
                raise ValueError(f"{result.path} is about {result.task.dataset_revision}, not {task.revision}")
            version = (result.scores().get(RECORD_KEY) or {}).get("metric_version")
            if version != cls.metric_version:
                raise ValueError(
                    f"{result.path} is of metric version {version}, now {cls.metric_version}; run the demo anew"
                )
        models = {r.name: {key: r.scores()[key] for key in family.measured} for r in own}
        found[task.name] = {"revision": task.revision, "models": models}
    if len({tuple(sorted(entry["models"])) for entry in found.values()}) > 1:
        raise ValueError(f"{folder}: the samples were not all scored by the same models; let the demo end")
    return found


def write(found: dict[str, Any]) -> None:
    """Write the project's file."""
    write_text(FILE, json.dumps(found, indent=1) + "\n")
    kept.cache_clear()


def measured(family: Family) -> str:
    """A Markdown table of the scores that we measured on a sample, times 100."""
    entry = kept()[family.tasks[0].metadata.name]
    labels = list(family.measured.values())
    lines = [f"| model | {' | '.join(labels)} |", "|---" * (len(labels) + 1) + "|"]
    for model, scores in entry["models"].items():
        cells = [f"{100 * scores[key]:.1f}" for key in family.measured]
        lines.append(f"| `{model}` | {' | '.join(cells)} |")
    table = "\n".join(lines)
    how = f"Measured with `mteb-beyond demo` on revision `{entry['revision']}`, times 100 (result files are not)."
    return f"{table}\n\n{how}"


def published_ifir() -> str:
    """The lowest and the highest values of the IFIR paper's Table 3 as a Markdown table."""
    table = published_tables()[3]
    lines = ["| subset | nDCG@20, 0-1 | InstFol@20, times 100 |", "|---|---|---|"]
    for subset in dict.fromkeys(column.subset for column in table.columns):
        cells = []
        for measure in ("ndcg", "instfol"):
            (column,) = (c for c in table.columns if (c.subset, c.measure) == (subset, measure))
            by_value = sorted((row.values[column], row.model) for row in table.rows)
            cells.append(" to ".join(f"{value:.2f} ({model})" for value, model in (by_value[0], by_value[-1])))
        lines.append(f"| {subset} | {' | '.join(cells)} |")
    return "\n".join(lines)
