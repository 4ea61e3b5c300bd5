"""What the tests of downstream question answering share: the command, and rankings of the sample."""

from __future__ import annotations

import json
import random
from argparse import ArgumentParser
from pathlib import Path

from tcr_tasks.diagnostics.base import Base
from tcr_tasks.qa.command import add_qa_command

META = {"model_name": "a", "revision": "1"}


def command(*arguments: str | Path) -> int:
    parser = ArgumentParser()
    add_qa_command(parser.add_subparsers())
    parsed = parser.parse_args(["qa", *map(str, arguments)])
    return int(parsed.func(parsed))


def ranking(base: Base, seed: int) -> dict[str, dict[str, float]]:
    """For each question three of its group in random order, two other tables, the rest of its group, and one more."""
    rng = random.Random(seed)
    run = {}
    for question in base.main.questions:
        group = rng.sample(question.group, len(question.group))
        others = rng.sample(sorted(base.main.tables.keys() - set(group)), 3)
        order = [*group[:3], *others[:2], *group[3:], others[2]]
        # Dealt out of order: what counts is the score.
        run[question.id] = {key: 1 / (order.index(key) + 1) for key in sorted(order)}
    return run


def write_predictions(folder: Path, run: dict[str, dict[str, float]], model: str, task: str = "TCRSample") -> Path:
    folder.mkdir(parents=True)
    path = folder / f"{task}_predictions.json"
    meta = {"model_name": model, "revision": "1"}
    path.write_text(json.dumps({"mteb_model_meta": meta, "default": {"test": run}}))
    return path


def rank(run: dict[str, float], key: str) -> int:
    """By sorting, independently of the code under test; there are no ties."""
    return sorted(run, key=lambda k: -run[k]).index(key) + 1
