"""FollowIR's scores and guard through `mteb.evaluate`, against hand calculations, mteb, pytrec_eval, enumeration."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import mteb
import numpy as np
import pyarrow.parquet as pq
import pytest
import pytrec_eval
from fixed_ranking import FixedRanking, Run, scores_of
from followir_sets import CANDIDATES, CHANGED, DOCS, JUDGED
from mteb._evaluators.retrieval_metrics import calculate_pmrr, evaluate_p_mrr_change
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.models import CrossEncoderProtocol, ModelMeta, SearchProtocol
from mteb.timing import TimingStack

import followir_tasks
from evaluators.plugin import evaluate, with_variant
from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import Card, write_dataset
from followir_tasks.tasks import FollowIRTask

assert followir_tasks.SUBSET_TASKS  # the import registers the tasks

pytestmark = pytest.mark.usefixtures("fresh_cache")

Qrels = dict[str, dict[str, int]]
K_VALUES = [1, 3, 5, 10, 20, 100, 1000]


# --- three topics, twelve passages, eight candidates each ----------------------------------------------------------


def written(
    directory: Path,
    judged: Qrels = JUDGED,
    changed: Mapping[str, list[str]] = CHANGED,
    candidates: Mapping[str, list[str]] = CANDIDATES,
    name: str = "FollowIRCore17",
    texts: Mapping[str, str] | None = None,
) -> FollowIRTask:
    queries = [topic + suffix for topic in candidates for suffix in ("-og", "-changed")]
    texts = texts or {d: f"text of {d}" for d in DOCS}
    write_dataset(
        directory,
        {
            "corpus": [{"_id": d, "title": "", "text": text} for d, text in texts.items()],
            "queries": [{"_id": q, "text": f"topic {q.split('-')[0]}"} for q in queries],
            "instruction": [{"query-id": q, "instruction": f"narrative {q.split('-')[1]}"} for q in queries],
            "qrels": [
                {"query-id": q, "corpus-id": doc, "score": grade}
                for q, docs in judged.items()
                for doc, grade in docs.items()
            ],
            "top_ranked": [{"query-id": q, "corpus-ids": candidates[q.split("-")[0]]} for q in queries],
            "qrel_diff": [{"query-id": topic, "corpus-ids": docs} for topic, docs in changed.items()],
        },
        Card("Test", "For a test.", "mit"),
    )
    task = mteb.get_task(name)
    assert isinstance(task, FollowIRTask)
    task.data_path = directory
    return task


def ranking(topic: str, places: Mapping[str, int]) -> dict[str, float]:
    """Scores that put the named candidates at these ranks and the others, in order, at the remaining ones."""
    by_rank = {rank: doc for doc, rank in places.items()}
    others = iter(d for d in CANDIDATES[topic] if d not in places)
    return {(by_rank.get(rank) or next(others)): -float(rank) for rank in range(1, 9)}


RUN: Run = {
    "t1-og": ranking("t1", {"d00": 1, "d01": 2, "d02": 5}),
    "t1-changed": ranking("t1", {"d00": 3, "d01": 6, "d02": 1}),
    "t2-og": ranking("t2", {"d05": 1, "d06": 2}),
    "t2-changed": ranking("t2", {"d05": 8, "d06": 7}),
    "t3-og": ranking("t3", {"d11": 3, "d08": 4}),
    "t3-changed": ranking("t3", {"d11": 4, "d08": 1}),
}
# d01 goes down from 2 to 6, d02 up from 5 to 1, d11 down from 3 to 4; t2 has no changed document.
P_MRR = {"t1": ((1 - 2 / 6) + (1 / 5 - 1)) / 2, "t3": 1 - 3 / 4}
# Ranks of the relevant documents in the ranking for the original instruction.
MAP = {"t1": (1 / 1 + 2 / 2 + 3 / 5) / 3, "t2": 1.0, "t3": (1 / 3 + 2 / 4) / 2}
MAP_CHANGED = {"t1": 1.0, "t2": 1.0, "t3": 1 / 4}


def trec(run: Run, qrels: Qrels, measure: str) -> dict[str, float]:
    found = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate({q: run[q] for q in qrels})
    return {q: values[measure.replace(".", "_")] for q, values in found.items()}


def of(suffix: str, mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {q: value for q, value in mapping.items() if q.endswith(suffix)}


def test_the_models_of_this_file_follow_the_protocols() -> None:
    assert isinstance(FixedRanking({}), SearchProtocol)
    assert isinstance(WordOverlap(), CrossEncoderProtocol)


def test_scores_by_hand(tmp_path: Path) -> None:
    scores = scores_of(written(tmp_path), FixedRanking(RUN))
    assert scores["p-MRR"] == pytest.approx(fmean(P_MRR.values()), abs=1e-12)
    assert scores["followir_score"] == pytest.approx(fmean(MAP.values()), abs=1e-12)
    assert scores["followir_score_changed_qrels"] == pytest.approx(fmean(MAP_CHANGED.values()), abs=1e-12)
    assert scores["main_score"] == scores["p-MRR"]
    counts = {name: value for name, value in scores.items() if name.startswith("n_")}
    assert counts == {
        "n_changed_documents": 3,
        "n_missing_changed_documents": 0,
        "n_topics": 3,
        "n_topics_without_change": 1,
        "n_topics_without_relevant": 0,
        "n_documents_in_shortest_ranking": 8,
        "n_topics_without_relevant_changed_qrels": 0,
        "n_changed_documents_outside_candidates": 0,
        "n_missing_candidates": 0,
    }
    assert scores["tied_top_share"] == 0.0
    assert scores["mteb_beyond"]["options"] == {"missing_candidates": "error", "instruction_form": "full"}
    for name in ("p-MRR", "followir_score", "followir_score_changed_qrels", "chance_followir_score"):
        assert type(scores[name]) is float


def test_intervals_by_hand(tmp_path: Path) -> None:
    """Of three topics 1 in 27 resamples holds the worst or the best alone, more than the 2.5 % beyond either bound.

    p-MRR is over the two topics that have a changed document; of a single one there is no interval.
    """
    scores = scores_of(written(tmp_path / "three"), FixedRanking(RUN))
    found = {key: value for key, value in scores.items() if key.endswith(("_low", "_high"))}
    expected = {}
    for name, values in (("p-MRR", P_MRR), ("followir_score", MAP), ("followir_score_changed_qrels", MAP_CHANGED)):
        expected |= {f"{name}_low": min(values.values()), f"{name}_high": max(values.values())}
    assert found == pytest.approx(expected, abs=1e-12)
    assert all(type(value) is float for value in found.values())
    assert scores["mteb_beyond"]["metric_version"] == 2
    single = scores_of(written(tmp_path / "one", changed=CHANGED | {"t3": []}), FixedRanking(RUN))
    assert {key for key in single if key.endswith(("_low", "_high"))} == expected.keys() - {"p-MRR_low", "p-MRR_high"}


def _random_run(seed: int, n_values: int | None = None) -> Run:
    """Random scores for all candidates; few values give many ties."""
    rng = np.random.default_rng(seed)
    draw = rng.random if n_values is None else lambda n: rng.integers(n_values, size=n) / n_values
    return {
        topic + suffix: dict(zip(docs, draw(len(docs)).tolist(), strict=True))
        for topic, docs in CANDIDATES.items()
        for suffix in ("-og", "-changed")
    }


@pytest.mark.parametrize("run", [RUN, _random_run(1), _random_run(2, n_values=3)], ids=["fixed", "random", "tied"])
def test_scores_are_those_of_mteb_and_trec_eval(tmp_path: Path, run: Run) -> None:
    scores = scores_of(written(tmp_path), FixedRanking(run))
    with_change = {topic: docs for topic, docs in CHANGED.items() if docs}
    assert scores["p-MRR"] == pytest.approx(calculate_pmrr(of("-og", run), of("-changed", run), with_change), abs=1e-12)
    original = of("-og", JUDGED)
    swapped = {q.replace("-changed", "-og"): docs for q, docs in of("-changed", JUDGED).items()}
    for name, qrels in (("followir_score", original), ("followir_score_changed_qrels", swapped)):
        assert scores[name] == pytest.approx(fmean(trec(run, qrels, "map_cut.1000").values()), abs=1e-12)
    theirs = evaluate_p_mrr_change(JUDGED, run, with_change, K_VALUES)
    for variant in ("og", "changed"):
        assert len(theirs[variant]) > 100  # type: ignore[arg-type]
        assert scores[variant] == pytest.approx(theirs[variant], abs=0, rel=0, nan_ok=True)
        assert scores[variant]["map_at_1000"] == pytest.approx(
            fmean(trec(run, of(f"-{variant}", JUDGED), "map_cut.1000").values()), abs=1e-5
        )


def test_news21_measures_ndcg_at_5(tmp_path: Path) -> None:
    scores = scores_of(written(tmp_path, name="FollowIRNews21"), FixedRanking(RUN))
    gains = [1 / math.log2(rank + 1) for rank in range(1, 6)]
    ndcg = {
        "t1": (1 * gains[0] + 2 * gains[1] + 1 * gains[4]) / (2 * gains[0] + gains[1] + gains[2]),
        "t2": 1.0,
        "t3": (2 * gains[2] + gains[3]) / (2 * gains[0] + gains[1]),
    }
    assert scores["followir_score"] == pytest.approx(fmean(ndcg.values()), abs=1e-12)
    assert scores["followir_score"] == pytest.approx(
        fmean(trec(RUN, of("-og", JUDGED), "ndcg_cut.5").values()), abs=1e-12
    )
    assert scores["followir_score_changed_qrels"] == pytest.approx((1 + 1 + gains[3]) / 3, abs=1e-12)
    assert scores["p-MRR"] == pytest.approx(fmean(P_MRR.values()), abs=1e-12)


def average_precision(grades: Sequence[int], n_relevant: int) -> float:
    found, total = 0, 0.0
    for rank, grade in enumerate(grades, 1):
        if grade:
            found += 1
            total += found / rank
    return total / n_relevant if n_relevant else 0.0


def ndcg_at_5(grades: Sequence[int], judged: Sequence[int]) -> float:
    discounts = [1 / math.log2(rank + 1) for rank in range(1, 6)]
    ideal = sum(g * d for g, d in zip(sorted(judged, reverse=True), discounts, strict=False))
    return sum(g * d for g, d in zip(grades, discounts, strict=False)) / ideal if ideal else 0.0


def chance_by_enumeration(judged: Qrels, measure: Callable[[Sequence[int], list[int]], float]) -> float:
    """Mean over topics of the mean of a measure over every order of the candidates."""
    means = []
    for topic, docs in CANDIDATES.items():
        grades = [judged[f"{topic}-og"].get(d, 0) for d in docs]
        all_grades = [g for g in judged[f"{topic}-og"].values() if g > 0]
        means.append(fmean(measure(order, all_grades) for order in set(permutations(grades))))
    return fmean(means)


def _ap(grades: Sequence[int], judged: list[int]) -> float:
    return average_precision(grades, len(judged))


# Relevant documents that are no candidates: no ranking of the candidates can find them, by chance or otherwise.
OUTSIDE = JUDGED | {"t2-og": {"d05": 1, "d06": 1, "d00": 1, "d11": 2}, "t3-og": {"d08": 1, "d11": 2, "d01": 1}}
# ... and one topic that has relevant documents, none of them a candidate.
UNREACHABLE = JUDGED | {"t2-og": {"d11": 1, "d05": 0}}


@pytest.mark.parametrize("judged", [JUDGED, OUTSIDE, UNREACHABLE], ids=["inside", "outside", "unreachable"])
@pytest.mark.parametrize(("name", "measure"), [("FollowIRCore17", _ap), ("FollowIRNews21", ndcg_at_5)])
def test_chance_is_the_mean_over_all_orders(
    tmp_path: Path, name: str, measure: Callable[[Sequence[int], list[int]], float], judged: Qrels
) -> None:
    scores = scores_of(written(tmp_path, judged=judged, name=name), FixedRanking(RUN))
    assert scores["chance_followir_score"] == pytest.approx(chance_by_enumeration(judged, measure), abs=1e-9)


def test_chance_against_random_rankings_of_trec_eval(tmp_path: Path) -> None:
    chance = scores_of(written(tmp_path), FixedRanking(RUN))["chance_followir_score"]
    qrels = of("-og", JUDGED)
    drawn = [fmean(trec(_random_run(seed), qrels, "map_cut.1000").values()) for seed in range(400)]
    assert abs(fmean(drawn) - chance) < 4 * float(np.std(drawn)) / math.sqrt(len(drawn))


def test_judgements_without_any_relevant_candidate_do_not_break_the_run(tmp_path: Path) -> None:
    """After an hour of reranking a division by zero would be the worst way to learn it."""
    judged = {q: dict.fromkeys(docs, 0) for q, docs in JUDGED.items()}
    task = written(tmp_path, judged=judged)
    try:
        task.load_data()
    except DatasetError as error:
        told = str(error)
    else:  # a set that is accepted must be scored
        scores = scores_of(task, FixedRanking(RUN))
        told = "relevant" if scores.get("chance_followir_score") in (None, 0.0) else ""
    assert "relevant" in told


def test_changed_documents_that_no_run_holds_are_counted(tmp_path: Path) -> None:
    changed = CHANGED | {"t3": ["d11", "d00"]}  # d00 is no candidate of t3
    scores = scores_of(written(tmp_path, changed=changed), FixedRanking(RUN))
    # d00 has rank 9 under both instructions: no change, 0.
    assert scores["p-MRR"] == pytest.approx((P_MRR["t1"] + (P_MRR["t3"] + 0) / 2) / 2, abs=1e-12)
    assert scores["n_missing_changed_documents"] == 1
    assert scores["n_changed_documents_outside_candidates"] == 1
    assert scores["n_changed_documents"] == 4
    assert scores["n_missing_candidates"] == 0


def test_the_table_per_topic(tmp_path: Path) -> None:
    scores = scores_of(written(tmp_path / "set"), FixedRanking(RUN), prediction_folder=tmp_path / "predictions")
    rows = pq.read_table(tmp_path / "predictions" / "FollowIRCore17_per_query.parquet").to_pylist()
    assert [row["query-id"] for row in rows] == ["t1", "t2", "t3"]
    for name, values in (("p-MRR", P_MRR), ("followir_score", MAP), ("followir_score_changed_qrels", MAP_CHANGED)):
        for row in rows:
            value = values.get(row["query-id"])
            assert row[name] == (None if value is None else pytest.approx(value, abs=1e-12)), (name, row)
        assert scores[name] == pytest.approx(fmean(r[name] for r in rows if r[name] is not None), abs=1e-12)
    assert [row["n_changed_documents"] for row in rows] == [2, 0, 1]


def test_the_sample_sorted_by_its_judgements() -> None:
    task = mteb.get_task("FollowIRSample")
    assert isinstance(task, FollowIRTask)
    task.load_data()
    assert task.data is not None and task.data.top_ranked is not None
    judged = task.data.relevant_docs
    run = {q: {d: float(judged[q].get(d, 0)) for d in docs} for q, docs in task.data.top_ranked.items()}
    scores = scores_of(task, FixedRanking(run))
    assert scores["followir_score"] == pytest.approx(1.0, abs=1e-12)
    assert scores["followir_score_changed_qrels"] < 0.9
    assert scores["p-MRR"] > 0.5
    assert (scores["n_topics"], scores["n_topics_without_change"]) == (24, 0)
    assert scores["og"]["ndcg_at_5"] == scores["changed"]["ndcg_at_5"] == 1.0


# --- the guard -----------------------------------------------------------------------------------------------------


def _without(query: str, *docs: str) -> Run:
    return RUN | {query: {d: s for d, s in RUN[query].items() if d not in docs}}


FAULTY: dict[str, tuple[Run, str, str]] = {
    "one candidate left out": (_without("t2-changed", "d09"), "left 1 candidates of 1 queries", "'t2-changed'"),
    "a changed document left out": (_without("t1-changed", "d01"), "left 1 candidates of 1 queries", "'t1-changed'"),
    "several left out": (
        _without("t3-og", "d04", "d05", "d06") | {"t1-og": {"d00": 1.0}},
        "left 10 candidates of 2 queries",
        "'t1-og'",
    ),
    "a stranger": (RUN | {"t1-og": RUN["t1-og"] | {"d11": 0.5}}, "ranked 1 documents that are no", "'t1-og'"),
    "a stranger in place of a candidate": (
        RUN | {"t1-og": {("d11" if d == "d07" else d): s for d, s in RUN["t1-og"].items()}},
        "left 1 candidates of 1 queries unranked and ranked 1 documents",
        "'t1-og'",
    ),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_run_that_does_not_rank_exactly_the_candidates(tmp_path: Path, fault: str) -> None:
    run, text, query = FAULTY[fault]
    with pytest.raises(ValueError) as caught:
        scores_of(written(tmp_path), FixedRanking(run))
    told = str(caught.value)
    assert told.startswith("FollowIRCore17: ") and text in told and query in told, told
    assert "p-MRR compares ranks" in told and "missing_candidates='warn'" in told


@pytest.mark.parametrize("query", ["t1-og", "t2-changed"])
def test_a_run_that_lacks_a_query(tmp_path: Path, query: str) -> None:
    with pytest.raises(ValueError, match=query):
        scores_of(written(tmp_path), FixedRanking({q: docs for q, docs in RUN.items() if q != query}))


def test_a_run_with_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"t3-og.*d08.*nan"):
        scores_of(written(tmp_path), FixedRanking(RUN | {"t3-og": RUN["t3-og"] | {"d08": math.nan}}))


def test_warn_needs_a_record_and_then_goes_on_and_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = _without("t1-changed", "d01", "d07") | {"t2-og": RUN["t2-og"] | {"d00": 9.0}}
    task = written(tmp_path / "set")
    task.missing_candidates = "warn"
    with pytest.raises(ValueError, match="with_variant"):
        scores_of(task, FixedRanking(run))
    model = FixedRanking(run)
    recorded = with_variant(model, task)
    assert model.mteb_model_meta.experiment_kwargs is None
    assert recorded.mteb_model_meta.experiment_kwargs == {"task_missing_candidates": "warn"}
    with caplog.at_level(logging.WARNING, logger="followir_tasks"):
        scores = scores_of(task, recorded)
    assert "left 2 candidates of 1 queries unranked and ranked 1 documents" in caplog.text
    assert scores["n_missing_candidates"] == 2
    # d01 had rank 2 of 8 and is now behind the six that are left: rank 7. d02 went from 5 to 1 as before.
    assert scores["p-MRR"] == pytest.approx((((1 - 2 / 7) + (1 / 5 - 1)) / 2 + P_MRR["t3"]) / 2, abs=1e-12)
    assert scores["n_missing_changed_documents"] == 1
    assert scores["mteb_beyond"]["options"] == {"missing_candidates": "warn", "instruction_form": "full"}


def test_the_package_s_evaluate_files_the_variant_apart(tmp_path: Path) -> None:
    run = _without("t1-changed", "d07")
    task = written(tmp_path / "set")
    task.missing_candidates = "warn"
    evaluate(FixedRanking(run), task, output_folder=tmp_path / "results", show_progress_bar=False)
    (file,) = (tmp_path / "results").rglob("FollowIRCore17.json")
    assert "experiments" in file.parts


def test_an_option_of_another_value_is_refused(tmp_path: Path) -> None:
    task = written(tmp_path)
    task.missing_candidates = "ignore"
    with pytest.raises(ValueError, match="missing_candidates must be one of"):
        scores_of(task, FixedRanking(RUN))


class WithProperty(FixedRanking):
    """As the protocol has it: the model's record is a property without setter."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def mteb_model_meta(self) -> ModelMeta:  # type: ignore[override]
        return ModelMeta.create_empty({"name": "test/with-property", "revision": "1"})


def test_a_model_whose_record_is_a_property(tmp_path: Path) -> None:
    assert isinstance(WithProperty(RUN), SearchProtocol)
    task = written(tmp_path)
    assert scores_of(task, WithProperty(RUN))["n_missing_candidates"] == 0
    task = written(tmp_path)
    task.missing_candidates = "warn"
    assert scores_of(task, with_variant(WithProperty(_without("t1-og", "d07")), task))["n_missing_candidates"] == 1


# --- real searchers ------------------------------------------------------------------------------------------------


def test_bm25_ranks_every_candidate_of_a_corpus_larger_than_its_top_k(tmp_path: Path) -> None:
    """mteb's BM25 takes the 1,000 best of the corpus and keeps the candidates among them."""
    texts = {f"p{i:04}": ("topic narrative " if i >= 60 else "something else ") + f"word{i}" for i in range(1500)}
    candidates = [f"p{i:04}" for i in range(100)]  # 60 of them share no word with the query
    judged = {"t1-og": {"p0000": 1, "p0070": 1}, "t1-changed": {"p0000": 0, "p0070": 1}}
    task = written(tmp_path / "set", judged, {"t1": ["p0000"]}, {"t1": candidates}, texts=texts)
    task.load_data()
    assert task.data is not None
    model = mteb.get_model("mteb/baseline-bm25s")
    arguments: dict[str, Any] = {"encode_kwargs": {}, "hf_split": "test", "hf_subset": "default"}

    # What mteb does by itself: at most the 40 candidates that share a word are ranked, and our check says so.
    split = task.dataset["default"]["test"]
    model.index(split["corpus"], task_metadata=task.metadata, num_proc=None, **arguments)
    stock = model.search(
        split["queries"],
        task_metadata=task.metadata,
        top_k=task._top_k,
        top_ranked=split["top_ranked"],
        num_proc=None,
        **arguments,
    )
    assert task._top_k == 1000
    assert all(len(docs) < 100 for docs in stock.values())
    with pytest.raises(ValueError, match="candidates of 2 queries unranked"):
        AbsTaskRetrieval._evaluate_subset(task, model, RetrievalSplitData(**split), timer=TimingStack(), **arguments)

    scores = scores_of(task, model, prediction_folder=tmp_path / "predictions")
    assert scores["n_missing_candidates"] == scores["n_missing_changed_documents"] == 0
    assert task._top_k == 1000
    predicted = (tmp_path / "predictions" / task.prediction_file_name).read_text(encoding="utf-8")
    for query, docs in mteb_predictions(predicted).items():
        assert sorted(docs) == candidates, query


def mteb_predictions(text: str) -> Run:
    run: Run = json.loads(text)["default"]["test"]
    return run


class WordOverlap:
    """A cross-encoder by protocol: counts the words that query and document share."""

    def __init__(self, model_name: str = "", revision: str | None = None, **kwargs: Any) -> None:
        self.seen: list[tuple[str, str]] = []
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": "test/word-overlap", "revision": "1", "model_type": ["cross-encoder"]}
        )

    def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> np.ndarray:
        queries, documents = ([text for batch in inputs for text in batch["text"]] for inputs in (inputs1, inputs2))
        pairs = list(zip(queries, documents, strict=True))
        self.seen += pairs
        return np.array([len(set(q.split()) & set(d.split())) for q, d in pairs], dtype=np.float32)


def test_a_cross_encoder_runs_directly(tmp_path: Path) -> None:
    texts = {d: f"text {'changed' if d in ('d01', 'd11') else 'og'} {d}" for d in DOCS}
    model = WordOverlap()
    scores = scores_of(written(tmp_path, texts=texts), model)
    assert len(model.seen) == 6 * 8
    assert {q for q, _ in model.seen} == {
        f"topic {topic} narrative {kind}" for topic in CANDIDATES for kind in ("og", "changed")
    }
    assert scores["n_missing_candidates"] == 0
    # t1: d01 has rank 8 under the original and 1 under the changed instruction, d02 6 and 7 (ids descending among
    # equals: d07 d06 d05 d04 d03 d02 d00, d01 last; then d01 first). t3: d11 from 8 to 1.
    assert scores["p-MRR"] == pytest.approx((((1 / 8 - 1) + (1 - 6 / 7)) / 2 + (1 / 8 - 1)) / 2, abs=1e-12)
    assert scores["tied_top_share"] == pytest.approx(4 / 6)  # only the changed t1 and t3 have one best
