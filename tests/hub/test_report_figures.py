"""The views of results as figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from many_results import place_of, with_bounds, write_result

from hub_cards.report.charts import format_charts, place_charts
from hub_cards.report.collect import Collected, collect
from hub_cards.report.figures import _short, looks_of
from hub_cards.report.page import formats_of
from hub_cards.report.published import published


def test_54_models_all_look_different() -> None:
    assert len(set(looks_of([str(n) for n in range(54)]).values())) == 54


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (["BAAI/bge-m3", "intfloat/e5"], ["bge-m3", "e5"]),
        (["a/same", "b/same"], ["a/same", "b/same"]),
        # Settings hold slashes, too, and may be all that two names share.
        (
            ["BAAI/bge-reranker (first_stage=mteb/bm25s@1:100)", "jina/reranker (first_stage=mteb/bm25s@1:100)"],
            ["bge-reranker …bm25s@1:100)", "reranker (fir…bm25s@1:100)"],
        ),
        # Alike when they are cut: whole.
        (
            ["a/model-with-a-long-name-1-of-a-family", "a/model-with-a-long-name-2-of-a-family"],
            ["model-with-a-long-name-1-of-a-family", "model-with-a-long-name-2-of-a-family"],
        ),
    ],
)
def test_names_beside_an_axis_are_short_and_tell_models_apart(labels: list[str], shown: list[str]) -> None:
    assert _short(labels) == shown


def test_the_tcr_view_has_the_chance_line_and_intervals(many: Collected) -> None:
    place = place_of(many, "TCRBenchMixed")
    scatter, bars, types = place_charts(many, place)
    entry = many.at(place)[many.models[0]]
    point = scatter.figure["data"][1]
    assert (point["x"], point["y"]) == ([entry.scores["gr_at_1"]], [entry.scores["recall_at_1"]])
    chance = scatter.figure["layout"]["shapes"][0]
    assert chance["y1"] / chance["x1"] == 0.221  # R@1 = chance DS@1 * GR@1
    assert scatter.with_published == len(published("TCRBenchMixed")) == 7
    bar = bars.figure["data"][0]
    at = bar["text"].index(many.models[0])
    assert bar["x"][at] == entry.scores["ds_at_1"]
    assert bar["error_x"]["array"][at] == pytest.approx(0.05)
    without = bars.figure["data"][1]
    assert "bge-m3 (published)" in without["text"]  # Table 42 has no interval of it
    assert "error_x" not in without
    assert [name for name, _, _ in types.legend] == ["EM", "SF", "SA"]
    by_format = format_charts(many, formats_of(many))
    assert [len(chart.figure["data"]) for chart in by_format] == [7, 7, 7]


def test_the_ifir_and_followir_views_hold_own_and_published_points(many: Collected) -> None:
    ifir = place_charts(many, place_of(many, "IFIRFiQAInstFol"))
    assert [chart.with_published for chart in ifir] == [15, 0, 15, 15, 0, 0]
    levels = ifir[2].figure["data"][-1]
    scores = many.at(place_of(many, "IFIRFiQAInstFol"))[many.models[-1]].scores
    assert levels["y"] == [scores[f"level_{n}_paper_ndcg_at_20"] for n in (1, 2, 3)]
    (followir,) = place_charts(many, place_of(many, "FollowIRCore17"))
    grey = followir.figure["data"][0]
    at = grey["text"].index("published: FollowIR-7B (FollowIR, Table 2)")
    assert (grey["x"][at], grey["y"][at]) == (pytest.approx(0.200), pytest.approx(0.165))
    assert [s.get("x0") for s in followir.figure["layout"]["shapes"]] == [0, 0.05]
    assert "published retrieval scores" in followir.about


def test_lines_lie_inside_a_chart_and_nothing_is_said_of_values_that_are_not_in_it(tmp_path: Path) -> None:
    write_result(
        tmp_path, "a/one", "FollowIRSample", {"p-MRR": 0.1, "followir_score": 0.4, "chance_followir_score": 0.2}
    )
    found = collect([tmp_path])
    (chart,) = place_charts(found, found.places[0])
    (left, right), (bottom, top) = (chart.figure["layout"][axis]["range"] for axis in ("xaxis", "yaxis"))
    assert left < 0.2 < 0.4 < right
    assert bottom < 0 < 0.1 < top
    assert "published" not in chart.about


@pytest.mark.parametrize(
    ("task", "x", "y"),
    [
        ("IFIRFiQAInstFol", "ndcg_at_20", "instfol_at_20"),
        ("FollowIRCore17", "followir_score", "p-MRR"),
        ("TCRBenchMixed", "gr_at_1", "recall_at_1"),
    ],
)
def test_a_point_has_the_intervals_of_both_its_scores(task: str, x: str, y: str, tmp_path: Path) -> None:
    scores = with_bounds({x: 0.4, y: 0.2})
    write_result(tmp_path, "a/one", task, scores)
    write_result(tmp_path, "a/two", task, {x: 0.3, y: 0.1})
    found = collect([tmp_path])
    chart = place_charts(found, found.places[0], with_published=False)[0]
    with_intervals, without = chart.figure["data"]
    for name, key in (("error_x", x), ("error_y", y)):
        bars = with_intervals[name]
        assert bars["array"] == [pytest.approx(scores[f"{key}_high"] - scores[key])]
        assert bars["arrayminus"] == [pytest.approx(scores[key] - scores[f"{key}_low"])]
        assert name not in without
    assert "95 % intervals" in chart.about
    for name, key in (("xaxis", x), ("yaxis", y)):
        low, high = chart.figure["layout"][name]["range"]
        assert low <= scores[f"{key}_low"] and scores[f"{key}_high"] <= high
