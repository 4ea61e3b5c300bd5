"""No stale result answers, no variant or model mixes with another."""

from __future__ import annotations

import copy
import json
import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mteb
import pyarrow.parquet as pq
import pytest
import torch
from mteb.cache import ResultCache
from mteb.models import ModelMeta
from sentence_transformers import SentenceTransformer

from evaluators.plugin import evaluate, with_variant
from evaluators.plugin.dataset import Card, write_dataset
from evaluators.plugin.models import BM25
from evaluators.plugin.results import read_provenance
from evaluators.plugin.running import StaleResultError, stale_reason
from followir_tasks import FollowIRSample
from tcr_tasks import TCRSample


@pytest.fixture(scope="module")
def bm25() -> Any:
    return mteb.get_model(BM25)


@pytest.fixture(scope="module")
def result_of_bm25(bm25: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a run on TCRSample; tests change copies of it."""
    folder = tmp_path_factory.mktemp("result")
    evaluate(bm25, mteb.get_task("TCRSample"), output_folder=folder)
    return folder


@pytest.fixture(scope="module")
def predictions_of_bm25(bm25: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prediction folder of a run of mteb's own on TCRSample; tests change copies of it."""
    folder = tmp_path_factory.mktemp("predictions")
    mteb.evaluate(bm25, TCRSample(), cache=None, prediction_folder=folder)
    return folder


def copied(folder: Path, to: Path) -> Path:
    return shutil.copytree(folder, to, dirs_exist_ok=True)


@pytest.fixture
def quiet() -> Iterator[None]:
    logging.getLogger("mteb").setLevel(logging.ERROR)
    yield
    logging.getLogger("mteb").setLevel(logging.NOTSET)


def result_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if "Sample.json" in p.name)


def edit(path: Path, change: Any) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def set_version(content: dict[str, Any]) -> None:
    content["scores"]["test"][0]["mteb_beyond"]["metric_version"] = 0


def set_revision(content: dict[str, Any]) -> None:
    content["dataset_revision"] = "of last year"


def drop_record(content: dict[str, Any]) -> None:
    del content["scores"]["test"][0]["mteb_beyond"]


def set_option(content: dict[str, Any]) -> None:
    content["scores"]["test"][0]["mteb_beyond"]["options"] = {"instruction": "prepend"}


def drop_main_score(content: dict[str, Any]) -> None:
    del content["scores"]["test"][0]["recall_at_1"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (set_version, "metric version was 0"),
        (set_revision, "'of last year'"),
        (drop_record, "no record"),
        (set_option, "options were"),
        (drop_main_score, "lacks the main score 'recall_at_1'"),
    ],
)
def test_stale_results_are_set_aside_and_run_again(
    tmp_path: Path, bm25: Any, result_of_bm25: Path, change: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    (path,) = result_files(copied(result_of_bm25, tmp_path))
    first = json.loads(path.read_text())
    edit(path, change)
    with pytest.raises(StaleResultError, match="forbids"):
        evaluate(bm25, mteb.get_task("TCRSample"), output_folder=tmp_path, overwrite_strategy="only-cache")
    with caplog.at_level(logging.WARNING):
        again = evaluate(bm25, mteb.get_task("TCRSample"), output_folder=tmp_path)
    assert reason in caplog.text
    # Result files are rounded to six decimals.
    expected = pytest.approx(first["scores"]["test"][0]["recall_at_1"], abs=1e-6)
    assert again.task_results[0].scores["test"][0]["recall_at_1"] == expected
    kept = [p for p in result_files(tmp_path) if p != path]
    assert len(kept) == 1, "the old result must be kept"
    assert ".json.stale-" in kept[0].name
    assert stale_reason(TCRSample(), again.task_results[0]) is None
    # What is kept is not taken for a result of another task.
    assert len(ResultCache(tmp_path).load_results().model_results[0].task_results) == 1


def test_a_result_that_holds_is_reused(tmp_path: Path, bm25: Any, result_of_bm25: Path) -> None:
    (path,) = result_files(copied(result_of_bm25, tmp_path))
    stamp = path.stat().st_mtime_ns
    evaluate(bm25, mteb.get_task("TCRSample"), output_folder=tmp_path)
    assert path.stat().st_mtime_ns == stamp
    assert result_files(tmp_path) == [path]


def test_predictions_that_are_asked_for_are_written_though_a_result_exists(
    tmp_path: Path, bm25: Any, result_of_bm25: Path
) -> None:
    copied(result_of_bm25, tmp_path / "r")
    evaluate(bm25, mteb.get_task("TCRSample"), output_folder=tmp_path / "r", prediction_folder=tmp_path / "p")
    folder = tmp_path / "p" / "mteb__baseline-bm25s" / "0_3_0"
    assert (folder / "TCRSample_predictions.json").is_file()
    assert (folder / "TCRSample_per_query.parquet").is_file()


def test_edited_local_data_get_another_revision_and_are_run_again(tmp_path: Path, bm25: Any) -> None:
    data = tmp_path / "data"

    def write(text: str) -> None:
        write_dataset(
            data,
            {
                "corpus": [{"_id": d, "title": "", "text": t} for d, t in (("a", "red fox"), ("b", text))],
                "queries": [{"_id": f"q{s}", "text": "fox"} for s in ("-og", "-changed")],
                "instruction": [{"query-id": f"q{s}", "instruction": "Find foxes."} for s in ("-og", "-changed")],
                "qrels": [
                    {"query-id": f"q{s}", "corpus-id": "a", "score": int(s == "-og")} for s in ("-og", "-changed")
                ],
                "top_ranked": [{"query-id": f"q{s}", "corpus-ids": ["a", "b"]} for s in ("-og", "-changed")],
                "qrel_diff": [{"query-id": "q", "corpus-ids": ["a"]}],
            },
            Card("t", "t", "mit"),
        )

    def run() -> Any:
        task = mteb.get_task("FollowIRCore17")
        task.data_path = data
        return evaluate(bm25, task, output_folder=tmp_path / "r").task_results[0]

    write("blue whale")
    first = run()
    write("blue whale and a fox")
    second = run()
    assert first.dataset_revision != second.dataset_revision
    assert len(list((tmp_path / "r").rglob("*.stale-*"))) == 1
    write("blue whale")
    assert run().dataset_revision == first.dataset_revision


# ---- variants -----------------------------------------------------------------------------------------------------


def test_variants_are_filed_apart(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    model = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")
    model.model_card_data.model_name = "tests/tiny"
    model.model_card_data.base_model_revision = "1"
    plain, prepended = TCRSample(), TCRSample()
    prepended.instruction = "prepend"
    evaluate(model, plain, output_folder=tmp_path)
    evaluate(model, prepended, output_folder=tmp_path)
    found = {p.relative_to(tmp_path / "results").as_posix() for p in result_files(tmp_path)}
    assert found == {
        "tests__tiny/1/TCRSample.json",
        "tests__tiny/1/experiments/task_instruction_prepend/TCRSample.json",
    }
    options = {
        p.parent.name: json.loads(p.read_text())["scores"]["test"][0]["mteb_beyond"]["options"]
        for p in result_files(tmp_path)
    }
    assert options == {"1": {"instruction": "mteb"}, "task_instruction_prepend": {"instruction": "prepend"}}
    # The caller's object is not marked by the variant it was run with.
    assert TCRSample().variant() == {}
    evaluate(model, plain, output_folder=tmp_path, overwrite_strategy="only-cache")


def test_a_variant_without_record_is_refused(bm25: Any) -> None:
    task = TCRSample()
    task.instruction = "none"
    with pytest.raises(ValueError, match="with_variant"):
        mteb.evaluate(bm25, task, cache=None)
    found = mteb.evaluate(with_variant(bm25, task), task, cache=None)
    assert found.task_results[0].scores["test"][0]["mteb_beyond"]["options"] == {"instruction": "none"}
    assert bm25.mteb_model_meta.experiment_kwargs is None


def test_tasks_with_different_options_need_separate_runs(tmp_path: Path, bm25: Any) -> None:
    task = TCRSample()
    task.instruction = "none"
    with pytest.raises(ValueError, match="separate runs"):
        evaluate(bm25, [task, FollowIRSample()], output_folder=tmp_path)


def test_an_unknown_option_value_is_refused(bm25: Any) -> None:
    task = TCRSample()
    task.instruction = "prefix"
    with pytest.raises(ValueError, match=r"instruction must be one of .*'prepend'.*got 'prefix'"):
        mteb.evaluate(bm25, task, cache=None)


def test_a_variant_of_a_model_record_loads_the_same_model() -> None:
    task = TCRSample()
    task.instruction = "none"
    meta = with_variant(mteb.get_model_meta(BM25), task)
    assert isinstance(meta, ModelMeta)
    assert meta.experiment_kwargs == {"task_instruction": "none"}
    loaded = meta.load_model()
    assert loaded.mteb_model_meta.experiment_kwargs == {"task_instruction": "none"}
    assert mteb.get_model_meta(BM25).experiment_kwargs is None


def test_a_second_model_may_not_use_the_first_one_s_prediction_folder(
    tmp_path: Path, predictions_of_bm25: Path, tiny_models: dict[str, Path]
) -> None:
    copied(predictions_of_bm25, tmp_path)
    other = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")
    with pytest.raises(ValueError, match="need a folder of their own"):
        mteb.evaluate(other, TCRSample(), cache=None, prediction_folder=tmp_path)


def test_reranking_another_model_s_predictions_is_a_variant(
    tmp_path: Path, predictions_of_bm25: Path, tiny_models: dict[str, Path]
) -> None:
    from evaluators.plugin import register_local_model

    model = register_local_model(tiny_models["CrossEncoder"])
    task = TCRSample()
    task.convert_to_reranking(predictions_of_bm25, top_k=5)
    found = evaluate(model, task, output_folder=tmp_path / "r", prediction_folder=tmp_path / "p")
    record = found.task_results[0].scores["test"][0]
    assert re.fullmatch(r"mteb/baseline-bm25s@0_3_0:5#[0-9a-f]{8}", record["mteb_beyond"]["options"]["first_stage"])
    assert record["n_missing_candidates"] == 0
    (path,) = result_files(tmp_path / "r")
    assert "task_first_stage_mteb_baseline-bm25s@0_3_0_5" in path.parent.name
    (saved,) = (tmp_path / "p").rglob("TCRSample_predictions.json")
    run = json.loads(saved.read_text())["default"]["test"]
    assert {len(docs) for docs in run.values()} == {5}


def test_a_task_with_candidates_of_its_own_takes_no_first_stage(tmp_path: Path, bm25: Any) -> None:
    mteb.evaluate(bm25, FollowIRSample(), cache=None, prediction_folder=tmp_path)
    with pytest.raises(ValueError, match="candidates of its own"):
        FollowIRSample().convert_to_reranking(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no TCRSample_pred.* at or below .*: found predictions of .FollowIR"):
        TCRSample().convert_to_reranking(tmp_path)


# ---- identity ------------------------------------------------------------------------------------------------------


def nameless(seed: int, directory: Path) -> SentenceTransformer:
    """A model without a name, its weights drawn anew."""
    torch.manual_seed(seed)
    model = SentenceTransformer(str(directory), device="cpu")
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


def test_models_without_a_name_do_not_share_results(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    models = [nameless(seed, tiny_models["SentenceTransformer"]) for seed in (1, 2)]
    apart = [evaluate(m, TCRSample(), output_folder=tmp_path / str(i)) for i, m in enumerate(models)]
    together = [evaluate(m, TCRSample(), output_folder=tmp_path / "both") for m in models]
    for alone, shared in zip(apart, together, strict=True):
        assert (
            shared.task_results[0].scores["test"][0]["ndcg_at_10"]
            == alone.task_results[0].scores["test"][0]["ndcg_at_10"]
        )
    assert len({r.model_name for r in together}) == 2
    assert all(re.fullmatch(r"local/SentenceTransformer-[0-9a-f]{8}", str(r.model_name)) for r in together)
    assert len(result_files(tmp_path / "both")) == 2
    # The same weights are the same model.
    again = evaluate(nameless(1, tiny_models["SentenceTransformer"]), TCRSample(), output_folder=tmp_path / "both")
    assert again.model_name == together[0].model_name
    assert len(result_files(tmp_path / "both")) == 2


def test_a_model_with_nothing_to_tell_it_by_is_refused(tmp_path: Path, bm25: Any) -> None:
    unnamed = copy.copy(bm25)
    unnamed.mteb_model_meta = ModelMeta.create_empty()
    unnamed.model = None
    with pytest.raises(ValueError, match="needs a name and a revision"):
        evaluate(unnamed, TCRSample(), output_folder=tmp_path)


def test_hybrids_are_told_apart_by_parts_and_weights(tmp_path: Path, bm25: Any, tiny_models: dict[str, Path]) -> None:
    from mteb.models.hybrid_wrappers import HybridSearch

    from evaluators.plugin import register_local_model

    dense = register_local_model(tiny_models["SentenceTransformer"]).load_model(device="cpu")
    found = {
        weights: evaluate(HybridSearch([bm25, dense], weights=list(weights)), TCRSample(), output_folder=tmp_path)
        for weights in ((0.5, 0.5), (0.99, 0.01))
    }
    assert len(result_files(tmp_path)) == 2
    alone = mteb.evaluate(HybridSearch([bm25, dense], weights=[0.99, 0.01]), TCRSample(), cache=None)
    ours = found[0.99, 0.01].task_results[0].scores["test"][0]
    assert ours["ndcg_at_10"] == alone.task_results[0].scores["test"][0]["ndcg_at_10"]
    assert ours["ndcg_at_10"] != found[0.5, 0.5].task_results[0].scores["test"][0]["ndcg_at_10"]


def test_first_stages_of_one_model_are_told_apart_by_their_candidates(
    tmp_path: Path, predictions_of_bm25: Path
) -> None:
    path = copied(predictions_of_bm25, tmp_path) / "TCRSample_predictions.json"

    def name() -> str:
        task = TCRSample()
        task.first_stage_predictions = path
        return task.variant()["task_first_stage"]

    first = name()
    edit(
        path,
        lambda c: [
            c["default"]["test"][q].update({d: -s for d, s in docs.items()}) for q, docs in c["default"]["test"].items()
        ],
    )
    assert name() != first
    path.rename(tmp_path / "TCRBenchCSV_predictions.json")
    task = TCRSample()
    with pytest.raises(ValueError, match="holds predictions of TCRBenchCSV; expected those of TCRSample"):
        task.convert_to_reranking(tmp_path / "TCRBenchCSV_predictions.json")


def test_a_setting_that_comes_too_late_is_refused(tmp_path: Path, bm25: Any, predictions_of_bm25: Path) -> None:
    task = TCRSample()
    task.load_data()
    task.first_stage_predictions = predictions_of_bm25
    with pytest.raises(ValueError, match="unload_data"):
        evaluate(bm25, task, output_folder=tmp_path / "r")
    task.unload_data()
    found = evaluate(bm25, task, output_folder=tmp_path / "r")
    assert "first_stage" in found.task_results[0].scores["test"][0]["mteb_beyond"]["options"]


def test_predictions_of_other_data_are_replaced(tmp_path: Path, bm25: Any) -> None:
    evaluate(bm25, TCRSample(), output_folder=tmp_path / "r", prediction_folder=tmp_path / "p")
    (table,) = (tmp_path / "p").rglob("*_per_query.parquet")
    rows = pq.read_table(table)
    provenance = read_provenance(table)
    assert provenance["revision"] == TCRSample.metadata.revision
    pq.write_table(rows.replace_schema_metadata({"mteb_beyond": json.dumps({**provenance, "revision": "old"})}), table)
    evaluate(bm25, TCRSample(), output_folder=tmp_path / "r", prediction_folder=tmp_path / "p")
    assert read_provenance(table) == provenance
    assert len(list((tmp_path / "r").rglob("*.stale-*"))) == 1


def test_a_result_cut_short_is_set_aside(tmp_path: Path, bm25: Any, result_of_bm25: Path) -> None:
    (path,) = result_files(copied(result_of_bm25, tmp_path))
    for content in (path.read_text()[:200], "[]"):
        path.write_text(content)
        evaluate(bm25, TCRSample(), output_folder=tmp_path)
        assert json.loads(path.read_text())["task_name"] == "TCRSample"


def test_what_is_not_comparable_says_so_in_the_result(tmp_path: Path, bm25: Any) -> None:
    task = mteb.get_task("FollowIRCore17")
    task.data_path = FollowIRSample.embedded
    (note,) = mteb.evaluate(bm25, task, cache=None).task_results[0].scores["test"][0]["mteb_beyond"]["notes"]
    assert "not comparable with the published ones" in note
    assert (
        "notes"
        not in mteb.evaluate(bm25, FollowIRSample(), cache=None).task_results[0].scores["test"][0]["mteb_beyond"]
    )
