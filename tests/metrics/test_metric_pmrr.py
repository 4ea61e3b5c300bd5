"""p-MRR (FollowIR, section 3.1)."""

from __future__ import annotations

import json
import math
from typing import Any

import metric_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators import p_mrr

FAST = settings(deadline=None, max_examples=60)
LETTERS = {letter: -float(i) for i, letter in enumerate("abcdefgh")}  # a is best


def run_of(*docs: str) -> dict[str, float]:
    """A run with the given documents, best first."""
    return {doc: float(len(docs) - i) for i, doc in enumerate(docs)}


def test_by_hand() -> None:
    # q1: a 1 -> 4: 1 - 1/4 = 3/4; c 3 -> 3: 0.            mean 3/8
    # q2: c 3 -> 1: 1/3 - 1 = -2/3.                        mean -2/3
    # score (3/8 - 2/3) / 2 = -7/48. Over the documents it would be (3/4 + 0 - 2/3) / 3 = 1/36, with ranks from 0 a
    # division by zero for a, with the sign turned +7/48, as a difference of reciprocals (1 - 1/4 + 0)/2, ...
    original = {"q1": run_of(*"abcd"), "q2": run_of(*"abcd")}
    changed = {"q1": run_of(*"dbca"), "q2": run_of(*"cabd")}
    result = p_mrr(original, changed, {"q1": ["a", "c"], "q2": ["c"]})
    assert result.per_query == pytest.approx({"q1": 3 / 8, "q2": -2 / 3}, abs=1e-15)
    assert result.score == pytest.approx(-7 / 48, abs=1e-15)
    assert (result.n_missing_docs, result.n_queries_without_change) == (0, 0)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (1, 2, 1 / 2),  # 1 - 1/2
        (99, 100, 1 / 100),  # 1 - 99/100: the paper wants the first step to weigh more than this one
        (2, 1, -1 / 2),  # 1/2 - 1
        (100, 99, -1 / 100),
        (3, 7, 4 / 7),  # 1 - 3/7, not 7/3 - 1 and not 1/3 - 1/7
        (7, 3, -4 / 7),
        (1, 100, 99 / 100),
        (100, 1, -99 / 100),
        (5, 5, 0.0),
    ],
)
def test_one_document_by_hand(old: int, new: int, value: float) -> None:
    docs = [f"x{i:03}" for i in range(99)]
    before, after = docs.copy(), docs.copy()
    before.insert(old - 1, "moved")
    after.insert(new - 1, "moved")
    result = p_mrr({"q": run_of(*before)}, {"q": run_of(*after)}, {"q": ["moved"]})
    assert result.score == pytest.approx(value, abs=1e-15)
    assert p_mrr({"q": run_of(*before)}, {"q": run_of(*before)}, {"q": ["moved"]}).score == 0


def test_absent_documents_by_hand() -> None:
    # Original holds 4 documents, changed 3. An absent one has rank 5 and 4 (not 4 and 3, not 0, not skipped).
    original, changed = {"q": run_of(*"abcd")}, {"q": run_of(*"xyc")}
    # x: 5 -> 1: 1/5 - 1 = -4/5 (with "rank len": 1/4 - 1).   a: 1 -> 4: 1 - 1/4 = 3/4 (with "rank len": 2/3).
    # c: 3 -> 3: 0.                                          u: 5 -> 4, absent from both: 4/5 - 1 = -1/5.
    one = {doc: p_mrr(original, changed, {"q": [doc]}) for doc in "xacu"}
    assert {d: r.score for d, r in one.items()} == pytest.approx({"x": -4 / 5, "a": 3 / 4, "c": 0, "u": -1 / 5})
    assert {d: r.n_missing_docs for d, r in one.items()} == {"x": 1, "a": 1, "c": 0, "u": 1}
    together = p_mrr(original, changed, {"q": list("xacu")})
    assert together.score == pytest.approx((-4 / 5 + 3 / 4 + 0 - 1 / 5) / 4)
    assert together.n_missing_docs == 3


def test_an_empty_run_by_hand() -> None:
    # Rank 1 in the empty run; 3 in the other: 1 - 1/3 and, the other way round, 1/3 - 1.
    full: dict[str, dict[str, float]] = {"q": run_of(*"xya")}
    assert p_mrr({"q": {}}, full, {"q": ["a"]}).score == pytest.approx(2 / 3)
    assert p_mrr(full, {"q": {}}, {"q": ["a"]}).score == pytest.approx(-2 / 3)
    assert p_mrr({"q": {}}, {"q": {}}, {"q": ["a"]}).score == 0


def test_ties_by_hand() -> None:
    # All equal: c, b, a. Then a alone leads and b, c tie: a, c, b.
    # a: 3 -> 1: -2/3; b: 2 -> 3: 1/3; c: 1 -> 2: 1/2. With the lower id first: a 1 -> 1, b 2 -> 2, c 3 -> 3: all 0.
    # By storage order (here b, a, c) it would be a: 2 -> 1 = -1/2.
    original = {"q": {"b": 0.0, "a": -0.0, "c": 0.0}}
    changed = {"q": {"b": 0.5, "a": 0.75, "c": 0.5}}
    values = {doc: p_mrr(original, changed, {"q": [doc]}).score for doc in "abc"}
    assert values == pytest.approx({"a": -2 / 3, "b": 1 / 3, "c": 1 / 2})


def test_scores_that_only_double_precision_tells_apart_are_no_tie() -> None:
    # As doubles b (1.0) stands below a (1 + 1e-9): a 1 -> 2. As float32 they would tie and b lead: a 2 -> 2 = 0.
    assert p_mrr({"q": {"a": 1.0 + 1e-9, "b": 1.0}}, {"q": {"a": 0.0, "b": 1.0}}, {"q": ["a"]}).score == 0.5


def test_queries_without_change_are_left_out_and_counted() -> None:
    runs = {"q1": run_of("a", "b"), "q2": run_of("a", "b")}
    result = p_mrr(runs, {"q1": run_of("b", "a"), "q2": run_of("a", "b")}, {"q1": ["a"], "q2": [], "q3": ()})
    assert result.per_query == {"q1": 0.5}
    assert result.score == 0.5  # 1/6 if the empty ones counted as 0
    assert result.n_queries_without_change == 2


def test_suffixed_and_plain_query_ids() -> None:
    before, after = run_of("a", "b"), run_of("b", "a")
    for original in ({"q": before}, {"q-og": before}):
        for changed in ({"q": after}, {"q-changed": after}):
            assert p_mrr(original, changed, {"q": ["a"]}).per_query == {"q": 0.5}
    # Both instructions in one run, as mteb returns it.
    both = {"q-og": before, "q-changed": after}
    assert p_mrr(both, both, {"q": ["a"]}).per_query == {"q": 0.5}


def test_bounds_are_approached_and_values_are_plain_floats() -> None:
    n = 1000
    docs = [f"d{i:04}" for i in range(n)]
    top_first, top_last = run_of(*docs), run_of(*docs[1:], docs[0])
    down = p_mrr({"q": top_first}, {"q": top_last}, {"q": docs[:1]})
    up = p_mrr({"q": top_last}, {"q": top_first}, {"q": docs[:1]})
    assert down.score == pytest.approx(1 - 1 / n)
    assert up.score == pytest.approx(1 / n - 1)
    single = p_mrr({"q": {"a": np.float32(1)}}, {"q": {"a": np.float32(2)}}, {"q": ["a"]})
    assert type(single.score) is float
    json.dumps([single.score, single.per_query, single.n_missing_docs, single.n_queries_without_change])


@st.composite
def pairs_of_runs(draw: st.DrawFn) -> tuple[oracle.Run, oracle.Run, dict[str, list[str]]]:
    queries = draw(st.lists(st.sampled_from(["q1", "q2", "q10", "ü", "q-og"]), unique=True, min_size=1, max_size=3))
    original = {q: draw(oracle.doc_scores(max_size=14)) for q in queries}
    changed = {q: draw(oracle.doc_scores(max_size=14)) for q in queries}
    ids = st.sampled_from(oracle.DOC_IDS)
    docs = {q: draw(st.lists(ids, unique=True, max_size=6)) for q in queries}
    docs[queries[0]] = docs[queries[0]] or ["d1"]
    return original, changed, docs


@FAST
@given(pairs_of_runs())
def test_equals_the_oracle(data: tuple[oracle.Run, oracle.Run, dict[str, list[str]]]) -> None:
    original, changed, docs = data
    expected = oracle.p_mrr(original, changed, docs)
    result = p_mrr(original, changed, docs)
    assert result.per_query == pytest.approx({q: float(v) for q, v in expected.items()}, abs=1e-13)
    assert result.score == pytest.approx(float(oracle.mean(list(expected.values()))), abs=1e-13)
    assert result.n_queries_without_change == sum(not d for d in docs.values())
    assert result.n_missing_docs == sum(
        d not in original[q] or d not in changed[q] for q, listed in docs.items() for d in listed
    )


@FAST
@given(pairs_of_runs(), st.lists(st.integers(0, 9), min_size=1, max_size=14), st.sampled_from(["p", "\U0001f600", "0"]))
def test_invariants(data: tuple[oracle.Run, oracle.Run, dict[str, list[str]]], order: list[int], prefix: str) -> None:
    original, changed, docs = data
    result = p_mrr(original, changed, docs)
    assert all(-1 < v < 1 for v in result.per_query.values())
    # The order of storage, of queries and of listed documents is no information.
    other = p_mrr(
        oracle.shuffled({q: oracle.shuffled(s, order) for q, s in original.items()}, order),
        {q: oracle.shuffled(s, order[::-1]) for q, s in changed.items()},
        oracle.shuffled({q: d[::-1] for q, d in docs.items()}, order),
    )
    assert other.per_query == pytest.approx(result.per_query, abs=1e-13)
    assert other.score == pytest.approx(result.score, abs=1e-13)
    # Nor are the ids, as long as their order stays.
    assert (
        p_mrr(
            {q: oracle.renamed(s, prefix) for q, s in original.items()},
            {q: oracle.renamed(s, prefix) for q, s in changed.items()},
            {q: [prefix + d for d in listed] for q, listed in docs.items()},
        )
        == result
    )
    # The other direction is the opposite, and no change is no change.
    swapped = p_mrr(changed, original, docs)
    assert swapped.per_query == {q: -v for q, v in result.per_query.items()}
    same = p_mrr(original, original, docs)
    assert set(same.per_query.values()) == {0.0}
    # Scores enter by their order alone.
    scaled = {q: {d: 2.0 * float(s) - 7 for d, s in scores.items()} for q, scores in original.items()}
    assert p_mrr(scaled, changed, docs) == result


@FAST
@given(pairs_of_runs())
def test_documents_below_all_others_change_nothing_for_present_ones(
    data: tuple[oracle.Run, oracle.Run, dict[str, list[str]]],
) -> None:
    original, changed, docs = data
    present = {q: [d for d in listed if d in original[q] and d in changed[q]] for q, listed in docs.items()}
    if not any(present.values()):
        return
    more = {q: {**s, "zz1": -99.0, "zz2": -98.0} for q, s in original.items()}
    assert p_mrr(more, changed, present) == p_mrr(original, changed, present)


@FAST
@given(oracle.doc_scores(min_size=1), st.data())
def test_moving_a_document_down_never_lowers_the_value(scores: dict[str, Any], data: st.DataObject) -> None:
    doc = data.draw(st.sampled_from(sorted(scores)))
    lower = {**scores, doc: float(scores[doc]) - data.draw(st.floats(0, 10))}
    assert p_mrr({"q": scores}, {"q": lower}, {"q": [doc]}).score >= 0
    assert p_mrr({"q": lower}, {"q": scores}, {"q": [doc]}).score <= 0


OK = {"q": run_of("a", "b"), "q2": run_of("a", "b")}


@pytest.mark.parametrize(
    ("original", "changed", "docs", "named"),
    [
        (OK, OK, {"q": ["a"], "lost": ["a"]}, "lost"),
        ({"q": OK["q"]}, OK, {"q": ["a"], "q2": ["a"]}, "q2"),
        (OK, {"q": OK["q"]}, {"q": ["a"], "q2": ["a"]}, "q2"),
        (OK, {"q-og": OK["q"]}, {"q": ["a"]}, "'q'"),  # the suffix of the other run
        ({"q": OK["q"], "q-og": OK["q"]}, OK, {"q": ["a"]}, "q-og"),
        (OK, {"q": OK["q"], "q-changed": OK["q"]}, {"q": ["a"]}, "q-changed"),
        (OK, OK, {"q": ["a", "b", "a"]}, "'a'"),
        (OK, OK, {"q": ["a", "gone", "gone"]}, "gone"),
        (OK, OK, {"q": "abc"}, "abc"),
        (OK, OK, {"q": ["a", 17]}, "17"),
        (OK, OK, {"q": ["a", None]}, "None"),
        (OK, OK, {"q": [b"a"]}, "b'a'"),
        (OK, OK, {3: ["a"]}, "3"),
        (OK, OK, {None: ["a"]}, "None"),
        (OK, OK, {b"q": ["a"]}, "b'q'"),
        (OK, OK, {"q": ["a"], 5: []}, "5"),
        ({"q": {"a": math.nan, "b": 1.0}}, OK, {"q": ["b"]}, "'a'"),
        (OK, {"q": {"a": 1.0, "b": math.inf}}, {"q": ["a"]}, "'b'"),
        ({"q": {"a": 1.0, "b": -math.inf}}, OK, {"q": ["a"]}, "'b'"),
        ({"q": {"a": 1.0, 8: 1.0}}, OK, {"q": ["a"]}, "8"),
        ({"q": {"a": 1.0, 8: 1.0}}, OK, {"q": ["absent"]}, "8"),
        (OK, {"q": {None: 1.0}}, {"q": ["a"]}, "None"),
        (OK, {"q": {b"a": 1.0}}, {"q": ["a"]}, "b'a'"),
        (OK, {"q": {"a": None}}, {"q": ["a"]}, "'a'"),
    ],
)
def test_errors_name_the_id(original: Any, changed: Any, docs: Any, named: str) -> None:
    with pytest.raises(ValueError) as caught:
        p_mrr(original, changed, docs)
    assert named in str(caught.value)
    assert "q" in str(caught.value)


@pytest.mark.parametrize("docs", [{}, {"q": []}, {"q": (), "q2": []}])
def test_nothing_to_average_is_an_error(docs: Any) -> None:
    with pytest.raises(ValueError, match="undefined"):
        p_mrr(OK, OK, docs)
