"""Model cards: read back by huggingface_hub and by mteb's own models, and compared with the result files."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import mteb
import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from made_files import AFTER, BEFORE, entries_of, model_card, scores_of, spoil
from mteb.results import TaskResult

from evaluators.cli import main
from evaluators.plugin.models import MINILM
from evaluators.plugin.mteb_internals import evaluation_config
from evaluators.plugin.registry import registered_tasks
from hub_cards.model_card_measures import eval_ids, measures

# Ends of an interval, and how far they lie from the score.
ENDS = (("low", -0.001), ("high", 0.002))
TASKS = ("FollowIRSample", "IFIRSample", "TCRSample")


def test_values_intervals_and_scales_are_those_of_the_result_files(made_results: Path, card: Path) -> None:
    assert model_card(made_results, "--into", str(card)) == 0
    for task in TASKS:
        on_disk = scores_of(made_results, task)
        found = entries_of(card, f"{task} (default)")
        wanted = [m.key for m in measures(mteb.get_task(task)) if m.key in on_disk]
        assert set(found) == set(wanted)
        for key, entry in found.items():
            assert entry.metric_value == on_disk[key]
            assert entry.metric_args["scale"] in entry.metric_name
            bounds = {end: on_disk[f"{key}_{end}"] for end in ("low", "high") if f"{key}_{end}" in on_disk}
            assert entry.metric_args.get("confidence_interval", {}) == ({"level": 0.95} | bounds if bounds else {})
            assert entry.dataset_type == mteb.get_task(task).metadata.dataset["path"]
            assert (entry.dataset_split, entry.dataset_revision) == ("test", mteb.get_task(task).metadata.revision)
    ds, on_disk = entries_of(card, "TCRSample (default)")["ds_at_1"], scores_of(made_results, "TCRSample")
    assert {"chance", "confidence_interval"} <= ds.metric_args.keys()
    assert ds.metric_args["chance"] == on_disk["chance_ds_at_1"]
    plain, on_disk = entries_of(card, "IFIRSample (default)"), scores_of(made_results, "IFIRSample")
    assert plain["query_only_ndcg_at_20"].metric_args["chance"] == on_disk["chance_ndcg_at_20"]
    assert entries_of(card, "FollowIRSample (default)")["p-MRR"].metric_args["scale"].startswith("-1..1")
    assert entries_of(card, "IFIRSample (default)")["instfol_at_20"].metric_args["judge"] == {"judge": "FacetJudge"}
    assert {"level_3_ndcg_at_20", "level_1_instfol_at_20"} <= entries_of(card, "IFIRSample (default)").keys()


def test_a_model_goes_by_its_directory_too(
    made_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text(f"---\nmodel_name: {MINILM}\n---\n")
    assert model_card(made_results) == 0
    by_name = capsys.readouterr().out
    assert main(["model-card", "--results", str(made_results), "--model", str(tmp_path)]) == 0
    assert capsys.readouterr().out == by_name


@pytest.mark.parametrize("task", ["FollowIRSample", "IFIRSample"])
def test_every_interval_of_a_result_stands_in_both_forms(results: Path, card: Path, task: str) -> None:
    before = scores_of(results, task)
    keys = [m.key for m in measures(mteb.get_task(task)) if m.key in before]
    spoil(results, task, **{f"{key}_{end}": before[key] + way for key in keys for end, way in ENDS})
    assert model_card(results, "--into", str(card), "-t", task) == 0
    found = entries_of(card, f"{task} (default)")
    listed = yaml.safe_load((card.parent / ".eval_results" / f"{task}.yaml").read_text())
    notes = {entry["dataset"]["task_id"]: entry["notes"] for entry in listed}
    assert len(keys) >= 3
    for key in keys:
        low, high = (before[key] + way for _, way in ENDS)
        assert found[key].metric_args["confidence_interval"] == {"level": 0.95, "low": low, "high": high}
        is_main = key == mteb.get_task(task).metadata.main_score
        told = notes[f"{task}_default_test" if is_main else f"{task}_default_test_{key}"]
        assert f"95 % interval {low * 100:.1f} to {high * 100:.1f}" in told
        assert f"95 % interval {low:.3f} to {high:.3f}" in found[key].metric_name


def test_every_main_and_special_score_of_the_readme_is_among_the_measures() -> None:
    named = {m.key for cls in registered_tasks() for m in measures(cls())}
    assert {"p-MRR", "instfol_at_20", "gr_at_1", "ds_at_1", "robustness_at_10", "level_2_instfol_at_20"} <= named
    for cls in registered_tasks():
        assert cls.metadata.main_score in {m.key for m in measures(cls())}


def test_nothing_else_in_the_card_changes_and_a_second_time_nothing_at_all(made_results: Path, card: Path) -> None:
    model_card(made_results, "--into", str(card))
    once = card.read_bytes()
    assert once.startswith(BEFORE.encode())
    assert once.endswith(AFTER.encode())
    assert b"0.999" not in once
    assert model_card(made_results, "--into", str(card)) == 0
    assert card.read_bytes() == once
    squad = entries_of(card, "SQuAD")["f1"]
    assert (squad.metric_value, squad.source_name) == (0.1, None)


def test_huggingface_hub_keeps_every_result_when_it_writes_the_card(made_results: Path, card: Path) -> None:
    model_card(made_results, "--into", str(card))
    loaded = ModelCard.load(card)
    again = ModelCard(str(loaded))
    assert again.data.to_dict() == loaded.data.to_dict()
    names = [r["dataset"]["name"] for r in loaded.data.to_dict()["model-index"][0]["results"]]
    assert names == ["SQuAD", *(f"{task} (default)" for task in TASKS)]


def test_tasks_that_share_a_dataset_stay_apart(results: Path, card: Path) -> None:
    """huggingface_hub joins results of equal dataset, config, split and revision: the config names the task."""
    path = next(p for p in sorted(results.rglob("IFIRSample.json")))
    saved = json.loads(path.read_text())
    for name in ("IFIRFiQAInstFol", "IFIRAilaInstFol"):
        revision = mteb.get_task(name).metadata.revision
        path.with_name(f"{name}.json").write_text(json.dumps(saved | {"task_name": name, "dataset_revision": revision}))
    path.unlink()
    model_card(results, "--into", str(card))
    names = [r["dataset"]["name"] for r in ModelCard.load(card).data.to_dict()["model-index"][0]["results"]]
    assert {"IFIRFiQAInstFol (default)", "IFIRAilaInstFol (default)"} <= set(names)


# ---- .eval_results -----------------------------------------------------------------------------------------------


def test_eval_results_are_valid_by_mteb_and_times_100(made_results: Path, card: Path) -> None:
    model_card(made_results, "--into", str(card))
    theirs = importlib.import_module("mteb._hf_integration.eval_result_model")
    for task in TASKS:
        text = (card.parent / ".eval_results" / f"{task}.yaml").read_text()
        listed = yaml.safe_load(text)
        valid = theirs.HFEvalResults.model_validate(listed)
        assert [e.task_id for e in parse_eval_result_entries(listed)] == [r.dataset.task_id for r in valid.root]
        by_id = {r.dataset.task_id: r for r in valid.root}
        assert len(by_id) == len(valid)
        on_disk, main_score = scores_of(made_results, task), mteb.get_task(task).metadata.main_score
        for measure in measures(mteb.get_task(task)):
            if measure.key in on_disk and measure.key != main_score:
                value = by_id[f"{task}_default_test_{measure.key}"].value
                assert value == pytest.approx(100 * on_disk[measure.key], abs=1e-5)
        (path,) = [p for p in made_results.rglob(f"{task}.json") if "experiments" not in p.parts]
        # What mteb itself would push for the main score.
        for entry in TaskResult.from_disk(path)._to_hf_benchmark_result().root:
            ours = by_id[entry.dataset.task_id]
            assert (ours.value, ours.dataset) == (entry.value, entry.dataset)
        assert all("times 100" in (r.notes or "") for r in valid.root)


def test_each_id_is_one_that_eval_yaml_has(made_results: Path, card: Path) -> None:
    model_card(made_results, "--into", str(card))
    for name in TASKS:
        task = mteb.get_task(name)
        config = yaml.safe_load(evaluation_config([task], "any", eval_ids(task)))
        allowed = {entry["id"] for entry in config["tasks"]}
        listed = yaml.safe_load((card.parent / ".eval_results" / f"{name}.yaml").read_text())
        assert {entry["dataset"]["task_id"] for entry in listed} <= allowed


def test_a_task_of_mteb_itself_shows_its_main_score(results: Path, card: Path) -> None:
    (path,) = results.rglob("FollowIRSample.json")
    name = "Core17InstructionRetrieval"
    revision = mteb.get_task(name).metadata.revision
    saved = json.loads(path.read_text()) | {"task_name": name, "dataset_revision": revision}
    path.with_name(f"{name}.json").write_text(json.dumps(saved))
    assert model_card(results, "--into", str(card), "-t", name) == 0
    (entry,) = entries_of(card, f"{name} (default)").values()
    assert (entry.metric_type, entry.metric_value) == ("p-MRR", saved["scores"]["test"][0]["p-MRR"])
    assert "(-1..1)" in entry.metric_name
    (file,) = (card.parent / ".eval_results").iterdir()
    assert [e["dataset"]["task_id"] for e in yaml.safe_load(file.read_text())] == [f"{name}_default_test", name]


# ---- which run ---------------------------------------------------------------------------------------------------


def test_a_variant_is_named_and_never_replaces_the_plain_model(
    made_results: Path, card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_card(made_results, "--into", str(card))
    assert "left out (--variant)" in capsys.readouterr().err
    files = {p: p.read_bytes() for p in (card.parent / ".eval_results").iterdir()}
    assert model_card(made_results, "--into", str(card), "--variant", "instruction=prepend") == 0
    plain = entries_of(card, "TCRSample (default)")["recall_at_1"]
    variant = entries_of(card, "TCRSample (default, instruction=prepend)")["recall_at_1"]
    assert plain.dataset_args.get("settings") is None
    assert variant.dataset_args["settings"] == {"instruction": "prepend"}
    assert variant.metric_value == scores_of(made_results, "TCRSample", variant=True)["recall_at_1"]
    # The leaderboard's ids are the plain model's.
    assert "TCRSample: no .eval_results" in capsys.readouterr().err
    assert {p.stem for p in (card.parent / ".eval_results").iterdir()} == set(TASKS)
    assert files == {p: p.read_bytes() for p in files}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--variant", "instruction=other"), "--variant 'instruction=prepend'"),
        (("--revision", "abc"), "8b3219a9"),
        (("-t", "TCRBenchMixed"), "FollowIRSample, IFIRSample, TCRSample"),
    ],
)
def test_a_run_that_is_not_there_is_refused_with_the_choice(
    made_results: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], told: str
) -> None:
    assert model_card(made_results, *options) == 1
    assert told in capsys.readouterr().err


def test_a_model_with_variants_only_or_several_revisions_is_refused(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place,) = [p.parent for p in results.rglob("FollowIRSample.json")]
    for path in place.glob("*Sample.json"):
        path.rename(place / f"{path.name}.kept")
    assert model_card(results) == 1
    assert "--variant 'instruction=prepend'" in capsys.readouterr().err
    other = place.parent / "second"
    other.mkdir()
    meta = json.loads((place / "model_meta.json").read_text())
    (other / "model_meta.json").write_text(json.dumps(meta | {"revision": "second"}))
    (other / "TCRSample.json").write_text((place / "TCRSample.json.kept").read_text())
    assert model_card(results) == 1
    assert "choose with --revision" in capsys.readouterr().err
    assert main(["model-card", "--results", str(results), "--model", "nobody/none"]) == 1
    assert MINILM in capsys.readouterr().err


def test_without_into_everything_is_printed(made_results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert model_card(made_results, "-t", "TCRSample") == 0
    printed = capsys.readouterr().out
    header, _, rest = printed.partition("\n# .eval_results/TCRSample.yaml (values times 100)\n")
    value = ModelCard(header).data.eval_results[0].metric_value
    assert yaml.safe_load(rest)[0]["value"] == pytest.approx(100 * value)
    assert re.search(r"name: DS@1 \(0\.\.1\), 95 % interval \d\.\d{3} to \d\.\d{3}, chance", header)
