"""IFIR's scores through `mteb.evaluate`, against hand calculations, mteb's own functions and full enumeration."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import mteb
import numpy as np
import pyarrow.parquet as pq
import pytest
from fixed_ranking import FixedRanking, Run, scores_of
from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores, make_score_dict
from mteb.models import EncoderProtocol, ModelMeta, SearchProtocol
from mteb.types import PromptType

import ifir_tasks
from evaluators.plugin.dataset import Card, write_dataset
from ifir_tasks.scores import averages, per_query_scores
from ifir_tasks.tasks import IFIRTask

assert ifir_tasks.SUBSET_TASKS  # the import registers the tasks

pytestmark = pytest.mark.usefixtures("fresh_cache")

K_VALUES = [1, 3, 5, 10, 20, 100, 1000]


# --- a set of 30 passages whose scores are computed by hand --------------------------------------------------------

DOCS = [f"d{i:02}" for i in range(30)]
RELEVANT = {
    "a": [(1, ["d00", "d01", "d25"]), (2, ["d01"]), (3, [])],
    "b": [(1, ["d05"]), (3, ["d05", "d06"])],
}


def written(root: Path, relevant: Mapping[str, list[tuple[int, list[str]]]] = RELEVANT) -> IFIRTask:
    """The task on a set in the authors' layout; `relevant`: base query -> (level, relevant passages)."""
    directory = root / "fiqa"
    directory.mkdir(parents=True)
    lines = [json.dumps({"_id": d, "title": "", "text": f"passage {d}"}) for d in DOCS]
    (directory / "fiqa-corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    entries = [
        {
            "_id": base,
            "text": f"query {base}",
            "corpus": [{"_id": d} for d in DOCS],
            "instructions": [
                {"level": level, "instruction": f"need {level}", "rel": [DOCS.index(d) for d in docs]}
                for level, docs in instructions
            ],
        }
        for base, instructions in relevant.items()
    ]
    (directory / "test_data.json").write_text(json.dumps(entries), encoding="utf-8")
    task = mteb.get_task("IFIRFiQAInstFol")
    assert isinstance(task, IFIRTask)
    task.data_path = root
    return task


def ranking(places: Mapping[str, int]) -> dict[str, float]:
    """Scores that put the named passages at these ranks and the others, in order, at the remaining ones."""
    by_rank = {rank: doc for doc, rank in places.items()}
    others = iter(d for d in DOCS if d not in places)
    ranked = [by_rank.get(rank) or next(others) for rank in range(1, len(DOCS) + 1)]
    return {doc: 1.0 - rank / 64 for rank, doc in enumerate(ranked)}


RUN = {
    "a-og": ranking({"d00": 1, "d01": 4, "d25": 30}),
    "a-v1": ranking({"d00": 2, "d01": 3, "d25": 21}),
    "a-v2": ranking({"d01": 21}),
    "a-v3": ranking({}),
    "b-og": ranking({"d05": 2, "d06": 20}),
    "b-v1": ranking({"d05": 1}),
    "b-v3": ranking({"d05": 3, "d06": 1}),
}


def gain(rank: int) -> float:
    return 1 / math.log2(rank + 1)


# What nDCG@20 divides by when 1, 2, 3 passages are relevant.
IDEAL = {1: 1.0, 2: 1 + gain(2), 3: 1 + gain(2) + 0.5}
NDCG = {
    "a-v1": (gain(2) + 0.5) / IDEAL[3],  # d25 at rank 21 is beyond the cut
    "a-v2": 0.0,
    "b-v1": 1.0,
    "b-v3": (0.5 + 1.0) / IDEAL[2],
}
MRR = {"a-v1": 1 / 2, "a-v2": 0.0, "b-v1": 1.0, "b-v3": 1.0}
# The authors' ideal ranking holds what was found: 2 of 3 for a-v1. The query without relevant passage counts 0.
PAPER_NDCG = {"a-v1": (gain(2) + 0.5) / IDEAL[2], "a-v2": 0.0, "a-v3": 0.0, "b-v1": 1.0, "b-v3": 1.5 / IDEAL[2]}
PAPER_MRR = MRR | {"a-v3": 0.0}
QUERY_ONLY_NDCG = {
    "a-v1": (1 + gain(4)) / IDEAL[3],
    "a-v2": gain(4),
    "b-v1": gain(2),
    "b-v3": (gain(2) + gain(20)) / IDEAL[2],
}
QUERY_ONLY_MRR = {"a-v1": 1.0, "a-v2": 1 / 4, "b-v1": 1 / 2, "b-v3": 1 / 2}
BY_HAND = {
    "ndcg_at_20": NDCG,
    "mrr_at_20": MRR,
    "paper_ndcg_at_20": PAPER_NDCG,
    "paper_mrr_at_20": PAPER_MRR,
    "query_only_ndcg_at_20": QUERY_ONLY_NDCG,
    "query_only_mrr_at_20": QUERY_ONLY_MRR,
}


def expected_by_hand() -> dict[str, float]:
    out = {name: fmean(values.values()) for name, values in BY_HAND.items()}
    for level in (1, 2, 3):
        for name, values in BY_HAND.items():
            out[f"level_{level}_{name}"] = fmean(v for q, v in values.items() if q.endswith(f"-v{level}"))
    return out


def test_the_models_of_this_file_follow_the_protocols() -> None:
    assert isinstance(FixedRanking({}), SearchProtocol)
    assert isinstance(RecordingEncoder(), EncoderProtocol)


def test_scores_by_hand(tmp_path: Path) -> None:
    task = written(tmp_path)
    scores = scores_of(task, FixedRanking(RUN))
    for name, value in expected_by_hand().items():
        assert scores[name] == pytest.approx(value, abs=1e-12), name
        assert type(scores[name]) is float, name
    assert scores["main_score"] == scores["ndcg_at_20"]
    counts = {k: scores[k] for k in scores if k.startswith("n_") or "_n_" in k}
    assert counts == {
        "n_queries": 5,
        "n_without_relevant": 1,
        "n_plain_queries": 2,
        "n_documents_in_shortest_ranking": 30,
        "level_1_n_queries": 2,
        "level_1_n_without_relevant": 0,
        "level_2_n_queries": 1,
        "level_2_n_without_relevant": 0,
        "level_3_n_queries": 2,
        "level_3_n_without_relevant": 1,
        "n_dropped_empty_passages": 0,
        "n_judgements_on_dropped_passages": 0,
    }
    assert scores["tied_top_share"] == 0.0
    assert scores["mteb_beyond"]["metric_version"] == 3


def test_intervals_by_hand(tmp_path: Path) -> None:
    """Of two base queries a quarter of the resamples holds one alone, so that the bounds are the means of either.

    All instructions of a base query are drawn together. Level 2 is of a alone, and nDCG at level 3 of b alone, since
    a-v3 has no relevant passage: a single base query says nothing.
    """

    def of_bases(values: Mapping[str, float], level: str = "") -> list[float]:
        return sorted(fmean(v for q, v in values.items() if q.startswith(b) and q.endswith(level)) for b in "ab")

    scores = scores_of(written(tmp_path), FixedRanking(RUN))
    found = {key: value for key, value in scores.items() if key.endswith(("_low", "_high"))}
    expected = {}
    for name in ("ndcg_at_20", "query_only_ndcg_at_20", "paper_ndcg_at_20", "paper_mrr_at_20"):
        values = BY_HAND[name]
        expected |= dict(zip((f"{name}_low", f"{name}_high"), of_bases(values), strict=True))
        for level in ("1", "3") if name.startswith("paper_") else ("1",):
            key = f"level_{level}_{name}"
            expected |= dict(zip((f"{key}_low", f"{key}_high"), of_bases(values, level), strict=True))
    assert found == pytest.approx(expected, abs=1e-12)
    assert all(type(value) is float for value in found.values())
    assert scores["ndcg_at_20_low"] < scores["ndcg_at_20"] < scores["ndcg_at_20_high"]


def test_equal_scores_are_ordered_by_id_descending(tmp_path: Path) -> None:
    """In every ranking all passages tie, so d29 is first: d25 has rank 5, d06 24, d05 25, d01 29, d00 30."""
    scores = scores_of(written(tmp_path), FixedRanking({q: dict.fromkeys(DOCS, 0.5) for q in RUN}))
    for kind in ("", "query_only_"):
        assert scores[f"{kind}ndcg_at_20"] == pytest.approx(gain(5) / IDEAL[3] / 4, abs=1e-12)
        assert scores[f"{kind}mrr_at_20"] == pytest.approx(1 / 5 / 4, abs=1e-12)
    assert scores["paper_ndcg_at_20"] == pytest.approx(gain(5) / 5, abs=1e-12)
    assert scores["paper_mrr_at_20"] == pytest.approx(1 / 5 / 5, abs=1e-12)
    assert scores["tied_top_share"] == 1.0


def test_chance_is_the_mean_over_all_orders(tmp_path: Path) -> None:
    def mean_over_orders(n_relevant: int) -> float:
        gains = [gain(rank) if rank <= 20 else 0.0 for rank in range(1, len(DOCS) + 1)]
        return fmean(sum(chosen) for chosen in combinations(gains, n_relevant)) / IDEAL[n_relevant]

    scores = scores_of(written(tmp_path), FixedRanking(RUN))
    one, two, three = (mean_over_orders(n) for n in (1, 2, 3))
    assert scores["chance_ndcg_at_20"] == pytest.approx((three + one + one + two) / 4, abs=1e-12)
    assert scores["level_1_chance_ndcg_at_20"] == pytest.approx((three + one) / 2, abs=1e-12)
    assert scores["level_2_chance_ndcg_at_20"] == pytest.approx(one, abs=1e-12)
    assert scores["level_3_chance_ndcg_at_20"] == pytest.approx(two, abs=1e-12)


def test_chance_against_random_rankings(tmp_path: Path) -> None:
    task = written(tmp_path)
    task.load_data()
    assert task.data is not None
    qrels, rng = task.data.relevant_docs, np.random.default_rng(7)
    drawn = []
    for _ in range(400):
        run = {q: dict(zip(DOCS, rng.permutation(len(DOCS)).tolist(), strict=True)) for q in qrels}
        found = averages(per_query_scores(run, qrels, len(DOCS)))
        drawn.append((found["ndcg_at_20"], found["query_only_ndcg_at_20"]))
    mean, error = np.mean(drawn, axis=0), np.std(drawn, axis=0) / math.sqrt(len(drawn))
    assert np.all(np.abs(mean - found["chance_ndcg_at_20"]) < 4 * error)


def usual_scores(run: Run, qrels: Mapping[str, Mapping[str, int]], queries: list[str]) -> dict[str, float]:
    """mteb's usual scores over exactly these queries, by mteb's own functions."""
    found = calculate_retrieval_scores({q: run[q] for q in queries}, {q: dict(qrels[q]) for q in queries}, K_VALUES)
    return make_score_dict(
        ndcg=found.ndcg,
        _map=found.map,
        recall=found.recall,
        precision=found.precision,
        mrr=found.mrr,
        naucs=found.naucs,
        naucs_mrr=found.naucs_mrr,
        hit_rate=found.hit_rate,
        task_scores={},
    )


def assert_usual(scores: Mapping[str, Any], usual: Mapping[str, float]) -> None:
    assert len(usual) > 100
    for name, value in usual.items():
        rounded = name in ("ndcg_at_20", "mrr_at_20")  # ours are exact, mteb's have five decimals
        assert scores[name] == pytest.approx(value, abs=1e-5 if rounded else 0, rel=0, nan_ok=True), name


def test_the_usual_scores_are_mtebs_on_the_instructed_queries_with_relevant_passages(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    run = {q: dict(zip(DOCS, rng.random(len(DOCS)).tolist(), strict=True)) for q in RUN}
    qrels = {f"{base}-v{level}": dict.fromkeys(docs, 1) for base, said in RELEVANT.items() for level, docs in said}
    scores = scores_of(written(tmp_path), FixedRanking(run))
    assert_usual(scores, usual_scores(run, qrels, ["a-v1", "a-v2", "b-v1", "b-v3"]))


def _comparable(scores: Mapping[str, Any]) -> dict[str, Any]:
    """All that plain queries and queries without relevant passage must not change."""
    return {
        name: value
        for name, value in scores.items()
        if isinstance(value, float)
        and "paper_" not in name
        and name not in ("tied_top_share", "evaluation_time")
        and not math.isnan(value)
    }


def test_queries_without_relevant_passages_change_nothing(tmp_path: Path) -> None:
    before = scores_of(written(tmp_path / "small"), FixedRanking(RUN))
    more = RELEVANT | {"c": [(1, []), (2, []), (2, [])], "0": [(3, [])]}
    model = FixedRanking(RUN | {q: ranking({"d29": 1}) for q in ("c-og", "c-v1", "c-v2", "c~2-v2", "0-og", "0-v3")})
    after = scores_of(written(tmp_path / "large", more), model)
    assert sorted(model.asked) == sorted(model.run)
    assert len(_comparable(before)) > 100
    assert _comparable(after) == _comparable(before)
    assert (after["n_queries"], after["n_without_relevant"], after["n_plain_queries"]) == (9, 5, 4)
    assert (after["level_2_n_queries"], after["level_2_n_without_relevant"]) == (3, 2)
    # The authors' variants count these queries as 0.
    assert after["paper_ndcg_at_20"] == pytest.approx(sum(PAPER_NDCG.values()) / 9, abs=1e-12)


def test_plain_queries_change_nothing(tmp_path: Path) -> None:
    """In the project's layout a plain query can stand alone, and can have judgements."""

    def own(root: Path, more: bool) -> IFIRTask:
        judged = {f"{base}-v{level}": docs for base, said in RELEVANT.items() for level, docs in said}
        plain = ["a-og", "b-og", *(["0-og", "z-og"] if more else [])]
        grades = [(q, d, 1) for q, docs in judged.items() for d in docs]
        grades += [("a-og", "d00", 1), ("z-og", "d03", 1)] if more else []
        write_dataset(
            root,
            {
                "corpus": [{"_id": d, "title": "", "text": f"passage {d}"} for d in DOCS],
                "queries": [{"_id": q, "text": f"query {q[0]}"} for q in (*plain, *judged)],
                "qrels": [dict(zip(("query-id", "corpus-id", "score"), row, strict=True)) for row in grades],
                "instruction": [{"query-id": q, "instruction": f"need {q[-1]}"} for q in judged],
            },
            Card("Test", "For a test.", "mit"),
        )
        task = mteb.get_task("IFIRFiQAInstFol")
        assert isinstance(task, IFIRTask)
        task.data_path = root
        return task

    before = scores_of(own(tmp_path / "small", False), FixedRanking(RUN))
    model = FixedRanking(RUN | {q: ranking({"d03": 1}) for q in ("0-og", "z-og")})
    after = scores_of(own(tmp_path / "large", True), model)
    assert {"0-og", "z-og"} <= set(model.asked)
    assert _comparable(after) == _comparable(before)
    for name, value in expected_by_hand().items():
        assert after[name] == pytest.approx(value, abs=1e-12), name


def test_a_level_that_nothing_is_known_of_has_no_score(tmp_path: Path) -> None:
    scores = scores_of(written(tmp_path, {"a": [(1, ["d00"]), (3, [])]}), FixedRanking(RUN))
    assert not any(k.startswith("level_2") for k in scores)
    assert "level_3_ndcg_at_20" not in scores and "level_3_query_only_ndcg_at_20" not in scores
    assert (scores["level_3_n_queries"], scores["level_3_n_without_relevant"]) == (1, 1)
    assert scores["level_3_paper_ndcg_at_20"] == 0.0


def test_nothing_to_score(tmp_path: Path) -> None:
    task = written(tmp_path, {"a": [(1, []), (2, [])]})
    with pytest.raises(ValueError, match="no instructed query has a relevant passage"):
        scores_of(task, FixedRanking(RUN))


# --- rankings that must not become a number ------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["a-og", "a-v1", "a-v3"])
def test_a_run_that_lacks_a_query(tmp_path: Path, query: str) -> None:
    with pytest.raises(ValueError, match=query):
        scores_of(written(tmp_path), FixedRanking({q: docs for q, docs in RUN.items() if q != query}))


@pytest.mark.parametrize("query", ["b-og", "b-v3", "a-v3"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_run_with_scores_that_are_not_finite(tmp_path: Path, query: str, bad: float) -> None:
    with pytest.raises(ValueError, match=query):
        scores_of(written(tmp_path), FixedRanking(RUN | {query: RUN[query] | {"d07": bad}}))


@pytest.mark.parametrize("query", ["b-og", "b-v3", "a-v3"])
def test_a_run_with_an_empty_ranking(tmp_path: Path, query: str) -> None:
    """A model that returned nothing must not silently get the 0 of a model that ranked badly."""
    with pytest.raises(ValueError, match=query):
        scores_of(written(tmp_path), FixedRanking(RUN | {query: {}}))


def test_a_run_with_documents_that_do_not_exist(tmp_path: Path) -> None:
    """They push the others down, as in any trec_eval run; ids that are no strings are an error."""
    with pytest.raises((ValueError, TypeError)):
        scores_of(written(tmp_path), FixedRanking(RUN | {"b-v1": {5: 1.0}}))  # type: ignore[dict-item]


# --- what is written, and how often the model works ----------------------------------------------------------------


def test_the_table_per_query_agrees_with_the_averages(tmp_path: Path) -> None:
    scores = scores_of(written(tmp_path / "data"), FixedRanking(RUN), prediction_folder=tmp_path / "predictions")
    rows = pq.read_table(tmp_path / "predictions" / "IFIRFiQAInstFol_per_query.parquet").to_pylist()
    assert [row["query-id"] for row in rows] == ["a-v1", "a-v2", "a-v3", "b-v1", "b-v3"]
    assert [(row["base_query"], row["level"], row["n_relevant"]) for row in rows] == [
        ("a", 1, 3),
        ("a", 2, 1),
        ("a", 3, 0),
        ("b", 1, 1),
        ("b", 3, 2),
    ]
    for name, values in BY_HAND.items():
        for row in rows:
            value = values.get(row["query-id"])
            assert row[name] == (None if value is None else pytest.approx(value, abs=1e-12)), (name, row)
    for name in (*BY_HAND, "chance_ndcg_at_20"):
        for prefix, levels in (("", {1, 2, 3}), ("level_1_", {1}), ("level_2_", {2}), ("level_3_", {3})):
            known = [row[name] for row in rows if row["level"] in levels and row[name] is not None]
            assert scores[prefix + name] == pytest.approx(fmean(known), abs=1e-12), prefix + name


class RecordingEncoder:
    """An encoder that keeps what it was asked to encode; embeddings tell the length of a text."""

    def __init__(self, model_name: str = "", revision: str | None = None, **kwargs: Any) -> None:
        self.texts: dict[PromptType | None, list[str]] = {PromptType.query: [], PromptType.document: []}
        self.mteb_model_meta = ModelMeta.create_empty({"name": "test/recording", "revision": "1"})

    def encode(self, inputs: Any, *, prompt_type: PromptType | None = None, **kwargs: Any) -> np.ndarray:
        texts = [text for batch in inputs for text in batch["text"]]
        self.texts[prompt_type] += texts
        return np.array([[len(text), sum(map(ord, text)) % 97, 1.0] for text in texts], dtype=np.float32)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return np.asarray(embeddings1) @ np.asarray(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return (np.asarray(embeddings1) * np.asarray(embeddings2)).sum(axis=1)


def test_one_evaluation_encodes_every_passage_and_every_query_once(tmp_path: Path) -> None:
    task = written(tmp_path)
    model = RecordingEncoder()
    scores_of(task, model)
    assert Counter(model.texts[PromptType.document]) == Counter(f"passage {d}" for d in DOCS)
    assert Counter(model.texts[PromptType.query]) == {
        "query a": 1,
        "query a need 1": 1,
        "query a need 2": 1,
        "query a need 3": 1,
        "query b": 1,
        "query b need 1": 1,
        "query b need 3": 1,
    }


# --- the embedded sample -------------------------------------------------------------------------------------------


def test_sorting_by_facets_is_perfect_at_every_level_of_the_sample() -> None:
    task = mteb.get_task("IFIRSample")
    assert isinstance(task, IFIRTask)
    task.load_data()
    assert task.data is not None
    facets: Run = {}
    for row in task.data.side["facets"].to_pylist():
        facets.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    queries = list(task.data.queries["id"])
    run = {q: facets[q.rsplit("-", 1)[0]] for q in queries}
    scores = scores_of(task, FixedRanking(run))
    for level in ("", "level_1_", "level_2_", "level_3_"):
        for name in ("ndcg_at_20", "mrr_at_20", "paper_ndcg_at_20", "query_only_ndcg_at_20"):
            assert scores[level + name] == pytest.approx(1.0, abs=1e-12), level + name
        assert 0 < scores[f"{level}chance_ndcg_at_20"] < 0.1
        assert scores[f"{level}n_without_relevant"] == 0
    assert (scores["n_queries"], scores["n_plain_queries"]) == (104, 40)
    # The reverse order finds nothing.
    worst = scores_of(mteb.get_task("IFIRSample"), FixedRanking({q: _negated(docs) for q, docs in run.items()}))
    assert worst["ndcg_at_20"] == worst["mrr_at_20"] == worst["paper_ndcg_at_20"] == 0.0


def _negated(docs: Mapping[str, float]) -> dict[str, float]:
    return {doc: -score for doc, score in docs.items()}
