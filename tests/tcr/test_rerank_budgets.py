"""Budgets derived from one scoring, and scores that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.reranking.pair_scores import Pair, PairScores
from tcr_tasks.reranking.pool import by_score, first, read_budget, read_budgets

TABLES = [f"table {n}" for n in range(12)]
ORDER = st.permutations(TABLES)


def naive(candidates: Sequence[str], score: dict[str, float]) -> list[str]:
    """The next table is the best of those that are left, and of equal ones the first stage's first."""
    left, out = list(candidates), []
    while left:
        best = left[0]
        for table in left:
            if score[table] > score[best]:
                best = table
        left.remove(best)
        out.append(best)
    return out


@settings(max_examples=60, deadline=None)
@given(ORDER, st.lists(st.integers(0, 4), min_size=12, max_size=12), st.lists(st.integers(1, 14), max_size=4))
def test_budgets_from_one_scoring_are_those_of_separate_ones(
    ranking: list[str], values: list[int], budgets: list[int]
) -> None:
    score = dict(zip(TABLES, map(float, values), strict=True))
    asked: list[Pair] = []

    def scored(pairs: Sequence[Pair]) -> list[float]:
        asked.extend(pairs)
        return [score[pair.table] for pair in pairs]

    kept = PairScores(None, "m")
    for budget in budgets:
        found, _ = kept.scores([Pair("q", table) for table in ranking[:budget]], scored)
        order = by_score(ranking[:budget], {pair.table: value for pair, value in found.items()})
        assert order == naive(ranking[:budget], score)
    assert len(asked) == len(set(asked)) == min(max(budgets, default=0), 12)


def test_scores_are_kept_in_a_file_of_one_model(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    pairs = [Pair("q", table) for table in TABLES]
    assert PairScores(path, "m").scores(pairs[:5], lambda some: [float(len(some))] * len(some))[1] == 5
    found, made = PairScores(path, "m").scores(pairs, lambda some: [0.0] * len(some))
    assert made == 7 and [found[pair] for pair in pairs] == [5.0] * 5 + [0.0] * 7
    with pytest.raises(ValueError, match="holds scores of m, not of other"):
        PairScores(path, "other").n_unknown(pairs)
    with pytest.raises(ValueError, match="2 scores for 1 pairs"):
        PairScores(path, "m").scores([Pair("new", "t")], lambda some: [1.0, 2.0])
    with pytest.raises(ValueError, match="not finite for a table and the question 'new'"):
        PairScores(path, "m").scores([Pair("new", "t")], lambda some: [float("nan")])
    (tmp_path / "other.sqlite").write_text("no database, but long enough to look like one" * 20)
    with pytest.raises(ValueError, match="holds no scores"):
        PairScores(tmp_path / "other.sqlite", "m").n_unknown(pairs)


def test_a_killed_scoring_goes_on(tmp_path: Path) -> None:
    path, pairs = tmp_path / "scores.sqlite", [Pair("q", str(n)) for n in range(300)]
    calls: list[int] = []

    def killed(some: Sequence[Pair]) -> list[float]:
        calls.append(len(some))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return [1.0] * len(some)

    with pytest.raises(KeyboardInterrupt):
        PairScores(path, "m").scores(pairs, killed)
    assert PairScores(path, "m").scores(pairs, lambda some: [1.0] * len(some))[1] == 300 - 256


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "ten", "None", "²"])
def test_budgets_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="a budget is"):
        read_budget(text)


@settings(max_examples=30, deadline=None)
@given(ORDER, st.sets(st.sampled_from(TABLES)))
def test_yes_before_no_each_in_first_stage_order(ranking: list[str], yes: set[str]) -> None:
    order = first(ranking, yes)
    assert order == [t for t in ranking if t in yes] + [t for t in ranking if t not in yes]


def test_budgets_by_size() -> None:
    assert read_budgets(["all", "10", "3", "all", "10"]) == [3, 10, None]
