"""Agreement of people and a judge: coefficients against hand calculations, and the reports made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluators.judge.agreement import RESAMPLES, Scored, agreement, compared
from evaluators.judge.agreement_report import agreement_report, told
from evaluators.judge.annotation import Annotation
from evaluators.judge.annotation_draw import Item
from evaluators.judge.judges import FunctionJudge, Judgement, Pair
from evaluators.judge.scale import Scale

LIKERT: tuple[Scale, Scale] = ((1, 5), (1, 5))


# --- coefficients ---------------------------------------------------------------------------------------------------


def test_by_hand() -> None:
    found = agreement([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], LIKERT)
    assert found.pearson is not None and found.spearman is not None and found.pearson.fisher is not None
    # Deviations from 3: (-2 -1 0 1 2) and (-1 -2 1 0 2); products 2 + 2 + 0 + 0 + 4 = 8; squares 10 and 10; 8 / 10.
    assert found.pearson.value == pytest.approx(0.8, abs=1e-12)
    # The scores are ranks already.
    assert found.spearman.value == pytest.approx(0.8, abs=1e-12)
    # atanh(.8) = ln(1.8 / .2) / 2 = 1.098612; 1.959964 / sqrt(5 - 3) = 1.385904; tanh(-.287292) and tanh(2.484516).
    assert found.pearson.fisher == pytest.approx((-0.27965, 0.98619), abs=1e-5)
    assert found.means == (3.0, 3.0)
    assert found.n == 5 and found.scales == LIKERT and found.note == ""


def test_ties_by_hand() -> None:
    found = agreement([0, 0, 1, 2], [0, 1, 1, 2], ((0, 2), (0, 2)))
    assert found.pearson is not None and found.spearman is not None
    # Deviations (-.75 -.75 .25 1.25) and (-1 0 0 1): products 2, squares 2.75 and 2.
    assert found.pearson.value == pytest.approx(2 / math.sqrt(5.5), abs=1e-12)
    # Ranks 1.5 1.5 3 4 and 1 2.5 2.5 4, deviations (-1 -1 .5 1.5) and (-1.5 0 0 1.5): products 3.75, squares 4.5 each.
    assert found.spearman.value == pytest.approx(3.75 / 4.5, abs=1e-12)


def test_the_papers_figure_has_this_interval() -> None:
    """For Pearson .704 on 400 pairs (IFIR, section 6): atanh .87518; 1.959964 / sqrt(397) = .098367; .6509 to .7503."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=400), rng.normal(size=400)
    x = (x - x.mean()) / x.std()
    noise -= noise.mean() + x * (noise @ x) / 400
    y = 0.704 * x + math.sqrt(1 - 0.704**2) * noise / noise.std()
    found = agreement(list(x), list(y), ((-9, 9), (-9, 9)))
    assert found.pearson is not None and found.pearson.fisher is not None and found.pearson.bootstrap is not None
    assert found.pearson.value == pytest.approx(0.704, abs=1e-9)
    assert found.pearson.fisher == pytest.approx((0.65088, 0.75026), abs=1e-5)
    # Fisher's assumption, both sides normal, holds here: resampling must come to nearly the same.
    assert found.pearson.bootstrap == pytest.approx(found.pearson.fisher, abs=0.02)


def test_bootstrap_against_a_loop() -> None:
    """Other resamples than the function draws; an outlier sets Pearson's interval apart from Spearman's.

    On 25 pairs the ends of a 90 % interval lie further off than the tolerance, too.
    """
    rng = np.random.default_rng(1)
    x = np.append(rng.integers(0, 4, 24), 100)
    y = np.append(np.clip(x[:-1] + rng.integers(-3, 4, 24), 0, 6), 90)
    linear, ranked = [], []
    for _ in range(RESAMPLES):
        chosen = rng.integers(0, 25, 25)
        linear.append(np.corrcoef(x[chosen], y[chosen])[0, 1])
        ranked.append(np.corrcoef(stats.rankdata(x[chosen]), stats.rankdata(y[chosen]))[0, 1])
    found = agreement(x.tolist(), y.tolist(), ((0, 100), (0, 100)))
    assert found.pearson is not None and found.spearman is not None
    assert found.pearson.bootstrap == pytest.approx(tuple(np.quantile(linear, [0.025, 0.975])), abs=0.03)
    assert found.spearman.bootstrap == pytest.approx(tuple(np.quantile(ranked, [0.025, 0.975])), abs=0.03)
    assert abs(np.quantile(ranked, 0.975) - np.quantile(linear, 0.975)) > 0.06
    assert abs(np.quantile(ranked, 0.025) - np.quantile(ranked, 0.05)) > 0.04
    assert found.pearson.n_undefined == 0


def test_resamples_with_a_constant_side_are_counted() -> None:
    found = agreement([1, 1, 1, 2], [2, 3, 4, 5], LIKERT)
    assert found.pearson is not None and found.pearson.bootstrap is not None
    # The first side is constant with probability (3/4)^4 + (1/4)^4 = .3203; five standard deviations are 104.
    assert abs(found.pearson.n_undefined - 0.3203 * RESAMPLES) < 104
    assert all(map(math.isfinite, found.pearson.bootstrap))


def test_three_pairs_have_no_fisher_interval_and_perfect_agreement_has_no_width() -> None:
    few = agreement([1, 2, 4], [1, 3, 3], LIKERT)
    assert few.pearson is not None and few.pearson.fisher is None
    perfect = agreement([0, 1, 2, 3], [1, 2, 3, 4], ((0, 3), (1, 5)))
    assert perfect.pearson is not None and perfect.spearman is not None
    assert perfect.pearson.value == pytest.approx(1) and perfect.spearman.value == pytest.approx(1)
    assert perfect.pearson.fisher == pytest.approx((1, 1)) and perfect.pearson.bootstrap == pytest.approx((1, 1))


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        ([], [], "0 pairs, at least 3"),
        ([1, 2], [1, 2], "2 pairs, at least 3"),
        ([2, 2, 2], [1, 2, 3], "every score of human is 2"),
        ([1, 2, 3], [2.1, 2.1, 2.1 + 1e-12], "every score of judge is 2.1"),
    ],
)
def test_no_coefficient_is_said(first: list[float], second: list[float], note: str) -> None:
    found = agreement(first, second, LIKERT)
    assert found.pearson is None and found.spearman is None
    assert note in found.note
    assert (found.means is None) == (not first)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 2], [1], "2 scores of human and 1 of judge"),
        ([1, 6, 3], [1, 2, 3], "human: score 6 of pair 1"),
        ([1, 2, 3], [1, 2, math.nan], "judge: score nan of pair 2"),
        ([1, 2, 3], [0.9, 2, 3], "judge: score 0.9 of pair 0"),
    ],
)
def test_unusable_scores(first: list[float], second: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        agreement(first, second, LIKERT)


scores = st.lists(st.tuples(st.integers(1, 5), st.integers(10, 50).map(lambda n: n / 10)), min_size=3, max_size=12)


@settings(max_examples=20, deadline=None)
@given(scores, st.randoms(use_true_random=False))
def test_neither_order_nor_scale_nor_side_matters(pairs: list[tuple[int, float]], random: Any) -> None:
    x, y = [p[0] for p in pairs], [p[1] for p in pairs]
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    found = agreement(x, y, LIKERT)
    assert found.pearson is not None and found.spearman is not None
    assert -1 - 1e-9 <= found.pearson.value <= 1 + 1e-9
    assert found == agreement(x, y, LIKERT)
    random.shuffle(pairs)
    others = (
        agreement([p[0] for p in pairs], [p[1] for p in pairs], LIKERT),
        agreement(y, x, LIKERT),
        agreement([2 * s - 2 for s in x], y, ((0, 8), (1, 5))),
    )
    for other in others:
        assert other.pearson is not None and other.spearman is not None
        assert other.pearson.value == pytest.approx(found.pearson.value, abs=1e-9)
        assert other.spearman.value == pytest.approx(found.spearman.value, abs=1e-9)
    opposite = agreement([6 - s for s in x], y, LIKERT)
    assert opposite.pearson is not None
    assert opposite.pearson.value == pytest.approx(-found.pearson.value, abs=1e-9)


def test_several_scales_are_compared_on_shares_of_their_ranges() -> None:
    scored = [
        Scored(1, 1, ((0, 1), (0, 1))),
        Scored(1, 2, ((0, 2), (0, 2))),
        Scored(0, 1, ((0, 3), (1, 5))),
    ]
    found = compared(scored)
    # Shares 1, 1/2, 0 and 1, 1, 0: deviations (1/2 0 -1/2) and (1/3 1/3 -2/3): 1/2 / sqrt(1/2 * 2/3).
    assert found.pearson is not None
    assert found.pearson.value == pytest.approx(0.5 / math.sqrt(1 / 3), abs=1e-12)
    assert found.of_range and found.scales == ((0, 1), (0, 1)) and found.means == pytest.approx((0.5, 2 / 3))
    same = compared([Scored(s, s, ((0, 3), (1, 5))) for s in (1, 2, 3)])
    assert not same.of_range and same.scales == ((0, 3), (1, 5)) and same.means == (2.0, 2.0)


# --- reports --------------------------------------------------------------------------------------------------------


def row(number: int, drawn: int, level: int, score: int | None, scale: Scale | None = None) -> Annotation:
    pair = Pair(f"q{number}", f"d{number}", f"instruction {number}", f"passage {number}", "general", level)
    item = Item("T", pair, scale or (0, pair.highest), "runs")
    return Annotation(f"{number}of{drawn}-00000000", number, drawn, item, score, "")


class Listed:
    """A judge with written-down scores; it remembers whom it was asked about."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        self.asked = [p.query for p in pairs]
        found = [self.scores.get(p.query) for p in pairs]
        return [Judgement(s, weighted=s is not None and s % 1 > 0, reason="" if s else "mute") for s in found]

    def record(self) -> dict[str, Any]:
        return {"judge": "Listed"}


def test_what_is_left_out_is_counted() -> None:
    # Of 9 pairs drawn, two are in no file, two have no score, one has no score of the judge: four are left.
    people = {1: 0, 2: 1, 3: 2, 4: 1, 5: 0, 6: None, 7: None}
    rows = [row(n, 9, 2, score) for n, score in people.items()]
    judge = Listed({"q1": 0.0, "q2": 1.5, "q3": 2.0, "q4": 1.0})
    report = agreement_report({"a.csv": rows}, judge, None)
    assert judge.asked == ["q1", "q2", "q3", "q4", "q5"]
    assert (report.n_drawn, report.n_absent, report.n_unfilled) == (9, 2, 2)
    assert report.unscored == {"5of9-00000000": "mute"} and report.unfilled == {"a.csv": 2}
    assert report.weighted == 1 / 4
    assert report.overall.n == 4 and report.overall.pearson is not None
    assert report.overall.pearson.value == pytest.approx(np.corrcoef([0, 1, 2, 1], [0, 1.5, 2, 1])[0, 1])
    assert report.by_level[2].pearson is None and "at least 20" in report.by_level[2].note
    text = told(report)
    assert "2 without a person's score, 2 in no file, 1 without a judge's score (1 x mute)" in text
    assert "0.704" in text and "not comparable" in text
    assert "level 2: no coefficient: 4 pairs, at least 20 are needed" in text
    json.dumps(report.as_json(), allow_nan=False)


def test_levels_have_their_own_coefficients_from_twenty_pairs() -> None:
    rows = [row(n, 50, 1 if n <= 20 else 3, n % 2 if n <= 20 else n % 4) for n in range(1, 51)]
    judge = FunctionJudge(lambda p: float(min(int(p.query[1:]) % 3, p.highest)))
    report = agreement_report({"a.csv": rows}, judge, None)
    assert list(report.by_level) == [1, 3] and report.by_level[1].n == 20 and report.by_level[3].n == 30
    for level, highest, numbers in ((1, 1, range(1, 21)), (3, 3, range(21, 51))):
        expected = stats.spearmanr([n % (highest + 1) for n in numbers], [min(n % 3, highest) for n in numbers])
        found = report.by_level[level].spearman
        assert found is not None and found.value == pytest.approx(expected.statistic)
        assert report.by_level[level].scales == ((0, highest), (0, highest))
    assert set(report.by_scale) == {"0 to 1 / 0 to 1", "0 to 3 / 0 to 3"}
    assert report.overall.of_range and report.overall.n == 50
    assert "shares of ranges" in told(report)


def test_several_people() -> None:
    """Their mean against the judge; each against the judge; and each against the other where both scored."""
    one = {1: 1, 2: 2, 3: 3, 4: 5, 5: None}
    other = {1: 2, 2: 2, 3: 5, 4: 4, 6: 1}
    files = {
        name: [row(n, 6, 0, score, (1, 5)) for n, score in people.items()]
        for name, people in (("one", one), ("other", other))
    }
    judge = Listed({f"q{n}": s for n, s in zip((1, 2, 3, 4, 6), (1.0, 2.5, 3.5, 5.0, 1.0), strict=True)})
    report = agreement_report(files, judge, (1, 5))
    assert report.overall.pearson is not None
    expected = np.corrcoef([1.5, 2, 4, 4.5, 1], [1, 2.5, 3.5, 5, 1])[0, 1]
    assert report.overall.pearson.value == pytest.approx(expected) and report.overall.n == 5
    assert {name: found.n for name, found in report.annotators.items()} == {"one": 4, "other": 5}
    between = report.between["one / other"]
    assert between.n == 4 and between.pearson is not None
    assert between.pearson.value == pytest.approx(np.corrcoef([1, 2, 3, 5], [2, 2, 5, 4])[0, 1])
    assert (report.n_absent, report.n_unfilled, report.unfilled) == (0, 1, {"one": 1, "other": 0})
    text = told(report)
    assert "both sides score 1 to 5 too" in text and "one / judge" in text and "one / other" in text


def test_parts_of_a_draw_have_nothing_in_common() -> None:
    files = {"a": [row(n, 6, 0, n % 4) for n in (1, 2, 3)], "b": [row(n, 6, 0, n % 4) for n in (4, 5, 6)]}
    report = agreement_report(files, FunctionJudge(lambda p: float(int(p.query[1:]) % 4)), None)
    assert report.overall.n == 6 and report.overall.pearson is not None
    assert report.overall.pearson.value == pytest.approx(1)
    assert report.between["a / b"].note == "no coefficient: 0 pairs, at least 3 are needed"


def test_files_that_do_not_belong_together() -> None:
    judge = FunctionJudge(lambda p: 0.0)
    with pytest.raises(ValueError, match=r"b, row 2of7-00000000: the files come from different draws"):
        agreement_report({"a": [row(1, 6, 0, 1)], "b": [row(2, 7, 0, 1)]}, judge, None)
    with pytest.raises(ValueError, match=r"no row of a, b has a score"):
        agreement_report({"a": [row(1, 6, 0, None)], "b": [row(2, 6, 0, None)]}, judge, None)
    with pytest.raises(ValueError, match=r"judge: score 0.0 of pair 0"):
        agreement_report({"a": [row(1, 6, 0, 1)]}, judge, (1, 5))
