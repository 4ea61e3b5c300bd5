"""The main job: BM25 and MiniLM on the samples, offline; and mteb's own tools on what it leaves behind."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import mteb
import pyarrow.parquet as pq
import pytest
from demo_run import DEMO_WIDTH, DemoRun
from huggingface_hub import ModelCardData
from mteb.cache import ResultCache
from mteb.results import TaskResult

from evaluators.cli import main
from evaluators.plugin.models import BM25, MINILM, bundled_minilm
from evaluators.plugin.task import RECORD_KEY
from followir_tasks import FollowIRSample
from ifir_tasks import IFIRSample
from tcr_tasks import TCRSample

IFIR, FOLLOWIR, TCR = (cls.embedded for cls in (IFIRSample, FollowIRSample, TCRSample))
SAMPLES = ("IFIRSample", "FollowIRSample", "TCRSample")
MODELS = (BM25, MINILM)


def result(run: DemoRun, model: str, task: str) -> TaskResult:
    meta = bundled_minilm() if model == MINILM else mteb.get_model_meta(model)
    found = ResultCache(run.folder).load_task_result(task, meta)
    assert found is not None
    return found


def scores(run: DemoRun, model: str, task: str) -> dict[str, Any]:
    return dict(result(run, model, task).scores["test"][0])


def predictions(run: DemoRun, model: str, task: str) -> dict[str, dict[str, float]]:
    found = list((run.folder / "predictions").glob(f"{model.replace('/', '__')}/*/{task}_predictions.json"))
    assert len(found) == 1
    saved = json.loads(found[0].read_text())
    assert saved["mteb_model_meta"]["model_name"] == model
    return saved["default"]["test"]


def test_it_never_tries_to_reach_a_network(demo_run: DemoRun) -> None:
    assert demo_run.connections == []


def test_the_table_shows_scores_chance_and_doubt(demo_run: DemoRun) -> None:
    for text in (*SAMPLES, "p-MRR", "DS@1", "nDCG@20", "chance", "times 100", "tied", "length limit", "result files"):
        assert text in demo_run.output, text
    shown = f"{100 * scores(demo_run, MINILM, 'TCRSample')['ds_at_1']:.1f}"
    assert shown in demo_run.output


@pytest.mark.parametrize("model", MODELS)
def test_samples_tell_good_from_bad_and_do_not_saturate(demo_run: DemoRun, model: str) -> None:
    ifir, followir, tcr = (scores(demo_run, model, task) for task in SAMPLES)
    assert ifir["chance_ndcg_at_20"] + 0.1 < ifir["ndcg_at_20"] < 0.95
    assert followir["chance_followir_score"] + 0.1 < followir["followir_score"] < 0.95
    assert abs(followir["p-MRR"]) < 0.5
    assert tcr["chance_recall_at_1"] < tcr["recall_at_1"] < 0.95
    assert tcr["recall_at_1"] < tcr["gr_at_1"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("task", SAMPLES)
def test_results_carry_main_score_record_and_plain_floats(demo_run: DemoRun, model: str, task: str) -> None:
    found = scores(demo_run, model, task)
    cls = type(mteb.get_task(task))
    assert found["main_score"] == found[cls.metadata.main_score]
    assert found[RECORD_KEY]["metric_version"] == cls.metric_version
    assert found[RECORD_KEY]["options"] == (
        {"missing_candidates": "error", "instruction_form": "full"}
        if task == "FollowIRSample"
        else ({"instruction": "mteb"} if task == "TCRSample" else {})
    )
    assert result(demo_run, model, task).dataset_revision == cls.metadata.revision
    assert found["tied_top_share"] == 0
    for key, value in found.items():
        if isinstance(value, float) and not key.startswith("nauc"):
            assert math.isfinite(value), key
    assert ("truncated_tokens_share" in found) == (model == MINILM)


def test_a_text_is_cut_at_256_tokens_by_minilm(demo_run: DemoRun) -> None:
    assert scores(demo_run, MINILM, "TCRSample")["truncated_documents_share"] == 1.0
    assert scores(demo_run, MINILM, "FollowIRSample")["truncated_documents_share"] == 0.0


@pytest.mark.parametrize("model", MODELS)
def test_tcr_scores_follow_from_the_saved_rankings(demo_run: DemoRun, model: str) -> None:
    run = predictions(demo_run, model, "TCRSample")
    groups = pq.read_table(TCR / "groups.parquet").to_pylist()
    hit = group_hit = chance = 0.0
    for row in groups:
        best = max(run[row["query-id"]].items(), key=lambda item: (item[1], item[0]))[0]
        hit += best == row["target"]
        group_hit += best in row["corpus-ids"]
        chance += 1 / len(row["corpus-ids"])
    found = scores(demo_run, model, "TCRSample")
    n = len(groups)
    # Result files are rounded to six decimals.
    assert found["recall_at_1"] == pytest.approx(hit / n, abs=1e-6)
    assert found["gr_at_1"] == pytest.approx(group_hit / n, abs=1e-6)
    assert found["ds_at_1"] == pytest.approx(hit / group_hit, abs=1e-6)
    assert found["chance_ds_at_1"] == pytest.approx(chance / n, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_ifir_scores_follow_from_the_saved_rankings(demo_run: DemoRun, model: str) -> None:
    run = predictions(demo_run, model, "IFIRSample")
    relevant: dict[str, set[str]] = {}
    for row in pq.read_table(IFIR / "qrels.parquet").to_pylist():
        relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    values: dict[str, list[float]] = {"1": [], "2": [], "3": [], "0": []}
    for query, docs in relevant.items():
        ranked = sorted(run[query], key=lambda d: (run[query][d], d), reverse=True)[:20]
        gained = sum(1 / math.log2(r + 2) for r, d in enumerate(ranked) if d in docs)
        ideal = sum(1 / math.log2(r + 2) for r in range(min(20, len(docs))))
        values[query[-1]].append(gained / ideal)
    found = scores(demo_run, model, "IFIRSample")
    every = [v for level in values.values() for v in level]
    assert found["ndcg_at_20"] == pytest.approx(sum(every) / len(every), abs=1e-5)
    for level in "123":
        assert found[f"level_{level}_ndcg_at_20"] == pytest.approx(sum(values[level]) / len(values[level]), abs=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_p_mrr_follows_from_the_saved_rankings(demo_run: DemoRun, model: str) -> None:
    run = predictions(demo_run, model, "FollowIRSample")
    by_topic = []
    for row in pq.read_table(FOLLOWIR / "qrel_diff.parquet").to_pylist():
        before, after = (
            sorted(run[row["query-id"] + s], key=lambda d: (run[row["query-id"] + s][d], d), reverse=True)
            for s in ("-og", "-changed")
        )
        assert len(before) == len(after) == 100
        changes = []
        for doc in row["corpus-ids"]:
            o, n = before.index(doc) + 1, after.index(doc) + 1
            changes.append(n / o - 1 if o > n else 1 - o / n)
        by_topic.append(sum(changes) / len(changes))
    assert scores(demo_run, model, "FollowIRSample")["p-MRR"] == pytest.approx(sum(by_topic) / len(by_topic), abs=1e-6)


@pytest.mark.parametrize(
    ("task", "key", "rows"),
    [("IFIRSample", "ndcg_at_20", 104), ("FollowIRSample", "p-MRR", 24), ("TCRSample", "recall_at_1", 30)],
)
def test_per_query_tables_average_to_the_scores(demo_run: DemoRun, task: str, key: str, rows: int) -> None:
    for model in MODELS:
        folder = next((run_folder := demo_run.folder / "predictions" / model.replace("/", "__")).iterdir())
        assert folder.parent == run_folder
        table = pq.read_table(folder / f"{task}_per_query.parquet").to_pylist()
        assert len(table) == rows
        mean = sum(row[key] for row in table) / rows
        assert scores(demo_run, model, task)[key] == pytest.approx(mean, abs=1e-5)


def test_running_again_reuses_the_results(
    demo_run: DemoRun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = sorted(demo_run.folder.rglob("*Sample*.*"))
    before = {f: f.stat().st_mtime_ns for f in files}
    # What the demo sets for its process is undone after the test.
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "DISABLE_TQDM"):
        monkeypatch.setenv(name, "1")
    for name in ("mteb", "bm25s"):
        caplog.set_level(logging.ERROR, logger=name)
    monkeypatch.setenv("COLUMNS", DEMO_WIDTH)
    assert main(["demo", "--output", str(demo_run.folder)]) == 0
    again = capsys.readouterr().out
    assert {f: f.stat().st_mtime_ns for f in sorted(demo_run.folder.rglob("*Sample*.*"))} == before
    table, table_again = (output[output.index("Embedded samples") :] for output in (demo_run.output, again))
    assert table_again == table


# ---- mteb's own tools on these results ----------------------------------------------------------------------------


def test_result_cache_and_result_objects(demo_run: DemoRun) -> None:
    loaded = ResultCache(demo_run.folder).load_results(models=[MINILM], tasks=list(SAMPLES))
    frame = loaded.to_dataframe()
    assert set(frame["task_name"]) == set(SAMPLES)
    found = result(demo_run, MINILM, "TCRSample")
    assert found.task.metadata.name == "TCRSample"
    assert found.domains == ["Web", "Written"]
    assert found.task_type == "Retrieval"
    assert found.get_score() == found.scores["test"][0]["recall_at_1"]
    assert found.get_score(getter=lambda s: s["ds_at_1"]) == found.scores["test"][0]["ds_at_1"]


def test_model_index_export(demo_run: DemoRun) -> None:
    exported = [r for task in SAMPLES for r in result(demo_run, MINILM, task).get_hf_eval_results()]
    card = ModelCardData(model_name="x/y", eval_results=exported)
    index = card.to_dict()["model-index"][0]["results"]
    by_name = {r["dataset"]["name"]: r for r in index}
    assert set(by_name) == {f"{task} (default)" for task in SAMPLES}
    p_mrr = by_name["FollowIRSample (default)"]["metrics"][0]
    assert p_mrr["type"] == "p-MRR"
    assert p_mrr["value"] == scores(demo_run, MINILM, "FollowIRSample")["p-MRR"]


def test_eval_results_export(demo_run: DemoRun) -> None:
    found = result(demo_run, MINILM, "IFIRSample")
    exported = found._to_hf_benchmark_result()
    values = [entry.value for entry in exported.root] if hasattr(exported, "root") else [e.value for e in exported]
    assert values[0] == pytest.approx(100 * found.scores["test"][0]["ndcg_at_20"], abs=1e-3)


def test_the_old_interface_runs_too(tmp_path: Path) -> None:
    old = mteb.MTEB(tasks=[mteb.get_task("TCRSample")])
    found = old.run(mteb.get_model(BM25), output_folder=str(tmp_path), verbosity=0)
    assert found[0].task_name == "TCRSample"
    assert found[0].scores["test"][0]["gr_at_1"] > 0.3
