"""Single queries on the results page: what is shown, and what is left out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import pytest
from many_results import TCR_SCORES, write_result

from hub_cards.report.collect import Collected, Place, collect
from hub_cards.report.embedding import script_json
from hub_cards.report.items import load_texts
from hub_cards.report.queries import Sheet, sheets


@pytest.fixture(scope="module")
def made_sheets(made: Collected, made_results: Path) -> dict[str, Sheet]:
    found, notes = sheets(made, [made_results / "predictions"], [], 1000)
    assert notes == []
    return {sheet.place.task: sheet for sheet in found}


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


def test_predictions_of_another_run_are_left_out_and_named(results: Path, made_results: Path) -> None:
    spoilt = next(p for p in (results / "predictions").rglob("IFIRSample_per_query.parquet"))
    other = next(p for p in (results / "predictions").rglob("TCRSample_per_query.parquet") if "instr" not in str(p))
    shutil.copy(other, spoilt)
    next(p for p in (results / "predictions").rglob("FollowIRSample_per_query.parquet")).unlink()
    found, notes = sheets(collect([results]), [results / "predictions"], [], 5)
    assert [sheet.place.task for sheet in found] == ["TCRSample"]
    assert len(notes) == 2
    assert "IFIRSample" in notes[0] and "other data" in notes[0]
    assert "FollowIRSample" in notes[1] and "no table" in notes[1]
    # Another folder that holds the right ones does as well.
    found, notes = sheets(collect([results]), [results / "predictions", made_results / "predictions"], [], 5)
    assert len(found) == 3 and notes == []


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
