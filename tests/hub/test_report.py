"""What the results page says, apart from how a browser shows it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from many_results import TCR, write_many, write_result
from markdown_it import MarkdownIt

from evaluators.cli import main
from evaluators.metrics.pmrr import p_mrr
from hub_cards.report.charts import format_charts, place_charts
from hub_cards.report.collect import Collected, Place, collect
from hub_cards.report.embedding import script_json
from hub_cards.report.figures import looks_of
from hub_cards.report.items import load_texts
from hub_cards.report.measures import Score, chance_of, interval_written, value_of, written
from hub_cards.report.page import formats_of, page
from hub_cards.report.published import AVERAGES, published
from hub_cards.report.queries import Sheet, sheets
from hub_cards.report.tables import Table, overview, place_table
from hub_cards.report.text import csv_text, markdown

TCR_SCORES = {
    "recall_at_1": 0.2,
    "recall_at_1_low": 0.1,
    "recall_at_1_high": 0.3,
    "gr_at_1": 0.8,
    "ds_at_1": 0.25,
    "chance_recall_at_1": 0.01,
    "chance_ds_at_1": 0.221,
}


def cells(table: Table, row: str) -> dict[str, Any]:
    (found,) = [r for r in table.rows if r.label == row]
    heads = [f"{c.group}/{c.label}" if c.group else c.label for c in table.columns]
    return dict(zip(heads, found.cells, strict=True))


def place_of(collected: Collected, task: str) -> Place:
    (found,) = [p for p in collected.places if p.task == task]
    return found


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    """Three models on twenty tasks."""
    folder = tmp_path_factory.mktemp("many")
    write_many(folder, 3)
    return collect([folder])


@pytest.fixture(scope="module")
def made(made_results: Path) -> Collected:
    return collect([made_results])


@pytest.fixture(scope="module")
def made_sheets(made: Collected, made_results: Path) -> dict[str, Sheet]:
    found, notes = sheets(made, [made_results / "predictions"], [], 1000)
    assert notes == []
    return {sheet.place.task: sheet for sheet in found}


# ---- published values ------------------------------------------------------------------------------------------


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


# ---- numbers ---------------------------------------------------------------------------------------------------


@given(
    first=st.permutations(list("abcdef")), second=st.permutations(list("abcdef")), changed=st.sampled_from(["a", "bd"])
)
def test_exchanging_rankings_turns_the_sign_of_p_mrr_so_its_chance_level_is_0(
    first: list[str], second: list[str], changed: str
) -> None:
    runs = [{"q": {d: float(-i) for i, d in enumerate(order)}} for order in (first, second)]
    there, back = (p_mrr(a, b, {"q": list(changed)}).score for a, b in (runs, runs[::-1]))
    assert there == pytest.approx(-back)
    assert chance_of({}, "p-MRR") == 0


def test_chance_levels_and_intervals_are_read_beside_their_scores() -> None:
    scores = {"ds_at_1": 0.3, "ds_at_1_low": 0.2, "ds_at_1_high": 0.4, "EM_chance_ds_at_1": 0.24}
    scores |= {"level_2_chance_ndcg_at_20": 0.03, "chance_ndcg_at_20": 0.04, "x": float("nan"), "y": True}
    assert value_of(scores, "ds_at_1") == Score(0.3, 0.2, 0.4)
    assert value_of(scores, "x") == value_of(scores, "y") == value_of(scores, "z") == Score(None)
    assert chance_of(scores, "EM_ds_at_1") == 0.24
    assert chance_of(scores, "level_2_ndcg_at_20") == 0.03
    assert chance_of(scores, "query_only_ndcg_at_20") == 0.04
    assert chance_of(scores, "ds_at_1") is None
    assert value_of({"n_judged": 90, "n_unscored": 10}, "unscored_share") == Score(0.1)
    assert value_of({"n_judged": 0, "n_unscored": 0}, "unscored_share") == Score(None)


def test_numbers_are_written_alike_everywhere() -> None:
    assert [written(v) for v in (0.12345, -0.0001, None)] == ["0.123", "0.000", "-"]
    assert [written(v, "p") for v in (0.0, 0.04)] == ["<0.001", "0.040"]
    assert written(12.0, "count") == "12"
    assert interval_written(Score(0.5, 0.25, 0.75)) == "[0.250, 0.750]"
    assert interval_written(Score(0.5)) == ""


# ---- tables ----------------------------------------------------------------------------------------------------


def test_the_overview_shows_intervals_chance_and_what_was_not_run(tmp_path: Path) -> None:
    write_result(tmp_path, "a/one", "TCRBenchMixed", TCR_SCORES)
    write_result(tmp_path, "a/two", "FollowIRCore17", {"p-MRR": -0.02, "followir_score": 0.1})
    write_result(tmp_path, "a/two", "SciFact", {"main_score": float("nan")})
    table = overview(collect([tmp_path]))
    assert [row.label for row in table.rows] == ["chance level", "a/one", "a/two"]
    one, two = cells(table, "a/one"), cells(table, "a/two")
    assert one["TCR-Bench/TCRBenchMixed"] == (0.2, "0.200", "[0.100, 0.300]")
    assert one["FollowIR/FollowIRCore17"] == (None, "not run", "")
    assert two["FollowIR/FollowIRCore17"] == (-0.02, "-0.020", "")
    assert two["other tasks/SciFact"] == (None, "undefined", "")
    assert cells(table, "chance level")["TCR-Bench/TCRBenchMixed"].text == "0.010"
    assert all("0..1" in c.about or "-1..1" in c.about or "own" in c.about for c in table.columns)


def test_results_on_different_data_never_share_a_column(tmp_path: Path) -> None:
    write_result(tmp_path, "a/one", "TCRBenchMixed", TCR_SCORES, revision="revision-1")
    write_result(tmp_path, "a/two", "TCRBenchMixed", TCR_SCORES, revision="revision-2")
    write_result(tmp_path, "a/two", "TCRBenchCSV", TCR_SCORES, revision="revision-2")
    found = collect([tmp_path])
    assert [c.label for c in overview(found).columns][:2] == ["TCRBenchMixed @revision"] * 2
    assert [cell.text for cell in overview(found).rows[1].cells] == ["0.200", "not run", "not run"]
    assert formats_of(found) == {}


def test_a_model_with_two_results_of_a_task_is_refused_and_a_folder_given_twice_is_not(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_result(tmp_path / name, "a/one", "TCRBenchMixed", TCR_SCORES)
    with pytest.raises(ValueError, match="two results of TCRBenchMixed") as caught:
        collect([tmp_path / "first", tmp_path / "second"])
    assert str(tmp_path / "first") in str(caught.value)
    assert len(collect([tmp_path / "first", tmp_path / "first" / "results"]).entries) == 1


def test_the_table_of_a_task_shows_doubts_and_marks_published_lines(many: Collected) -> None:
    table = place_table(many, place_of(many, "IFIRFiQAInstFol"))
    own = cells(table, many.models[0])
    assert own["how sure/unscored"] == (0.1, "0.100", "")
    assert {"how sure/tied", "how sure/docs cut", "nDCG@20 by level/3"} <= own.keys()
    theirs = [row for row in table.rows if row.kind == "published"]
    assert len(theirs) == 15
    assert all(row.source.startswith("IFIR, Tables 3, 8") for row in theirs)
    assert [r.kind for r in place_table(many, place_of(many, "IFIRFiQAInstFol"), False).rows] == ["chance"] + [
        "own"
    ] * 3


def test_averages_are_plain_means_and_need_every_subset(many: Collected, tmp_path: Path) -> None:
    average = many.at(place_of(many, AVERAGES[1].name))[many.models[0]]
    parts = [many.at(place_of(many, task))[many.models[0]].scores["p-MRR"] for task in AVERAGES[1].tasks]
    assert average.scores["p-MRR"] == pytest.approx(sum(parts) / 3)
    write_many(tmp_path, 1, AVERAGES[1].tasks[:2])
    assert not any(place.is_average for place in collect([tmp_path]).places)


def test_averages_over_different_data_never_share_a_table_and_say_who_judged(tmp_path: Path) -> None:
    for model, own, judge in (("a/one", "data-1", "X"), ("a/two", "local-2", "X"), ("a/three", "data-1", "Y")):
        for task in AVERAGES[0].tasks:
            scores = {"instfol_at_20": 0.5, "mteb_beyond": {"judge": {"judge": judge}}}
            write_result(tmp_path, model, task, scores, own if task == "IFIRFiQAInstFol" else "data-1")
    found = collect([tmp_path])
    averages = [place for place in found.places if place.is_average]
    assert [set(found.at(place)) for place in averages] == [{"a/one", "a/three"}, {"a/two"}]
    assert [found.label(place).split(", ")[1] for place in averages] == [
        "IFIRFiQAInstFol @data-1",
        "IFIRFiQAInstFol @local-2",
    ]
    mixed, single = (place_table(found, place) for place in averages)
    assert "InstFol judged by X." in single.notes
    assert any("different judges" in note and "X: a/one; Y: a/three" in note for note in mixed.notes)
    assert any("IFIRFiQAInstFol local-2; " in note for note in single.notes)


def test_scores_of_different_judges_have_no_highest_one(tmp_path: Path) -> None:
    for model, judge in (("a/one", "small"), ("a/two", "large")):
        record = {"judge": {"judge": "LevelJudge", "model": judge, "endpoint": "somewhere"}}
        write_result(
            tmp_path, model, "IFIRFiQAInstFol", {"instfol_at_20": 0.5, "ndcg_at_20": 0.4, "mteb_beyond": record}
        )
    found = collect([tmp_path])
    table = place_table(found, found.places[0], with_published=False)
    assert {column.label: column.comparable for column in table.columns} == {"nDCG@20": True, "InstFol@20": False}
    assert any("LevelJudge (model small): a/one; LevelJudge (model large): a/two" in note for note in table.notes)


def test_only_the_embedded_data_are_called_a_sample(tmp_path: Path) -> None:
    revision = mteb.get_task("TCRSample").current_revision()
    for model, data in (("a/one", revision), ("a/two", "local-2")):
        write_result(tmp_path, model, "TCRSample", TCR_SCORES, data)
    found = collect([tmp_path])
    told = {place.revision: " ".join(place_table(found, place).notes) for place in found.places}
    assert "embedded sample" in told[revision]
    assert "sample" not in told["local-2"]
    assert "All tasks here are embedded samples" not in page(found, [], [])
    assert [place.is_sample for place in found.places] == [False, True]


def test_instructions_without_a_level_are_columns_where_there_are_any(made: Collected, many: Collected) -> None:
    own, theirs = place_of(made, "IFIRSample"), place_of(many, "IFIRFiQAInstFol")
    model = made.models[0]
    mean = made.at(own)[model].scores["level_0_instfol_at_20"]
    assert cells(place_table(made, own), model)["InstFol@20 by level/none"].value == mean
    assert not any(column.label == "none" for column in place_table(many, theirs).columns)
    told = [
        ["without a level" in chart.about for chart in place_charts(*where)] for where in ((made, own), (many, theirs))
    ]
    assert (any(told[0]), any(told[1])) == (True, False)


# ---- figures ---------------------------------------------------------------------------------------------------


def test_54_models_all_look_different() -> None:
    assert len(set(looks_of([str(n) for n in range(54)]).values())) == 54


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


# ---- single queries --------------------------------------------------------------------------------------------


def by_rank(run: dict[str, float]) -> list[str]:
    return sorted(run, key=lambda d: (run[d], d), reverse=True)


def run_of(folder: Path, task: str) -> dict[str, dict[str, float]]:
    (path,) = (p for p in folder.rglob(f"{task}_predictions.json") if "instruction" not in str(p))
    run: dict[str, dict[str, float]] = json.loads(path.read_text())["default"]["test"]
    return run


def test_a_followir_topic_shows_both_rankings_and_where_excluded_documents_went(
    made_sheets: dict[str, Sheet], made_results: Path
) -> None:
    content = made_sheets["FollowIRSample"].content
    run = run_of(made_results, "FollowIRSample")
    task = mteb.get_task("FollowIRSample")
    task.load_data()
    for item in content["queries"]:
        before, after = (by_rank(run[f"{item['id']}-{form}"]) for form in ("og", "changed"))
        (shown,) = item["runs"]
        top = [[content["docs"][d][0] for d in c["t"]] for c in shown["c"]]
        assert top == [before[:10], after[:10]]
        assert shown["c"][1]["r"] == [before.index(d) + 1 for d in after[:10]]
        excluded = task.data.side["qrel_diff"][item["id"]]
        assert shown["n"] == len(excluded)
        moved = [(content["docs"][d][0], *ranks) for d, *ranks in shown["x"]]
        expected = [(d, before.index(d) + 1, after.index(d) + 1) for d in excluded]
        assert moved == sorted(expected, key=lambda row: row[1])[:12]
        assert content["docs"][shown["x"][0][0]][0] in excluded
        judged = [task.data.relevant_docs[f"{item['id']}-{form}"] for form in ("og", "changed")]
        assert [c["n"] for c in item["c"]] == [sum(grade > 0 for grade in docs.values()) for docs in judged]
    assert len(content["queries"]) == 24


def test_an_ifir_query_shows_its_instructions_with_what_is_relevant(made_sheets: dict[str, Sheet]) -> None:
    content = made_sheets["IFIRSample"].content
    item = next(q for q in content["queries"] if q["id"] == "fin-01")
    task = mteb.get_task("IFIRSample")
    task.load_data()
    assert [c["l"] for c in item["c"]] == ["plain query", "level 1", "level 2", "level 3"]
    assert item["c"][1]["i"] == "Please help me to find financial advice for this question."
    relevant = {d for d, grade in task.data.relevant_docs["fin-01-v2"].items() if grade}
    assert item["c"][2]["n"] == len(relevant)
    assert {content["docs"][d][0] for d in item["c"][2]["k"]["relevant"]} <= relevant
    assert [name for name, _ in item["runs"][0]["c"][1]["s"]] == ["nDCG@20", "of the plain ranking", "InstFol@20"]


def test_a_tcr_question_marks_target_and_siblings(made_sheets: dict[str, Sheet], made: Collected) -> None:
    content = made_sheets["TCRSample"].content
    task = mteb.get_task("TCRSample")
    task.load_data()
    question = task.data.side["questions"][0]
    item = content["queries"][0]
    kinds = {content["docs"][d][0]: kind for kind, docs in item["c"][0]["k"].items() for d in docs}
    assert kinds[question.target] == "target"
    assert set(kinds) == set(question.group)
    assert all(kind == "target" or kind.startswith("sibling") for kind in kinds.values())
    assert [made.models[run["m"]] for run in item["runs"]] == list(made.models)  # the plain model and its variant


def test_what_is_left_out_is_counted(made: Collected, made_results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, _ = sheets(made, [made_results / "predictions"], [], 3)
    assert {(s.n_shown, s.n_queries) for s in few} == {(3, 24), (3, 30), (3, 40)}
    assert "3 of 40 queries are here" in few[0].content["about"]
    assert "37 are left out" in few[0].content["about"]
    monkeypatch.setattr("hub_cards.report.queries.MOST_BYTES", 90_000)
    small, _ = sheets(made, [made_results / "predictions"], [], 1000)
    for sheet in small:
        assert 1 < sheet.n_shown < sheet.n_queries
        assert len(script_json(sheet.content)) < 31_000
        assert f"{sheet.n_queries - sheet.n_shown} are left out" in sheet.content["about"]


def test_predictions_of_another_run_are_left_out_and_named(results: Path) -> None:
    spoilt = next(p for p in (results / "predictions").rglob("IFIRSample_per_query.parquet"))
    other = next(p for p in (results / "predictions").rglob("TCRSample_per_query.parquet") if "instr" not in str(p))
    shutil.copy(other, spoilt)
    next(p for p in (results / "predictions").rglob("FollowIRSample_per_query.parquet")).unlink()
    found, notes = sheets(collect([results]), [results / "predictions"], [], 5)
    assert [sheet.place.task for sheet in found] == ["TCRSample"]
    assert len(notes) == 2
    assert "IFIRSample" in notes[0] and "other data" in notes[0]
    assert "FollowIRSample" in notes[1] and "no table" in notes[1]


def edit_predictions(results: Path, task: str, edit: Callable[[dict[str, Any]], Any]) -> Path:
    """Change what the plain model's predictions of a task hold."""
    (path,) = (p for p in (results / "predictions").rglob(f"{task}_predictions.json") if "instr" not in str(p))
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    return path


def noted(results: Path) -> tuple[dict[str, Sheet], str]:
    found, notes = sheets(collect([results]), [results / "predictions"], [], 5)
    return {sheet.place.task: sheet for sheet in found}, "\n".join(notes)


def test_rankings_of_another_model_or_an_earlier_run_are_never_shown(results: Path) -> None:
    def turned(content: dict[str, Any]) -> None:
        for scores in content["default"]["test"].values():
            scores.update({document: -score for document, score in scores.items()})

    other = edit_predictions(results, "IFIRSample", lambda c: c["mteb_model_meta"].update(model_name="a/other"))
    earlier = edit_predictions(results, "TCRSample", turned)
    found, notes = noted(results)
    assert found.keys() == {"FollowIRSample", "TCRSample"}
    assert [len(query["runs"]) for query in found["TCRSample"].content["queries"]] == [1] * 5  # of the variant
    assert f"{other} holds those of another model, a/other" in notes
    assert f"{earlier} does not fit" in notes
    assert len(notes.splitlines()) == 2


def test_models_without_predictions_are_named_and_those_without_a_record_too(results: Path) -> None:
    write_result(results, "a/unrecorded", "TCRSample", TCR_SCORES, collect([results]).places[-1].revision)
    (path,) = (p for p in (results / "predictions").rglob("IFIRSample_predictions.json"))
    path.unlink()
    found, notes = noted(results)
    assert "no predictions of: a/unrecorded (its folder is not known without model_meta.json)" in notes
    assert "IFIRSample: no predictions of: sentence-transformers/all-MiniLM-L6-v2" in notes
    assert "No predictions of: a/unrecorded" in found["TCRSample"].content["about"]
    assert "o predictions of" not in found["FollowIRSample"].content["about"]


def test_damaged_files_of_single_queries_are_named_and_stop_nothing(results: Path) -> None:
    ((table,), (saved,)) = (
        list((results / "predictions").rglob(name))
        for name in ("IFIRSample_per_query.parquet", "FollowIRSample_predictions.json")
    )
    table.write_text("x")
    saved.write_text('{"a":')
    found, notes = noted(results)
    assert found.keys() == {"TCRSample"}
    assert f"{table} is no readable table" in notes
    assert f"{saved} cannot be read" in notes


def test_a_model_with_a_name_longer_than_a_files_stops_nothing(results: Path) -> None:
    for path in (results / "results").rglob("model_meta.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"name": "a/" + "b" * 300}))
    found, notes = noted(results)
    assert found == {}
    assert "no predictions of: a/bbb" in notes


def test_texts_come_from_the_very_data_that_were_scored_and_are_never_fetched() -> None:
    task = mteb.get_task("FollowIRSample")
    assert load_texts(Place("FollowIRSample", "test", "default", task.current_revision()), []).data is not None
    assert load_texts(Place("FollowIRSample", "test", "default", "another"), []).data is None
    assert (
        load_texts(Place("FollowIRCore17", "test", "default", "e39ff896cf3efbbdeeb950e6bd7c79f266995b07"), []).data
        is None
    )


# ---- files -----------------------------------------------------------------------------------------------------


def test_every_number_of_a_result_file_is_one_row_of_the_csv(made: Collected, made_results: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(made))))
    keys = [tuple(row[k] for k in ("source", "model", "variant", "task", "subset", "metric")) for row in rows]
    assert len(keys) == len(set(keys))
    assert all(row["scale"] for row in rows)
    (path,) = (made_results / "results").glob("*/*/TCRSample.json")
    (scores,) = json.loads(path.read_text())["scores"]["test"]
    found = {r["metric"]: r for r in rows if r["task"] == "TCRSample" and not r["variant"]}
    numbers = {k: v for k, v in scores.items() if isinstance(v, int | float) and not k.startswith("nauc_")}
    bounds = {k for k in numbers if k.endswith(("_low", "_high"))}
    assert found.keys() == numbers.keys() - bounds
    assert len(bounds) == 6
    assert all(float(found[k]["value"]) == v for k, v in numbers.items() if k not in bounds)
    assert float(found["ds_at_1"]["low"]) == scores["ds_at_1_low"]
    assert float(found["ds_at_1"]["chance"]) == scores["chance_ds_at_1"]
    assert found["p_null_n"]["scale"] == "count"
    assert found["ds_at_1_p_null"]["scale"] == "p-value, 0..1"
    assert next(r for r in rows if r["metric"] == "p-MRR")["scale"] == "-1..1"


def test_published_values_are_told_apart_in_the_csv(many: Collected) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(many))))
    (one,) = [
        r
        for r in rows
        if r["model"] == "Qwen3-Embedding-8B" and r["task"] == "TCRBenchMixed" and r["metric"] == "ds_at_1"
    ]
    assert one["source"] == "published: TCR-Bench, Table 8, interval Table 42, types Table 11"
    assert (one["value"], one["low"], one["high"]) == ("0.271", "0.2", "0.346")
    assert not any("published" in r["source"] for r in csv.DictReader(io.StringIO(csv_text(many, False))))


def test_markdown_has_a_table_for_the_overview_and_each_task_whatever_names_hold(tmp_path: Path) -> None:
    write_result(tmp_path, "a/*b*|<i>_c_", "TCRBenchMixed", TCR_SCORES)
    write_result(tmp_path, "a/two", "FollowIRCore17", {"p-MRR": -0.02, "followir_score": 0.1})
    found = collect([tmp_path])
    text = markdown(found, [], ["a note"])
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    assert rendered.count("<table>") == 3
    assert '<td style="text-align:left">a/*b*|&lt;i&gt;_c_</td>' in rendered
    assert "0.200 [0.100, 0.300]" in rendered
    assert "published: Qwen3-Embedding-8B" in rendered


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), lambda x: st.lists(x, max_size=3)))
def test_data_in_a_page_cannot_leave_their_script_element(data: Any) -> None:
    text = script_json({"x": data, "y": "</script><!--"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"x": data, "y": "</script><!--"}


def test_the_command_writes_all_three_files(made_results: Path, tmp_path: Path, capsys: Any) -> None:
    out = [f"--out={tmp_path / 'r'}.{suffix}" for suffix in ("html", "md", "CSV")]
    assert main(["report", str(made_results), "--queries", "2", *out]) == 0
    printed = capsys.readouterr().out
    assert "single queries of TCRSample: 2 of 30" in printed
    page = (tmp_path / "r.html").read_text()
    assert page.count("plotly.js v") == 1
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--out", "r.pdf"], "must end in"),
        (["--out", "r.md", "--out", "."], "must end in"),
        (["--out", "r.md", "--out", "folder.html"], "folder.html is a folder"),
        (["--out", "r.md", "--out", "file/r.html"], "file is a file, no folder"),
        (["--out", "r.html", "--queries", "-1"], "0 or more"),
        (["--out", "r.html", "--predictions", "nowhere"], "nowhere is no folder"),
    ],
)
def test_unusable_options_are_told_before_anything_is_written(
    more: list[str], told: str, made_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").touch()
    assert main(["report", str(made_results), *more]) == 1
    assert told in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"folder.html", "file"}


def test_results_without_predictions_say_so(tmp_path: Path, capsys: Any) -> None:
    write_result(tmp_path, "a/one", "TCRBenchMixed", TCR_SCORES)
    assert main(["report", str(tmp_path / "results"), "--out", str(tmp_path / "r.html")]) == 0
    assert "No single queries: no saved predictions" in capsys.readouterr().out
    assert "No single queries: no saved predictions" in (tmp_path / "r.html").read_text()


def test_a_folder_without_results_is_told(tmp_path: Path, capsys: Any) -> None:
    assert main(["report", str(tmp_path), "--out", "r.html"]) == 1
    assert "no result folder of mteb" in capsys.readouterr().err
