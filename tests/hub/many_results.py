"""Result files of many made-up models on many tasks, written as mteb writes them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mteb

from hub_cards.report.collect import Collected, Place
from hub_cards.report.published import AVERAGES

IFIR = AVERAGES[0].tasks
FOLLOWIR = AVERAGES[1].tasks
TCR = ("TCRBenchMixed", "TCRBenchCSV", "TCRBenchHTML", "TCRBenchMarkdown", "TCRBenchTSen", "TCRBenchTSenS")
OTHERS = ("TCRBenchDiagnosticMixed", "TCRBenchSafeMarkdown", "InstructIRRobustness", "SciFact")
TASKS = (*IFIR, *FOLLOWIR, *TCR, *OTHERS)
# What mteb itself writes into every file: some 150 numbers that no table shows.
PADDING = {f"nauc_ndcg_at_{k}_{kind}": 0.123456 for k in range(50) for kind in ("max", "std", "diff1")}

TCR_SCORES = {
    "recall_at_1": 0.2,
    "recall_at_1_low": 0.1,
    "recall_at_1_high": 0.3,
    "gr_at_1": 0.8,
    "ds_at_1": 0.25,
    "chance_recall_at_1": 0.01,
    "chance_ds_at_1": 0.221,
}


def write_result(
    folder: Path, model: str, task: str, scores: Mapping[str, Any], revision: str = "data-1", subset: str = "default"
) -> Path:
    """One result file."""
    place = folder / "results" / model.replace("/", "__") / "1"
    place.mkdir(parents=True, exist_ok=True)
    entry = {"main_score": 0.5, "hf_subset": subset, "languages": ["eng-Latn"], **scores}
    content = {
        "dataset_revision": revision,
        "task_name": task,
        "mteb_version": mteb.__version__,
        "scores": {"test": [entry]},
        "evaluation_time": 1.0,
        "kg_co2_emissions": None,
    }
    path = place / f"{task}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def with_bounds(scores: Mapping[str, float], room: float = 0.03) -> dict[str, float]:
    """Scores of 0..1 or p-MRR with an interval for each of them, whose bounds differ from score to score."""
    out = dict(scores)
    for number, (key, value) in enumerate(scores.items()):
        out |= {f"{key}_low": value - room - number / 1000, f"{key}_high": value + 2 * room + number / 1000}
    return out


def write_many(folder: Path, n_models: int, tasks: tuple[str, ...] = TASKS) -> None:
    """Results of that many models on each of the tasks."""
    draw = random.Random(0)
    for number in range(n_models):
        for task in tasks:
            write_result(folder, f"made-up/retriever-with-a-rather-long-name-{number:02}", task, _scores(task, draw))


def _scores(task: str, draw: random.Random) -> dict[str, Any]:
    doubts = {"tied_top_share": draw.random() / 10, "truncated_documents_share": draw.random()}
    if task in IFIR:
        out = _ifir(draw, "") | {"n_judged": 90, "n_unscored": 10, "n_queries": 50}
        for level in (1, 2, 3):
            out |= _ifir(draw, f"level_{level}_")
    elif task in FOLLOWIR:
        score = draw.uniform(0.05, 0.3)
        out = {"p-MRR": draw.uniform(-0.1, 0.15), "followir_score": score, "chance_followir_score": 0.05}
    elif task.startswith("TCR"):
        out = _tcr(draw)
    else:
        out = {"robustness_at_10": draw.random()}
    return PADDING | doubts | out


def _ifir(draw: random.Random, prefix: str) -> dict[str, float]:
    ndcg, instfol = draw.uniform(0.2, 0.7), draw.uniform(-0.05, 0.15)
    return {
        f"{prefix}ndcg_at_20": ndcg,
        f"{prefix}paper_ndcg_at_20": ndcg + 0.1,
        f"{prefix}chance_ndcg_at_20": 0.01,
        f"{prefix}instfol_at_20": instfol,
        f"{prefix}paper_instfol_at_20": instfol / 2,
    }


def _tcr(draw: random.Random) -> dict[str, float]:
    group = draw.uniform(0.2, 0.8)
    ds = draw.uniform(0.15, 0.4)
    out = {"gr_at_1": group, "recall_at_1": group * ds, "ds_at_1": ds, "chance_ds_at_1": 0.221, "n_queries": 209}
    out |= {"ds_at_1_low": ds - 0.05, "ds_at_1_high": ds + 0.05, "recall_at_1_low": group * (ds - 0.05)}
    out |= {"recall_at_1_high": group * (ds + 0.05), "chance_recall_at_1": 1 / 637}
    for kind in ("EM", "SF", "SA"):
        out |= {f"{kind}_ds_at_1": ds + draw.uniform(-0.1, 0.1), f"{kind}_chance_ds_at_1": 0.2}
    return out


def place_of(collected: Collected, task: str) -> Place:
    (found,) = [p for p in collected.places if p.task == task]
    return found
