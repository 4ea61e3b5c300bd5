"""The tables of the results page, and what compares in them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

import mteb
import pytest
from many_results import TCR_SCORES, place_of, with_bounds, write_many, write_result

from hub_cards.report.best import best
from hub_cards.report.charts import place_charts
from hub_cards.report.collect import Collected, collect
from hub_cards.report.page import formats_of, page, table_values
from hub_cards.report.published import AVERAGES
from hub_cards.report.tables import Table, overview, place_table
from hub_cards.report.text import csv_text, markdown


class Shown(NamedTuple):
    value: float | None
    text: str
    interval: str


def cells(table: Table, row: str) -> dict[str, Shown]:
    (found,) = [r for r in table.rows if r.label == row]
    heads = [f"{c.group}/{c.label}" if c.group else c.label for c in table.columns]
    shown = [Shown(cell.score.value, cell.text, cell.interval) for cell in found.cells]
    return dict(zip(heads, shown, strict=True))


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


def test_a_judge_of_single_levels_is_a_judge_too(tmp_path: Path) -> None:
    """Where a whole level has no score there is no InstFol over all, but of the other levels there is."""
    for model, judge, keys in (
        ("a/one", "X", ("level_1_instfol_at_20",)),
        ("a/two", "Y", ("level_1_instfol_at_20", "instfol_at_20")),
    ):
        scores = dict.fromkeys(keys, 0.5 if model == "a/one" else 0.4)
        write_result(tmp_path, model, "IFIRFiQAInstFol", {**scores, "mteb_beyond": {"judge": {"judge": judge}}})
    found = collect([tmp_path])
    table = place_table(found, found.places[0], with_published=False)
    assert not any(column.comparable for column in table.columns)
    assert any("X: a/one; Y: a/two" in note for note in table.notes)


def test_scores_of_different_metric_versions_have_no_highest_one(tmp_path: Path) -> None:
    for model, version in (("a/one", 2), ("a/two", 3), ("a/three", None)):
        record = {} if version is None else {"mteb_beyond": {"metric_version": version}}
        write_result(tmp_path, model, "TCRBenchMixed", TCR_SCORES | {"recall_at_1": 0.1 * (version or 1)} | record)
    found = collect([tmp_path])
    table = place_table(found, found.places[0], with_published=False)
    assert best(table) == [None] * len(table.columns) and best(overview(found)) == [None]
    (note,) = [note for note in table.notes if "other versions" in note]
    assert "than version 3, " in note and "a/one (2)" in note and "a/three (not said)" in note
    assert "a/two (" not in note


def test_columns_of_several_subsets_tell_their_data(tmp_path: Path) -> None:
    for model, revision in (("a/one", "revision-1"), ("a/two", "another-2")):
        for subset in ("x", "y"):
            folder = tmp_path / subset
            write_result(folder, model, "SciFact", {"main_score": 0.4}, revision, subset)
    labels = [c.label for c in overview(collect([tmp_path / "x", tmp_path / "y"])).columns]
    assert sorted(labels) == ["SciFact @another-", "SciFact @revision"]


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


# ---- intervals and what stands out -----------------------------------------------------------------------------

IFIR_KEYS = [
    f"{part}{key}"
    for part in ("", "level_1_", "level_2_", "level_3_")
    for key in ("ndcg_at_20", "paper_ndcg_at_20", "instfol_at_20", "paper_instfol_at_20")
] + ["query_only_ndcg_at_20", "paper_mrr_at_20"]


@pytest.mark.parametrize(
    ("task", "keys"),
    [
        ("IFIRFiQAInstFol", IFIR_KEYS),
        ("FollowIRCore17", ["p-MRR", "followir_score", "followir_score_changed_qrels"]),
        ("InstructIRRobustness", ["robustness_at_10", "ndcg_at_10"]),
    ],
)
def test_every_interval_of_a_result_stands_beside_its_score(task: str, keys: list[str], tmp_path: Path) -> None:
    scores = with_bounds({key: 0.2 + number / 100 for number, key in enumerate(keys)})
    write_result(tmp_path, "a/one", task, scores)
    found = collect([tmp_path])
    wanted = sorted(f"[{scores[f'{key}_low']:.3f}, {scores[f'{key}_high']:.3f}]" for key in keys)
    table = place_table(found, found.places[0], with_published=False)
    (row,) = (row for row in table.rows if row.kind == "own")
    assert sorted(cell.interval for cell in row.cells) == wanted
    first = f"[{scores[f'{keys[0]}_low']:.3f}, {scores[f'{keys[0]}_high']:.3f}]"
    assert [cell.interval for cell in overview(found).rows[-1].cells] == [first]
    text = markdown(found, [], [])
    assert all(interval in text for interval in wanted)
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(csv_text(found, with_published=False)))}
    assert not any(key.endswith(("_low", "_high")) for key in rows)
    for key in keys:
        assert (float(rows[key]["low"]), float(rows[key]["high"])) == (scores[f"{key}_low"], scores[f"{key}_high"])


def test_an_average_over_tasks_has_no_interval_made_of_theirs(tmp_path: Path) -> None:
    for task in AVERAGES[1].tasks:
        write_result(tmp_path, "a/one", task, with_bounds({"p-MRR": 0.1, "followir_score": 0.3}))
    found = collect([tmp_path])
    average = found.at(place_of(found, AVERAGES[1].name))["a/one"].scores
    assert {"p-MRR", "followir_score"} == {key for key in average if "p-MRR" in key or "followir" in key}


@pytest.mark.parametrize(
    ("key", "scores", "marked"),
    [
        ("p-MRR", [-0.02, -0.03], None),  # below 0
        ("p-MRR", [-0.03, 0.02], 1),
        ("p-MRR", [0.02, 0.02], None),
        ("p-MRR", [0.02], None),  # alone
        ("recall_at_1", [0.02, 0.01], None),  # by chance
        ("recall_at_1", [0.05, 0.01], 0),
        ("recall_at_1", [(0.5, 0.4, 0.6), (0.45, 0.35, 0.55)], None),
        ("recall_at_1", [(0.3, 0.1, 0.39), (0.5, 0.4, 0.6)], 1),
        ("recall_at_1", [(0.5, 0.4, 0.6), (0.3, 0.1, 0.4)], None),  # they touch
        ("recall_at_1", [(0.5, 0.4, 0.6), (0.3, 0.1, 0.39), (0.2, 0.0, 0.41)], None),
        ("recall_at_1", [(0.5, 0.4, 0.6), 0.45], 0),
        ("tied_top_share", [0.5, 0.1], None),  # no score
    ],
)
def test_bold_is_the_same_number_on_the_page_and_in_markdown(
    key: str, scores: list[Any], marked: int | None, tmp_path: Path
) -> None:
    task = "FollowIRCore17" if key == "p-MRR" else "TCRBenchMixed"
    chance = {"chance_recall_at_1": 0.02} if key == "recall_at_1" else {}
    for number, given in enumerate(scores):
        value, *bounds = given if isinstance(given, tuple) else (given,)
        ends = {f"{key}_{end}": bound for end, bound in zip(("low", "high"), bounds, strict=bool(bounds))}
        write_result(tmp_path, f"a/{number}", task, chance | {key: value} | ends)
    found = collect([tmp_path])
    expected = [] if marked is None else [(f"a/{marked}", f"{[*map(value_in, scores)][marked]:.3f}")]
    table = place_table(found, found.places[0])
    of_page = [(row[0], cell[1]) for row in table_values(table)["rows"] for cell in row[3] if cell[3]]
    assert of_page == expected
    in_markdown = [
        (row[0], cell.strip("*").split("**")[0])
        for line in markdown(found, [], []).partition("### ")[2].splitlines()
        for row in [[part.strip() for part in line.strip("|").split("|")]]
        for cell in row[1:]
        if cell.startswith("**")
    ]
    assert in_markdown == expected


def value_in(given: Any) -> float:
    """The score of a score with its interval."""
    return float(given[0] if isinstance(given, tuple) else given)
