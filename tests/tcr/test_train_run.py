"""Training with tiny models: what is learnt, kept, resumed, saved and reported, and that mteb scores what is saved."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from killed_training import Killed, Watch
from sentence_transformers import CrossEncoder, SentenceTransformer
from training_data import write_plain, write_small

from evaluators.plugin.models import register_local_model
from evaluators.plugin.running import evaluate
from evaluators.training.grids import choose
from evaluators.training.running import CHECKPOINTS, RUNS, GridRun, grid
from evaluators.training.selection import Epoch, History
from tcr_tasks.tasks import BENCHMARK_TASKS
from tcr_tasks.training.batches import roles
from tcr_tasks.training.config import TrainingConfig
from tcr_tasks.training.evaluating import METRIC, EmbeddingRanker, EvaluationSet, evaluation_set, score
from tcr_tasks.training.examples import make_examples
from tcr_tasks.training.identity import require_same_training
from tcr_tasks.training.running import run_one, training_of
from tcr_tasks.training.train import _collections, train

pytest.importorskip("accelerate")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_small(folder / "small")
    write_plain(folder / "plain")
    return folder


@pytest.fixture(scope="module")
def tiny(tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_models["SentenceTransformer"])


@pytest.fixture
def settings(data: Path, tiny: str) -> Any:
    def make(**fields: Any) -> TrainingConfig:
        small = {"data": data / "small"}
        given: dict[str, Any] = {
            "name": "small",
            "base": tiny,
            "learning_rates": [1e-2],
            "epochs": 3,
            "batch_size": 4,
            "query_length": 24,
            "passage_length": 96,
            "split": {"test": 0.2},
            "sources": [{"name": "s", "part": "train", **small}],
            "evaluations": [
                {"name": "in-domain", "part": "train", "select": True, **small},
                {"name": "held-out", "part": "test", **small},
            ],
            **fields,
        }
        return TrainingConfig.model_validate(given)

    return make


@pytest.fixture(scope="module")
def trained(data: Path, tiny: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingConfig, Path]:
    """Two learning rates, three evaluation sets, of which two choose checkpoints."""
    small = {"data": data / "small"}
    config = TrainingConfig.model_validate(
        {
            "name": "small",
            "base": tiny,
            "learning_rates": [1e-2, 1e-4],
            "epochs": 3,
            "batch_size": 4,
            "batches": "groups",
            "query_length": 24,
            "passage_length": 96,
            "split": {"test": 0.2},
            "sources": [
                {"name": "s", "part": "train", "prefix": "Find: ", **small},
                {"name": "p", "data": data / "plain", "prefix": "Find: "},
            ],
            "evaluations": [
                {"name": "in-domain", "part": "train", "prefix": "Find: ", "select": True, **small},
                {"name": "held out", "part": "test", "prefix": "Find: ", **small},
                {"name": "plain", "data": data / "plain", "select": True},
            ],
            "models": [{"name": "again", "path": tiny}],
        }
    )
    out = tmp_path_factory.mktemp("trained") / "out"
    train(config, out)
    return config, out


def history_of(out: Path, rate: float) -> History:
    return History.read(out / RUNS / GridRun(rate, 42).label / "history.json", METRIC)


def test_the_loss_falls_and_margins_rise(trained: tuple[TrainingConfig, Path]) -> None:
    _, out = trained
    epochs = [history_of(out, 1e-2).epochs[n] for n in (1, 2, 3)]
    losses = [epoch.loss for epoch in epochs]
    assert losses == sorted(losses, reverse=True)
    margins = [epoch.scores["in-domain"]["mean_margin"] for epoch in epochs]
    with (out / "matrix.csv").open() as file:
        rows = list(csv.DictReader(file))
    base = {
        r["metric"]: float(r["value"]) for r in rows if r["training"] == "— (base)" and r["evaluation"] == "in-domain"
    }
    assert max(margins) > base["mean_margin"]


def test_one_best_checkpoint_per_selection_set_and_rate(trained: tuple[TrainingConfig, Path]) -> None:
    config, out = trained
    assert [run.label for run in grid(config)] == ["lr-0.01-seed-42", "lr-0.0001-seed-42"]
    for run in grid(config):
        folder = out / RUNS / run.label
        assert sorted(f.name for f in folder.iterdir()) == ["best", "history.json"]  # no state of the optimiser is left
        assert sorted(f.name for f in (folder / "best").iterdir()) == ["in-domain", "plain"]
        for name in ("in-domain", "plain"):
            best = history_of(out, run.rate).best(name)
            assert best is not None
            card = (folder / "best" / name / "README.md").read_text()
            assert f"epoch {best.number} of 3" in card and f"the best epoch on {name}" in card


def test_the_rate_is_chosen_by_the_mean_over_seeds(settings: Any, tmp_path: Path) -> None:
    config = settings(learning_rates=[1e-3, 1e-2, 1e-1], seeds=[1, 2])
    # Best epochs: 0.5 and 0.3; 0.1 and 0.6, then 0.2; 0.9, and one seed is not finished.
    values = {
        (1e-3, 1): [0.5, 0.4],
        (1e-3, 2): [0.3, 0.3],
        (1e-2, 1): [0.1, 0.2],
        (1e-2, 2): [0.6, 0.7],
        (1e-1, 1): [0.9, 0.9],
    }
    for (rate, seed), scores in values.items():
        history = History(tmp_path / RUNS / GridRun(rate, seed).label / "history.json", METRIC, finished=True)
        history.epochs = {n: Epoch(n, 1.0, {"in-domain": {"recall_at_1": s}}) for n, s in enumerate(scores, 1)}
        history.write()
    chosen = choose(config, "in-domain", tmp_path, METRIC)
    # (0.2 + 0.7) / 2 = 0.45 is above (0.5 + 0.3) / 2 = 0.4.
    assert [(c.run.rate, c.run.seed, c.epoch) for c in chosen] == [(1e-2, 1, 2), (1e-2, 2, 2)]


def test_mteb_scores_the_saved_model_as_training_did(trained: tuple[TrainingConfig, Path], tmp_path: Path) -> None:
    config, out = trained
    folder = choose(config, "in-domain", out, METRIC)[0].folder
    meta = register_local_model(folder)
    assert meta.name == "local/small-lr-0.01-seed-42-best-on-in-domain"
    task = BENCHMARK_TASKS[0]()
    task.data_path = config.sources[0].data
    scores = evaluate(meta, task, output_folder=tmp_path, show_progress_bar=False)[0].scores["test"][0]
    # The prefix that all sources share is the model's own prompt.
    whole = config.evaluations[0].model_copy(update={"name": "whole", "part": "all"})
    whole = evaluation_set(whole, config, _collections(config)["in-domain"])
    found = score(EmbeddingRanker(SentenceTransformer(str(folder), device="cpu"), config), [whole])["whole"]
    for metric in ("recall_at_1", "gr_at_1", "ds_at_1"):
        assert scores[metric] == pytest.approx(found[metric])


def test_the_report_has_every_model_on_every_set(trained: tuple[TrainingConfig, Path]) -> None:
    _, out = trained
    report = (out / "report.md").read_text()
    assert "| Training | Evaluation | n | Selection | learning rate | R@1 | GR@1 | DS@1 | nDCG@10 |" in report
    scores, geometry = report.split("## Models")[0].split("## Geometry")
    for evaluation in ("in-domain", "held out", "plain"):
        for name, n in (("small", 2), ("— (base)", 1), ("again", 1)):
            assert scores.count(f"| {name} | {evaluation} | ") == n
            assert geometry.count(f"| {name} | {evaluation} | ") == (0 if evaluation == "plain" else n)
    assert "| Training | Evaluation | Selection | local distance (median) | margin (mean) | margin > 0 |" in geometry
    base, again = (
        [line.split("|")[6:] for line in scores.splitlines() if n in line] for n in ("| — (base)", "| again")
    )
    assert base == again  # the base under another name
    with (out / "matrix.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {r["selection"] for r in rows} == {"", "in-domain", "plain"}
    sizes = {r["evaluation"]: (int(r["n"]), int(r["n_trained_on"])) for r in rows}
    assert sizes["held out"][1] == 0 < sizes["held out"][0]
    assert all(n == known for name, (n, known) in sizes.items() if name != "held out")
    plain = {r["metric"] for r in rows if r["evaluation"] == "plain"}
    assert plain == {"recall_at_1", "ndcg_at_10"}


def test_a_second_call_trains_nothing_and_another_training_is_refused(
    trained: tuple[TrainingConfig, Path], tmp_path: Path
) -> None:
    config, out = trained
    copied = tmp_path / "out"
    shutil.copytree(out, copied)
    before = {f: f.stat().st_mtime_ns for f in copied.rglob("model.safetensors")}
    (copied / "report.md").unlink()
    train(config, copied)
    assert {f: f.stat().st_mtime_ns for f in copied.rglob("model.safetensors")} == before
    assert (copied / "report.md").read_text() == (out / "report.md").read_text()
    with pytest.raises(ValueError, match=r"another configuration \(differing: temperature\)"):
        train(config.model_copy(update={"temperature": 0.2}), copied)
    selecting = next(e for e in config.evaluations if e.select)
    for change in ({"prefix": "another "}, {"select": False}):
        others = [e.model_copy(update=change) if e is selecting else e for e in config.evaluations]
        with pytest.raises(ValueError, match=r"another configuration \(differing: selection\)"):
            train(config.model_copy(update={"evaluations": others}), copied)


@pytest.mark.parametrize(
    ("lora", "keeps"),
    [(None, False), ({"r": 4, "alpha": 8, "dropout": 0.05}, False), (None, True)],
    ids=["full", "lora", "keep"],
)
def test_a_killed_run_ends_in_the_weights_of_one_that_was_not(
    settings: Any, lora: Any, keeps: bool, data: Path, tmp_path: Path, tiny: str
) -> None:
    if lora:
        pytest.importorskip("peft")
    config = settings(lora=lora, keep={"texts": [data / "plain"], "per_step": 2} if keeps else None)
    collections = _collections(config)
    examples = make_examples(config, collections, 42)
    sets = [evaluation_set(config.evaluations[0], config, collections["in-domain"])]
    run = grid(config)[0]

    def go(name: str, watch: Watch) -> History:
        return run_one(training_of(config), config, run, examples, sets, tmp_path / name, [watch])

    whole, killed, resumed = Watch(), Watch(kill_at=3), Watch()
    expected = go("whole", whole)
    with pytest.raises(Killed):  # two steps an epoch: in the middle of the second
        go("killed", killed)
    assert [p.name for p in (tmp_path / "killed" / CHECKPOINTS).iterdir()] == ["checkpoint-2"]
    # What a kill while saving leaves.
    (tmp_path / "killed" / CHECKPOINTS / "checkpoint-4").mkdir()
    found = go("killed", resumed)
    assert found.finished and found.epochs == expected.epochs
    assert resumed.weights.keys() == whole.weights.keys()
    for name, tensor in whole.weights.items():
        assert torch.equal(resumed.weights[name], tensor), name
    saved = tmp_path / "killed" / "best" / "in-domain"
    assert not list(saved.glob("adapter*"))
    start, end = (SentenceTransformer(p, device="cpu").state_dict() for p in (tiny, str(saved)))
    changed = {name for name in start if not torch.equal(start[name], end[name])}
    if lora:  # adapters on query and value, merged; everything else is the base's
        assert changed and all(".query." in name or ".value." in name for name in changed)
    else:
        assert any("embeddings" in name for name in changed)


def test_merged_adapters_give_the_embeddings_of_the_model_that_was_trained(settings: Any, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    config = settings(lora={})
    training = training_of(config)
    torch.manual_seed(0)
    model = training.start()
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == ("lora_" in name)
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    training.save(model, tmp_path / "saved")
    texts = ["one text", "another text"]
    kept = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(texts)
    model.eval()
    np.testing.assert_allclose(model.encode(texts), kept, atol=1e-5)
    assert not np.allclose(training.load(config.base).encode(texts), kept, atol=1e-3)


def test_batches_carry_the_bases_vectors_where_similarities_are_held(settings: Any, data: Path, tiny: str) -> None:
    config = settings(keep={"weight": 1.0, "texts": [data / "plain"], "per_step": 2})
    examples = make_examples(config, _collections(config), 42)
    training = training_of(config)
    arguments = {"output_dir": str(data / "none"), "report_to": "none", "per_device_train_batch_size": 2}
    trainer = training.trainer(training.start(), examples, {**arguments, "num_train_epochs": 40}, 42)
    # Two questions on one group of four; in forty epochs they meet.
    numbers = next(b for b in trainer.batches_of_all_epochs() if len({examples.rows[n].group for n in b}) < len(b))
    batch = trainer.data_collator([{"example": n} for n in numbers])
    documents, matrix = roles([examples.rows[n] for n in numbers])
    drawn = batch["document_input_ids"].shape[0] - len(documents)
    assert drawn == 2 and torch.equal(batch["label"]["roles"], matrix)
    groups = batch["label"]["groups"].tolist()
    own = 2 + len(documents)
    assert len(set(groups[:own])) == 1 and len(set(groups)) == 3  # and two texts that are of no group
    base = SentenceTransformer(tiny, device="cpu")
    base.max_seq_length = config.passage_length
    expected = base.encode([*documents, *trainer.data_collator.kept_texts], normalize_embeddings=True)
    found = batch["label"]["teacher"].numpy()
    np.testing.assert_allclose(found[2:own], expected[: len(documents)], atol=1e-5)
    for row in found[own:]:
        assert np.abs(expected[len(documents) :] - row).max(axis=1).min() < 1e-5


def test_the_base_encodes_what_batches_hold_and_nothing_else(
    settings: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is looked up while training runs is the oracle; the second seed draws other negatives and kept texts."""
    write_plain(tmp_path / "many", 200)
    keep = {"weight": 1.0, "texts": [tmp_path / "many"], "per_step": 1}
    config = settings(keep=keep, epochs=2, max_negatives=1)
    training = training_of(config)
    encoded: list[str] = []
    vectors = EmbeddingRanker.vectors

    def noted(ranker: EmbeddingRanker, texts: Sequence[str], length: int) -> Any:
        encoded.extend(texts)
        return vectors(ranker, texts, length)

    monkeypatch.setattr(EmbeddingRanker, "vectors", noted)
    drawn = []
    for seed in (1, 2):
        encoded.clear()
        examples = make_examples(config, _collections(config), seed)
        arguments = {
            "output_dir": str(tmp_path / "none"),
            "report_to": "none",
            "save_strategy": "no",
            "num_train_epochs": 2,
            "per_device_train_batch_size": 4,
            "seed": seed,
            "disable_tqdm": True,
        }
        trainer = training.trainer(training.start(), examples, arguments, seed)
        assert len(encoded) == len(set(encoded)) < 40
        known, asked = trainer.data_collator.teacher, set()

        def looked_up(texts: Sequence[str], known: Any = known, asked: set[str] = asked) -> torch.Tensor:
            asked.update(texts)
            return known(texts)

        trainer.data_collator.teacher = looked_up
        trainer.train()
        assert asked == set(encoded)
        drawn.append(asked & set(trainer.data_collator.kept_texts))
    # Four batches, one text each.
    assert all(1 <= len(texts) <= 4 for texts in drawn) and drawn[0] != drawn[1]


def test_other_weights_or_texts_under_the_same_name_are_refused(settings: Any, tiny: str, tmp_path: Path) -> None:
    base, texts, out = tmp_path / "base", tmp_path / "texts", tmp_path / "out"
    shutil.copytree(tiny, base)
    write_plain(texts, 4)
    config = settings(base=str(base), keep={"texts": [texts]})
    collections = _collections(config)
    # As long as nothing is trained, a folder is anybody's: a base may have been mistyped.
    require_same_training(config.model_copy(update={"base": "mistyped"}), collections, out)
    require_same_training(config, collections, out)
    (out / RUNS / "lr-0.01-seed-42" / CHECKPOINTS).mkdir(parents=True)
    (base / "README.md").write_text("Of no matter.")
    require_same_training(config, collections, out)
    kept = (out / "config.json").read_bytes()
    weights = base / "model.safetensors"
    before = weights.read_bytes()
    weights.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    with pytest.raises(ValueError, match=r"\(differing: the content of base\); name another folder"):
        train(config, out)
    weights.write_bytes(before)
    write_plain(texts, 5)
    with pytest.raises(ValueError, match=r"\(differing: the content of keep.texts\)"):
        require_same_training(config, collections, out)
    other = config.model_copy(update={"base": tiny})
    with pytest.raises(ValueError, match=r"\(differing: base, the content of keep.texts\)"):
        require_same_training(other, collections, out)
    assert (out / "config.json").read_bytes() == kept
    earlier = json.loads(kept)
    del earlier["contents"]
    (out / "config.json").write_text(json.dumps(earlier))
    with pytest.raises(ValueError, match=r"the content of base \(not recorded there\), the content of keep"):
        require_same_training(config, collections, out)


def test_a_cross_encoder_is_trained_on_the_same_data_and_reranks(settings: Any, tmp_path: Path, tiny: str) -> None:
    encoding = {"loss": "listwise", "depth": 5, "first_stage": tiny}
    config = settings(cross_encoder=encoding, epochs=2, base=str(Path(tiny).parent / "bert"))
    train(config, tmp_path)
    chosen = choose(config, "in-domain", tmp_path, METRIC)[0]
    history = History.read(tmp_path / RUNS / chosen.run.label / "history.json", METRIC)
    assert history.epochs[2].loss < history.epochs[1].loss
    assert CrossEncoder(str(chosen.folder), device="cpu").predict([("a", "b")]).shape == (1,)
    assert register_local_model(chosen.folder).model_type == ["cross-encoder"]
    whole = evaluation_set(config.evaluations[0], config, _collections(config)["in-domain"])
    training = training_of(config)
    run, embedded = training.ranker(training.load(str(chosen.folder))).rank(whole)
    first, _ = training.baseline().rank(whole)
    assert embedded is None
    for query, ranking in run.items():  # the first stage's five best, and no others
        assert set(ranking) == set(sorted(first[query], key=lambda d: (first[query][d], d))[-5:])
    assert "| — (first stage) | held-out |" in (tmp_path / "report.md").read_text()


def test_pairs_of_a_cross_encoder_hold_one_answer_each(settings: Any, data: Path, tiny: str) -> None:
    encoding = {"loss": "binary", "first_stage": tiny}
    config = settings(cross_encoder=encoding, in_batch=False, base=str(Path(tiny).parent / "bert"))
    examples = make_examples(config, _collections(config), 42)
    training = training_of(config)
    trainer = training.trainer(training.start(), examples, {"output_dir": str(data / "none"), "report_to": "none"}, 42)
    pairs = trainer.train_dataset.to_list()
    assert len(pairs) == sum(1 + len(e.negatives) for e in examples.rows)
    right = {(pair["query"], pair["document"]) for pair in pairs if pair["label"] == 1}
    assert right == {(e.query, e.positive) for e in examples.rows}


def test_listwise_loss_is_that_of_the_answer_alone(settings: Any, data: Path, tiny: str) -> None:
    encoding = {"loss": "listwise", "first_stage": tiny}
    config = settings(cross_encoder=encoding, in_batch=False, base=str(Path(tiny).parent / "bert"))
    examples = make_examples(config, _collections(config), 42)
    training = training_of(config)
    model = training.start()
    trainer = training.trainer(model, examples, {"output_dir": str(data / "none"), "report_to": "none"}, 42)
    row = max(trainer.train_dataset.to_list(), key=lambda r: len(r["documents"]))
    # ListNet's target is the softmax of the labels: all of it on the answer.
    assert torch.tensor(row["labels"]).softmax(0).tolist() == [1.0] + [0.0] * (len(row["documents"]) - 1)
    model.eval()
    with torch.no_grad():
        found = trainer.loss([[row["query"]], [row["documents"]]], [torch.tensor(row["labels"])])
    pairs = [(row["query"], text) for text in row["documents"]]
    scores = model.predict(pairs, activation_fn=torch.nn.Identity(), convert_to_tensor=True)
    # -log softmax of the answer's score, which is the first: 0 for a perfect ranking.
    assert len(pairs) > 1
    assert float(found) == pytest.approx(float(scores.logsumexp(0) - scores[0]), abs=1e-4)


def test_without_groups_recall_counts_any_answer() -> None:
    class Fixed:
        def rank(self, data: EvaluationSet) -> tuple[dict[str, dict[str, float]], None]:
            return {"a": {"x": 1.0, "y": 0.5}, "b": {"x": 1.0, "y": 0.5}}, None

    sets = EvaluationSet("e", False, {"x": "", "y": ""}, {"a": "", "b": ""}, {"a": ("x", "y"), "b": ("y",)}, None)
    found = score(Fixed(), [sets])["e"]
    # Query b finds its one document at rank 2: 1 / log2(3).
    assert found == pytest.approx({"recall_at_1": 0.5, "ndcg_at_10": (1 + 1 / np.log2(3)) / 2})


def test_the_configuration_is_kept_beside_the_models(trained: tuple[TrainingConfig, Path]) -> None:
    _, out = trained
    kept = json.loads((out / "config.json").read_text())
    assert kept["learning_rates"] == [1e-2, 1e-4] and set(kept["revisions"]) == {"s", "p"}
