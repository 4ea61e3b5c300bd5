"""The papers' own values as points of reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from many_results import TCR, TCR_SCORES, write_result

from hub_cards.report.collect import collect
from hub_cards.report.published import AVERAGES, published
from hub_cards.report.tables import place_table
from hub_cards.values import Score


def test_values_from_the_papers_are_on_the_scale_of_result_files() -> None:
    followir = {r.model: r for r in published("FollowIRRobust04")}
    assert followir["FollowIR-7B"].scores == {"followir_score": Score(0.248), "p-MRR": Score(0.137)}  # 24.8, +13.7
    assert followir["BM25"].source == "FollowIR, Table 2"
    tcr = {r.model: r.scores for r in published("TCRBenchMixed")}
    assert tcr["Qwen3-Embedding-8B"]["ds_at_1"] == Score(0.271, 0.200, 0.346)  # Table 42
    assert tcr["Qwen3-Embedding-8B"]["SF_gr_at_1"] == Score(0.564)  # Table 11
    assert tcr["bge-m3"]["recall_at_5"] == Score(0.325)  # Table 8
    ifir = {r.model: r.scores for r in published("IFIRFiQAInstFol")}
    assert abs(ifir["BM25"]["paper_instfol_at_20"].value or 0) < 1  # printed times 100
    assert published("TCRSample") == published("SciFact") == ()


def test_the_printed_averages_of_followir_are_means_of_its_subsets() -> None:
    by_task = {task: {r.model: r.scores for r in published(task)} for task in AVERAGES[1].tasks}
    for average in published(AVERAGES[1].name):
        for key, score in average.scores.items():
            mean = sum(scores[average.model][key].value or 0 for scores in by_task.values()) / 3
            assert score.value == pytest.approx(mean, abs=0.0011), average.model  # each rounded to 0.001


def test_the_printed_ds_of_tcr_bench_is_the_ratio_of_the_printed_scores() -> None:
    for task in (*TCR, "TCRBenchDiagnosticMixed"):
        for reference in published(task):
            recall, group, ds = (reference.scores[k].value or 0 for k in ("recall_at_1", "gr_at_1", "ds_at_1"))
            assert ds == pytest.approx(recall / group, abs=0.003), reference


def test_data_that_are_not_the_papers_get_no_published_values(tmp_path: Path) -> None:
    note = "75 questions over 368 tables: its scores are not comparable with the published ones"
    write_result(tmp_path, "a/b", "TCRBenchMixed", {**TCR_SCORES, "mteb_beyond": {"notes": [note]}})
    found = collect([tmp_path])
    table = place_table(found, found.places[0])
    assert {row.kind for row in table.rows} == {"own", "chance"}
    assert note in table.notes
