"""nDCG and MRR of IFIR's published code."""

from __future__ import annotations

import json
import math
from typing import Any

import metric_oracle as oracle
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators import ifir_mrr, ifir_ndcg

FAST = settings(deadline=None, max_examples=60)
BOTH = pytest.mark.parametrize("metric", [ifir_ndcg, ifir_mrr])


def run_of(*docs: str) -> dict[str, float]:
    return {doc: float(len(docs) - i) for i, doc in enumerate(docs)}


def test_ndcg_by_hand() -> None:
    # Relevant: b (rank 2), e (rank 5), u (not retrieved); c is judged 0.
    # DCG = 1/log2(3) + 1/log2(6) = 0.6309298 + 0.3868528 = 1.0177826
    # ideal of the two that were found = 1/log2(2) + 1/log2(3) = 1.6309298
    # 1.0177826 / 1.6309298 = 0.6240505
    # Other readings: ideal over all three relevant (+ 1/log2(4)): 1.0177826 / 2.1309298 = 0.4776237; graded gains
    # (2, 1): (2 * 0.6309298 + 0.3868528) / (2 + 0.6309298) = 0.6266663; ideal over the k = 5 places:
    # 1.0177826 / 2.9484591 = 0.3451913; discount log2(1 + rank) from rank 0 is a division by zero.
    run = {"q": run_of(*"abcdefg")}
    qrels = {"q": {"b": 2, "e": 1, "u": 1, "c": 0}}
    result = ifir_ndcg(run, qrels, 5)
    assert result.score == pytest.approx(0.6240505, abs=5e-8)
    assert result.per_query == {"q": result.score}
    assert result.n_without_relevant == 0
    # At 4 only b is left: 0.6309298 / 1.
    assert ifir_ndcg(run, qrels, 4).score == pytest.approx(0.6309298, abs=5e-8)
    assert ifir_ndcg(run, qrels, 1).score == 0
    assert ifir_ndcg(run, qrels, 1000).score == result.score


def test_mrr_by_hand() -> None:
    # First relevant at 2, at 4, none, none judged: (1/2 + 1/4 + 0 + 0) / 4 = 3/16. Leaving out the last: 1/4.
    # From rank 0: (1 + 1/3) / 4; with the last relevant instead of the first (5 for q1): (1/5 + 1/4) / 4.
    run = {q: run_of(*"abcdef") for q in ("q1", "q2", "q3", "q4")}
    qrels: dict[str, dict[str, int]] = {"q1": {"e": 1, "b": 1}, "q2": {"d": 3, "a": 0}, "q3": {"u": 1}, "q4": {}}
    result = ifir_mrr(run, qrels, 6)
    assert result.per_query == {"q1": 1 / 2, "q2": 1 / 4, "q3": 0, "q4": 0}
    assert result.score == 3 / 16
    assert result.n_without_relevant == 1
    # At 3: q2 finds nothing any more.
    assert ifir_mrr(run, qrels, 3).score == 1 / 8


def test_queries_without_relevant_document_count_zero() -> None:
    run = {"q1": run_of("a", "b"), "q2": run_of("a", "b"), "q3": run_of("a", "b")}
    result = ifir_ndcg(run, {"q1": {"a": 1}, "q2": {}, "q3": {"a": 0, "b": -1}}, 2)
    assert result.per_query == {"q1": 1, "q2": 0, "q3": 0}
    assert result.score == pytest.approx(1 / 3)
    assert result.n_without_relevant == 2


def test_ndcg_is_not_always_at_least_mrr() -> None:
    # Relevant at 1 and 20: (1 + 1/log2(21)) / (1 + 1/log2(3)) = (1 + 0.2276702) / 1.6309298 = 0.7527426, but MRR = 1.
    docs = [f"d{i:02}" for i in range(1, 21)]
    run, qrels = {"q": run_of(*docs)}, {"q": {"d01": 1, "d20": 1}}
    assert ifir_ndcg(run, qrels, 20).score == pytest.approx(0.7527426, abs=5e-8)
    assert ifir_mrr(run, qrels, 20).score == 1
    # One place further on, only the first is found and both are 1.
    assert ifir_ndcg(run, qrels, 19).score == 1


@BOTH
def test_ties_by_hand(metric: Any) -> None:
    # "a" is stored first but "b" has the higher id: b stands first.
    run = {"q": {"a": 0.0, "b": -0.0, "c": -1.0}}
    assert metric(run, {"q": {"b": 1}}, 1).score == 1
    assert metric(run, {"q": {"a": 1}}, 1).score == 0
    assert metric(run, {"q": {"a": 1}}, 2).score == pytest.approx(0.6309298 if metric is ifir_ndcg else 0.5, abs=5e-8)


@BOTH
def test_perfect_and_worst(metric: Any) -> None:
    run = {"q": run_of(*"abcdefgh")}
    assert metric(run, {"q": {"a": 1, "b": 1, "c": 1}}, 5).score == 1
    assert metric(run, {"q": {"a": 1, "u": 1, "v": 1}}, 5).score == 1  # what was not found is not punished
    assert metric(run, {"q": {"g": 1, "h": 1}}, 5).score == 0
    assert metric({"q": {}}, {"q": {"g": 1}}, 5).score == 0


@BOTH
def test_queries_of_the_run_that_are_not_judged_are_ignored(metric: Any) -> None:
    run = {"q": run_of("a"), "other": {"a": math.nan}}
    assert metric(run, {"q": {"a": 1}}, 5).per_query == {"q": 1}


@BOTH
def test_values_are_plain_floats(metric: Any) -> None:
    result = metric({"q": {"a": np.float32(1)}, "p": {"b": np.float16(2)}}, {"q": {"a": 1}, "p": {"a": 1}}, 5)
    assert type(result.score) is float
    json.dumps([result.score, result.per_query, result.n_without_relevant])


@st.composite
def judged_runs(draw: st.DrawFn) -> tuple[oracle.Run, dict[str, dict[str, int]], int]:
    queries = draw(st.lists(st.sampled_from(["q1", "q2", "ü", "日"]), unique=True, min_size=1, max_size=3))
    judgement = st.dictionaries(st.sampled_from(oracle.DOC_IDS), st.sampled_from([0, 0, 1, 1, 2, 3, -1]), max_size=12)
    return (
        {q: draw(oracle.doc_scores(max_size=30)) for q in queries},
        {q: draw(judgement) for q in queries},
        draw(st.integers(1, 25)),
    )


Data = tuple[oracle.Run, dict[str, dict[str, int]], int]


@FAST
@given(judged_runs())
def test_equal_the_oracle(data: Data) -> None:
    run, qrels, k = data
    for metric, naive in ((ifir_ndcg, oracle.ifir_ndcg), (ifir_mrr, oracle.mrr)):
        result = metric(run, qrels, k)
        expected = {q: naive(run[q], qrels[q], k) for q in qrels}
        assert result.per_query == pytest.approx(expected, abs=1e-12)
        assert result.score == pytest.approx(math.fsum(expected.values()) / len(expected), abs=1e-12)
        assert result.n_without_relevant == sum(not any(g > 0 for g in judged.values()) for judged in qrels.values())
        assert all(0 <= v <= 1 + 1e-12 for v in result.per_query.values())


@FAST
@given(judged_runs())
def test_against_the_standard_binary_ndcg(data: Data) -> None:
    run, qrels, k = data
    binary = {q: {d: int(g > 0) for d, g in judged.items()} for q, judged in qrels.items()}
    binary = {q: judged for q, judged in binary.items() if any(judged.values()) and run[q]}
    if not binary:
        return
    ours = ifir_ndcg(run, qrels, k).per_query
    standard = pytrec_eval.RelevanceEvaluator(binary, {f"ndcg_cut.{k}"}).evaluate(
        {q: {d: float(s) for d, s in run[q].items()} for q in binary}
    )
    for q, judged in binary.items():
        theirs = standard[q][f"ndcg_cut_{k}"]
        assert theirs <= ours[q] + 1e-12
        if len(oracle.relevant_ranks(run[q], judged, k)) == sum(judged.values()):
            assert theirs == pytest.approx(ours[q], abs=1e-12)


@FAST
@given(judged_runs())
def test_ndcg_is_at_least_mrr_when_exactly_one_relevant_document_is_found(data: Data) -> None:
    run, qrels, k = data
    ndcg, mrr = ifir_ndcg(run, qrels, k).per_query, ifir_mrr(run, qrels, k).per_query
    for q in qrels:
        if len(oracle.relevant_ranks(run[q], qrels[q], k)) == 1:
            assert ndcg[q] >= mrr[q]
        assert (ndcg[q] == 0) == (mrr[q] == 0)


@FAST
@given(judged_runs(), st.lists(st.integers(0, 9), min_size=1, max_size=14), st.sampled_from(["p", "\U0001f600"]))
def test_invariants(data: Data, order: list[int], prefix: str) -> None:
    run, qrels, k = data
    for metric in (ifir_ndcg, ifir_mrr):
        result = metric(run, qrels, k)
        other = metric(
            oracle.shuffled({q: oracle.shuffled(s, order) for q, s in run.items()}, order),
            oracle.shuffled({q: oracle.shuffled(j, order) for q, j in qrels.items()}, order),
            k,
        )
        assert other.per_query == pytest.approx(result.per_query, abs=1e-12)
        assert other.score == pytest.approx(result.score, abs=1e-12)
        renamed = metric(
            {q: oracle.renamed(s, prefix) for q, s in run.items()},
            {q: oracle.renamed(j, prefix) for q, j in qrels.items()},
            k,
        )
        assert renamed.per_query == pytest.approx(result.per_query, abs=1e-12)
        # How relevant does not matter, and a judged irrelevant document is like one not judged.
        flat = {q: {d: 1 for d, g in j.items() if g > 0} for q, j in qrels.items()}
        assert metric(run, flat, k).per_query == pytest.approx(result.per_query, abs=1e-12)
        # Relevant documents that were not retrieved do not matter; documents below the cut neither.
        unseen = {q: {**j, "never-retrieved": 1} for q, j in qrels.items()}
        assert metric(run, unseen, k).per_query == pytest.approx(result.per_query, abs=1e-12)
        longer = {q: {**s, "zz": -99.0} for q, s in run.items()}
        if all(len(s) >= k for s in run.values()):
            assert metric(longer, unseen, k).per_query == pytest.approx(result.per_query, abs=1e-12)


RUN: dict[str, dict[str, float]] = {"q": {"a": 1.0, "b": 0.5}, "p": {"a": 1.0, "b": 0.5}}
QRELS = {"q": {"a": 1}, "p": {"b": 1}}


@BOTH
@pytest.mark.parametrize("k", [0, -1, True, False, 1.5, 2.0, "3", None])
def test_bad_k(metric: Any, k: Any) -> None:
    with pytest.raises(ValueError, match=r"\bk\b") as caught:
        metric(RUN, QRELS, k)
    assert repr(k) in str(caught.value)


@BOTH
@pytest.mark.parametrize(
    ("run", "qrels", "named"),
    [
        (RUN, {**QRELS, "lost": {"a": 1}}, "lost"),
        ({}, QRELS, "'q'"),
        ({**RUN, "p": {"a": math.nan}}, QRELS, "'p'"),
        ({**RUN, "p": {"bad": math.nan}}, QRELS, "bad"),
        ({**RUN, "p": {"bad": math.inf}}, QRELS, "bad"),
        ({**RUN, "p": {"bad": -math.inf, "a": 1.0}}, QRELS, "bad"),
        ({**RUN, "p": {"bad": "x"}}, QRELS, "bad"),
        ({**RUN, "p": {12: 1.0}}, QRELS, "12"),
        ({**RUN, "p": {None: 1.0}}, QRELS, "None"),
        ({**RUN, "p": {b"a": 1.0}}, QRELS, "b'a'"),
        (RUN, {**QRELS, 12: {"a": 1}}, "12"),
        (RUN, {**QRELS, None: {"a": 1}}, "None"),
        (RUN, {**QRELS, b"p": {"a": 1}}, "b'p'"),
        # A judged document whose id is no string could never be found: silently a 0.
        (RUN, {**QRELS, "p": {34: 1}}, "34"),
        (RUN, {**QRELS, "p": {"b": 1, None: 1}}, "None"),
        (RUN, {**QRELS, "p": {b"b": 1}}, "b'b'"),
    ],
)
def test_errors_name_the_id(metric: Any, run: Any, qrels: Any, named: str) -> None:
    with pytest.raises(ValueError) as caught:
        metric(run, qrels, 5)
    assert named in str(caught.value)


@BOTH
def test_no_query_is_an_error(metric: Any) -> None:
    with pytest.raises(ValueError, match="no query"):
        metric(RUN, {}, 5)
