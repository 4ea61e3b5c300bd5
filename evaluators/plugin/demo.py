"""`mteb-beyond demo`: models on the embedded samples, offline, ending in one table."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import mteb
from mteb.abstasks import AbsTask
from mteb.models import ModelMeta
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from evaluators.judge.judges import FacetJudge
from evaluators.plugin.judged import JudgedTask
from evaluators.plugin.models import BM25, bundled_minilm, resolve_model
from evaluators.plugin.registry import SAMPLE_BENCHMARK
from evaluators.plugin.running import evaluate


class Row(NamedTuple):
    """A row of the table: a score key, its label, and the key (or value) of its chance level."""

    key: str
    label: str
    chance: str | float | None = None


# Scores worth a row, by the benchmark family of a sample.
ROWS: dict[str, tuple[Row, ...]] = {
    "IFIRSample": (
        Row("ndcg_at_20", "nDCG@20, instructed", "chance_ndcg_at_20"),
        Row("level_1_ndcg_at_20", "  level 1", "level_1_chance_ndcg_at_20"),
        Row("level_2_ndcg_at_20", "  level 2", "level_2_chance_ndcg_at_20"),
        Row("level_3_ndcg_at_20", "  level 3", "level_3_chance_ndcg_at_20"),
        Row("level_0_ndcg_at_20", "  without levels", "level_0_chance_ndcg_at_20"),
        Row("query_only_ndcg_at_20", "nDCG@20, plain query", "chance_ndcg_at_20"),
        Row("paper_ndcg_at_20", "nDCG@20, authors' way"),
        Row("instfol_at_20", "InstFol@20, exact judge", 0.0),
        Row("level_1_instfol_at_20", "  level 1", 0.0),
        Row("level_2_instfol_at_20", "  level 2", 0.0),
        Row("level_3_instfol_at_20", "  level 3", 0.0),
        Row("level_0_instfol_at_20", "  without levels", 0.0),
    ),
    "FollowIRSample": (
        Row("p-MRR", "p-MRR (-100..100)", 0.0),
        Row("followir_score", "MAP@1000, original", "chance_followir_score"),
        Row("followir_score_changed_qrels", "  against changed qrels"),
    ),
    "TCRSample": (
        Row("recall_at_1", "R@1", "chance_recall_at_1"),
        Row("recall_at_5", "R@5", "chance_recall_at_5"),
        Row("gr_at_1", "GR@1"),
        Row("ds_at_1", "DS@1", "chance_ds_at_1"),
    ),
}
DOUBT_ROWS = (
    Row("tied_top_share", "tied first places"),
    Row("truncated_documents_share", "documents cut"),
    Row("truncated_tokens_share", "  tokens cut"),
)


def demo(output: str, models: Sequence[str] | None) -> int:
    """Score models on the samples into ``output`` and print the table. Returns the exit code."""
    console = Console()
    logging.getLogger("mteb").setLevel(logging.ERROR)
    os.environ.setdefault("DISABLE_TQDM", "1")  # read by bm25s, which has a bar for each step
    datasets.disable_progress_bars()  # one bar, over the tasks, is enough
    folder = Path(output)
    metas = [resolve_model(name) for name in models] if models else [mteb.get_model_meta(BM25), bundled_minilm()]
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for number, meta in enumerate(metas, 1):
        console.print(f"[bold]{meta.name}[/] ({number} of {len(metas)})")
        result = evaluate(
            meta,
            _tasks(),
            output_folder=folder,
            prediction_folder=folder / "predictions",
            encode_kwargs={"show_progress_bar": False, "batch_size": 32},
            co2_tracker=False,
        )
        for task in result.task_results:
            found.setdefault(task.task_name, {})[_column(meta, metas)] = task.scores["test"][0]
    console.print(_table(found, [_column(meta, metas) for meta in metas]))
    console.print(
        "Chance: a random order. Cut: by the model's length limit, beyond which it can find nothing. GR@1: the group "
        "of look-alike tables was found; DS@1 = R@1 / GR@1: the right one within it. A few points of difference mean "
        "nothing: IFIRSample has 104 instructed queries, FollowIRSample 24 pairs, TCRSample 30 queries. Over levels, "
        "nDCG is the mean of all instructed queries, InstFol the mean of the levels' means."
    )
    console.print(f"result files of mteb: {folder / 'results'}")
    console.print(f"predictions and per-query tables: {folder / 'predictions'}")
    return 0


def _tasks() -> list[AbsTask]:
    """The samples; one that takes a judge gets the exact one, which needs no language model."""
    tasks = list(mteb.get_benchmark(SAMPLE_BENCHMARK).tasks)
    for task in tasks:
        if isinstance(task, JudgedTask):
            task.judge = FacetJudge()
    return tasks


def _column(meta: ModelMeta, metas: Sequence[ModelMeta]) -> str:
    """The model's name without its organisation, with what tells it apart where another model has the same name."""
    short = _short(meta)
    if sum(_short(other) == short for other in metas) == 1:
        return short
    shared = sum(other.name == meta.name for other in metas) > 1
    return f"{meta.name} {str(meta.revision)[:8]}" if shared else str(meta.name)


def _short(meta: ModelMeta) -> str:
    return str(meta.name).rpartition("/")[2]


def _table(found: Mapping[str, Mapping[str, Mapping[str, Any]]], columns: Sequence[str]) -> Table:
    table = Table(title="Embedded samples, all values times 100", title_justify="left", box=SIMPLE_HEAD)
    for name in ("score", "chance", *columns):
        table.add_column(name, justify="left" if name == "score" else "right", overflow="fold")
    for task, by_model in found.items():
        any_scores = next(iter(by_model.values()))
        table.add_row(task, style="bold")
        for row in (*ROWS.get(task, ()), *DOUBT_ROWS):
            if all(row.key not in scores for scores in by_model.values()):
                continue
            chance = any_scores.get(row.chance) if isinstance(row.chance, str) else row.chance
            values = [_shown(by_model.get(column, {}).get(row.key)) for column in columns]
            table.add_row(f"  {row.label}", "" if chance is None else _shown(chance), *values)
        table.add_section()
    return table


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
