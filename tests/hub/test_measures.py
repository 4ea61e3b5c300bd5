"""Which scores are shown, on which scale, and how they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.metrics.pmrr import p_mrr
from hub_cards.measures import MEASURES, OTHER, OWN, scale_of
from hub_cards.values import Score, chance_of, interval_written, value_of, written


@given(
    first=st.permutations(list("abcdef")), second=st.permutations(list("abcdef")), changed=st.sampled_from(["a", "bd"])
)
def test_exchanging_rankings_turns_the_sign_of_p_mrr_so_its_chance_level_is_0(
    first: list[str], second: list[str], changed: str
) -> None:
    runs = [{"q": {d: float(-i) for i, d in enumerate(order)}} for order in (first, second)]
    there, back = (p_mrr(a, b, {"q": list(changed)}).score for a, b in (runs, runs[::-1]))
    assert there == pytest.approx(-back)
    assert chance_of({}, "p-MRR") == 0


def test_chance_levels_and_intervals_are_read_beside_their_scores() -> None:
    scores = {"ds_at_1": 0.3, "ds_at_1_low": 0.2, "ds_at_1_high": 0.4, "EM_chance_ds_at_1": 0.24}
    scores |= {"level_2_chance_ndcg_at_20": 0.03, "chance_ndcg_at_20": 0.04, "x": float("nan"), "y": True}
    assert value_of(scores, "ds_at_1") == Score(0.3, 0.2, 0.4)
    assert value_of(scores, "x") == value_of(scores, "y") == value_of(scores, "z") == Score(None)
    assert chance_of(scores, "EM_ds_at_1") == 0.24
    assert chance_of(scores, "level_2_ndcg_at_20") == 0.03
    assert chance_of(scores, "query_only_ndcg_at_20") == 0.04
    assert chance_of(scores, "ds_at_1") is None
    assert value_of({"n_judged": 90, "n_unscored": 10}, "unscored_share") == Score(0.1)
    assert value_of({"n_judged": 0, "n_unscored": 0}, "unscored_share") == Score(None)


def test_numbers_are_written_alike_everywhere() -> None:
    assert [written(v) for v in (0.12345, -0.0001, None)] == ["0.123", "0.000", "-"]
    assert [written(v, "p") for v in (0.0, 0.04)] == ["<0.001", "0.040"]
    assert written(12.0, "count") == "12"
    assert interval_written(Score(0.5, 0.25, 0.75)) == "[0.250, 0.750]"
    assert interval_written(Score(0.5)) == ""


@pytest.mark.parametrize("benchmark", MEASURES)
def test_each_measure_is_listed_once_on_the_scale_that_its_name_has(benchmark: str) -> None:
    listed = MEASURES[benchmark]
    assert len({m.key for m in listed}) == len(listed)
    assert len({(m.group, m.label) for m in listed if m.on_page}) == len([m for m in listed if m.on_page])
    on_card = [m for m in listed if m.on_card]
    assert len({m.name for m in on_card}) == len(on_card)
    assert all(m.name and m.kind == "score" for m in on_card)
    assert bool(on_card) == (benchmark != OTHER)
    assert listed[0].on_page
    for measure in listed:
        if measure.kind != "count" and measure.scale != OWN:
            assert scale_of(measure.key) == measure.scale, measure.key


@pytest.mark.parametrize(
    ("key", "scale"),
    [
        ("p-MRR_low", "-1..1"),
        ("level_2_paper_instfol_at_20_high", "at most 1"),
        ("og.mrr_at_10", "0..1"),
        ("level_1_query_only_mrr_at_20_low", "0..1"),
        ("followir_score_changed_qrels_high", "0..1"),
        ("robustness_at_10_low", "0..1"),
        ("nauc_ndcg_at_10_max", None),
        ("cosine_spearman", None),
        ("n_queries", None),
    ],
)
def test_a_name_tells_the_scale(key: str, scale: str | None) -> None:
    assert scale_of(key) == scale


def test_every_score_of_our_results_has_a_known_scale(made_results: Path) -> None:
    for path in (made_results / "results").rglob("*Sample.json"):
        (scores,) = json.loads(path.read_text())["scores"]["test"]
        unknown = {
            key
            for key, value in scores.items()
            if isinstance(value, float) and not key.startswith("nauc_") and scale_of(key) is None
        }
        assert unknown <= {"main_score", "weighted"}, path.name
