"""Robustness@k (InstructIR)."""

from __future__ import annotations

import json
import math
from typing import Any

import metric_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators import robustness_at_k

FAST = settings(deadline=None, max_examples=50)
DISCOUNT_2 = 1 / math.log2(3)  # 0.6309298


def base_of(query_id: str) -> str:
    return query_id.split("_")[0]


def run_of(*docs: str) -> dict[str, float]:
    return {doc: float(len(docs) - i) for i, doc in enumerate(docs)}


def test_by_hand() -> None:
    # One relevant document each, nDCG = 1 / log2(rank + 1): rank 1 -> 1, 2 -> 0.6309298, 3 -> 0.5.
    # A: 1, 0.6309298 -> 0.6309298.   B: 0.5, 0, 1 -> 0 (that of B_2 is below the cut).   C: 0.5, 0.5 -> 0.5.
    # D: a single instruction -> left out.   (0.6309298 + 0 + 0.5) / 3 = 0.3769766.
    # With D (1.0) it would be 0.5327, as a mean of means 0.6052, as a mean over all queries 0.6414, with maxima 0.8333.
    run = {q: run_of("x", "y", "z", "w") for q in ("A_1", "A_2", "B_1", "B_2", "B_3", "C_1", "C_2", "D_1")}
    relevant = {"A_1": "x", "A_2": "y", "B_1": "z", "B_2": "w", "B_3": "x", "C_1": "z", "C_2": "z", "D_1": "x"}
    result = robustness_at_k(run, {q: {doc: 1} for q, doc in relevant.items()}, 3, base_of)
    assert result.per_base == pytest.approx({"A": DISCOUNT_2, "B": 0, "C": 0.5})
    assert result.score == pytest.approx((DISCOUNT_2 + 0 + 0.5) / 3)
    assert result.n_single == 1
    assert result.per_query["D_1"] == pytest.approx(1.0)
    assert result.per_query["A_2"] == pytest.approx(DISCOUNT_2)
    assert len(result.per_query) == 8


def test_graded_ndcg_by_hand() -> None:
    # x (grade 1) at rank 1, y (grade 2) at rank 2, u (grade 3) not retrieved, k = 2:
    # (1 + 2 * 0.6309298) / (3 + 2 * 0.6309298) = 2.2618595 / 4.2618595 = 0.5307213.
    # Binary: 1; gains 2^g - 1: (1 + 3 * 0.6309298) / (7 + 3 * 0.6309298) = 0.3253; ideal of the retrieved only: 0.8597.
    run = {"q_1": run_of("x", "y", "z"), "q_2": run_of("x", "y", "z")}
    qrels = {"q_1": {"x": 1, "y": 2, "u": 3}, "q_2": {"x": 1}}
    result = robustness_at_k(run, qrels, 2, base_of)
    assert result.per_query == pytest.approx({"q_1": 0.5307213, "q_2": 1}, abs=5e-8)
    assert result.score == pytest.approx(0.5307213, abs=5e-8)


def test_ties_by_hand() -> None:
    # "b" has the higher id and is first among equals: a stands second. Scores are float32: 1 + 1e-9 is 1.
    run = {"q_1": {"a": 0.0, "b": -0.0}, "q_2": {"a": 1.0 + 1e-9, "b": 1.0}}
    qrels = {"q_1": {"a": 1}, "q_2": {"a": 1}}
    assert robustness_at_k(run, qrels, 5, base_of).per_query == pytest.approx({"q_1": DISCOUNT_2, "q_2": DISCOUNT_2})


def test_an_empty_run_counts_zero() -> None:
    run: dict[str, dict[str, float]] = {"q_1": {}, "q_2": run_of("a")}
    result = robustness_at_k(run, {"q_1": {"a": 1}, "q_2": {"a": 1}}, 5, base_of)
    assert result.per_query == {"q_1": 0.0, "q_2": 1.0}
    assert result.score == 0
    all_empty: dict[str, dict[str, float]] = {"q_1": {}, "q_2": {}}
    assert robustness_at_k(all_empty, {"q_1": {"a": 1}, "q_2": {"a": 1}}, 5, base_of).score == 0


def test_perfect_and_worst() -> None:
    run = {f"{b}_{i}": run_of("x", "y", "z") for b in "AB" for i in range(3)}
    assert robustness_at_k(run, {q: {"x": 2, "y": 1} for q in run}, 10, base_of).score == pytest.approx(1.0)
    assert robustness_at_k(run, {q: {"u": 1} for q in run}, 10, base_of).score == 0
    # One bad instruction is enough.
    spoiled = {q: {"u" if q.endswith("_0") else "x": 1} for q in run}
    assert robustness_at_k(run, spoiled, 10, base_of).score == 0


def test_values_are_plain_floats() -> None:
    run = {"q_1": {"a": np.float32(1)}, "q_2": {"a": np.float16(1), "b": np.int64(2)}}
    result = robustness_at_k(run, {"q_1": {"a": 1}, "q_2": {"a": 1}}, 5, base_of)
    json.dumps([result.score, result.per_base, result.per_query, result.n_single])


@st.composite
def instructed(draw: st.DrawFn) -> tuple[oracle.Run, dict[str, dict[str, int]], int]:
    extra = draw(st.lists(st.sampled_from(["a_2", "b_1", "b_2", "b_3", "ü_1", "ü_2"]), unique=True, max_size=4))
    queries = ["a_0", "a_1", *extra]
    judgement = st.dictionaries(st.sampled_from(oracle.DOC_IDS), st.sampled_from([0, 1, 1, 2, 3]), max_size=8)
    qrels = {q: {**draw(judgement), draw(st.sampled_from(oracle.DOC_IDS)): 1} for q in queries}
    return {q: draw(oracle.doc_scores(max_size=20)) for q in queries}, qrels, draw(st.integers(1, 22))


Data = tuple[oracle.Run, dict[str, dict[str, int]], int]


@FAST
@given(instructed())
def test_equals_the_oracle(data: Data) -> None:
    run, qrels, k = data
    result = robustness_at_k(run, qrels, k, base_of)
    expected = oracle.robustness(run, qrels, k, base_of)
    assert result.per_base == pytest.approx(expected, abs=1e-9)
    assert result.score == pytest.approx(math.fsum(expected.values()) / len(expected), abs=1e-9)
    assert result.per_query == pytest.approx({q: oracle.graded_ndcg(run[q], qrels[q], k) for q in qrels}, abs=1e-9)
    assert result.n_single == len({base_of(q) for q in qrels}) - len(expected)
    assert 0 <= result.score <= 1 + 1e-9


@FAST
@given(instructed(), st.lists(st.integers(0, 9), min_size=1, max_size=12), st.sampled_from(["p", "\U0001f600"]))
def test_invariants(data: Data, order: list[int], prefix: str) -> None:
    run, qrels, k = data
    result = robustness_at_k(run, qrels, k, base_of)
    other = robustness_at_k(
        oracle.shuffled({q: oracle.shuffled(s, order) for q, s in run.items()}, order),
        oracle.shuffled({q: oracle.shuffled(j, order) for q, j in qrels.items()}, order),
        k,
        base_of,
    )
    assert other.per_query == pytest.approx(result.per_query, abs=1e-9)
    assert other.score == pytest.approx(result.score, abs=1e-9)
    renamed = robustness_at_k(
        {q: oracle.renamed(s, prefix) for q, s in run.items()},
        {q: oracle.renamed(j, prefix) for q, j in qrels.items()},
        k,
        base_of,
    )
    assert renamed.per_query == pytest.approx(result.per_query, abs=1e-9)
    # Never above the mean of the queries that enter, and repeating the worst instruction changes nothing.
    grouped = [v for q, v in result.per_query.items() if base_of(q) in result.per_base]
    assert min(grouped) - 1e-9 <= result.score <= max(grouped) + 1e-9
    worst = min((q for q in qrels if base_of(q) == "a"), key=lambda q: result.per_query[q])
    again = robustness_at_k({**run, "a_99": run[worst]}, {**qrels, "a_99": qrels[worst]}, k, base_of)
    assert again.per_base == pytest.approx(result.per_base, abs=1e-9)


RUN: dict[str, dict[str, float]] = {"q_1": {"a": 1.0, "b": 0.5}, "q_2": {"a": 1.0, "b": 0.5}}
QRELS = {"q_1": {"a": 1}, "q_2": {"b": 1}}


@pytest.mark.parametrize("k", [0, -1, True, False, 1.5, 2.0, "3", None])
def test_bad_k(k: Any) -> None:
    with pytest.raises(ValueError, match=r"\bk\b") as caught:
        robustness_at_k(RUN, QRELS, k, base_of)
    assert repr(k) in str(caught.value)


@pytest.mark.parametrize(
    ("run", "qrels", "named"),
    [
        (RUN, {**QRELS, "lost_1": {"a": 1}}, "lost_1"),
        ({}, QRELS, "q_1"),
        (RUN, {**QRELS, "q_2": {}}, "q_2"),
        (RUN, {**QRELS, "q_2": {"a": 0, "b": -1}}, "q_2"),
        ({**RUN, "q_2": {"bad": math.nan}}, QRELS, "bad"),
        ({**RUN, "q_2": {"bad": math.inf}}, QRELS, "bad"),
        ({**RUN, "q_2": {"bad": "x"}}, QRELS, "bad"),
        ({**RUN, "q_2": {12: 1.0}}, QRELS, "12"),
        ({**RUN, "q_2": {None: 1.0}}, QRELS, "None"),
        ({**RUN, "q_2": {b"a": 1.0}}, QRELS, "b'a'"),
        (RUN, {**QRELS, 12: {"a": 1}}, "12"),
        (RUN, {**QRELS, None: {"a": 1}}, "None"),
        (RUN, {**QRELS, b"q_2": {"a": 1}}, "b'q_2'"),
        (RUN, {**QRELS, "q_2": {34: 1}}, "34"),
        (RUN, {**QRELS, "q_2": {"b": 1, None: 1}}, "None"),
        (RUN, {**QRELS, "q_2": {b"b": 1}}, "b'b'"),
    ],
)
def test_errors_name_the_id(run: Any, qrels: Any, named: str) -> None:
    with pytest.raises(ValueError) as caught:
        robustness_at_k(run, qrels, 5, base_of)
    assert named in str(caught.value)


def test_nothing_to_minimise_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty"):
        robustness_at_k(RUN, {}, 5, base_of)
    with pytest.raises(ValueError, match="undefined"):
        robustness_at_k(RUN, QRELS, 5, str)


def test_an_unknown_query_is_the_mapping_s_error() -> None:
    with pytest.raises(KeyError, match="q_2"):
        robustness_at_k(RUN, QRELS, 5, {"q_1": "q"}.__getitem__)
