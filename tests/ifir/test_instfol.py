"""InstFol as a score of the tasks: which pairs are judged, what their scores come to, and where they are kept."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from construction_sample import sample
from fixed_ranking import FixedRanking, Run, scores_of

from evaluators import cli
from evaluators.judge import Endpoint, EndpointError, FacetJudge, Judgement, LanguageModel, LLMJudge, Pair, Store
from evaluators.plugin import evaluate
from evaluators.plugin.dataset import Card, write_dataset
from evaluators.plugin.judge_command import _judge, _place, run_judge
from evaluators.plugin.judged_runs import saved_predictions
from evaluators.plugin.predictions import prediction_files
from evaluators.plugin.task import RECORD_KEY
from ifir_tasks import IFIRSample
from ifir_tasks.ids import parse_query_id
from ifir_tasks.instfol import RUBRICS, inst_fol_means, rubric_name

sys.path.insert(0, str(Path(__file__).parent.parent / "judge"))
from language_model_faults import at_random
from language_model_server import LanguageModelServer

DOCUMENTS = [f"d{i:02d}" for i in range(30)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One base query with levels 1 and 2, thirty passages."""
    folder = tmp_path / "data"
    write_dataset(
        folder,
        {
            "corpus": [{"_id": d, "title": f"Title {d}", "text": f"Text of {d}."} for d in DOCUMENTS],
            "queries": [{"_id": f"q{s}", "text": "tax"} for s in ("-og", "-v1", "-v2")],
            "instruction": [{"query-id": f"q-v{n}", "instruction": f"Instruction {n}."} for n in (1, 2)],
            "qrels": [{"query-id": f"q-v{n}", "corpus-id": "d00", "score": 1} for n in (1, 2)],
            "base_queries": [{"query-id": "q", "domain": "finance"}],
        },
        Card("t", "t", "mit"),
    )
    return folder


def task_on(folder: Path, judge: Any) -> Any:
    task = mteb.get_task("IFIRSample")
    task.data_path = folder
    task.judge = judge
    return task


def task_data(task: Any) -> Any:
    task.load_data()
    return task.data


def ranking(*documents: str) -> dict[str, float]:
    return {d: float(-place) for place, d in enumerate(documents)}


def whole(first: int) -> dict[str, float]:
    """All thirty passages, beginning with number `first`."""
    return ranking(*DOCUMENTS[first:], *DOCUMENTS[:first])


RUN: Run = {"q-og": whole(0), "q-v1": whole(5), "q-v2": whole(10)}


def test_by_hand(data: Path) -> None:
    seen: list[Pair] = []

    def judge(pair: Pair) -> float:
        seen.append(pair)
        number = int(pair.document[1:])
        return float(number >= 20) if pair.level == 1 else (2.0 if number >= 25 else 0.5)

    found = scores_of(task_on(data, judge), FixedRanking(RUN))
    # Level 1: plain 0..19 score 0; instructed 5..24 has five of 20 at 1, so 0.25 of the possible 1.
    assert found["level_1_instfol_at_20"] == pytest.approx(0.25)
    # Level 2: plain 0..19: all 0.5. Instructed 10..29: 15 x 0.5 + 5 x 2 = 17.5 / 20 = 0.875. (0.875 - 0.5) / 1.5.
    assert found["level_2_instfol_at_20"] == pytest.approx(0.25)
    assert found["instfol_at_20"] == pytest.approx(0.25)
    # As published: always 3 at the bottom, (0.25 - 0) / 3 and 0.375 / 2.5.
    assert found["level_1_paper_instfol_at_20"] == pytest.approx(0.25 / 3)
    assert found["level_2_paper_instfol_at_20"] == pytest.approx(0.15)
    assert found["paper_instfol_at_20"] == pytest.approx((0.25 / 3 + 0.15) / 2)
    # 25 different passages at level 1 (0..24), 30 at level 2: each pair once, though most are in both lists.
    assert found["n_judged"] == 55 == len({(p.query, p.document) for p in seen}) == len(seen)
    assert (found["n_unscored"], found["weighted"]) == (0, 0)
    one = next(p for p in seen if (p.query, p.document) == ("q-v2", "d07"))
    assert (one.instruction, one.passage) == ("tax Instruction 2.", "Title d07 Text of d07.")
    assert (one.rubric, one.level, one.highest, one.facet) == ("fiqa", 2, 2, None)


def test_lists_shorter_than_20_are_averaged_over_what_they_hold(data: Path) -> None:
    run = {"q-og": ranking("d00", "d01"), "q-v1": ranking("d02"), "q-v2": ranking("d00", "d02", "d03")}
    found = scores_of(task_on(data, lambda p: float(p.document == "d02")), FixedRanking(run))
    assert found["level_1_instfol_at_20"] == pytest.approx(1)
    assert found["level_2_instfol_at_20"] == pytest.approx((1 / 3) / 2)
    # The authors pair by rank: only the first of level 1 counts, the first two of level 2.
    assert found["level_1_paper_instfol_at_20"] == pytest.approx(1 / 3)
    assert found["level_2_paper_instfol_at_20"] == pytest.approx((1 / 2) / 3)


def test_a_plain_list_of_nothing_but_the_best_and_a_fall_far_below_minus_one(data: Path) -> None:
    def perfect(pair: Pair) -> float:
        number = int(pair.document[1:])
        if pair.level == 1:
            return float(number < 20)  # the plain list scores 1 throughout, so the difference itself counts
        return 2.0 if number < 19 else (1.0 if number == 19 else 0.0)

    found = scores_of(task_on(data, perfect), FixedRanking(RUN))
    assert found["level_1_instfol_at_20"] == pytest.approx(0.75 - 1)
    # Plain (19 x 2 + 1) / 20 = 1.95; instructed (9 x 2 + 1) / 20 = 0.95: (0.95 - 1.95) / 0.05.
    assert found["level_2_instfol_at_20"] == pytest.approx(-20)
    assert found["instfol_at_20"] == pytest.approx((-0.25 - 20) / 2)


def test_unscored_passages_leave_the_averages_and_are_counted(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def judge(pair: Pair) -> float | None:
        return None if (pair.level, pair.document) == (1, "d24") else float(pair.document >= "d20")

    task = task_on(data, judge)
    found = evaluate(FixedRanking(RUN), task, output_folder=tmp_path / "r").task_results[0].scores["test"][0]
    # Level 1, instructed 5..24: d24 is out, so 4 of 19.
    assert found["level_1_instfol_at_20"] == pytest.approx(4 / 19)
    # By rank, d24 stands at 20 beside the plain d19: both are out, and (4 / 19 - 0) / 3 remains.
    assert found["level_1_paper_instfol_at_20"] == pytest.approx(4 / 19 / 3)
    assert (found["n_judged"], found["n_unscored"]) == (54, 1)
    assert "1 of 55 pairs have no judge's score: 1 x the function gave no score" in caplog.text
    report = yaml.safe_load(next((tmp_path / "r").rglob("IFIRSample.judge.yaml")).read_text())
    assert report["unscored"] == [{"query": "q-v1", "document": "d24", "reason": "the function gave no score"}]
    assert report["withheld"] is False


def test_a_level_without_scores_is_told_from_too_few_scores(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Level 1 has none: there is InstFol of level 2 but none over all, and that does not replace an earlier one."""
    task = task_on(data, lambda pair: None if pair.level == 1 else 1.0)
    task.most_unscored = 1.0
    found = evaluate(FixedRanking(RUN), task, output_folder=tmp_path / "r", prediction_folder=tmp_path / "p")
    scores = found.task_results[0].scores["test"][0]
    assert "level_2_instfol_at_20" in scores and "level_1_instfol_at_20" not in scores
    assert "instfol_at_20" not in scores
    (result,) = (tmp_path / "r").rglob("IFIRSample.json")
    assert yaml.safe_load((result.parent / "IFIRSample.judge.yaml").read_text())["withheld"] is False
    task.load_data()
    (predictions,) = saved_predictions(task, prediction_files(tmp_path / "p", task.metadata.name))
    place = _place(task, predictions, tmp_path / "r")
    task.judge = lambda pair: None
    before = result.read_bytes()
    task.most_unscored = 0.5
    assert not _judge(task, place)  # all of it withheld, and there are scores of some level
    assert "withheld" in capsys.readouterr().out and result.read_bytes() == before
    task.judge, task.most_unscored = (lambda pair: None if pair.level == 1 else 0.0), 1.0
    assert not _judge(task, place)
    assert "since some level has no score" in capsys.readouterr().out
    assert result.read_bytes() != before


def test_too_many_unscored_withhold_the_score_unless_allowed(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    def judge(pair: Pair) -> float | None:
        return None if pair.document in ("d05", "d06") else 0.0  # 4 of 55 pairs: 7 %

    task = task_on(data, judge)
    found = scores_of(task, FixedRanking(RUN))
    assert not any("instfol" in key for key in found)
    assert (found["n_judged"], found["n_unscored"]) == (51, 4)
    assert "more than 5%, so there is no instfol_at_20" in caplog.text
    assert "instfol_at_20" not in next(iter(task.judge_run(RUN, task_data(task)).per_query.values()), {})
    for share in (float("nan"), 5, -1):
        task.most_unscored = share
        with pytest.raises(ValueError, match=r"must lie in 0\.\.1"):
            scores_of(task, FixedRanking(RUN))
    task.most_unscored = 0.1
    assert scores_of(task, FixedRanking(RUN))["instfol_at_20"] == 0


def test_a_query_without_any_score_is_left_out_and_a_level_without_any_withholds_the_overall_value() -> None:
    row = {"instfol_at_20": None, "paper_instfol_at_20": 0.5}
    other = {"instfol_at_20": 0.5, "paper_instfol_at_20": 0.5}
    found = inst_fol_means({"a-v1": row, "b-v1": other, "a-v2": row})
    assert found == {
        "level_1_instfol_at_20": 0.5,
        "level_1_paper_instfol_at_20": 0.5,
        # Level 1 alone has values of two base queries.
        "level_1_paper_instfol_at_20_low": 0.5,
        "level_1_paper_instfol_at_20_high": 0.5,
        "level_2_paper_instfol_at_20": 0.5,
        "paper_instfol_at_20": 0.5,
    }
    # Without levels there is one mean, and no `level_0_...` beside it.
    assert inst_fol_means({"a-v0": other}) == {"instfol_at_20": 0.5, "paper_instfol_at_20": 0.5}


def test_overall_is_the_mean_of_levels_not_of_queries() -> None:
    rows = {f"{i}-v1": {"instfol_at_20": 1.0, "paper_instfol_at_20": 1.0} for i in range(9)}
    rows["x-v3"] = {"instfol_at_20": 0.0, "paper_instfol_at_20": 0.0}
    assert inst_fol_means(rows)["instfol_at_20"] == 0.5


def test_intervals_by_hand() -> None:
    """Of two base queries a quarter of the resamples holds one alone, so that the bounds are the values of either.

    Over all, either has the mean of its levels' means: a (0.6 + 0) / 2 = 0.3, b (0 + 0.8) / 2 = 0.4, and not the mean
    of its queries, for a (0.4 + 0.8 + 0) / 3.
    """
    values = {"a-v1": 0.4, "a~2-v1": 0.8, "a-v2": 0.0, "b-v1": 0.0, "b-v2": 0.8}
    found = inst_fol_means({q: {"instfol_at_20": v, "paper_instfol_at_20": None} for q, v in values.items()})
    assert found == pytest.approx(
        {
            "instfol_at_20": (1.2 / 3 + 0.8 / 2) / 2,
            "instfol_at_20_low": 0.3,
            "instfol_at_20_high": 0.4,
            "level_1_instfol_at_20": 1.2 / 3,
            "level_1_instfol_at_20_low": 0.0,
            "level_1_instfol_at_20_high": 0.6,
            "level_2_instfol_at_20": 0.4,
            "level_2_instfol_at_20_low": 0.0,
            "level_2_instfol_at_20_high": 0.8,
        },
        abs=1e-12,
    )


@pytest.mark.parametrize(
    ("domain", "level", "rubric"),
    [
        ("aila", 3, "aila"),
        ("fire", 0, "fire"),
        ("law", 2, "aila"),
        ("law", 0, "fire"),
        ("health", 1, "pm"),
        ("health", 0, "cds"),
        ("nutrition", 0, "nfcorpus"),
        ("nutrition", 1, "general"),
        ("aila", 0, "general"),
        ("geology", 3, "general"),
        (None, 0, "general"),
    ],
)
def test_which_rubric(domain: str | None, level: int, rubric: str) -> None:
    assert rubric_name(domain, level) == rubric
    assert (RUBRICS / f"{f'{rubric}-level-{level}' if level else rubric}.txt").is_file()


def test_no_judge_no_keys_and_a_word_on_how_to_get_them(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = scores_of(task_on(data, None), FixedRanking(RUN))
    assert not any("instfol" in k or k in ("n_judged", "n_unscored", "weighted") for k in found)
    assert "judge" not in found[RECORD_KEY]
    assert "without a judge there is no instfol_at_20" in caplog.text and "--judge" in caplog.text


@pytest.mark.parametrize("bad", [3.5, -0.1, True, "1", float("nan")])
def test_a_judge_that_leaves_the_scale_is_an_error(data: Path, bad: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a number in 0\.\.1 or None"):
        scores_of(task_on(data, lambda pair: bad), FixedRanking(RUN))


def test_a_facet_judge_needs_facets(data: Path) -> None:
    with pytest.raises(ValueError, match="only generated samples have it"):
        scores_of(task_on(data, FacetJudge()), FixedRanking(RUN))


class Odd:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def judge(self, pairs: Any) -> Any:
        return [self.answer] * len(pairs)

    def record(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (FacetJudge, r"set FacetJudge\(\), not the class"),
        (Odd(0.5), "must return Judgement objects, got 0.5"),
        (Odd(Judgement(5.0)), "the judge gave 5.0 for query 'q-v1' and document 'd29'"),
        (Odd(Judgement(float("nan"))), "the judge gave nan for query"),
    ],
)
def test_judges_that_are_none(data: Path, judge: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scores_of(task_on(data, judge), FixedRanking(RUN | {"q-v1": whole(29)}))


def test_a_judge_that_is_down_costs_no_finished_retrieval(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Down(Counting):
        def judge(self, pairs: Any) -> list[Judgement]:
            raise EndpointError("nobody there")

    def run(judge: Any) -> dict[str, Any]:
        result = evaluate(FixedRanking(RUN), task_on(data, judge), output_folder=tmp_path / "r")
        return dict(result.task_results[0].scores["test"][0])

    found = run(Down())
    assert "ndcg_at_20" in found and "instfol_at_20" not in found and "judge" not in found[RECORD_KEY]
    assert "scored without judge, so there is no instfol_at_20: nobody there" in caplog.text
    assert run(Counting())["instfol_at_20"] == 0


def test_numbers_of_numpy_are_numbers(data: Path) -> None:
    assert scores_of(task_on(data, lambda pair: np.float32(1)), FixedRanking(RUN))["n_judged"] == 55


def test_no_judge_at_all(data: Path) -> None:
    with pytest.raises(ValueError, match="a judge has the methods"):
        scores_of(task_on(data, "gpt-4o-mini"), FixedRanking(RUN))


# ---- caches and records ------------------------------------------------------------------------------------------


class Counting:
    """A judge that counts how often it is asked."""

    def __init__(self, name: str = "a", endpoint: str = "http://x") -> None:
        self.name, self.endpoint, self.asked = name, endpoint, 0

    def judge(self, pairs: Any) -> list[Judgement]:
        self.asked += 1
        return [Judgement(0.0, 0.0) for _ in pairs]

    def record(self) -> dict[str, Any]:
        return {"judge": "Counting", "name": self.name, "endpoint": self.endpoint}


def test_a_cached_result_answers_only_for_the_same_judge(data: Path, tmp_path: Path) -> None:
    def run(judge: Any) -> dict[str, Any]:
        result = evaluate(FixedRanking(RUN), task_on(data, judge), output_folder=tmp_path / "r")
        return dict(result.task_results[0].scores["test"][0])

    assert "instfol_at_20" not in run(None)
    first = Counting()
    assert run(first)["instfol_at_20"] == 0
    assert run(first)[RECORD_KEY]["judge"]["name"] == "a"
    assert run(Counting(endpoint="http://elsewhere"))["instfol_at_20"] == 0
    assert first.asked == 1
    other = Counting("b")
    assert run(other)[RECORD_KEY]["judge"]["name"] == "b"
    assert other.asked == 1
    # Without a judge the judged result still holds: its other scores are the same.
    assert run(None)["instfol_at_20"] == 0


def test_a_function_without_version_is_asked_anew(data: Path, tmp_path: Path) -> None:
    def run(judge: Any) -> float:
        result = evaluate(FixedRanking(RUN), task_on(data, judge), output_folder=tmp_path / "r")
        return float(result.task_results[0].scores["test"][0]["n_judged"])

    asked: list[Pair] = []

    def judge(pair: Pair) -> float:
        asked.append(pair)
        return 0.0

    assert [run(judge), run(judge), len(asked)] == [55, 55, 110]
    judge.version = "1"  # type: ignore[attr-defined]
    assert [run(judge), run(judge), len(asked)] == [55, 55, 165]


@pytest.fixture
def class_judge() -> Iterator[Callable[[Any], None]]:
    def set_judge(judge: Any) -> None:
        IFIRSample.judge = judge

    yield set_judge
    IFIRSample.judge = None


def test_a_judge_of_the_class(data: Path, class_judge: Callable[[Any], None]) -> None:
    class_judge(lambda pair: 1.0)  # a function on a class must not become a method
    task = mteb.get_task("IFIRSample")
    task.data_path = data
    assert scores_of(task, FixedRanking(RUN))["n_judged"] == 55


# ---- a language model as judge -----------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[LanguageModelServer]:
    with LanguageModelServer(scorer=lambda messages: {"score": len(messages[1]["content"]) % 2, "reason": "r"}) as made:
        yield made


def llm_judge(server: LanguageModelServer, store: Path) -> LLMJudge:
    endpoint = Endpoint(server.url, api_key="sk-secret-key-1", backoff=0.01, timeout=2)
    return LLMJudge(RUBRICS, language_model=LanguageModel(endpoint, Store(store), progress=False))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with two of the eight base queries of each domain: a quarter of the pairs to judge."""
    folder = tmp_path_factory.mktemp("few")
    bases = tuple(row["query-id"] for row in sample("base_queries") if row["query-id"].endswith(("-01", "-02")))
    assert len(bases) == 10
    configs = {"corpus": sample("corpus")}
    for name in ("queries", "instruction", "qrels", "base_queries", "facets"):
        key = "_id" if name == "queries" else "query-id"
        configs[name] = [row for row in sample(name) if row[key].startswith(bases)]
    write_dataset(folder, configs, Card("t", "t", "mit"))
    return folder


@pytest.fixture(scope="module")
def two_runs(few: Path) -> tuple[Run, Run]:
    """Rankings by two retrievers that agree on most of what they find."""
    task = task_on(few, None)
    task.load_data()
    facets = {(r["query-id"], r["corpus-id"]): r["score"] for r in task.data.side["facets"].to_pylist()}
    documents = list(task.data.corpus["id"])

    def run(seed: int) -> Run:
        def score(query: str, place: int, document: str) -> float:
            parts = parse_query_id(query)
            return facets[parts.base, document] + ((place * 7919 + seed * (1 + (parts.level or 0))) % 97) / 97

        return {q: {d: score(q, i, d) for i, d in enumerate(documents)} for q in task.data.queries["id"]}

    return run(1), run(2)


def test_two_retrievers_share_their_pairs(
    server: LanguageModelServer, tmp_path: Path, few: Path, two_runs: tuple[Run, Run]
) -> None:
    task = task_on(few, llm_judge(server, tmp_path / "store.sqlite"))
    first, second = (scores_of(task, FixedRanking(run)) for run in two_runs)
    asked = len(server.counts.requests)
    naive = 2 * sum(not q.endswith("-og") for q in two_runs[0]) * 2 * 20
    different = {
        (q, d)
        for run in two_runs
        for q in run
        if not q.endswith("-og")
        for ranked in (run[q], run[parse_query_id(q).plain])
        for d in sorted(ranked, key=lambda d: (ranked[d], d), reverse=True)[:20]
    }
    assert asked == len(different) < naive / 2
    assert (first["n_unscored"], first["weighted"]) == (0, 1)
    # The plain run again, by another process: nothing is left to ask.
    again = task_on(few, llm_judge(server, tmp_path / "store.sqlite"))
    assert scores_of(again, FixedRanking(two_runs[1])) == second
    assert len(server.counts.requests) == asked


def test_faults_change_no_score(server: LanguageModelServer, tmp_path: Path, data: Path) -> None:
    def run(store: str) -> dict[str, Any]:
        return scores_of(task_on(data, llm_judge(server, tmp_path / store)), FixedRanking(RUN))

    sound = run("a.sqlite")
    server.faults = at_random({"server_error": 0.1, "rate_limited": 0.1, "dropped_in_body": 0.1}, seed=3)
    faulty = run("b.sqlite")
    assert server.counts.faults.total() > 10
    assert faulty["n_unscored"] <= 2
    if faulty["n_unscored"] == 0:
        assert faulty == sound


# ---- after the fact ----------------------------------------------------------------------------------------------


def test_judging_saved_predictions_gives_the_file_of_judging_at_once(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def file(folder: str) -> Path:
        return next((tmp_path / folder).rglob("IFIRSample.json"))

    def run(folder: str, judge: Any) -> None:
        evaluate(
            FixedRanking(RUN),
            task_on(data, judge),
            output_folder=tmp_path / folder,
            prediction_folder=tmp_path / folder / "predictions",
        )

    IFIRSample.data_path = data
    try:
        with LanguageModelServer(scorer=lambda m: {"score": len(m[1]["content"]) % 2, "reason": "r"}) as server:
            judge = llm_judge(server, tmp_path / "a.sqlite")
            run("at once", judge)
            run("later", None)
            before = file("later").read_text()
            arguments = [
                *("judge", "--task", "IFIRSample", "--predictions", str(tmp_path / "later")),
                *("--results", str(tmp_path / "later"), "--judge", "gpt-4o-mini", "--judge-base-url", server.url),
            ]
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("OPENAI_API_KEY", "sk-secret-key-1")
                patch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "b.sqlite"))
                assert cli.main([*arguments, "--dry-run"]) == 0
                assert file("later").read_text() == before
                capsys.readouterr()
                assert cli.main(arguments) == 0
                # Said before the first call, and at the end, also where standard error is a file.
                said = capsys.readouterr().err
                assert "0 already stored, 55 calls to make" in said and "judging: 55 of 55" in said
                asked = len(server.counts.requests)
                arguments[arguments.index("--results") + 1] += "/results"
                assert cli.main(arguments) == 0
                assert len(server.counts.requests) == asked == 110
                # A file of an older metric version, which lacked a score, is brought up to date.
                whole = json.loads(file("later").read_text())
                old = json.loads(file("later").read_text())
                block = old["scores"]["test"][0]
                block[RECORD_KEY] |= {"metric_version": 2, "version": "0.0.1"}
                del block["query_only_ndcg_at_20"]
                file("later").write_text(json.dumps(old))
                assert cli.main(arguments) == 0
                assert json.loads(file("later").read_text()) == whole
                # A judge whose scores lie outside the scale: withheld, and the scores of the first one stay.
                before_that = {p: p.read_bytes() for p in (tmp_path / "later").rglob("*") if p.is_file()}
                server.scorer = lambda m: {"score": 9, "reason": "r"}
                arguments[arguments.index("gpt-4o-mini")] = "another"
                capsys.readouterr()
                assert cli.main(arguments) == 1
                said = capsys.readouterr().out
                assert "withheld, 0 judged, 55 unscored" in said and "keeps the scores of an earlier judge, gpt" in said
                assert {p: p.read_bytes() for p in (tmp_path / "later").rglob("*") if p.is_file()} == before_that
    finally:
        IFIRSample.data_path = None
    once, later = (json.loads(file(folder).read_text())["scores"]["test"][0] for folder in ("at once", "later"))
    assert later == once
    unjudged = json.loads(before)
    assert {k: v for k, v in later.items() if k in unjudged["scores"]["test"][0] and k != RECORD_KEY} == {
        k: v for k, v in unjudged["scores"]["test"][0].items() if k != RECORD_KEY
    }
    tables = [next((tmp_path / f).rglob("*_per_query.parquet")) for f in ("at once", "later")]
    assert pq.read_table(tables[0]).equals(pq.read_table(tables[1]))
    assert "sk-secret" not in "".join(p.read_text(errors="ignore") for p in tmp_path.rglob("*") if p.is_file())


def arguments(**changed: Any) -> Any:
    parser = cli.build_parser()
    listed = ["judge", *(x for k, v in changed.items() for x in (f"--{k.replace('_', '-')}", str(v)))]
    return parser.parse_args(listed)


def test_intervals_come_with_a_judge_at_once_or_later_and_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases, facets, ends = ("p", "q"), {"p": 11, "q": 7}, ("", "_low", "_high")
    write_dataset(
        tmp_path / "data",
        {
            "corpus": [{"_id": d, "title": "", "text": f"Text of {d}."} for d in DOCUMENTS],
            "queries": [{"_id": f"{b}-{s}", "text": "tax"} for b in bases for s in ("og", "v1", "v2")],
            "instruction": [{"query-id": f"{b}-v{n}", "instruction": f"I {n}."} for b in bases for n in (1, 2)],
            "qrels": [{"query-id": f"{b}-v{n}", "corpus-id": "d00", "score": 1} for b in bases for n in (1, 2)],
            "facets": [
                {"query-id": b, "corpus-id": d, "score": i // facets[b] % 4}
                for b in bases
                for i, d in enumerate(DOCUMENTS)
            ],
        },
        Card("t", "t", "mit"),
    )
    monkeypatch.setattr(IFIRSample, "data_path", tmp_path / "data")
    run = RUN | {"p-og": whole(3), "p-v1": whole(9), "p-v2": whole(1)}

    def evaluated(folder: str, judge: Any) -> Path:
        place = tmp_path / folder
        task = task_on(tmp_path / "data", judge)
        evaluate(FixedRanking(run), task, output_folder=place, prediction_folder=place / "predictions")
        return next(place.rglob("IFIRSample.json"))

    def of(path: Path) -> dict[str, Any]:
        return dict(json.loads(path.read_text())["scores"]["test"][0])

    path = evaluated("later", None)
    unjudged = of(path)
    assert not any("instfol" in key for key in unjudged)
    given = {"task": "IFIRSample", "predictions": tmp_path / "later", "results": tmp_path / "later", "judge": "facets"}
    assert run_judge(arguments(**given)) == 0
    judged = of(path)
    keys = [f"{p}{k}instfol_at_20{e}" for p in ("", "level_1_", "level_2_") for k in ("", "paper_") for e in ends]
    assert judged.keys() - unjudged.keys() == {*keys, "n_judged", "n_unscored", "weighted"}
    assert judged == of(evaluated("at once", FacetJudge()))
    # Of two base queries, the bounds are the values of either, here from the table per query.
    rows = pq.read_table(next((tmp_path / "later").rglob("*_per_query.parquet"))).to_pylist()
    for key in ("instfol_at_20", "paper_instfol_at_20"):
        either = sorted(float(np.mean([row[key] for row in rows if row["base_query"] == base])) for base in bases)
        assert [judged[f"{key}_low"], judged[f"{key}_high"]] == pytest.approx(either, abs=1e-6)
        assert either[0] < judged[key] < either[1]

    # Another judging leaves nothing behind of the one before, and finds its result whatever its intervals were drawn
    # with, since other releases of numpy may draw other resamples.
    content = json.loads(path.read_text())
    content["scores"]["test"][0] |= {"level_3_instfol_at_20": 0.1, "level_3_instfol_at_20_low": 0.0}
    content["scores"]["test"][0]["ndcg_at_20_low"] = 0.0123
    path.write_text(json.dumps(content))
    assert run_judge(arguments(**given)) == 0
    assert of(path) == judged | {"ndcg_at_20_low": 0.0123}

    # Withheld, the score and its bounds.
    few = scores_of(task_on(tmp_path / "data", lambda pair: None if pair.level == 2 else 1.0), FixedRanking(run))
    assert few["n_unscored"] > 0 and not any("instfol" in key for key in few)


def test_predictions_that_do_not_belong_to_the_result_are_refused(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IFIRSample, "data_path", few)  # for the task that the command makes
    task = mteb.get_task("IFIRSample")
    task.load_data()
    documents = list(task.data.corpus["id"])
    queries = list(task.data.queries["id"])
    run = {q: {d: float(i) for i, d in enumerate(documents)} for q in queries}
    evaluate(FixedRanking(run), task, output_folder=tmp_path / "r", prediction_folder=tmp_path / "p")
    path = next((tmp_path / "p").rglob("IFIRSample_predictions.json"))
    saved = json.loads(path.read_text())
    given = {"task": "IFIRSample", "predictions": tmp_path / "p", "results": tmp_path / "r", "judge": "facets"}
    assert run_judge(arguments(**given)) == 0

    def changed(change: Callable[[dict[str, Any]], None], message: str, kind: type[Exception] = ValueError) -> None:
        content = json.loads(json.dumps(saved))
        change(content)
        path.write_text(json.dumps(content))
        with pytest.raises(kind, match=message):
            run_judge(arguments(**given))

    changed(lambda c: c["default"]["test"].pop(queries[0]), "no ranking for 1 queries")
    changed(lambda c: c["default"]["test"][queries[0]].update(stranger=1.0), "not in the corpus")
    reverse = {q: {d: -s for d, s in scores.items()} for q, scores in run.items()}
    changed(lambda c: c["default"].update(test=reverse), "no result of the present data has that score")
    # Other rankings of the plain queries alone leave the main score as it is, but not InstFol.
    plain = {q: reverse[q] if q.endswith("-og") else run[q] for q in queries}
    changed(lambda c: c["default"].update(test=plain), "no result of the present data has that score")
    changed(lambda c: c["mteb_model_meta"].update(model_name="other/model"), "has no result", FileNotFoundError)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task": "FollowIRSample"}, "no task that takes a judge"),
        ({"judge": "facets", "batch_out": "x.jsonl"}, "nothing to plan"),
        ({"most_unscored": 5}, "must lie in 0..1"),
        ({"rubrics": "/nowhere"}, "does not exist"),
        ({"predictions": "/nowhere"}, "no IFIRSample_predictions.json"),
        ({"results": "/nowhere"}, "no folder 'results' in it"),
    ],
)
def test_wrong_arguments_name_the_culprit(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    (tmp_path / "results").mkdir()
    given = {"task": "IFIRSample", "predictions": tmp_path, "results": tmp_path, "judge": "m"} | changed
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run_judge(arguments(**given))


def test_run_takes_a_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("mteb").setLevel(logging.ERROR)
    given = ["-m", "mteb/baseline-bm25s", "--output-folder", str(tmp_path), "--judge", "facets"]
    try:
        assert cli.main(["run", *given, "-t", "IFIRSample"]) == 0
    finally:
        IFIRSample.judge = None
        IFIRSample.report_folder = None
    assert "instfol_at_20 = 0.0" in capsys.readouterr().out
    assert cli.main(["run", *given, "-t", "TCRSample"]) == 1
    assert "--judge concerns none of TCRSample" in capsys.readouterr().err
