"""Teaching tiny models to follow instructions: what is drawn, learnt, kept, resumed and saved."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from followir_topics import few_topics, short_topics
from killed_training import Killed, Watch

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.models import resolve_model
from evaluators.plugin.running import evaluate
from evaluators.training.running import CHECKPOINTS, RUNS, GridRun
from evaluators.training.selection import History
from followir_tasks.tasks import FollowIRSample
from followir_tasks.teaching.causal import CausalTeaching
from followir_tasks.teaching.config import TeachingConfig, read_config
from followir_tasks.teaching.instances import read_instances
from followir_tasks.teaching.train import METRIC, train

pytest.importorskip("accelerate")

TOPICS = ("t101", "t105", "t110")
PROMPT = "---\n---\n{document}\nInstruction: {instruction}\nQuery: {query}\nAnswer:\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teaching")
    (folder / "prompt.txt").write_text(PROMPT)
    few_topics(folder / "topics", TOPICS, candidates=2)
    short_topics(folder / "short")
    return folder


def settings(data: Path, base: Path, **fields: Any) -> TeachingConfig:
    given = {
        "name": "tiny",
        "kind": "causal",
        "base": str(base),
        "learning_rates": [3e-3],
        "train": [data / "short"],
        "evaluations": [{"name": "own", "data": data / "short", "select": True}],
        "batch_size": 8,
        "epochs": 2,
        "max_length": 64,
        **fields,
    }
    if given["kind"] == "causal":
        given["answering"] = {"prompt": data / "prompt.txt"}
    return TeachingConfig.model_validate(given)


# --- instances ----------------------------------------------------------------------------------------------------


def test_pairs_are_balanced_and_instruction_negatives_come_first(data: Path) -> None:
    found = read_instances(data / "topics", 0)
    per_pair = Counter((row.query, row.instruction, row.relevant) for row in found.rows)
    # A topic has two documents each that stay relevant, that lose it, and that never were: the original query has four
    # relevant and two others to draw, the changed one two and, first of its four, the two that lost it.
    assert sorted(per_pair.values()) == [2] * 12
    assert found.counts == {
        "n_pairs": 6,
        "n_relevant": 12,
        "n_not_relevant": 12,
        "n_instruction_negatives": 6,
        "n_pairs_without_both": 0,
    }
    relevant = {(row.query, row.document) for row in read_instances(data / "topics", 0, 99).rows if row.relevant}
    both = [row for row in found.rows if not row.relevant and (row.query, row.document) in relevant]
    assert len(both) <= 6 and read_instances(data / "topics", 1).rows != found.rows
    assert read_instances(data / "topics", 0).rows == found.rows
    assert read_instances(data / "topics", 0, 1).counts["n_relevant"] == 6


def test_lines_hold_instructions_apart(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    rows = [
        ("q", "late ones", "a", 1),
        ("q", "late ones", "b", 0),
        ("q", "late ones", "x", 0),
        ("q", "early ones", "b", 1),
        ("q", "early ones", "a", 0),
        ("p", "none", "c", 1),
    ]
    keys = ("query", "instruction", "document", "label")
    path.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))
    found = read_instances(path, 0)
    kept = {(row.instruction, row.document, int(row.relevant)) for row in found.rows}
    # Of the two negatives of the first pair the one that only the instruction excludes.
    assert kept == {("late ones", "a", 1), ("late ones", "b", 0), ("early ones", "b", 1), ("early ones", "a", 0)}
    assert found.counts["n_pairs_without_both"] == 1 and found.counts["n_instruction_negatives"] == 2
    path.write_text('{"query": "q", "instruction": "i", "document": "d", "label": 2}\n')
    with pytest.raises(DatasetError, match="line 1: expected query"):
        read_instances(path, 0)
    path.write_text('{"query": "q", "instruction": "i", "document": "d", "label": 1}\n')
    with pytest.raises(ValueError, match="no query-instruction pair has both"):
        read_instances(path, 0)
    with pytest.raises(FileNotFoundError, match="neither a file"):
        read_instances(tmp_path / "nothing", 0)


def test_a_configuration_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    text = (
        'name = "t"\nkind = "encoder"\nbase = "b"\nlearning_rates = [1e-4]\ntrain = ["d"]\n'
        '[[evaluations]]\nname = "e"\ndata = "e"\nselect = true\n'
    )
    path.write_text(text)
    config = read_config(path)
    assert config.train == (tmp_path / "d",) and config.evaluations[0].data == tmp_path / "e"
    for change, told in (
        (("select = true", ""), "no evaluation has `select = true`"),
        (('"encoder"', '"decoder"'), "kind"),
        (("base", "bass"), "unknown key 'bass'; did you mean 'base'"),
        (("select = true", "select = true\n[lora]\nr = 4"), r"\[lora\] and \[answering\] concern the kind 'causal'"),
        (("[1e-4]", "[1e-4, 0.0001]"), "a value occurs twice"),
    ):
        path.write_text(text.replace(*change))
        with pytest.raises(ValueError, match=told):
            read_config(path)


# --- training -----------------------------------------------------------------------------------------------------


def scored_by_mteb(folder: Path, data: Path, out: Path) -> float:
    task: Any = FollowIRSample()
    task.data_path = data
    result = evaluate(resolve_model(str(folder)), task, output_folder=out, show_progress_bar=False)
    return float(result[0].scores["test"][0][METRIC])


def test_a_causal_model_learns_its_topics_and_mteb_scores_what_is_saved(
    data: Path, causal_models: dict[str, Path], tmp_path: Path
) -> None:
    several = [data / "short"] * 12  # each instance twelve times an epoch
    fields = {"train": several, "epochs": 4, "warmup_ratio": 0.1}
    config = settings(data, causal_models["llama"], **fields)
    train(config, tmp_path / "out")
    run = tmp_path / "out" / RUNS / GridRun(3e-3, 42).label
    history = History.read(run / "history.json", METRIC)
    assert history.epochs[4].loss < 0.5 * history.epochs[1].loss
    assert history.epochs[4].scores["own"][METRIC] > 0.2
    best = history.best("own")
    assert best is not None
    found = scored_by_mteb(run / "best" / "own", data / "short", tmp_path / "results")
    assert found == pytest.approx(best.scores["own"][METRIC], abs=1e-6)
    table = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert list(table["model"]) == ["— (base)", f"best on own, epoch {best.number}"]
    assert table[METRIC][1] == pytest.approx(found, abs=1e-6)
    assert "96 instruction negatives" in (tmp_path / "out" / "report.md").read_text()


def test_the_loss_is_the_cross_entropy_of_the_answers_however_batches_are_cut(
    data: Path, causal_models: dict[str, Path], tmp_path: Path
) -> None:
    """Against its definition over the whole of the data; the rate is too small to change anything."""
    found = []
    for size, accumulated in ((32, 1), (8, 4), (4, 8)):
        teaching = CausalTeaching(settings(data, causal_models["llama"]))
        instances = read_instances(data / "short", 0).rows
        model = teaching.start()
        arguments = {
            "output_dir": str(tmp_path / str(size)),
            "learning_rate": 1e-12,
            "num_train_epochs": 1,
            "per_device_train_batch_size": size,
            "gradient_accumulation_steps": accumulated,
            "report_to": "none",
            "save_strategy": "no",
        }
        trained = teaching.trainer(model, instances, arguments).train()
        found.append(trained.training_loss)
        scores = teaching.scored(model).score([(i.query, i.instruction, i.document) for i in instances])
    assert len(instances) == 32
    relevant = np.array([i.relevant for i in instances])
    expected = -np.log(np.where(relevant, scores, 1 - scores)).mean()
    assert found == pytest.approx([expected] * 3, rel=1e-4)


def test_a_killed_run_with_adapters_ends_in_the_weights_of_one_that_was_not(
    data: Path, causal_models: dict[str, Path], tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    config = settings(data, causal_models["gpt2"], lora={"r": 4, "alpha": 8, "dropout": 0.1}, checkpoint_steps=2)
    whole, killed, resumed = Watch(), Watch(kill_at=3), Watch()
    train(config, tmp_path / "whole", [whole])
    with pytest.raises(Killed):
        train(config, tmp_path / "killed", [killed])
    run = tmp_path / "killed" / RUNS / GridRun(3e-3, 42).label
    assert [p.name for p in (run / CHECKPOINTS).iterdir()] == ["checkpoint-2"]
    train(config, tmp_path / "killed", [resumed])
    assert resumed.weights.keys() == whole.weights.keys()
    for name, tensor in whole.weights.items():
        assert torch.equal(resumed.weights[name], tensor), name
    assert (tmp_path / "killed" / "report.md").read_text() == (tmp_path / "whole" / "report.md").read_text()
    best = run / "best" / "own"
    assert (best / "adapter" / "adapter_config.json").is_file() and not list(best.glob("model*"))
    saved = json.loads((best / "causal_reranker.json").read_text())
    assert saved["base"] == str(causal_models["gpt2"]) and saved["base_fingerprint"]
    table = pd.read_csv(tmp_path / "whole" / "scores.csv")
    assert scored_by_mteb(best, data / "short", tmp_path / "results") == pytest.approx(table[METRIC][1], abs=1e-6)
    with pytest.raises(ValueError, match=r"another configuration \(differing: epochs\)"):
        train(config.model_copy(update={"epochs": 3}), tmp_path / "whole")


@pytest.mark.parametrize("kind", ["encoder", "cross-encoder"])
def test_encoders_learn_from_instruction_negatives(
    data: Path, tiny_models: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    base = tiny_models["SentenceTransformer"] if kind == "encoder" else tiny_models["CrossEncoder"].parent / "bert"
    config = settings(data, base, kind=kind, learning_rates=[1e-2])
    train(config, tmp_path / "out")
    run = tmp_path / "out" / RUNS / GridRun(1e-2, 42).label
    history = History.read(run / "history.json", METRIC)
    assert history.finished and history.epochs[2].loss < history.epochs[1].loss
    best = history.best("own")
    assert best is not None
    meta = resolve_model(str(run / "best" / "own"))
    assert meta.model_type == [{"encoder": "dense"}.get(kind, kind)]
    found = scored_by_mteb(run / "best" / "own", data / "short", tmp_path / "results")
    assert found == pytest.approx(best.scores["own"][METRIC], abs=1e-6)
