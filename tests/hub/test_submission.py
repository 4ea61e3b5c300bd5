"""Each fault of a submission, made on purpose."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_files import PLACE

from evaluators.cli import main
from hub_cards.submission_checks import submission_findings

Spoil = Callable[[Path], None]


def must(folder: Path) -> list[str]:
    return [f"{f.place.name}: {f.problem} -> {f.remedy}" for f in submission_findings(folder) if f.must_be_fixed]


def changed(name: str, change: Callable[[dict[str, Any]], Any], place: str = PLACE) -> Spoil:
    """Changes a JSON file."""

    def spoil(folder: Path) -> None:
        path = folder / place / name
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))

    return spoil


def scores(task: str = "TCRSample", place: str = PLACE, **changes: Any) -> Spoil:
    """Changes scores of a result."""
    return changed(f"{task}.json", lambda data: data["scores"]["test"][0].update(changes), place)


def record(**changes: Any) -> Spoil:
    """Changes our record in a result."""
    return changed("TCRSample.json", lambda data: data["scores"]["test"][0]["mteb_beyond"].update(changes))


def meta(**changes: Any) -> Spoil:
    return changed("model_meta.json", lambda data: data.update(changes))


def result(**changes: Any) -> Spoil:
    return changed("TCRSample.json", lambda data: data.update(changes))


def removed(name: str) -> Spoil:
    return lambda folder: (folder / PLACE / name).unlink()


def moved(name: str, new: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / new).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).rename(folder / new)

    return spoil


def written(name: str, text: str) -> Spoil:
    return lambda folder: (folder / PLACE / name).write_text(text) and None


def copied(name: str, new: str) -> Spoil:
    return lambda folder: shutil.copytree(folder / name, folder / new) and None


def twice(data: dict[str, Any]) -> None:
    data["scores"]["test"] *= 2


def two_variants(data: dict[str, Any]) -> None:
    block = data["scores"]["test"][0]
    other = {
        **block,
        "hf_subset": "other",
        "mteb_beyond": {**block["mteb_beyond"], "options": {"instruction": "prepend"}},
    }
    data["scores"]["test"].append(other)


def hundredfold(data: dict[str, Any]) -> None:
    block = data["scores"]["test"][0]
    for key in ("p-MRR", "main_score"):
        block[key] *= 100


MODEL = PLACE.rpartition("/")[0]
FAULTS: dict[str, tuple[Spoil, str]] = {
    # layout
    "no model folder": (moved(f"{PLACE}/TCRSample.json", "results/TCRSample.json"), "lies where no result belongs"),
    "too deep": (moved(f"{PLACE}/TCRSample.json", f"{PLACE}/more/TCRSample.json"), "lies where no result belongs"),
    "other file name": (moved(f"{PLACE}/TCRSample.json", f"{PLACE}/Sample.json"), "name it TCRSample.json"),
    "no run settings": (removed("run_settings.jsonl"), "run_settings.jsonl: is missing"),
    "run settings lack a task": (
        written("run_settings.jsonl", '{"task": "TCRSample", "splits": ["test"], "subsets": ["default"]}\n'),
        "does not cover FollowIRSample test/default",
    ),
    "run settings cut short": (written("run_settings.jsonl", '{"task"'), "line 1 cannot be read"),
    "too large": (written("TCRSample.json", " " * (10 * 2**20 + 1)), "larger than 10 MB"),
    # model
    "no record": (removed("model_meta.json"), "model_meta.json: is missing"),
    "damaged record": (written("model_meta.json", "{"), "model_meta.json: is no readable record of a model"),
    "nameless": (meta(name=None), "names no model"),
    "other name": (meta(name="mteb/baseline-bm25s"), "is of mteb/baseline-bm25s, but lies in sentence-transformers__"),
    "local name": (meta(name="local/mine"), "local/mine is a local name"),
    "unknown to mteb": (meta(name="nobody/model"), "mteb has no implementation of nobody/model"),
    "no revision": (meta(revision=None), "its revision is None"),
    "placeholder revision": (meta(revision="no_revision_available"), "its revision is 'no_revision_available'"),
    "other revision": (meta(revision="main"), "is of revision main, but lies in 8b3219"),
    "variant among the plain": (meta(experiment_kwargs={"task_instruction": "prepend"}), "results of a variant"),
    # duplicates
    "two revisions": (copied(PLACE, f"{MODEL}/second"), "TCRSample has results of several revisions"),
    "the same under two models": (copied(MODEL, "results/a__b"), "has the very scores of"),
    # a result file
    "damaged": (written("TCRSample.json", "{"), "TCRSample.json: is no readable result of mteb"),
    "no result": (written("TCRSample.json", "{}"), "TCRSample.json: is no readable result of mteb"),
    "a list": (written("TCRSample.json", "[]"), "is no readable result of mteb: its JSON is no object"),
    "a folder": (moved("predictions", f"{PLACE}/Folder.json"), "Folder.json: is no readable result of mteb: Is a dir"),
    "unknown task": (changed("TCRSample.json", lambda d: d.update(task_name="Nonesuch")), "has a task 'Nonesuch'"),
    "no mteb version": (result(mteb_version=None), "its mteb version is None"),
    "old mteb": (result(mteb_version="1.38.0"), "made with mteb 1.38.0"),
    "changed data": (result(dataset_revision="abc"), "made on data revision 'abc'"),
    "missing split": (result(scores={}), "split 'test' lacks default"),
    "other split": (changed("TCRSample.json", lambda d: d["scores"].update(dev=d["scores"]["test"])), "no split 'dev'"),
    "other subset": (scores(hf_subset="french"), "has no subset 'french'"),
    "missing subset": (scores(hf_subset="french"), "split 'test' lacks default"),
    "other languages": (scores(languages=["fra-Latn"]), "has languages ['fra-Latn']"),
    # scores
    "no main score": (
        changed("TCRSample.json", lambda d: d["scores"]["test"][0].pop("main_score")),
        "'main_score' should be in scores",
    ),
    "main score null": (scores(main_score=None), "main_score is None"),
    "main score text": (scores(main_score="0.3"), "main_score is '0.3'"),
    "main score not finite": (scores(main_score=float("nan")), "not finite: main_score"),
    "special score not finite": (scores(ds_at_1=float("inf")), "not finite: ds_at_1"),
    "nested score not finite": (scores("FollowIRSample", og={"map_at_5": float("nan")}), "not finite: og.map_at_5"),
    "main score of another": (scores(main_score=0.001), "main_score is 0.001, but recall_at_1 is"),
    "main score's metric missing": (
        changed("TCRSample.json", lambda d: d["scores"]["test"][0].pop("recall_at_1")),
        "'recall_at_1', which is the main score, is missing",
    ),
    "p-MRR times 100": (changed("FollowIRSample.json", hundredfold), "store it as computed, -1..1"),
    "recall times 100": (scores(recall_at_5=46.7), "recall_at_5 is 46.7"),
    "InstFol times 100": (scores("IFIRSample", level_1_instfol_at_20=10.3), "level_1_instfol_at_20 is 10.3"),
    "score as text": (scores(recall_at_5="0.5"), "no number: recall_at_5 is '0.5'"),
    "score null": (scores("FollowIRSample", **{"p-MRR": None}), "no number: p-MRR is None"),
    "score true": (scores("FollowIRSample", og={"map_at_5": True}), "no number: og.map_at_5 is True"),
    "reversed interval": (scores(ds_at_1_low=0.9, ds_at_1_high=0.1), "ds_at_1_low is above ds_at_1_high"),
    "bound alone": (scores("FollowIRSample", ndcg_at_5_low=0.0), "ndcg_at_5_low without"),
    "bounds alone": (scores("IFIRSample", level_9_mrr_at_20_low=0.1, level_9_mrr_at_20_high=0.2), "without level_9"),
    "score below its interval": (
        scores("IFIRSample", instfol_at_20=-0.5, instfol_at_20_low=-0.1, instfol_at_20_high=0.2),
        "instfol_at_20 is -0.5, outside its interval from -0.1 to 0.2",
    ),
    "score above its interval": (
        scores("FollowIRSample", og={"mrr_at_5": 0.9, "mrr_at_5_low": 0.1, "mrr_at_5_high": 0.2}),
        "og.mrr_at_5 is 0.9, outside its interval",
    ),
    "bound of p-MRR times 100": (scores("FollowIRSample", **{"p-MRR_low": -9, "p-MRR_high": 8}), "p-MRR_low is -9, as"),
    "bound of InstFol times 100": (scores("IFIRSample", instfol_at_20_high=10.3), "instfol_at_20_high is 10.3"),
    "bound of a retrieval score times 100": (scores("FollowIRSample", followir_score_high=30), "score_high is 30"),
    "bound null": (scores("FollowIRSample", followir_score_low=None), "no number: followir_score_low is None"),
    "negative share": (scores(tied_top_share=-0.5), "tied_top_share is -0.5"),
    # several runs
    "subset twice": (changed("TCRSample.json", twice), "stands in it 2 times: several runs in one file"),
    "two variants in a file": (changed("TCRSample.json", two_variants), "several variants in one file"),
    "a variant's file among the plain": (record(options={"instruction": "prepend"}), "made with instruction=prepend"),
    "a reranked file among the plain": (
        record(options={"instruction": "mteb", "first_stage": "mteb/baseline-bm25s top 100"}),
        "first_stage=mteb/baseline-bm25s top 100",
    ),
    "a plain file among a variant's": (
        changed(
            "TCRSample.json",
            lambda d: d["scores"]["test"][0]["mteb_beyond"].update(options={"instruction": "mteb"}),
            f"{PLACE}/experiments/task_instruction_prepend",
        ),
        "made with instruction=mteb, but lies among results of instruction=prepend",
    ),
    # our record
    "no provenance": (scores(mteb_beyond=None), "no record of metric version"),
    "provenance of another kind": (scores(mteb_beyond="x"), "no record of metric version"),
    "stale": (record(metric_version=1), "stale, of metric version 1"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_by_itself(results: Path, fault: str) -> None:
    spoil, told = FAULTS[fault]
    spoil(results)
    assert any(told in line for line in must(results)), must(results)


def test_a_fault_is_told_on_one_line_and_once(results: Path) -> None:
    changed("TCRSample.json", lambda data: data["scores"]["test"][0].update(hf_subset=None))(results)
    changed("IFIRSample.json", lambda data: (data.pop("scores"), data.pop("task_name")))(results)
    found = must(results)
    assert [line.partition(":")[0] for line in found] == ["IFIRSample.json", "TCRSample.json"]
    assert "scores: Field required" in found[0]
    assert not any("\n" in line for line in found)


def test_results_without_a_fault_pass_and_what_cannot_be_helped_is_told(
    made_results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert must(made_results) == []
    assert main(["check-submission", str(made_results)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("nothing to fix")
    for told in ("not a task of mteb itself", "results of a variant (instruction=prepend)", "no part of a submission"):
        assert told in printed
    assert must(made_results / "results") == []


def test_scores_may_lie_on_their_bounds_but_for_rounding(results: Path) -> None:
    (block,) = json.loads((results / PLACE / "FollowIRSample.json").read_text())["scores"]["test"]
    tight = {f"{key}_{end}": block[key] for key in ("p-MRR", "followir_score") for end in ("low", "high")}
    rounded = {"ndcg_at_10_low": block["ndcg_at_10"] + 4e-6, "ndcg_at_10_high": block["ndcg_at_10"] + 4e-6}
    scores("FollowIRSample", **tight, **rounded)(results)
    assert must(results) == []


def test_a_score_times_100_is_told_once_whatever_its_interval_says(results: Path) -> None:
    (block,) = json.loads((results / PLACE / "FollowIRSample.json").read_text())["scores"]["test"]
    bounds = {"p-MRR_low": block["p-MRR"] - 0.01, "p-MRR_high": block["p-MRR"] + 0.01}
    scores("FollowIRSample", **bounds)(results)
    changed("FollowIRSample.json", hundredfold)(results)
    (told,) = must(results)
    assert "store it as computed, -1..1" in told


def test_notes_do_not_fail_a_submission(results: Path) -> None:
    record(notes=["a subset of the published questions"])(results)
    meta(license=None)(results)
    path = results / PLACE / "IFIRSample.json"
    path.rename(path.with_suffix(".json.stale-20260101"))
    found = submission_findings(results)
    assert not any(f.must_be_fixed for f in found)
    told = {f.problem for f in found}
    assert "test/default: a subset of the published questions" in told
    assert any("does not say" in problem and "license" in problem for problem in told)


def test_the_list_says_what_to_do_and_the_exit_code_is_1(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed("FollowIRSample.json", hundredfold)(results)
    record(metric_version=1)(results)
    target = results.parent / "dry"
    assert main(["check-submission", str(results), "--dry-run", str(target)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("2 to fix before submitting\n  1. ")
    assert "-> put every score of the file on mteb's scale" in printed
    assert "no commit was tried" in printed
    assert not target.exists()


def test_a_folder_without_results_is_no_clean_submission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results").mkdir()
    assert main(["check-submission", str(tmp_path)]) == 1
    assert "holds no result" in capsys.readouterr().err
