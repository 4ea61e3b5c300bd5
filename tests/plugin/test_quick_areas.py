"""mteb's abstention scores measured quickly are those that mteb measures by itself."""

from __future__ import annotations

import math
from typing import Any

import mteb._evaluators.retrieval_metrics as measures
import numpy as np
import pytest
import sklearn.metrics
from fixed_ranking import FixedRanking, Run, scores_of
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.plugin.mteb_internals import quick_areas
from followir_tasks import FollowIRSample

NUMBERS = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0, math.nan])


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30))
def test_a_score_is_the_same_to_the_last_bit(rows: list[tuple[float, float]]) -> None:
    confidence, quality = np.array(rows).T
    alone = measures.nauc(confidence, quality)
    with quick_areas():
        assert measures.auc is not sklearn.metrics.auc, "this would compare mteb with itself"
        assert str(measures.nauc(confidence, quality)) == str(alone)


def test_mteb_is_left_as_it_was() -> None:
    with pytest.raises(KeyError), quick_areas(), quick_areas():
        raise KeyError
    assert measures.auc is sklearn.metrics.auc


def test_an_mteb_that_measures_otherwise_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "auc", min)
    with quick_areas():
        assert measures.auc is min
    monkeypatch.delattr(measures, "auc")
    with quick_areas():
        assert not hasattr(measures, "auc")


class Looking(FixedRanking):
    """A model that looks how mteb will take its areas, and fails."""

    def search(self, queries: Any, **kwargs: Any) -> Run:
        self.area = measures.auc
        raise KeyError("seen enough")


def test_tasks_are_scored_with_it() -> None:
    model = Looking({})
    with pytest.raises(KeyError, match="seen enough"):
        scores_of(FollowIRSample(), model)
    assert model.area is not sklearn.metrics.auc
    assert measures.auc is sklearn.metrics.auc
