"""Does a small model that is taught to follow instructions follow those of topics that it never saw?

Run it from the repository root, with the package and its extras `demo` and `train` installed:

    python benchmarks/followir_teaching.py OUT

MiniLM is trained with three seeds on short generated topics (`generated_topics.py`) of 16 subjects with five kinds of
constraints; the epoch is chosen on topics of eight other subjects. Scored are three sets that neither saw:

- new subjects: the same kinds of constraints;
- new constraints: new subjects, and three kinds of constraints that no instruction of the training names;
- the FollowIR sample: other topics, longer passages and instructions, other patterns.

Printed for each: p-MRR of the base and of the seeds, the means over seeds with a 95 % interval from resampling
subjects (all topics and seeds of one together), and what becomes of the score of the original queries. A killed run
goes on. On two cores it takes about 40 minutes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from generated_topics import FACTS, SUBJECTS, write_topics

from evaluators.metrics.bootstrap import LEVEL
from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.metrics.pmrr import ORIGINAL_SUFFIX
from evaluators.plugin.models import MINILM, resolve_model
from evaluators.plugin.running import evaluate
from evaluators.training.grids import choose
from followir_tasks.tasks import SAMPLE
from followir_tasks.teaching.config import Evaluation, TeachingConfig
from followir_tasks.teaching.kinds import teaching_of
from followir_tasks.teaching.train import METRIC, task_of, train

SEEDS = (1, 2, 3)
SCORE = "followir_score"
LEARNT, CHOOSING, NEW = SUBJECTS[:16], SUBJECTS[16:24], SUBJECTS[32:]
KINDS, NEW_KINDS = list(FACTS)[:5], list(FACTS)[5:]


def scored(model: Any, data: Path) -> tuple[dict[str, float], float]:
    """p-MRR of each topic that has a changed document, and the score of the original queries."""
    task = task_of(Evaluation(name="held-out", data=data))
    with tempfile.TemporaryDirectory() as folder:
        found = evaluate(
            model, task, output_folder=f"{folder}/out", prediction_folder=f"{folder}/runs", show_progress_bar=False
        )
        table = next(Path(folder, "runs").rglob(f"*{task.per_query_file('').name}"))
        rows = pq.read_table(table).to_pylist()
    score = found.task_results[0].scores["test"][0][SCORE]
    return {row["query-id"]: row[METRIC] for row in rows if row[METRIC] is not None}, float(score)


def subjects_of(data: Path) -> dict[str, str]:
    """Topic -> query, which topics of one subject share."""
    rows = pq.read_table(data / "queries.parquet").to_pylist()
    return {row["_id"].removesuffix(ORIGINAL_SUFFIX): row["text"] for row in rows}


def told(name: str, by_topic: Sequence[Mapping[str, float]], subjects: Mapping[str, str]) -> str:
    """Mean over runs and topics with its interval over subjects."""
    values = [found[topic] for found in by_topic for topic in found]
    clusters = [subjects[topic] for found in by_topic for topic in found]
    interval = bootstrap_clusters(values, clusters)
    assert interval is not None
    low, high = interval.interval()
    return f"  {name:14} {np.mean(values):+.4f} [{low:+.4f}, {high:+.4f}]"


def main(out: Path) -> None:
    """Train and score."""
    config = TeachingConfig.model_validate(
        {
            "name": "generated topics",
            "kind": "encoder",
            "base": MINILM,
            "learning_rates": [2e-4],
            "epochs": 8,
            "seeds": SEEDS,
            "batch_size": 32,
            "max_length": 128,
            "most_per_pair": 3,
            "train": [write_topics(out / "train", LEARNT, KINDS, 0)],
            "evaluations": [
                {"name": "choosing", "data": write_topics(out / "choosing", CHOOSING, KINDS, 5), "select": True},
            ],
        }
    )
    held_out = {
        "new subjects": write_topics(out / "new-subjects", NEW, KINDS, 1),
        "new constraints": write_topics(out / "new-constraints", NEW, NEW_KINDS, 2),
        "FollowIR sample": SAMPLE,
    }
    train(config, out / "models")
    teaching = teaching_of(config)
    chosen = list(choose(config, "choosing", out / "models", METRIC))
    print(f"p-MRR, {LEVEL:.0%} intervals; epochs: {', '.join(str(one.epoch) for one in chosen)}")
    for name, data in held_out.items():
        subjects = subjects_of(data)
        base, before = scored(teaching.scored(teaching.start()), data)
        results = [scored(resolve_model(str(one.folder)), data) for one in chosen]
        taught = [found for found, _ in results]
        seeds = ", ".join(f"{np.mean(list(found.values())):+.4f}" for found in taught)
        print(f"{name}: {len(base)} topics, {len({subjects[t] for t in base})} subjects; seeds: {seeds}")
        print(f"  {SCORE} {before:.4f}, taught {', '.join(f'{after:.4f}' for _, after in results)}")
        print(told("base", [base], subjects))
        print(told("taught", taught, subjects))
        print(told("taught - base", [{t: found[t] - base[t] for t in base} for found in taught], subjects), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
