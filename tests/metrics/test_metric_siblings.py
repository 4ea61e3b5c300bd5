"""R@k, GR@k and DS@1 (TCR-Bench, section 4.1.2)."""

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

from evaluators import sibling_queries, sibling_scores

FAST = settings(deadline=None, max_examples=50)


def run_of(*docs: str) -> dict[str, float]:
    return {doc: float(len(docs) - i) for i, doc in enumerate(docs)}


TARGETS = {"q1": "t1", "q2": "t2", "q3": "t3", "q4": "t4"}
GROUPS = {"q1": ["s1", "t1", "s2"], "q2": ["t2", "s3"], "q3": ["s4", "s5", "s6", "t3"], "q4": ["t4"]}
RUN = {
    "q1": run_of("t1", "x", "s1", "y", "s2"),
    "q2": run_of("s3", "x", "y", "t2"),
    "q3": run_of("x", "s4", "t3", "s5"),
    "q4": run_of("s1", "t1", "x", "y", "t4"),  # members of another query's group do not count
}


def test_by_hand() -> None:
    scores = sibling_scores(RUN, TARGETS, GROUPS)
    # Rank of the target: 1, 4, 3, 5.
    assert [scores[f"recall_at_{k}"] for k in range(1, 6)] == [1 / 4, 1 / 4, 2 / 4, 3 / 4, 1]
    # GR@k, members / min(group size, k), per query:
    #   k    1     2     3     4     5      group size
    #   q1  1/1   1/2   2/3   2/3   3/3     3
    #   q2  1/1   1/2   1/2   2/2   2/2     2
    #   q3  0/1   1/2   2/3   3/4   3/4     4
    #   q4  0/1   0/1   0/1   0/1   1/1     1
    # GR@1 = 2/4, GR@2 = 3/8, GR@3 = 11/24, GR@4 = 29/48, GR@5 = 15/16.
    # By group size alone GR@1 = (1/3 + 1/2) / 4 = 5/24; by k alone GR@5 = (3/5 + 2/5 + 3/5 + 1/5) / 4 = 9/20.
    expected = [1 / 2, 3 / 8, 11 / 24, 29 / 48, 15 / 16]
    assert [scores[f"gr_at_{k}"] for k in range(1, 6)] == pytest.approx(expected)
    # Any member: q1 and q2 at once, q3 from 2 on, q4 from 5 on.
    assert [scores[f"group_hit_at_{k}"] for k in range(1, 6)] == [2 / 4, 3 / 4, 3 / 4, 3 / 4, 1]
    # (1/4) / (2/4); a mean of per-query ratios with 0 for no group would be 1/4.
    assert scores["ds_at_1"] == 1 / 2
    assert scores["ds_at_1_expected_under_ties"] == 1 / 2
    assert scores["chance_ds_at_1"] == pytest.approx((1 / 3 + 1 / 2 + 1 / 4 + 1) / 4)
    assert scores["tied_top_share"] == 0
    assert scores["neighbourhood_hit_target_miss"] == 1 / 4  # q2; not q3, where an outsider leads
    assert (scores["n_queries"], scores["n_without_results"]) == (4, 0)


def test_strata_by_hand() -> None:
    scores = sibling_scores(RUN, TARGETS, GROUPS, (1, 3), {"q1": "EM", "q2": "EM", "q3": "SF", "q4": "SF"})
    # EM: R@1 = 1/2, GR@1 = 1, DS = 1/2. SF: neither hit, DS = 0. The total is 1/2, not the mean of the two.
    assert (scores["EM_recall_at_1"], scores["EM_gr_at_1"], scores["EM_ds_at_1"]) == (1 / 2, 1, 1 / 2)
    assert (scores["SF_recall_at_1"], scores["SF_gr_at_1"], scores["SF_ds_at_1"]) == (0, 0, 0)
    assert scores["ds_at_1"] == 1 / 2
    assert scores["EM_gr_at_3"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert scores["EM_chance_ds_at_1"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert (scores["EM_n_queries"], scores["SF_n_queries"]) == (2, 2)
    assert "recall_at_2" not in scores


def test_ties_by_hand() -> None:
    # q1: t, s and an outsider lead together (equal as float32): target 1/3, group 2/3. q2: t leads alone: 1 and 1.
    # (1/3 + 1) / (2/3 + 1) = 4/5. A mean of ratios would be (1/2 + 1) / 2 = 3/4.
    # By the tie rule, in doubles, q1's best is s (1 + 1e-9), so R@1 = 1/2, GR@1 = 1.
    run = {"q1": {"t": 1.0, "s": 1.0 + 1e-9, "x": 1.0, "y": 0.5}, "q2": {"t": 1.0, "s": 0.5, "x": 0.25}}
    scores = sibling_scores(run, {"q1": "t", "q2": "t"}, {"q1": ["t", "s"], "q2": ["t", "s"]}, (1,))
    assert scores["ds_at_1_expected_under_ties"] == pytest.approx(4 / 5)
    assert (scores["recall_at_1"], scores["gr_at_1"], scores["ds_at_1"]) == (1 / 2, 1, 1 / 2)
    assert scores["tied_top_share"] == 1 / 2
    detail = sibling_queries(run, {"q1": "t"}, {"q1": ["t", "s"]})["q1"]
    assert (detail.top, detail.tied, detail.group_size) == ("s", True, 2)
    assert (detail.target_if_tied, detail.group_if_tied) == pytest.approx((1 / 3, 2 / 3))


def test_equal_doubles_are_ordered_by_the_higher_id() -> None:
    run = {"q": {"t": 0.0, "z": -0.0, "a": 0.0}}
    scores = sibling_scores(run, {"q": "t"}, {"q": ["t", "z"]}, (1, 2, 3))
    assert [scores[f"recall_at_{k}"] for k in (1, 2, 3)] == [0, 1, 1]
    assert scores["neighbourhood_hit_target_miss"] == 1


def test_empty_runs_and_short_runs() -> None:
    run: dict[str, dict[str, float]] = {"q1": {}, "q2": {"t": 1.0}}
    scores = sibling_scores(run, {"q1": "t", "q2": "t"}, {"q1": ["t", "s"], "q2": ["t", "s"]}, (1, 50))
    assert (scores["recall_at_1"], scores["recall_at_50"], scores["n_without_results"]) == (1 / 2, 1 / 2, 1)
    assert scores["gr_at_50"] == pytest.approx((0 + 1 / 2) / 2)
    assert scores["ds_at_1"] == 1
    assert sibling_queries(run, {"q1": "t"}, {"q1": ["t"]})["q1"].top is None
    nothing = sibling_scores({"q1": {}}, {"q1": "t"}, {"q1": ["t"]})
    assert (nothing["ds_at_1"], nothing["ds_at_1_expected_under_ties"], nothing["tied_top_share"]) == (0, 0, 0)


def test_perfect_and_worst() -> None:
    perfect = {q: run_of(t, *(m for m in GROUPS[q] if m != t), "x") for q, t in TARGETS.items()}
    scores = sibling_scores(perfect, TARGETS, GROUPS)
    for key in [*(f"{m}_at_{k}" for m in ("recall", "gr", "group_hit") for k in range(1, 6)), "ds_at_1"]:
        assert scores[key] == 1, key
    worst = sibling_scores({q: run_of(*"vwxyz") for q in TARGETS}, TARGETS, GROUPS)
    values = {k: v for k, v in worst.items() if k not in ("n_queries", "chance_ds_at_1")}
    assert set(values.values()) == {0}


def test_k_values_are_sorted_deduplicated_and_always_hold_one() -> None:
    keys = list(sibling_scores(RUN, TARGETS, GROUPS, [3, 2, 3]))
    assert [k for k in keys if k.startswith("recall")] == ["recall_at_1", "recall_at_2", "recall_at_3"]
    assert [k for k in sibling_scores(RUN, TARGETS, GROUPS, []) if k.startswith("gr_")] == ["gr_at_1"]


def test_values_are_plain_numbers() -> None:
    run = {q: {d: np.float32(s) for d, s in scores.items()} for q, scores in RUN.items()}
    scores = sibling_scores(run, TARGETS, GROUPS, strata=dict.fromkeys(TARGETS, "EM"))
    assert json.loads(json.dumps(scores)) == scores


@st.composite
def sibling_data(
    draw: st.DrawFn, scores: Any = oracle.SCORES
) -> tuple[oracle.Run, dict[str, str], dict[str, list[str]]]:
    queries = draw(st.lists(st.sampled_from(["q1", "q2", "q10", "ü", "日"]), unique=True, min_size=1, max_size=4))
    ids = st.sampled_from(oracle.DOC_IDS)
    run = {q: draw(st.dictionaries(ids, scores, max_size=25)) for q in queries}
    groups = {q: draw(st.lists(ids, unique=True, min_size=1, max_size=7)) for q in queries}
    targets = {q: draw(st.sampled_from(groups[q])) for q in queries}
    return run, targets, groups


Data = tuple[oracle.Run, dict[str, str], dict[str, list[str]]]
NEARLY_TIED = st.sampled_from([*oracle.DISTINCT_IN_DOUBLE_ONLY, 1.0, -0.0, 0.0])


@FAST
@given(sibling_data() | sibling_data(NEARLY_TIED), st.lists(st.integers(1, 30), max_size=4))
def test_equal_the_oracle(data: Data, ks: list[int]) -> None:
    run, targets, groups = data
    scores = sibling_scores(run, targets, groups, ks)
    expected: dict[str, float] = {}
    for k in {1, *ks}:
        expected |= {key: float(value) for key, value in oracle.siblings(run, targets, groups, k).items()}
    assert scores == pytest.approx(expected, abs=1e-12)
    assert all(-1e-12 <= v <= 1 + 1e-12 for key, v in scores.items() if not key.startswith("n_"))
    assert scores["gr_at_1"] == scores["group_hit_at_1"]
    assert scores["gr_at_1"] - scores["recall_at_1"] == pytest.approx(scores["neighbourhood_hit_target_miss"])


@FAST
@given(sibling_data(), st.lists(st.integers(0, 9), min_size=1, max_size=12), st.sampled_from(["p", "\U0001f600"]))
def test_invariants(data: Data, order: list[int], prefix: str) -> None:
    run, targets, groups = data
    scores = sibling_scores(run, targets, groups)
    assert sibling_scores(
        oracle.shuffled({q: oracle.shuffled(s, order) for q, s in run.items()}, order),
        oracle.shuffled(targets, order),
        {q: tuple(reversed(g)) for q, g in groups.items()},
    ) == pytest.approx(scores, abs=1e-12)
    assert sibling_scores(
        {q: oracle.renamed(s, prefix) for q, s in run.items()},
        {q: prefix + t for q, t in targets.items()},
        {q: [prefix + m for m in g] for q, g in groups.items()},
    ) == pytest.approx(scores, abs=1e-12)
    # Sources below all others do not reach the top k of a run that already has k.
    ks = range(1, min(len(s) for s in run.values()) + 1)
    longer = {q: {**s, "zz1": -99.0, "zz2": -98.0} for q, s in run.items()}
    if ks:
        assert sibling_scores(longer, targets, groups, ks) == sibling_scores(run, targets, groups, ks)
    # Recall and hits can only rise with k.
    for name in ("recall", "group_hit"):
        values = [scores[f"{name}_at_{k}"] for k in range(1, 6)]
        assert values == sorted(values)


@FAST
@given(sibling_data(), st.lists(st.sampled_from(["EM", "SF", "SA"]), min_size=5, max_size=5))
def test_strata_recombine_to_the_total(data: Data, labels: list[str]) -> None:
    run, targets, groups = data
    strata = dict(zip(targets, labels, strict=False))
    scores = sibling_scores(run, targets, groups, (1, 3), strata)
    plain = sibling_scores(run, targets, groups, (1, 3))
    used = sorted(set(strata.values()))
    assert set(scores) == set(plain) | {f"{label}_{key}" for label in used for key in plain}
    for key, value in plain.items():
        assert scores[key] == value
        if key.startswith("ds_at_1"):
            continue  # a ratio of averages is no average of ratios
        if key.startswith("n_"):
            assert sum(scores[f"{label}_{key}"] for label in used) == value
        else:
            weighted = sum(scores[f"{label}_n_queries"] * scores[f"{label}_{key}"] for label in used)
            assert weighted / plain["n_queries"] == pytest.approx(value, abs=1e-12)
    for label in used:
        subset = {q: t for q, t in targets.items() if strata[q] == label}
        alone = sibling_scores(run, subset, groups, (1, 3))
        assert {key: scores[f"{label}_{key}"] for key in alone} == alone


@FAST
@given(sibling_data())
def test_without_ties_the_expected_score_is_the_score(data: Data) -> None:
    run, targets, groups = data
    distinct = {q: {d: float(i) for i, d in enumerate(s)} for q, s in run.items()}
    scores = sibling_scores(distinct, targets, groups)
    assert scores["tied_top_share"] == 0
    assert scores["ds_at_1_expected_under_ties"] == pytest.approx(scores["ds_at_1"])


@FAST
@given(sibling_data(), oracle.SCORES)
def test_equal_scores_within_the_group_are_worth_chance(data: Data, score: Any) -> None:
    _, targets, groups = data
    scores = sibling_scores({q: dict.fromkeys(g, score) for q, g in groups.items()}, targets, groups)
    assert scores["ds_at_1_expected_under_ties"] == pytest.approx(scores["chance_ds_at_1"])
    assert scores["gr_at_1"] == 1
    # One query: the chance is 1 / group size.
    q = next(iter(targets))
    one = sibling_scores({q: dict.fromkeys(groups[q], score)}, {q: targets[q]}, groups)
    assert one["ds_at_1_expected_under_ties"] == pytest.approx(1 / len(groups[q]))
    assert one["tied_top_share"] == (len(groups[q]) > 1)


@FAST
@given(sibling_data(), st.integers(1, 12))
def test_recall_and_group_hit_equal_pytrec_eval(data: Data, k: int) -> None:
    run, targets, groups = data
    run = {q: {d: float(x) for d, x in s.items()} for q, s in run.items()}
    recall = pytrec_eval.RelevanceEvaluator({q: {t: 1} for q, t in targets.items()}, {f"recall.{k}"}).evaluate(run)
    hits = pytrec_eval.RelevanceEvaluator(
        {q: dict.fromkeys(g, 1) for q, g in groups.items()}, {f"success.{k}"}
    ).evaluate(run)
    scores = sibling_scores(run, targets, groups, (k,))
    # trec_eval leaves out queries without results: they count 0.
    n = len(targets)
    assert scores[f"recall_at_{k}"] == pytest.approx(sum(recall[q][f"recall_{k}"] for q in targets if run[q]) / n)
    assert scores[f"group_hit_at_{k}"] == pytest.approx(sum(hits[q][f"success_{k}"] for q in targets if run[q]) / n)


OK_RUN = {"q": {"t": 1.0, "s": 0.5}, "p": {"t": 1.0, "s": 0.5}}
OK_TARGETS = {"q": "t", "p": "t"}
OK_GROUPS = {"q": ["t", "s"], "p": ["t", "s"]}


@pytest.mark.parametrize("function", [sibling_scores, sibling_queries])
@pytest.mark.parametrize(
    ("run", "targets", "groups", "named"),
    [
        ({"q": OK_RUN["q"]}, OK_TARGETS, OK_GROUPS, "'p'"),
        (OK_RUN, OK_TARGETS, {"q": ["t"]}, "'p'"),
        (OK_RUN, {**OK_TARGETS, "p": "elsewhere"}, OK_GROUPS, "elsewhere"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": []}, "'p'"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": ()}, "'p'"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": ["t", "twice", "twice"]}, "twice"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": ["t", "s", "t"]}, "'t'"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": "ts"}, "'ts'"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": "t"}, "'p'"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": ["t", 12]}, "12"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": ["t", None]}, "None"),
        (OK_RUN, OK_TARGETS, {**OK_GROUPS, "p": ["t", b"s"]}, "b's'"),
        (OK_RUN, {**OK_TARGETS, "p": 12}, {**OK_GROUPS, "p": [12]}, "12"),
        (OK_RUN, {**OK_TARGETS, "p": None}, OK_GROUPS, "None"),
        (OK_RUN, {**OK_TARGETS, "p": b"t"}, OK_GROUPS, "b't'"),
        (OK_RUN, {**OK_TARGETS, 12: "t"}, OK_GROUPS, "12"),
        (OK_RUN, {**OK_TARGETS, None: "t"}, OK_GROUPS, "None"),
        (OK_RUN, {**OK_TARGETS, b"p": "t"}, OK_GROUPS, "b'p'"),
        ({**OK_RUN, "p": {"t": 1.0, "bad": math.nan}}, OK_TARGETS, OK_GROUPS, "bad"),
        ({**OK_RUN, "p": {"t": 1.0, "bad": math.inf}}, OK_TARGETS, OK_GROUPS, "bad"),
        ({**OK_RUN, "p": {"t": 1.0, "bad": -math.inf}}, OK_TARGETS, OK_GROUPS, "bad"),
        ({**OK_RUN, "p": {"t": 1.0, "bad": "high"}}, OK_TARGETS, OK_GROUPS, "bad"),
        ({**OK_RUN, "p": {"t": 1.0, 12: 1.0}}, OK_TARGETS, OK_GROUPS, "12"),
        ({**OK_RUN, "p": {None: 1.0}}, OK_TARGETS, OK_GROUPS, "None"),
        ({**OK_RUN, "p": {b"t": 1.0}}, OK_TARGETS, OK_GROUPS, "b't'"),
    ],
)
def test_errors_name_the_id(function: Any, run: Any, targets: Any, groups: Any, named: str) -> None:
    with pytest.raises(ValueError) as caught:
        function(run, targets, groups)
    assert named in str(caught.value)


@pytest.mark.parametrize("k", [0, -1, True, False, 1.5, 2.0, "3", None])
def test_bad_k(k: Any) -> None:
    with pytest.raises(ValueError, match=r"\bk\b") as caught:
        sibling_scores(OK_RUN, OK_TARGETS, OK_GROUPS, (1, 2, k))
    assert repr(k) in str(caught.value)


def test_no_query_and_no_stratum() -> None:
    with pytest.raises(ValueError, match="targets"):
        sibling_scores(OK_RUN, {}, OK_GROUPS)
    with pytest.raises(ValueError, match="'p'"):
        sibling_scores(OK_RUN, OK_TARGETS, OK_GROUPS, strata={"q": "EM"})
