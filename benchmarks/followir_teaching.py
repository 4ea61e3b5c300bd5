"""Does a small model that is taught to follow instructions follow those of topics that it never saw?

Run it from the repository root, with the package and its extras `demo` and `train` installed:

    python benchmarks/followir_teaching.py encoder OUT        (or: cross-encoder)

The generator of the FollowIR sample writes two sets: topics with five kinds of constraints (actor, negation,
outcome, scale, source) to train on, and, with another seed, those with the other two (place, time) to score. No
topic, no kind of constraint and no passage is in both; the sentence patterns and the families of subjects are by the
same author. MiniLM is trained with three seeds at one learning rate; the epoch is chosen on training topics. Printed:
p-MRR of the base and of each seed, and the mean over seeds with a 95 % interval by resampling the held-out topics
(seeds of a topic together). A killed run goes on. A cross-encoder's base has a head with random weights, so its own
p-MRR says nothing.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from transformers import set_seed

from evaluators.metrics.bootstrap import LEVEL
from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.plugin.dataset import Card, is_dataset_directory, write_dataset
from evaluators.plugin.models import MINILM, resolve_model
from evaluators.plugin.running import evaluate
from evaluators.training.grids import choose
from followir_tasks.sample_build import build
from followir_tasks.teaching.config import Evaluation, TeachingConfig
from followir_tasks.teaching.kinds import teaching_of
from followir_tasks.teaching.train import METRIC, task_of, train

HELD_OUT = ("place", "time")
SEEDS = (1, 2, 3)
RATES = {"encoder": 1e-4, "cross-encoder": 1e-4}
TOPIC_CONFIGS = ("qrel_diff", "topics")


def write_part(directory: Path, seed: int, held_out: bool, topics: int | None = None) -> Path:
    """Topics of the generator on one side of the split, with all their candidates."""
    if is_dataset_directory(directory):
        return directory
    rows: dict[str, list[dict[str, Any]]] = build(seed)
    kept = [row["query-id"] for row in rows["topics"] if (row["constraint"] in HELD_OUT) == held_out][:topics]
    for name in ("instruction", "instruction_forms", "qrels", "top_ranked"):
        rows[name] = [row for row in rows[name] if row["query-id"].rpartition("-")[0] in kept]
    rows["queries"] = [row for row in rows["queries"] if row["_id"].rpartition("-")[0] in kept]
    for name in TOPIC_CONFIGS:
        rows[name] = [row for row in rows[name] if row["query-id"] in kept]
    used = {document for row in rows["top_ranked"] for document in row["corpus-ids"]}
    rows["corpus"] = [row for row in rows["corpus"] if row["_id"] in used]
    write_dataset(directory, rows, Card("Topics of the FollowIR sample's generator", "For a measurement.", "mit"))
    return directory


def per_topic(model: Any, data: Path) -> dict[str, float]:
    """p-MRR of each topic that has a changed document."""
    task = task_of(Evaluation(name="held-out", data=data))
    with tempfile.TemporaryDirectory() as folder:
        evaluate(
            model, task, output_folder=f"{folder}/out", prediction_folder=f"{folder}/runs", show_progress_bar=False
        )
        table = next(Path(folder, "runs").rglob(f"*{task.per_query_file('').name}"))
        rows = pq.read_table(table).to_pylist()
    return {row["query-id"]: row[METRIC] for row in rows if row[METRIC] is not None}


def told(name: str, by_topic: list[dict[str, float]]) -> str:
    """Mean over runs and topics with its interval over topics."""
    values = [found[topic] for found in by_topic for topic in found]
    topics = [topic for found in by_topic for topic in found]
    interval = bootstrap_clusters(values, topics)
    assert interval is not None
    low, high = interval.interval()
    return f"{name}: p-MRR {np.mean(values):+.4f} [{low:+.4f}, {high:+.4f}] ({LEVEL:.0%}, {len(set(topics))} topics)"


def main(kind: str, out: Path) -> None:
    """Train and score."""
    learning, own = write_part(out / "train", 0, False), write_part(out / "own", 2, False, 2)
    held_out = write_part(out / "held-out", 1, True)
    config = TeachingConfig.model_validate(
        {
            "name": "generated topics",
            "kind": kind,
            "base": MINILM,
            "learning_rates": [RATES[kind]],
            "seeds": SEEDS,
            "epochs": 2,
            "batch_size": 16,
            "max_length": 160,
            "most_per_pair": 4,
            "train": [learning],
            "evaluations": [{"name": "own", "data": own, "select": True}, {"name": "held-out", "data": held_out}],
        }
    )
    train(config, out / "models")
    teaching = teaching_of(config)
    set_seed(SEEDS[0])
    base = per_topic(teaching.scored(teaching.start()), held_out)
    print(told("base", [base]))
    found = []
    for chosen in choose(config, "own", out / "models", METRIC):
        found.append(per_topic(resolve_model(str(chosen.folder)), held_out))
        print(f"seed {chosen.run.seed}, epoch {chosen.epoch}: p-MRR {np.mean(list(found[-1].values())):+.4f}")
    print(told("taught", found))
    print(told("taught - base", [{t: f[t] - base[t] for t in base} for f in found]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
