"""Ranks and top lists: the one tie rule that all metrics share."""

from __future__ import annotations

import math
from typing import Any

import metric_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.metrics.ranking import ranks_of, score_array, top, top_and_tied

FAST = settings(deadline=None, max_examples=60)


def test_ranks_by_hand() -> None:
    # (2, b) (1, é) (1, d2) (1, d10) (0.0, z) (-0.0, y) (-3, a): "d2" > "d10" as strings, "é" > "d"; 0.0 ties with -0.0.
    scores = {"a": -3, "d10": 1.0, "y": -0.0, "b": 2.0, "z": 0.0, "é": 1.0, "d2": 1.0}
    expected = ["b", "é", "d2", "d10", "z", "y", "a"]
    assert top(scores, 99, "q") == expected
    assert ranks_of(scores, expected, "q") == [1, 2, 3, 4, 5, 6, 7]
    # Absent: seven documents, so rank 8 (not 7, not 0), and the order of the question is kept.
    assert ranks_of(scores, ["a", "nowhere", "b"], "q") == [7, 8, 1]
    assert ranks_of({}, ["a", "b"], "q") == [1, 1]
    assert top({}, 3, "q") == []


@FAST
@given(oracle.doc_scores(), st.lists(st.sampled_from(oracle.DOC_IDS), unique=True, max_size=12))
def test_ranks_equal_the_oracle(scores: dict[str, Any], wanted: list[str]) -> None:
    assert ranks_of(scores, wanted, "q") == [oracle.rank(scores, doc) for doc in wanted]


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False), max_size=12),
    st.lists(st.text(max_size=3), unique=True, max_size=4),
)
def test_ranks_equal_the_oracle_for_any_text_and_any_finite_score(scores: dict[str, float], wanted: list[str]) -> None:
    asked = [*wanted, *list(scores)[:3]]
    assert ranks_of(scores, asked, "q") == [oracle.rank(scores, doc) for doc in asked]


@FAST
@given(oracle.doc_scores(), st.integers(1, 45))
def test_top_equals_the_oracle(scores: dict[str, Any], k: int) -> None:
    assert top(scores, k, "q") == oracle.ordered(scores)[:k]


@FAST
@given(oracle.doc_scores(min_size=20), st.integers(1, 4))
def test_top_of_a_long_run_equals_the_oracle(scores: dict[str, Any], k: int) -> None:
    # k is small beside the run: the path that does not sort everything, with ties across the cut.
    assert top(scores, k, "q") == oracle.ordered(scores)[:k]


@pytest.mark.parametrize("n", range(1, 18))
def test_top_when_all_scores_are_equal(n: int) -> None:
    scores = dict.fromkeys((f"{i:02}" for i in range(n)), -1.0)
    for k in range(1, n + 3):
        assert top(scores, k, "q") == sorted(scores, reverse=True)[:k]


def test_ties_at_the_top_are_found_in_float32_but_the_order_is_that_of_doubles() -> None:
    # 1 and 1 + 1e-9 are one float32; the next float32 above 1 is 1 + 1.19e-7.
    scores = {"a": 1.0 + 1e-9, "b": 1.0, "c": 1.0 - 1e-3}
    best, tied = top_and_tied(scores, 2, "q")
    assert best == ["a", "b"]
    assert sorted(tied) == ["a", "b"]
    best, tied = top_and_tied(scores | {"d": 1.0 + 1e-6}, 1, "q")
    assert (best, tied) == (["d"], ["d"])
    assert top_and_tied({}, 3, "q") == ([], [])
    assert top_and_tied({"a": 0.0}, 3, "q") == (["a"], ["a"])


@FAST
@given(
    st.dictionaries(st.sampled_from(oracle.DOC_IDS), st.sampled_from([*oracle.DISTINCT_IN_DOUBLE_ONLY, 0.5, -1.0])),
    st.integers(1, 8),
)
def test_top_and_tied_equal_the_oracle(scores: dict[str, float], k: int) -> None:
    best, tied = top_and_tied(scores, k, "q")
    assert best == oracle.ordered(scores)[:k]
    highest = max((np.float32(s) for s in scores.values()), default=None)
    assert sorted(tied) == sorted(doc for doc, s in scores.items() if np.float32(s) == highest)


def test_whole_numbers_and_truth_values_are_scores() -> None:
    assert top({"a": True, "b": False, "c": np.int64(7), "d": np.float16(0.5)}, 9, "q") == ["c", "a", "d", "b"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, np.float32("nan"), np.float16("inf")])
def test_scores_that_are_not_finite_raise(bad: float) -> None:
    for call in (lambda s: score_array(s, "q7"), lambda s: top(s, 1, "q7"), lambda s: ranks_of(s, ["ok"], "q7")):
        with pytest.raises(ValueError, match=r"q7.*bad-doc"):
            call({"ok": 1.0, "bad-doc": bad, "after": 2.0})


@pytest.mark.parametrize("bad", ["high", 1j, [1.0], object(), None, 10**400], ids=lambda b: type(b).__name__)
def test_scores_that_are_no_numbers_raise_a_value_error(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"q7.*bad-doc"):
        score_array({"ok": 1.0, "bad-doc": bad, "after": 2.0}, "q7")


@pytest.mark.parametrize("bad", [4711, None, b"doc", 1.5, ("a", "b")], ids=repr)
def test_document_ids_that_are_no_strings_raise(bad: Any) -> None:
    with pytest.raises(ValueError, match="q7") as caught:
        score_array({"ok": 1.0, bad: 2.0}, "q7")
    assert repr(bad) in str(caught.value)
