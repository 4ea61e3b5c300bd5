"""Where mteb computes the same thing, the figures are the same."""

from __future__ import annotations

from typing import Any

import metric_oracle as oracle
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators import ifir_mrr, p_mrr, robustness_at_k

upstream = pytest.importorskip("mteb._evaluators.retrieval_metrics")

SLOW = settings(deadline=None, max_examples=50)
IDS = st.sampled_from(oracle.DOC_IDS)


@st.composite
def pairs_of_runs(draw: st.DrawFn) -> tuple[oracle.Run, oracle.Run, dict[str, list[str]]]:
    queries = draw(st.lists(st.sampled_from(["q1", "q2", "q10", "ü"]), unique=True, min_size=1, max_size=4))
    return (
        {f"{q}-og": draw(oracle.doc_scores(max_size=20)) for q in queries},
        {f"{q}-changed": draw(oracle.doc_scores(max_size=20)) for q in queries},
        {q: draw(st.lists(IDS, unique=True, min_size=1, max_size=6)) for q in queries},
    )


@SLOW
@given(pairs_of_runs())
def test_p_mrr(data: tuple[oracle.Run, oracle.Run, dict[str, list[str]]]) -> None:
    original, changed, docs = data
    assert p_mrr(original, changed, docs).score == pytest.approx(
        upstream.calculate_pmrr(original, changed, docs), abs=1e-12
    )
    # One run with both instructions is what a task hands over.
    both = original | changed
    assert p_mrr(both, both, docs) == p_mrr(original, changed, docs)


@SLOW
@given(st.data())
def test_ifir_mrr(data: st.DataObject) -> None:
    queries = ["q1", "q2", "ü"]
    run = {q: data.draw(oracle.doc_scores(max_size=25)) for q in queries}
    judgement = st.dictionaries(IDS, st.sampled_from([0, 1, 2]), max_size=8)
    qrels = {q: {**data.draw(judgement), data.draw(IDS): 1} for q in queries}
    k = data.draw(st.integers(1, 25))
    ours = ifir_mrr(run, qrels, k)
    theirs = upstream.mrr(qrels, run, [k])[f"MRR@{k}"]
    assert list(ours.per_query.values()) == pytest.approx(theirs, abs=1e-12)
    assert ours.score == pytest.approx(sum(theirs) / len(theirs), abs=1e-12)


@SLOW
@given(st.data())
def test_robustness_at_10(data: st.DataObject) -> None:
    queries = ["a_1", "a_2", "b_x", "b_y", "b_z", "ü_1", "ü_2"]
    run: dict[str, dict[str, Any]] = {
        q: {d: float(s) for d, s in data.draw(oracle.doc_scores(min_size=1, max_size=20)).items()} for q in queries
    }
    judgement = st.dictionaries(IDS, st.sampled_from([0, 1, 2, 3]), max_size=8)
    qrels = {q: {**data.draw(judgement), data.draw(IDS): 1} for q in queries}
    per_query = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    ours = robustness_at_k(run, qrels, 10, lambda q: q.split("_")[0])
    assert ours.score == pytest.approx(upstream.robustness_at_10(qrels, run, per_query), abs=1e-12)
    assert ours.per_query == {q: per_query[q]["ndcg_cut_10"] for q in queries}
    assert ours.n_single == 0
