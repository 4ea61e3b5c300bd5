"""`mteb-beyond followir ablate`: scores by form, paired differences, files, whole collections."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import mteb
import numpy as np
import pytest
import pytrec_eval
from fixed_ranking import FixedRanking, scores_of
from followir_sets import CANDIDATES, DOCS, JUDGED, QUERIES, configs, write_set
from hypothesis import given, settings
from hypothesis import strategies as st
from mteb.models import ModelMeta

from evaluators.cli import main
from evaluators.metrics.bootstrap import bootstrap_mean
from evaluators.plugin.models import register_local_model
from evaluators.plugin.mteb_internals import query_texts
from followir_tasks.ablation import running
from followir_tasks.ablation.comparison import mean_over_topics, paired_difference
from followir_tasks.ablation.documents_once import documents_once
from followir_tasks.ablation.report import compared, figure_3
from followir_tasks.ablation.running import FormRun
from followir_tasks.collection import FollowIRCollection

pytestmark = pytest.mark.usefixtures("fresh_cache")

BM25 = "mteb/baseline-bm25s"
_SHARES = st.integers(0, 8).map(lambda n: n / 8)


# --- differences ---------------------------------------------------------------------------------------------------


def test_a_paired_difference_by_hand() -> None:
    found = paired_difference({"a": 0.5, "b": 0.75}, {"b": 0.25, "a": 0.5})
    assert found is not None
    assert (found.value, found.n) == (0.25, 2)
    # A quarter of the resamples holds a alone, a quarter b alone: both bounds are beyond 2.5 %.
    assert found.interval == (0.0, 0.5)
    assert mean_over_topics({}) is None
    single = mean_over_topics({"a": 0.5})
    assert single is not None and single.interval is None


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.integers(0, 99).map(str), st.tuples(_SHARES, _SHARES), min_size=2, max_size=8))
def test_it_is_the_bootstrap_of_the_differences_whatever_the_order(values: dict[str, tuple[float, float]]) -> None:
    first, second = ({topic: pair[i] for topic, pair in values.items()} for i in (0, 1))
    found = paired_difference(first, dict(reversed(list(second.items()))))
    expected = bootstrap_mean(np.array([a - b for a, b in values.values()]))
    assert found is not None and found.interval is not None
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.interval == pytest.approx(expected.interval(), abs=1e-9)


def test_runs_on_other_topics_are_not_compared() -> None:
    with pytest.raises(ValueError, match="only one has 'b'"):
        paired_difference({"a": 0.5, "b": 0.5}, {"a": 0.5})


def form_run(form: str, *scores: float) -> FormRun:
    p_mrr = {} if form == "none" else {"t0": 0.5}
    topics = {f"t{i}": score for i, score in enumerate(scores)}
    return FormRun("a/b", "1", "FollowIRSample", "r", form, topics, p_mrr, None)


def test_figure_3_shows_the_differences_to_no_instruction() -> None:
    found = compared([form_run("none", 0.2, 0.4), form_run("keywords", 0.3, 0.5), form_run("full", 0.2, 0.0)])
    figure = figure_3(found)
    assert figure is not None
    (bars,) = figure.panels[0].marks
    assert (bars.name, list(bars.x)) == ("a/b", ["keywords", "full"])
    assert bars.y == pytest.approx([10, -20]) and bars.low[1] == pytest.approx(-40) and bars.high[1] == 0
    assert [one.difference is None for one in found] == [True, False, False]
    assert found[0].p_mrr is None
    assert figure_3(compared([form_run("full", 0.2, 0.4)])) is None


# --- the command ---------------------------------------------------------------------------------------------------


def read_csv(folder: Path) -> list[dict[str, str]]:
    with (folder / "ablation.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_bm25_on_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_set(tmp_path / "set"), tmp_path / "out"
    arguments = ["followir", "ablate", BM25, "--data", str(data), "--out", str(out)]
    assert main(arguments) == 0
    rows = {row["form"]: row for row in read_csv(out)}
    assert list(rows) == ["none", "keywords", "short", "full"]
    results = {path.parent.name: path for path in out.glob("results/**/FollowIRSample.json")}
    assert {name.removeprefix("task_instruction_form_") for name in results if name.startswith("task")} == {
        "none",
        "keywords",
        "short",
    }
    saved = {p: json.loads(p.read_text())["scores"]["test"][0] for p in results.values()}
    by_form = {scores["mteb_beyond"]["options"]["instruction_form"]: scores for scores in saved.values()}
    for form, row in rows.items():
        for key in ("followir_score", "followir_score_low", "followir_score_high"):
            assert float(row[key]) == pytest.approx(by_form[form][key], abs=1e-6)  # mteb rounds in its files
        difference = by_form[form]["followir_score"] - by_form["none"]["followir_score"]
        assert (
            row["difference_to_none"] == ""
            if form == "none"
            else float(row["difference_to_none"]) == pytest.approx(difference, abs=1e-12)
        )
        assert row["n_topics"] == "3"
    assert rows["none"]["p-MRR"] == rows["none"]["p-MRR_low"] == rows["none"]["n_topics_with_change"] == ""
    assert float(rows["full"]["p-MRR"]) == pytest.approx(by_form["full"]["p-MRR"], abs=1e-6)
    assert rows["keywords"]["n_topics_with_equal_instructions"] in ("1", "1.0")
    text = (out / "ablation.md").read_text(encoding="utf-8")
    none = next(line for line in text.splitlines() if "| none " in line)
    assert [cell.strip() for cell in none.strip("|").split("|")][5:] == ["-", "-", "-", "-", "-"]
    assert (out / "figure-3.html").is_file() and (out / "figure-3.png").is_file()
    # What is there is not run again.
    before = {path: path.stat().st_mtime_ns for path in results.values()}
    assert main([*arguments, "--forms", "none", "short"]) == 0
    assert {path: path.stat().st_mtime_ns for path in results.values()} == before
    assert [row["form"] for row in read_csv(out)] == ["none", "short"]
    assert read_csv(out)[1] == rows["short"]
    assert f"{data} as FollowIRSample, data " in text and rows["none"]["data"] == str(data)


def test_a_model_that_fails_leaves_the_others_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = write_set(tmp_path / "set"), tmp_path / "out"
    arguments = ["followir", "ablate", BM25, "--data", str(data), "--out", str(out), "--forms", "none", "full"]
    assert main([*arguments[:2], "no/such", *arguments[2:]]) == 1
    assert "the model 'no/such' cannot be used" in capsys.readouterr().err and not out.exists()
    evaluate = running.evaluate

    def failing(model: Any, task: Any, **kwargs: Any) -> Any:
        if task.instruction_form == "full":
            raise ValueError("too long")
        return evaluate(model, task, **kwargs)

    monkeypatch.setattr(running, "evaluate", failing)
    assert main(arguments) == 1
    assert f"**Not run to its end:** {BM25}, form 'full': too long" in (out / "ablation.md").read_text()
    assert [row["form"] for row in read_csv(out)] == ["none"]


def test_a_dataset_without_forms_says_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_set(tmp_path / "set", configs(with_forms=False)), tmp_path / "out"
    assert main(["followir", "ablate", BM25, "--data", str(data), "--out", str(out)]) == 0
    assert [row["form"] for row in read_csv(out)] == ["none", "full"]
    assert "Without keywords and short: the dataset does not hold them" in capsys.readouterr().out
    asked = ["followir", "ablate", BM25, "--data", str(data), "--out", str(out), "--forms", "short"]
    assert main(asked) == 1
    assert "mteb-beyond followir forms" in capsys.readouterr().err


class Counted:
    """An encoder of mteb that counts the documents it encodes: text lengths as embeddings."""

    def __init__(self) -> None:
        self.mteb_model_meta = ModelMeta.create_empty({"name": "test/counted", "revision": "1"})
        # Shared by the copies that mteb runs.
        self.documents: list[str] = []

    def encode(self, inputs: Any, *, prompt_type: Any, **kwargs: Any) -> Any:
        texts = [text for batch in inputs for text in batch["text"]]
        self.documents += texts if prompt_type == "document" else []
        return np.array([[len(text), sum(map(ord, text)) % 17, 1.0] for text in texts], dtype=np.float32)

    def similarity(self, first: Any, second: Any) -> Any:
        return np.asarray(first) @ np.asarray(second).T

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        return (np.asarray(first) * np.asarray(second)).sum(axis=1)


def test_documents_are_encoded_once_and_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rankings as without; titles and instructions are joined to the texts once, too."""
    plain, watched = Counted(), Counted()
    runs = {}
    for name, model, wrap in (("plain", plain, lambda m: m), ("once", watched, documents_once)):
        monkeypatch.setattr(running, "documents_once", wrap)
        monkeypatch.setattr(running, "loaded", lambda name, m=model: (m, "test/counted", "1"))
        task = mteb.get_task("FollowIRCore17")
        task.data_path = write_set(tmp_path / "set")
        runs[name] = list(running.run_forms("any", task, ["none", "short", "full"], tmp_path / name, 32))
    assert runs["plain"] == runs["once"]
    assert plain.documents == 3 * watched.documents
    assert watched.documents == [f"Title {d} a text on {d}" for d in DOCS]


# --- whole collections ---------------------------------------------------------------------------------------------


def collection(directory: Path, **options: str) -> FollowIRCollection:
    task = mteb.get_task("FollowIRCollection")
    assert isinstance(task, FollowIRCollection)
    task.data_path = directory
    for name, value in options.items():
        setattr(task, name, value)
    return task


@pytest.mark.parametrize(("option", "measure"), [("map_at_1000", "map_cut.1000"), ("ndcg_at_5", "ndcg_cut.5")])
def test_originals_are_searched_in_the_whole_corpus(tmp_path: Path, option: str, measure: str) -> None:
    run = {q: {d: float((7 * int(d[1:]) + 3 * i) % 12) for d in DOCS} for i, q in enumerate(QUERIES)}
    task = collection(write_set(tmp_path / "set"), collection_measure=option)
    model = FixedRanking(run)
    variant = task.variant()
    model.mteb_model_meta = model.mteb_model_meta.model_copy(update={"experiment_kwargs": variant or None})
    scores = scores_of(task, model)
    originals = [q for q in QUERIES if q.endswith("-og")]
    assert sorted(model.asked) == originals
    evaluator = pytrec_eval.RelevanceEvaluator({q: JUDGED[q] for q in originals}, {measure})
    expected = [v[measure.replace(".", "_")] for v in evaluator.evaluate({q: run[q] for q in originals}).values()]
    assert scores["followir_score"] == pytest.approx(fmean(expected), abs=1e-9)
    assert scores["main_score"] == scores["followir_score"]
    assert min(expected) <= scores["followir_score_low"] <= scores["followir_score_high"] <= max(expected)
    assert (scores["n_topics"], "p-MRR" in scores) == (3, False)
    # Documents that are nobody's candidates are ranked, too.
    assert any(set(DOCS) - set(CANDIDATES[q.split("-")[0]]) for q in originals)


def test_the_collection_without_and_with_instruction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_set(tmp_path / "set", configs(with_forms=False)), tmp_path / "out"
    assert main(["followir", "ablate", BM25, "--data", str(data), "--out", str(out), "--collection", "News21"]) == 0
    told = capsys.readouterr().out
    rows = {row["form"]: row for row in read_csv(out)}
    assert list(rows) == ["none", "full"] and rows["full"]["task"] == "FollowIRCollection"
    assert rows["full"]["p-MRR"] == ""
    assert float(rows["full"]["difference_to_none_low"]) <= float(rows["full"]["difference_to_none"])
    assert "FollowIR, Table 4, News21:" in told
    published = next(line for line in told.splitlines() if line.startswith("| BM25 "))
    assert [cell.strip() for cell in published.strip("|").split("|")] == ["BM25", "30.1", "+5.3"]
    folders = {path.parent.name for path in out.glob("results/**/FollowIRCollection.json")}
    assert all("task_collection_measure_ndcg_at_5" in folder for folder in folders) and len(folders) == 2


def test_a_collection_has_forms_too(tmp_path: Path) -> None:
    task = collection(write_set(tmp_path / "set"), instruction_form="keywords")
    task.load_data()
    assert task.data is not None
    assert query_texts(task.prepare_queries(None, task.data.queries)) == [
        "topic t1 t1 og",
        "topic t2 t2",
        "topic t3 t3 og",
    ]


def test_cross_encoders_cannot_search_a_collection(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match="ranks given candidates"):
        scores_of(collection(write_set(tmp_path / "set")), register_local_model(tiny_models["CrossEncoder"]))


def test_a_set_without_originals(tmp_path: Path) -> None:
    rows = configs(with_forms=False)
    rows["queries"][0]["_id"] = rows["instruction"][0]["query-id"] = rows["qrels"][0]["query-id"] = "strange"
    with pytest.raises(ValueError, match="'strange' ends neither"):
        collection(write_set(tmp_path / "set", rows)).load_data()
