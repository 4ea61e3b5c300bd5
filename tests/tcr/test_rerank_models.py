"""Rerankers behind first stages as models of mteb, on the sample: ceilings, one scoring, first stages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fixed_ranking import FixedRanking, scores_of
from rerank_parts import (
    TruthfulCrossEncoder,
    asking,
    save_predictions,
    shuffled_run,
    template_sample,
    translate,
)

from evaluators.plugin.models import register_local_model
from evaluators.plugin.mteb_internals import document_texts
from evaluators.plugin.running import evaluate
from tcr_tasks.loaded import load_tcr, task_choices
from tcr_tasks.reranking.cross_encoder import CrossEncoding
from tcr_tasks.reranking.execution import Execution
from tcr_tasks.reranking.first_stage import SavedRun, first_stage
from tcr_tasks.reranking.model import AnswerabilityReranker, reranking
from tcr_tasks.reranking.pointwise import Pointwise
from tcr_tasks.reranking.pool import ANSWERED
from tcr_tasks.tasks import INSTRUCTION, TCRTask

from language_model_replies import Messages  # isort: skip
from language_model_server import LanguageModelServer  # isort: skip


def rank_of_target(task: TCRTask, run: dict[str, dict[str, float]]) -> dict[str, int]:
    assert task.data is not None
    targets = {q.id: q.target for q in task.data.side["questions"]}
    return {q: sum(s > scores[targets[q]] for s in scores.values()) + 1 for q, scores in run.items()}


@pytest.fixture(scope="module")
def template_task(tmp_path_factory: pytest.TempPathFactory) -> TCRTask:
    """The sample with its questions in template form."""
    return load_tcr(template_sample(tmp_path_factory.mktemp("template") / "sample"))


# --- ceilings --------------------------------------------------------------------------------------------------------


def test_execution_reaches_the_ceiling(template_task: TCRTask, server: LanguageModelServer, tmp_path: Path) -> None:
    """With the questions in template form and a translator by rules, only the table that answers answers: R@1 is the
    share of questions whose target the first stage found, and DS@1 is 1 where all tables are candidates."""
    server.scorer = translate
    run = shuffled_run(template_task)
    assert template_task.data is not None
    way = Execution(asking(server.url, tmp_path / "s.sqlite"), template_task.data.side["tables"])
    ranks = rank_of_target(template_task, run)
    for budget in (10, None):
        model = AnswerabilityReranker(FixedRanking(run), way, budget)
        scores = scores_of(template_task, model)
        found = sum(rank <= (budget or 1000) for rank in ranks.values())
        assert scores["recall_at_1"] == pytest.approx(found / 30)
        assert model.searches[0].counts[ANSWERED] == found
        assert model.searches[0].usage.calls == 30
        assert 0 < sum(rank == 1 for rank in ranks.values()) < found
        if budget is None:
            assert scores["ds_at_1"] == scores["recall_at_1"] == 1
        else:
            assert 0 < found < 30


def test_a_cross_encoder_that_knows_the_truth(small_task: TCRTask) -> None:
    """R@1 is the share of targets within the budget, DS@1 is 1 where all are within it, each pair is read once."""
    data = small_task.data
    assert data is not None
    run, encoder = shuffled_run(small_task, 2), TruthfulCrossEncoder()
    texts = dict(zip(data.corpus["id"], document_texts(data.corpus), strict=True))
    asked = dict(zip(data.queries["id"], data.queries["text"], strict=True))
    encoder.answers.update({asked[q.id]: texts[q.target] for q in data.side["questions"]})
    way, ranks, found = CrossEncoding(encoder), rank_of_target(small_task, run), []
    for budget in (2, None, 6):
        scores = scores_of(small_task, AnswerabilityReranker(FixedRanking(run), way, budget))
        found.append(sum(rank <= (budget or len(texts)) for rank in ranks.values()))
        assert scores["recall_at_1"] == pytest.approx(found[-1] / 3)
        assert budget or scores["ds_at_1"] == 1
    assert found[0] < found[2] <= found[1] == 3
    assert len(encoder.pairs) == len(set(encoder.pairs)) == 3 * len(texts)


def test_scores_are_those_of_mteb_itself(
    small_task: TCRTask, small: Path, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """mteb's own reranking of the same saved predictions is the second implementation."""
    run = shuffled_run(small_task)
    folder = save_predictions(tmp_path, small_task.metadata.name, run).parent
    model = register_local_model(tiny_models["CrossEncoder"]).load_model()
    task = type(small_task)()
    task.data_path = small
    task.convert_to_reranking(folder, top_k=10)
    theirs = evaluate(model, task, output_folder=tmp_path / "theirs", prediction_folder=tmp_path / "p")
    ours = AnswerabilityReranker(SavedRun(folder, task.metadata.name), CrossEncoding(model), 10)
    mine = evaluate(ours, small_task, output_folder=tmp_path / "ours", prediction_folder=tmp_path / "q")
    rankings = []
    for place in ("p", "q"):
        path = next((tmp_path / place).rglob("*_predictions.json"))
        saved = json.loads(path.read_text())["default"]["test"]
        rankings.append({q: sorted(scores, key=lambda t: -scores[t])[:10] for q, scores in saved.items()})
    assert rankings[0] == rankings[1]
    names = ("recall_at_1", "recall_at_5", "gr_at_1", "gr_at_5", "ds_at_1")
    found = [result.task_results[0].scores["test"][0] for result in (theirs, mine)]
    assert [found[0][name] for name in names] == [found[1][name] for name in names]


def test_the_rest_stays_in_first_stage_order(small_task: TCRTask, server: LanguageModelServer, tmp_path: Path) -> None:
    server.scorer = lambda messages: "Answer: no"
    run = shuffled_run(small_task, 2)
    model = AnswerabilityReranker(FixedRanking(run), Pointwise(asking(server.url, tmp_path / "s.sqlite")), 3)
    scores = scores_of(small_task, model)
    plain = scores_of(small_task, FixedRanking(run))
    names = [name for name in plain if re.fullmatch(r"(recall|gr|ds)_at_\d+", name)]
    assert len(names) > 10 and [scores[name] for name in names] == [plain[name] for name in names]


def test_tcr_tasks_of_every_kind(small: Path, server: LanguageModelServer, tmp_path: Path) -> None:
    """On each task the model reads the tables as that task prints them, and the question without its instruction."""
    prompts: list[str] = []

    def scorer(messages: Messages) -> str:
        prompts.append(str(messages[-1]["content"]))
        return "Answer: yes"

    server.scorer = scorer
    way = Pointwise(asking(server.url, tmp_path / "s.sqlite"))
    names = ("TCRBenchMixed", "TCRBenchTSenS", "TCRBenchSafeMarkdown")
    assert set(names) <= set(task_choices())
    for name in names:
        task = load_tcr(small, name)
        task.instruction = "prepend"
        run = shuffled_run(task)
        first = FixedRanking(run)
        prompts.clear()
        result = evaluate(AnswerabilityReranker(first, way, 2), task, output_folder=tmp_path / name)
        meta = json.loads(next((tmp_path / name).rglob("model_meta.json")).read_text())
        assert result.task_results[0].scores["test"][0]["n_queries"] == 3
        assert meta["name"] == "AAR-LLM-PW/m" and meta["experiment_kwargs"]["budget"] == 2
        assert all(text.startswith(INSTRUCTION) for text in first.texts.values())
        assert not any(INSTRUCTION[:40] in prompt for prompt in prompts)
        assert task.data is not None
        printed = [" ".join(text.split()) for text in task.data.corpus["text"]]
        assert all(any(text[:200] in " ".join(prompt.split()) for text in printed) for prompt in prompts)
        assert prompts


# --- first stages ----------------------------------------------------------------------------------------------------


def test_saved_predictions_that_do_not_fit(small_task: TCRTask, tmp_path: Path) -> None:
    name, run = small_task.metadata.name, shuffled_run(small_task)
    assert small_task.data is not None

    def searched(changed: dict[str, dict[str, float]]) -> Any:
        return scores_of(small_task, SavedRun(save_predictions(tmp_path / "one", name, changed), name))

    assert searched(run)["n_queries"] == 3
    with pytest.raises(ValueError, match=r"no ranking for 1 queries of .*: 'em-01'"):
        searched({q: s for q, s in run.items() if q != "em-01"})
    with pytest.raises(ValueError, match=r"1 documents are not in the corpus of .*: 'x'"):
        searched({q: {**s, "x": 1.0} for q, s in run.items()})
    with pytest.raises(
        FileNotFoundError,
        match=f"TCRSample_predictions.json at or below .*: found predictions of '{name}'; expected those of TCRSample",
    ):
        SavedRun(tmp_path / "one", "TCRSample")
    with pytest.raises(
        ValueError, match=f"holds predictions of {name}; expected those of TCRSample, TCRSample_predictions"
    ):
        SavedRun(tmp_path / "one" / f"{name}_predictions.json", "TCRSample")
    save_predictions(tmp_path / "two", name, run)
    with pytest.raises(ValueError, match=f"several runs' predictions of {name}; name one of"):
        SavedRun(tmp_path, name)


def test_predictions_on_other_data_are_refused(small_task: TCRTask, template_task: TCRTask, tmp_path: Path) -> None:
    evaluate(
        FixedRanking(shuffled_run(small_task)),
        small_task,
        output_folder=tmp_path / "r",
        prediction_folder=tmp_path / "p",
    )
    with pytest.raises(ValueError, match="was made on other data"):
        scores_of(template_task, SavedRun(tmp_path / "p", template_task.metadata.name))


def test_a_cross_encoder_is_no_first_stage_and_a_retriever_no_cross_encoder() -> None:
    with pytest.raises(ValueError, match="is a cross-encoder, which cannot be a first stage"):
        first_stage(TruthfulCrossEncoder())
    with pytest.raises(ValueError, match="is no cross-encoder"):
        CrossEncoding(FixedRanking({}))
    with pytest.raises(ValueError, match="a budget is a whole number"):
        reranking(FixedRanking({}), CrossEncoding(TruthfulCrossEncoder()), 0)
