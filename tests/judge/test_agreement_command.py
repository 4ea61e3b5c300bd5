"""`judge agreement` on the sample: draws from saved runs, filled in here, against a model on the local server."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
from annotation_files import edited
from fixed_ranking import FixedRanking, Run
from language_model_server import LanguageModelServer

from evaluators.judge.annotation import read_annotations
from evaluators.plugin import evaluate
from evaluators.plugin.agreement_command import add_agreement_command
from evaluators.plugin.agreement_draw import judged_pairs
from ifir_tasks import IFIRSample

pytest_plugins = ["judge_fixtures"]


def command(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add_agreement_command(parser.add_subparsers())
    parsed = parser.parse_args(["agreement", *map(str, arguments)])
    return int(parsed.func(parsed))


@pytest.fixture(scope="module")
def sample() -> IFIRSample:
    task = mteb.get_task("IFIRSample")
    assert isinstance(task, IFIRSample)
    task.load_data()
    return task


@pytest.fixture(scope="module")
def run_of_sample(sample: IFIRSample) -> Run:
    """30 passages for each query: those of the query's own domain in an order that depends on the query."""
    assert sample.data is not None
    by_domain: dict[str, list[str]] = {}
    for document in sample.data.corpus["id"]:
        by_domain.setdefault(document[-3:], []).append(document)
    run: Run = {}
    for place, query in enumerate(sample.data.queries["id"]):
        own = by_domain[query[:3]]
        run[query] = {own[(place + 7 * i) % len(own)]: 30.0 - i for i in range(30)}
    return run


@pytest.fixture(scope="module")
def predictions(run_of_sample: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predictions")
    task = mteb.get_task("IFIRSample")
    evaluate(FixedRanking(run_of_sample), task, output_folder=folder / "results", prediction_folder=folder / "runs")
    return folder / "runs"


@pytest.fixture(scope="module")
def truth(sample: IFIRSample, run_of_sample: Run) -> dict[tuple[str, str], int]:
    """How many levels a passage meets, by (instruction, passage)."""
    pairs = judged_pairs(sample, run_of_sample)
    return {(p.instruction, p.passage): min(p.facet or 0, p.highest) for p in pairs}


def fill(path: Path, score: Callable[[int, dict[str, str]], int | None]) -> list[dict[str, str]]:
    """Let somebody fill in ``score(place, row)``; returns the rows."""
    rows: list[dict[str, str]] = []

    def one(row: dict[str, str]) -> None:
        given = score(len(rows), row)
        row["score"] = "" if given is None else str(given)
        rows.append(row)

    edited(path, one)
    return rows


def asked_about(messages: list[dict[str, Any]]) -> tuple[str, str]:
    """The instruction and the passage in a judge's prompt."""
    text = messages[-1]["content"]
    found = re.search(r"<instruction>\n(.*)\n</instruction>\n<passage>\n(.*)\n</passage>", text, re.DOTALL)
    assert found is not None
    return found[1], found[2]


def test_draw_from_runs(
    tmp_path: Path, predictions: Path, sample: IFIRSample, run_of_sample: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    command("draw", "--tasks", "IFIRSample", "--predictions", predictions, "--out", tmp_path / "a.csv", "--n", "100")
    rows = read_annotations(tmp_path / "a.csv")
    assert Counter(r.item.pair.level for r in rows) == {0: 25, 1: 25, 2: 25, 3: 25}
    assert len({(r.item.pair.query, r.item.pair.document) for r in rows}) == 100
    for row in rows:
        pair, plain = row.item.pair, re.sub(r"v\d$", "og", row.item.pair.query)
        best = [d for q in (pair.query, plain) for d in list(run_of_sample[q])[:20]]
        assert pair.document in best
        assert row.item.scale == (0, pair.level or 3) and row.score is None
        assert row.item.candidates == "best passages of saved runs, with and without instruction"
    assert any(r.item.pair.document not in list(run_of_sample[r.item.pair.query])[:20] for r in rows), "no plain run"
    text = capsys.readouterr().out
    assert "IFIRSample, level 3: 25 of " in text and "seed 0" in text
    with pytest.raises(FileExistsError, match="may hold people's scores"):
        command("draw", "--tasks", "IFIRSample", "--out", tmp_path / "a.csv")
    command("draw", "--tasks", "IFIRSample", "--predictions", predictions, "--out", tmp_path / "b.csv", "--n", "100")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_draw_without_runs(tmp_path: Path, sample: IFIRSample, capsys: pytest.CaptureFixture[str]) -> None:
    assert sample.data is not None
    draws = ("draw", "--tasks", "IFIRSample", "--scale", "1-5", "--longest", "1000", "--out")
    command(*draws, tmp_path / "a.csv", "--n", "200", "--seed", "3")
    text = capsys.readouterr().out
    assert re.search(r"[1-9]\d* of \d+ pairs have a text of more than 1000 characters: left out", text)
    rows = read_annotations(tmp_path / "a.csv")
    assert {r.item.scale for r in rows} == {(1, 5)} and {r.item.candidates for r in rows} == {
        "relevant passages and random ones, no runs"
    }
    assert max(len(r.item.pair.passage) for r in rows) <= 1000
    relevant = sum(sample.data.relevant_docs[r.item.pair.query].get(r.item.pair.document, 0) > 0 for r in rows)
    # Half of a list made up is relevant, less the one passage drawn for the plain query.
    assert 60 <= relevant <= 110
    with pytest.raises(ValueError, match=r"'TCRSample' is no task that takes a judge; these do: .*IFIRSample"):
        command("draw", "--tasks", "TCRSample", "--out", tmp_path / "b.csv")
    with pytest.raises(FileNotFoundError, match=r"no IFIRSample_predictions.json at or below"):
        command("draw", "--tasks", "IFIRSample", "--predictions", tmp_path, "--out", tmp_path / "b.csv")


def test_predictions_of_other_data_are_refused(tmp_path: Path, run_of_sample: Run) -> None:
    def with_run(run: Run) -> Path:
        saved = {"mteb_model_meta": {"model_name": "a/b", "revision": "1"}, "default": {"test": run}}
        path = tmp_path / "IFIRSample_predictions.json"
        path.write_text(json.dumps(saved))
        return path

    query = next(iter(run_of_sample))
    for run, message in (
        ({q: s for q, s in run_of_sample.items() if q != query}, f"no ranking for 1 queries of IFIRSample: '{query}'"),
        (run_of_sample | {query: {"stranger": 1.0}}, "1 documents are not in the corpus .*'stranger'.*other data"),
    ):
        with pytest.raises(ValueError, match=message):
            command(*("draw", "--tasks", "IFIRSample", "--predictions", with_run(run), "--out", tmp_path / "a.csv"))


def test_scores_of_people_and_a_model(
    tmp_path: Path,
    predictions: Path,
    truth: dict[tuple[str, str], int],
    server: LanguageModelServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two people and a model that misjudge in ways known here, on the scales of the levels."""
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    command("draw", "--tasks", "IFIRSample", "--predictions", predictions, "--out", files[0], "--n", "120")
    files[1].write_bytes(files[0].read_bytes())

    def people(place: int, row: dict[str, str]) -> int | None:
        """They leave every tenth pair out and give every fifth the lowest score."""
        if place % 10 == 9:
            return None
        return 0 if place % 5 == 0 else truth[row["instruction"], row["passage"]]

    rows = fill(files[0], people)
    fill(files[1], lambda place, row: truth[row["instruction"], row["passage"]])
    places = {(row["instruction"], row["passage"]): place for place, row in enumerate(rows)}
    highest = [int(row["scale"].split()[-1]) for row in rows]

    def model(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
        key = asked_about(messages)
        if places[key] == 3:
            return "I cannot say."
        return {"score": highest[places[key]] if places[key] % 7 == 0 else truth[key], "reason": ""}

    server.scorer = model
    server.distribution = lambda digits: {digits: 1.0}
    asking = ("score", *files, "--judge", "m", "--judge-base-url", server.url)
    command(*asking, "--dry-run")
    assert "120 different requests, 0 already stored" in capsys.readouterr().out
    assert not server.counts.requests
    command(*asking, "--out", tmp_path / "report.json")
    text = capsys.readouterr().out
    report = json.loads((tmp_path / "report.json").read_text())
    assert len(server.counts.requests) == 120

    def expected(first: Callable[[int], float | None], second: Callable[[int], float | None]) -> float:
        both = [(first(i), second(i)) for i in range(120) if i != 3]
        shares = [(a, b) for a, b in both if a is not None and b is not None]
        return float(np.corrcoef(np.array(shares).T)[0, 1])

    def share(place: int, score: int | None) -> float | None:
        return None if score is None else score / highest[place]

    def right(place: int) -> float:
        return truth[rows[place]["instruction"], rows[place]["passage"]] / highest[place]

    def judge(place: int) -> float:
        return 1.0 if place % 7 == 0 else right(place)

    def one(place: int) -> float | None:
        return share(place, people(place, rows[place]))

    def mean(place: int) -> float:
        given = one(place)
        return right(place) if given is None else (given + right(place)) / 2

    assert report["overall"]["n"] == 119 and report["overall"]["of_range"]
    assert report["overall"]["pearson"]["value"] == pytest.approx(expected(mean, judge))
    assert report["annotators"][str(files[0])]["pearson"]["value"] == pytest.approx(expected(one, judge))
    assert report["annotators"][str(files[0])]["n"] == 107
    assert report["annotators"][str(files[1])]["pearson"]["value"] == pytest.approx(expected(right, judge))
    (between,) = report["between"].values()
    assert between["n"] == 108
    assert (report["n_drawn"], report["n_absent"], report["n_unfilled"]) == (120, 0, 0)
    assert report["unfilled"] == {str(files[0]): 12, str(files[1]): 0}
    assert list(report["unscored"]) == [rows[3]["id"]] and report["weighted"] == 1.0
    assert {level: found["n"] for level, found in report["by_level"].items()} == {
        "0": 30,
        "1": 30,
        "2": 30,
        "3": 30,
    } | {rows[3]["level"]: 29}
    assert report["judge"]["judge"] == "LLMJudge" and report["judge"]["model"] == "m"
    assert "0.704" in text and "not comparable" in text and f"{files[0]}: 12 rows without a score" in text
    command(*asking)
    assert len(server.counts.requests) == 120, "a stored pair was asked again"


def test_scores_on_one_to_five(
    tmp_path: Path,
    predictions: Path,
    truth: dict[tuple[str, str], int],
    server: LanguageModelServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    path = tmp_path / "a.csv"
    draws = ("draw", "--tasks", "IFIRSample", "--predictions", predictions, "--out", path, "--n", "40")
    command(*draws, "--scale", "1-5")
    rows = fill(path, lambda place, row: 1 + (place + truth[row["instruction"], row["passage"]]) % 5)
    places = {(row["instruction"], row["passage"]): place for place, row in enumerate(rows)}
    prompts: list[str] = []

    def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
        prompts.append(messages[0]["content"])
        return {"score": 5 if places[asked_about(messages)] % 2 else 4, "reason": ""}

    server.scorer = model
    # 4 becomes (4 * .75 + 5 * .25) = 4.25, and 5 becomes (5 * .75 + 4 * .25) = 4.75; 6 is off the scale.
    server.distribution = lambda digits: {digits: 0.6, "9" if digits == "6" else "45"[digits == "4"]: 0.2, "6": 0.2}
    asking = ("score", path, "--judge", "m", "--judge-base-url", server.url, "--out", tmp_path / "r.json")
    command(*asking)
    assert all("from 1 to 5" in prompt for prompt in prompts)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["overall"]["scales"] == [[1, 5], [1, 5]] and report["overall"]["means"][1] == pytest.approx(4.5)
    given = [int(row["score"]) for row in rows]
    expected = np.corrcoef(given, [4.75 if place % 2 else 4.25 for place in range(40)])[0, 1]
    assert report["overall"]["pearson"]["value"] == pytest.approx(expected)
    assert report["judge"]["rubric"] == "likert" and report["judge"]["scale"] == [1, 5]
    assert all(found["pearson"] is None and found["n"] == 10 for found in report["by_level"].values())
    assert "both sides score 1 to 5 too" in capsys.readouterr().out
    # The other scale on request: its replies lie on it, so 4 and 5 are no scores.
    with pytest.raises(ValueError, match="needs --judge MODEL"):
        command("score", path)
    command(*asking, "--scale", "levels")
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["overall"]["n"] == 0 and len(report["unscored"]) == 40
    assert "not comparable" in report["note"]
