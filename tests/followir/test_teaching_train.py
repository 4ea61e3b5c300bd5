"""Teaching tiny models to follow instructions: what is drawn, learnt, kept, resumed and saved."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from followir_topics import few_topics, short_topics
from killed_training import Killed, Watch
from transformers import TrainerCallback

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.models import MINILM, resolve_model
from evaluators.plugin.running import evaluate
from evaluators.training.config import Adaptation, Shares
from evaluators.training.doubts import Size
from evaluators.training.grids import choose, diverged
from evaluators.training.models import load_cross_encoder
from evaluators.training.running import CHECKPOINTS, RUNS, GridRun
from evaluators.training.selection import Epoch, History
from evaluators.training.splits import split
from followir_tasks.tasks import FollowIRSample
from followir_tasks.teaching.causal import CausalTeaching
from followir_tasks.teaching.config import (
    READY,
    Answering,
    Data,
    Evaluation,
    TeachingConfig,
    config_file,
    read_config,
)
from followir_tasks.teaching.instances import Instance, Instances, read_instances
from followir_tasks.teaching.kinds import teaching_of
from followir_tasks.teaching.lengths import n_cut
from followir_tasks.teaching.parts import _units as parts_units
from followir_tasks.teaching.parts import place_of, with_parts
from followir_tasks.teaching.report import SCORES, Row, cut_texts, doubts, write_report
from followir_tasks.teaching.train import METRIC, size_of, task_of, train

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
    assert config.train[0].data == tmp_path / "d" and config.evaluations[0].data == tmp_path / "e"
    for change, told in (
        (("select = true", ""), "no evaluation has `select = true`"),
        (('"encoder"', '"decoder"'), "kind"),
        (("base", "bass"), "unknown key 'bass'; did you mean 'base'"),
        (("select = true", "select = true\n[lora]\nr = 4"), r"\[lora\] and \[answering\] concern the kind 'causal'"),
        (("[1e-4]", "[1e-4, 0.0001]"), "a value occurs twice"),
        (("[1e-4]", "[inf]"), r"learning_rates.0: Input should be a finite number"),
        (("[1e-4]", "[1e-4]\nseeds = [-1]"), r"seeds.0: Input should be greater than or equal to 0, got -1"),
        (('"encoder"', '"encoder"\nmax_length = 7'), "max_length: Input should be greater than or equal to 8, got 7"),
    ):
        path.write_text(text.replace(*change))
        with pytest.raises(ValueError, match=told):
            read_config(path)


def test_the_example_shows_every_key() -> None:
    assert set(READY) == {"small"}
    text = config_file("small").read_text(encoding="utf-8")
    for model in (TeachingConfig, Data, Evaluation, Answering, Shares, Adaptation):
        for key in model.model_fields:
            assert re.search(rf"^(# )?\[?\[?{key}( =|\])", text, re.MULTILINE) or f" {key} = " in text, key
    # Whatever stands behind a comment is right, too; [lora] and [answering] concern causal models.
    whole = re.sub(r"^# (?=[\[a-z_]+( =|\]))", "", text, flags=re.MULTILINE)
    TeachingConfig.model_validate(tomllib.loads(whole) | {"kind": "causal"})


def test_parts_share_no_topic_and_are_sets_of_their_own(data: Path, tmp_path: Path) -> None:
    config = read_config("small")
    placed = with_parts(config, tmp_path)
    found = [place_of(entry) for entry in (*placed.train, *placed.evaluations)]
    topics = [{i.query for i in read_instances(place, 0).rows} for place in found]
    assert sum(map(len, topics)) == len(set.union(*topics)) == 24
    for evaluation in placed.evaluations:
        task_of(evaluation)  # checked
    with pytest.raises(ValueError, match="'train' is the part 'train', but there is no"):
        TeachingConfig.model_validate(config.model_dump() | {"split": None})
    with pytest.raises(ValueError, match="the part 'validation' is empty; its 48 questions lie in 24"):
        with_parts(config.model_copy(update={"split": Shares(test=0.2)}), tmp_path)
    lines = config.model_copy(update={"train": (Data(data=data / "prompt.txt", part="train"),)})
    with pytest.raises(ValueError, match="is no dataset directory, so it has no part"):
        with_parts(lines, tmp_path)


def test_queries_of_the_same_words_and_those_of_a_topic_are_in_one_part(tmp_path: Path) -> None:
    directory = short_topics(tmp_path / "set")
    table = pq.read_table(directory / "queries.parquet").to_pylist()
    texts = {"ferry-changed": "late ferries", "bee-og": "STORIES,  school", "bee-changed": "Stories: school?"}
    for row in table:
        row["text"] = texts.get(row["_id"], row["text"])
    pq.write_table(pa.Table.from_pylist(table), directory / "queries.parquet")
    units = parts_units(directory)
    for seed in range(8):
        found = split(units, Shares(test=0.5, seed=seed))
        assert found["bee-og"] == found["school-og"] and found["ferry-og"] == found["ferry-changed"]
    assert len(set(found.values())) == 2


def test_instances_that_a_model_cuts_are_counted(
    data: Path, causal_models: dict[str, Path], tiny_models: dict[str, Path]
) -> None:
    """Against lengths counted one by one, at a limit in the middle of them."""
    rows = read_instances(data / "topics", 0).rows
    bases = {
        "causal": causal_models["gpt2"],
        "encoder": tiny_models["SentenceTransformer"],
        "cross-encoder": tiny_models["CrossEncoder"],
    }
    for kind, base in bases.items():
        teaching = teaching_of(settings(data, base, kind=kind, max_length=512))
        model = teaching.scored(teaching.start())
        if kind == "causal":
            lengths = [len(model.reading.read(i.query, i.instruction, i.document).ids) for i in rows]
        else:
            count = model.tokenizer
            asked = [f"{i.query} {i.instruction}" for i in rows]
            pairs = list(zip(asked, rows, strict=True))
            lengths = (
                [max(len(count(q)["input_ids"]), len(count(i.document)["input_ids"])) for q, i in pairs]
                if kind == "encoder"
                else [len(count(q, i.document)["input_ids"]) for q, i in pairs]
            )
        limit = sorted(lengths)[len(lengths) // 2]
        if kind == "causal":
            model.reading.max_length = limit
        else:
            model.max_seq_length = limit
        assert 0 < n_cut(model, rows) == sum(length > limit for length in lengths) < len(rows)


def test_the_report_says_what_is_doubtful(data: Path, tmp_path: Path) -> None:
    found = read_instances(data / "short", 0)
    found.counts["n_cut_to_fit"] = 2
    base, better, worse = ({name: dict.fromkeys(SCORES, value) for name in ("a", "b")} for value in (0.1, 0.2, 0.05))
    run = GridRun(1e-4, 42)
    rows = [
        Row("— (base)", None, None, base),
        Row("best on a", run, tmp_path / "x", better),
        Row("best on b", run, tmp_path / "y", worse),
    ]
    sizes = {"a": Size(30, 2), "b": Size(29)}
    told = doubts(rows, sizes)
    assert told[0] == (
        "The model best on b (learning rate 0.0001, seed 42) is not better than the base in p-MRR on a (0.1000, and "
        "0.0500 after training), b (0.1000, and 0.0500 after training)"
    )
    assert told[1].startswith("Too small to conclude from: b has 29. With fewer than 30 topics")
    assert told[2:] == ["Topics that were trained on are in a (2 of 30): a score there is no held-out one"]
    cut = cut_texts({42: found})
    assert cut is not None and "2 of 32 training instances (seed 42)" in cut
    found.counts["n_cut_to_fit"] = 1
    assert cut_texts({42: found}) is None
    config = settings(data, data, kind="encoder")
    write_report(config, tmp_path, rows, sizes, {42: found}, told)
    report = (tmp_path / "report.md").read_text()
    assert f"as encoder, on {data / 'short'}:\n" in report and f"Scored on own: {data / 'short'}. All" in report
    assert "- The model best on b" in report and "| 42 " in report and "42.0" not in report and "1 cut to fit" in report
    assert (tmp_path / "scores.csv").read_text().splitlines()[3] == "best on a,0.0001,42,x,a,30,2,0.2,0.2,0.2"


def test_topics_that_were_trained_on_are_counted(data: Path, tmp_path: Path) -> None:
    short_topics(tmp_path / "other", ("ferry", "whale", "snow"))
    instances = {0: read_instances(data / "short", 0)}
    # Both sets have the same two instructions for every query: the query alone tells.
    other = task_of(Evaluation(name="e", data=tmp_path / "other"))
    assert size_of(other, instances) == Size(3, 1)
    assert size_of(other, {0: Instances([Instance("STORIES, snow", "", "d", True)])}) == Size(3, 1)
    assert size_of(other, {0: Instances([Instance("q", "only the SOUTH; not the north", "d", True)])}) == Size(3, 3)
    assert size_of(other, {0: Instances([Instance("q", "", "d", True)])}) == Size(3, 0)


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
    assert (table["n trained on"] == table["n"]).all()
    report = (tmp_path / "out" / "report.md").read_text()
    assert "96 instruction negatives" in report and "- Topics that were trained on are in own (4 of 4)" in report


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
    assert not list(best.glob("model*"))
    adapted = json.loads((best / "adapter" / "adapter_config.json").read_text())["target_modules"]
    assert len(adapted) > 1 and adapted == sorted(adapted)  # else the model had another revision with each run
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


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without a GPU")
def test_a_precision_that_the_machine_lacks_is_refused_before_anything_is_scored(
    data: Path, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    base = tiny_models["CrossEncoder"].parent / "bert"
    half = settings(data, base, precision="fp16", kind="cross-encoder", epochs=1, learning_rates=[1e-2])
    with pytest.raises(ValueError, match="precision = 'fp16' needs a GPU"):
        train(half, tmp_path / "half")
    assert not (tmp_path / "half").exists()
    train(half.model_copy(update={"precision": "bf16"}), tmp_path / "brain")
    # It was chosen by what it scores without the training's casting, as it is saved.
    history = History.read(tmp_path / "brain" / RUNS / GridRun(1e-2, 42).label / "history.json", METRIC)
    kept = pd.read_csv(tmp_path / "brain" / "scores.csv").iloc[1]
    assert {name: kept[name] for name in SCORES} == pytest.approx(history.epochs[1].scores["own"], abs=1e-9)


@pytest.mark.parametrize("kind", ["encoder", "cross-encoder"])
def test_a_killed_run_ends_in_the_weights_of_one_that_was_not(
    data: Path, tiny_models: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    base = tiny_models["SentenceTransformer"] if kind == "encoder" else tiny_models["CrossEncoder"].parent / "bert"
    config = settings(data, base, kind=kind, learning_rates=[1e-2], checkpoint_steps=2)
    whole, killed, resumed = Watch(), Watch(kill_at=3), Watch()
    train(config, tmp_path / "whole", [whole])
    with pytest.raises(Killed):
        train(config, tmp_path / "killed", [killed])
    train(config, tmp_path / "killed", [resumed])
    assert whole.weights and resumed.weights.keys() == whole.weights.keys()
    for name, tensor in whole.weights.items():
        assert torch.equal(resumed.weights[name], tensor), name


def test_a_training_that_diverges_says_so(data: Path, tiny_models: dict[str, Path], tmp_path: Path) -> None:
    config = settings(data, tiny_models["SentenceTransformer"], kind="encoder", learning_rates=[1e10], epochs=1)
    told = r"The run with learning rate 1e\+10, seed 42 diverged: after epoch 1 its weights are not finite, or beyond"
    with pytest.raises(ValueError, match=told):
        train(config, tmp_path / "out")
    # It does not stand in the way of others.
    train(config.model_copy(update={"learning_rates": (1e10, 1e-3)}), tmp_path / "out")
    assert re.search(told, (tmp_path / "out" / "report.md").read_text())
    assert pd.read_csv(tmp_path / "out" / "scores.csv")["learning rate"].tolist()[1:] == [1e-3]


def test_where_seeds_of_every_rate_diverged_the_others_are_compared(data: Path, tmp_path: Path) -> None:
    schedule = settings(data, data, kind="encoder", learning_rates=[1e-3, 1e-2, 1e-1], seeds=[1, 2])

    def finished(rate: float, seed: int, score: float | None) -> None:
        epochs = {} if score is None else {1: Epoch(1, 0.5, {"own": {METRIC: score}})}
        path = tmp_path / RUNS / GridRun(rate, seed).label / "history.json"
        History(path, METRIC, True, epochs, 1 if score is None else None).write()

    finished(1e-3, 1, 0.2), finished(1e-3, 2, None)
    finished(1e-2, 1, 0.3), finished(1e-2, 2, None)
    finished(1e-1, 1, 0.9)  # not yet with every seed
    assert [c.run for c in choose(schedule, "own", tmp_path, METRIC)] == [GridRun(1e-2, 1)]
    assert len(diverged(schedule, tmp_path, METRIC)) == 2
    finished(1e-3, 2, 0.1)
    assert [c.run for c in choose(schedule, "own", tmp_path, METRIC)] == [GridRun(1e-3, 1), GridRun(1e-3, 2)]


class KilledAtASave(TrainerCallback):
    """Stops a run when the state at the end of the first epoch is written."""

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 4:
            raise Killed


def test_a_run_that_was_killed_at_the_end_of_an_epoch_has_all_epochs(
    data: Path, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """No state may count an epoch as done that was not scored yet: it would never be."""
    base = tiny_models["SentenceTransformer"]
    config = settings(data, base, kind="encoder", learning_rates=[1e-2], checkpoint_steps=2)
    train(config, tmp_path / "whole")
    with pytest.raises(Killed):
        train(config, tmp_path / "killed", [KilledAtASave()])
    train(config, tmp_path / "killed")
    run = Path(RUNS) / GridRun(1e-2, 42).label
    whole, killed = (json.loads((tmp_path / name / run / "history.json").read_text()) for name in ("whole", "killed"))
    assert [epoch["number"] for epoch in whole["epochs"]] == [1, 2] and killed == whole
    (tmp_path / "killed" / run / CHECKPOINTS / "checkpoint-8").mkdir(parents=True)  # of a kill while they are removed
    train(config, tmp_path / "killed")
    assert sorted(p.name for p in (tmp_path / "killed" / run).iterdir()) == ["best", "history.json"]
    assert (tmp_path / "killed" / "scores.csv").read_text() == (tmp_path / "whole" / "scores.csv").read_text()


def test_a_cross_encoder_starts_from_the_bundled_model_by_either_name() -> None:
    names = (MINILM, MINILM.rpartition("/")[2])
    published, short = (load_cross_encoder(name, 32).model.bert.encoder.state_dict() for name in names)
    assert all(torch.equal(short[name], tensor) for name, tensor in published.items())


@pytest.mark.parametrize("kind", ["encoder", "cross-encoder"])
def test_the_loss_is_the_published_one(data: Path, tiny_models: dict[str, Path], tmp_path: Path, kind: str) -> None:
    """All instances in one batch, by the definitions: CoSENT (Su 2022) with the scale 20, and binary cross-entropy."""
    base = tiny_models["SentenceTransformer"] if kind == "encoder" else tiny_models["CrossEncoder"]
    teaching = teaching_of(settings(data, base, kind=kind))
    rows = read_instances(data / "short", 0).rows
    model = teaching.start()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    arguments = {
        "output_dir": str(tmp_path),
        "learning_rate": 1e-12,
        "num_train_epochs": 1,
        "per_device_train_batch_size": len(rows),
        "report_to": "none",
        "save_strategy": "no",
    }
    found = teaching.trainer(model, rows, arguments).train().training_loss
    asked, documents = [f"{i.query} {i.instruction}" for i in rows], [i.document for i in rows]
    relevant = torch.tensor([i.relevant for i in rows])
    if kind == "encoder":
        q, d = (
            torch.nn.functional.normalize(model.encode(t, convert_to_tensor=True), dim=1) for t in (asked, documents)
        )
        cosines = (q.cpu() * d.cpu()).sum(1)
        apart = 20 * (cosines[~relevant][:, None] - cosines[relevant][None, :])
        expected = torch.log1p(apart.exp().sum())
    else:
        pairs = list(zip(asked, documents, strict=True))
        p = torch.tensor(model.predict(pairs, activation_fn=torch.nn.Sigmoid()))
        expected = -torch.where(relevant, p, 1 - p).log().mean()
    assert found == pytest.approx(float(expected), rel=1e-4)
