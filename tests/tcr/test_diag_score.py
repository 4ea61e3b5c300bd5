"""Scores of diagnostics: consistency of rankings, parts of tables, pairs, strategies, and what is not measurable."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import mteb
import pytest
from fixed_ranking import FixedRanking, Run, scores_of
from hypothesis import given, settings
from hypothesis import strategies as st
from mteb.results import TaskResult
from scipy.stats import hypergeom

from evaluators.metrics.consistency import consistency, rbo_at_5
from evaluators.plugin.checks import DatasetError
from tcr_tasks.diagnostics import tasks
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.score import CaseScores, chance_of_any, is_about_parts, preference, score_case
from tcr_tasks.diagnostics.tasks import FAMILY_TASKS, CaseTask, within_limit

# ---- consistency -------------------------------------------------------------------------------------------------

RANKING = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


def test_rbo_of_identical_and_disjoint_lists() -> None:
    assert rbo_at_5("abcde", "abcde") == pytest.approx(0.40951)  # 1 - 0.9^5; extrapolated it would be 1
    assert rbo_at_5("abcdefg", "abcdezy") == pytest.approx(0.40951)  # what follows the fifth does not count
    assert rbo_at_5("abcde", "fghij") == 0


def test_rbo_by_hand() -> None:
    # The first two exchanged: no overlap at depth 1, all of it below: 0.1 * (0.9 + 0.81 + 0.729 + 0.6561).
    assert rbo_at_5("abcde", "bacde") == pytest.approx(0.30951)
    # Only the first shared: 0.1 * (1 + 0.9 / 2 + 0.81 / 3 + 0.729 / 4 + 0.6561 / 5).
    assert rbo_at_5("abcde", "afghi") == pytest.approx(0.203347)


@given(RANKING, RANKING)
@settings(max_examples=80, deadline=None)
def test_rbo_against_its_definition(first: list[str], second: list[str]) -> None:
    slow = 0.0
    for depth in range(1, 6):
        shared = sum(1 for a, b in itertools.product(first[:depth], second[:depth]) if a == b)
        slow += 0.1 * 0.9 ** (depth - 1) * shared / depth
    assert rbo_at_5(first, second) == pytest.approx(slow)
    assert rbo_at_5(second, first) == pytest.approx(slow)


def test_rbo_refuses_a_repeated_document() -> None:
    with pytest.raises(ValueError, match="twice"):
        rbo_at_5("aab", "abc")


def test_consistency_by_hand() -> None:
    base = {"q1": "tabcde", "q2": "atbcde", "q3": "fabcde"}
    other = {"q1": "tfghij", "q2": "tabcde", "q3": "abcdef"}
    found = consistency(base, other, {"q1": "t", "q2": "t", "q3": "t"})
    assert found.hit == pytest.approx(2 / 3)  # q1 both hit, q2 differs, q3 both miss
    assert found.partial == pytest.approx(2 / 3)  # q3: f is only the sixth there
    assert found.top_1_identity == pytest.approx(1 / 3)
    # q1 0.203347, q2 0.30951; q3 shares 0, 1, 2, 3, 4 at the depths 1 to 5.
    q3 = 0.1 * (0.9 * 1 / 2 + 0.81 * 2 / 3 + 0.729 * 3 / 4 + 0.6561 * 4 / 5)
    assert found.rbo_at_5 == pytest.approx((0.203347 + 0.30951 + q3) / 3)
    assert found.rbo_at_5_normalised == pytest.approx(found.rbo_at_5 / 0.40951)
    assert found.n == 3
    turned = consistency(other, base, {"q3": "t"})
    assert turned.partial == 1  # directional: a is second in the base


@pytest.mark.parametrize(
    ("base", "other", "message"),
    [({"q": "a"}, {}, "comparison configuration ranks nothing"), ({"q": ""}, {"q": "a"}, "base configuration ranks")],
)
def test_consistency_needs_the_same_queries(base: Any, other: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        consistency(base, other, {"q": "t"})


def test_consistency_needs_queries() -> None:
    with pytest.raises(ValueError, match="without queries"):
        consistency({}, {}, {})


# ---- cases -------------------------------------------------------------------------------------------------------

DOCUMENTS = {d: f"text {d}" for d in ("t1", "s1", "c1", "t2", "s2", "x")}
TABLES = Case(
    documents=DOCUMENTS,
    queries={"q1": "one?", "q2": "two?", "q3": "three?"},
    targets={"q1": ("t1",), "q2": ("t2",), "q3": ("t1",)},
    groups={"q1": ("t1", "s1", "c1"), "q2": ("t2", "s2"), "q3": ("t1", "s1", "c1")},
    labels={
        "q1": {"t1": "target", "s1": "resampling", "c1": "column_deletion"},
        "q2": {"t2": "target", "s2": "row_deletion"},
        "q3": {"t1": "target", "s1": "resampling", "c1": "column_deletion"},
    },
    strata={"q1": "EM", "q2": "SF", "q3": "EM"},
)


def ranked(*orders: str) -> Run:
    """A run of q1, q2, ... from the documents in order, best first."""
    return {f"q{n}": {d: -float(at) for at, d in enumerate(order.split())} for n, order in enumerate(orders, 1)}


TABLE_RUN = ranked("t1 s1 x c1 t2 s2", "s2 t2 x t1 s1 c1", "x c1 s1 t1 t2 s2")


def values(found: CaseScores, stratum: str = "") -> dict[str, float]:
    return {s.metric: s.value for s in found.scores if s.stratum == stratum}


def test_tables_by_hand() -> None:
    found = score_case(TABLE_RUN, TABLES)
    scores = values(found)
    assert scores["recall_at_1"] == pytest.approx(1 / 3)
    assert scores["recall_at_2"] == pytest.approx(2 / 3)
    assert scores["gr_at_1"] == pytest.approx(2 / 3)
    assert scores["ds_at_1"] == pytest.approx(1 / 2)
    assert scores["chance_ds_at_1"] == pytest.approx((1 / 3 + 1 / 2 + 1 / 3) / 3)
    assert scores["chance_recall_at_1"] == pytest.approx(1 / 6)
    tops = {name: scores[f"top_is_{name}"] for name in ("target", "row_deletion", "other", "column_deletion")}
    assert tops == {
        "target": pytest.approx(1 / 3),
        "row_deletion": pytest.approx(1 / 3),
        "other": pytest.approx(1 / 3),
        "column_deletion": 0,
    }
    assert values(found, "EM")["recall_at_1"] == 1 / 2
    assert values(found, "SF")["gr_at_1"] == 1
    assert found.tops["q1"] == ("t1", "s1", "x", "c1", "t2")
    by_name = {s.metric: s for s in found.scores if not s.stratum}
    assert by_name["recall_at_1"].low == 0  # 8 of 27 resamples draw no hit
    assert by_name["recall_at_1"].n == by_name["chance_ds_at_1"].n == 3
    # q3 has a table outside its group first.
    assert by_name["ds_at_1"].n == by_name["ds_at_1_p_null"].n == 2
    # Chance misses the target of q1 with 2/3, that of q2 with 1/2.
    assert scores["ds_at_1_p_null"] == pytest.approx(1 - 2 / 3 * 1 / 2)
    # At most chance, 7/18, are resamples without q1 (8 of 27) and those of q1 and twice q2 (3 of 27).
    assert scores["ds_at_1_p_bootstrap"] == pytest.approx(11 / 27, abs=0.05)
    assert found.reason is None


def test_one_number_has_one_interval() -> None:
    """Shares of first tables that are the target, or of the group, are R@1 and GR@1."""
    many = [f"q{n}" for n in range(1, 31)]
    shared = {name: dict.fromkeys(many, vars(TABLES)[name]["q1"]) for name in ("targets", "groups", "labels")}
    case = Case(documents=DOCUMENTS, queries=dict.fromkeys(many, "one?"), **shared)
    run = ranked(*["t1 s1 x c1 t2 s2"] * 7, *["s1 t1 x c1 t2 s2"] * 10, *["x t1 s1 c1 t2 s2"] * 13)
    by_name = {s.metric: s for s in score_case(run, case).scores}
    target, other = by_name["top_is_target"], by_name["top_is_other"]
    assert (target.low, target.high) == (by_name["recall_at_1"].low, by_name["recall_at_1"].high)
    group = by_name["gr_at_1"]
    assert group.low is not None and group.high is not None
    assert (other.low, other.high) == pytest.approx((1 - group.high, 1 - group.low))


def test_queries_that_are_not_measurable_are_left_out_and_counted() -> None:
    case = Case(**{**vars(TABLES), "not_measurable": {"q3": "too long"}})
    found = score_case(TABLE_RUN, case)
    assert values(found)["recall_at_1"] == 1 / 2
    threshold = "(with more than 50% left out, a comparison counts as not measurable)"
    assert f"1 of 3 queries are left out: too long {threshold}" in found.notes
    most = score_case(TABLE_RUN, Case(**{**vars(TABLES), "not_measurable": {"q3": "too long", "q1": "too long"}}))
    assert most.scores == ()
    assert most.reason == f"2 of 3 queries are left out: too long {threshold}"


def test_a_query_without_ranking_is_named() -> None:
    with pytest.raises(ValueError, match="'q2'"):
        score_case({"q1": {"t1": 1.0}, "q3": {"t1": 1.0}}, TABLES)


ROWS = Case(
    documents={f"{t}{n}": f"{t} {n}" for t in "ab" for n in range(4)},
    queries={"q1": "a?", "q2": "b?"},
    targets={"q1": ("a0", "a3"), "q2": ("b1",)},
    groups={"q1": ("a0", "a1", "a2", "a3"), "q2": ("b0", "b1", "b2", "b3")},
    candidates={"q1": ("a0", "a1", "a2", "a3"), "q2": ("b0", "b1", "b2", "b3")},
)


def test_any_right_part_is_a_hit() -> None:
    found = values(score_case(ranked("a1 a3 a0 a2", "b0 b2 b1 b3"), ROWS))
    assert [found[f"recall_at_{k}"] for k in (1, 2, 3)] == [0, 1 / 2, 1]  # not the share of the two right rows found
    # One of 4 draws hits 2 of 4 rows, or 1 of 4; two draws miss 2 of 4 rows with 2/4 * 1/3.
    assert found["chance_recall_at_1"] == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert found["chance_recall_at_2"] == pytest.approx((5 / 6 + 2 / 4) / 2)
    assert not any(name.startswith("gr_") for name in found)  # the group is all there is: GR would be 1


def test_parts_are_told_by_several_targets_or_a_group_that_is_everything() -> None:
    assert is_about_parts(ROWS)
    assert is_about_parts(Case(**{**vars(ROWS), "targets": {"q1": ("a0",), "q2": ("b1",)}}))
    assert not is_about_parts(TABLES)
    pool = {q: tuple(DOCUMENTS) for q in TABLES.queries}
    assert not is_about_parts(Case(**{**vars(TABLES), "candidates": pool}))


@given(st.integers(1, 6), st.integers(0, 20), st.integers(1, 8))
def test_chance_against_the_hypergeometric_distribution(right: int, wrong: int, k: int) -> None:
    n = right + wrong
    expected = 1 - hypergeom(n, right, min(k, n)).pmf(0)
    assert chance_of_any(right, n, k) == pytest.approx(expected, abs=1e-12)


def pairs(n: int) -> Case:
    names = [f"q{i}" for i in range(1, n + 1)]
    return Case(
        documents={f"{side}{i}": f"{side} text {i}" for i in range(1, n + 1) for side in "ab"},
        queries={q: f"{q}?" for q in names},
        targets={q: (f"a{i}",) for i, q in enumerate(names, 1)},
        groups={q: (f"a{i}", f"b{i}") for i, q in enumerate(names, 1)},
        pairwise=True,
    )


def pair_run(scores: list[tuple[float, float]]) -> Run:
    """q1, q2, ...: the scores of its own pair; everything else scores 0."""
    n = len(scores)
    run = {}
    for i, (a, b) in enumerate(scores, 1):
        others = {f"{side}{j}": 0.0 for j in range(1, n + 1) for side in "ab"}
        run[f"q{i}"] = others | {f"a{i}": a, f"b{i}": b}
    return run


def test_pairs_by_hand() -> None:
    # Ten queries: 5 prefer the target, 3 the variant, 1 is tied, 1 prefers the target below another pair.
    run = pair_run([(2, 1)] * 5 + [(1, 2)] * 3 + [(1, 1)] + [(-1, -2)])
    found = score_case(run, pairs(10))
    scores = values(found)
    assert scores["preference"] == pytest.approx((5 + 0.5 + 1) / 10)
    assert scores["recall_at_1"] == pytest.approx((5 + 0.5) / 10)
    assert scores["gr_at_1"] == pytest.approx(9 / 10)
    assert scores["ds_at_1"] == pytest.approx(5.5 / 9)
    assert scores["chance_ds_at_1"] == 0.5
    assert scores["pair_tied_share"] == pytest.approx(0.1)
    assert {s.metric: s.n for s in found.scores if s.metric in ("ds_at_1", "preference")} == {
        "ds_at_1": 9,
        "preference": 10,
    }


def test_whatever_order_ids_have_a_tie_counts_one_half() -> None:
    case = pairs(1)
    assert preference({"q1": {"a1": 1.0, "b1": 1.0}}, case, "q1") == 0.5
    assert preference({"q1": {"a1": 1.0, "b1": 1.0 + 1e-9}}, case, "q1") == 0.5  # equal in float32
    assert preference({"q1": {"a1": 1.0, "b1": 1.001}}, case, "q1") == 0


def test_too_many_ties_are_not_measurable() -> None:
    found = score_case(pair_run([(2, 1)] * 8 + [(1, 1)] * 2), pairs(10))
    assert found.scores == ()
    assert found.reason is not None and "20% of 10 pairs have equal scores" in found.reason


def test_a_pair_must_be_ranked_whole() -> None:
    with pytest.raises(ValueError, match="lacks 'b1'"):
        preference({"q1": {"a1": 1.0}}, pairs(1), "q1")


def test_pairs_that_differ_beyond_what_is_read() -> None:
    case = Case(**{**vars(pairs(2)), "documents": {"a1": "same x", "b1": "same y", "a2": "p", "b2": "q"}})
    within = within_limit(case, lambda document, query: 4)
    assert list(within.not_measurable) == ["q1"]
    assert within_limit(case, None).not_measurable == {}
    assert within_limit(case, lambda document, query: 100).not_measurable == {}


# ---- as mteb tasks -----------------------------------------------------------------------------------------------


def test_a_case_through_mteb() -> None:
    scores = scores_of(CaseTask(TABLES, "r"), FixedRanking(TABLE_RUN))
    assert scores["main_score"] == scores["recall_at_1"] == pytest.approx(1 / 3)
    assert scores["ds_at_1"] == pytest.approx(1 / 2)
    assert scores["EM_recall_at_1"] == 1 / 2
    assert scores["measurable"] == 1


def test_parts_through_mteb_replace_its_recall() -> None:
    scores = scores_of(CaseTask(ROWS, "r"), FixedRanking(ranked("a1 a3 a0 a2", "b0 b2 b1 b3")))
    assert [scores[f"recall_at_{k}"] for k in (1, 2, 3)] == [0, 1 / 2, 1]


def test_what_is_not_measurable_says_so_in_the_result() -> None:
    scores = scores_of(CaseTask(pairs(2), "r"), FixedRanking(pair_run([(1, 1), (2, 1)])))
    assert scores["measurable"] == 0
    assert "ds_at_1" not in scores
    assert any("not measurable: 50% of 2 pairs" in note for note in scores["mteb_beyond"]["notes"])
    # mteb's own would come from the rule for ties: none of them is a number.
    assert all(math.isnan(scores[name]) for name in ("main_score", "recall_at_1", "ndcg_at_1", "map_at_1"))


def test_what_is_not_measurable_is_not_averaged(tmp_path: Path) -> None:
    """Of two subsets one is measurable; the result survives mteb's file."""

    class Both(CaseTask):
        metadata = CaseTask.metadata.model_copy(update={"eval_langs": {"tied": ["eng-Latn"], "apart": ["eng-Latn"]}})

        def cases(self, source: Any) -> dict[str, Case]:
            return {"tied": pairs(2), "apart": Case(**{**vars(pairs(2)), "pairwise": False})}

    task = Both(pairs(2), "r")
    model = FixedRanking(pair_run([(1, 1), (2, 1)]))
    (found,) = mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results
    found.to_disk(tmp_path / "r.json")
    read = TaskResult.from_disk(tmp_path / "r.json")
    by_subset = {scores["hf_subset"]: scores["main_score"] for scores in read.scores["test"]}
    assert math.isnan(by_subset["tied"]) and by_subset["apart"] in (0.5, 1)
    assert math.isnan(read.get_score())


def test_what_a_shorter_model_does_not_read_is_measurable_for_the_next() -> None:
    task = CaseTask(pairs(2), "r")
    task.load_data()
    run = FixedRanking(pair_run([(2, 1), (2, 1)]))
    reads = {"default": (lambda document, query: 0), "next": None}
    measurable = []
    for read in reads.values():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tasks, "characters_read", lambda model, metadata, read=read: read)
            mteb.evaluate(run, task, cache=None, show_progress_bar=False)
        measurable.append(task.found["default"].reason is None)
        task.load_data()
    assert measurable == [False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": {**TABLES.targets, "q2": ()}}, "query 'q2' has no target"),
        ({"targets": {**TABLES.targets, "q2": ("x",)}}, "not all in its group"),
        ({"groups": {**TABLES.groups, "q2": ("t2", "gone")}}, "'gone'"),
        ({"documents": {**DOCUMENTS, "x": " "}}, "have no text: 'x'"),
    ],
)
def test_a_faulty_case_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        CaseTask(Case(**{**vars(TABLES), **change}), "r").load_data()


def test_families_are_tasks_with_a_subset_for_each_diagnostic() -> None:
    by_name = {cls.metadata.name: cls for cls in FAMILY_TASKS}
    assert {"TCRDiagnosticMain", "TCRDiagnosticFormats", "TCRDiagnosticPosition"} <= by_name.keys()
    subsets = by_name["TCRDiagnosticPosition"].metadata.hf_subsets
    assert subsets == ["top-original", "top-middle", "bottom-middle", "top-bottom"]
    assert all(cls.embedded is None for cls in FAMILY_TASKS)  # or they would join the benchmark of samples
    task = by_name["TCRDiagnosticPosition"]().filter_languages(None, hf_subsets=["top-middle"])
    task.load_data()
    assert list(task.dataset) == ["top-middle"]
    with pytest.raises(ValueError, match="no first stage"):
        task.convert_to_reranking("anything")
