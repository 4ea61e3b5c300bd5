"""Table 8's hybrid: its fusion by hand and against the definition, and the whole against two separate runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import pytest
from fixed_ranking import FixedRanking
from hypothesis import given
from hypothesis import strategies as st
from mteb.models.hybrid_wrappers import HybridSearch
from sentence_transformers import SentenceTransformer

import ifir_tasks
from evaluators.plugin import evaluate
from evaluators.plugin.models import BM25, identified
from ifir_tasks.retrieval import hybrid, prompted, rank_fusion, sliding_window, wrap

assert ifir_tasks.SUBSET_TASKS  # the import registers the tasks


@pytest.fixture(scope="module")
def tiny(tiny_models: dict[str, Path]) -> SentenceTransformer:
    return SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")


# ---- fusion -----------------------------------------------------------------------------------------------------


def test_fusion_by_hand() -> None:
    dense = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}  # cut to 3: a 1, b 2, c 3
    lexical = {"d": 12.0, "c": 7.0, "e": 7.0, "a": 1.0}  # cut to 3: d 1, e 2, c 3 (tied with e, lower id)
    found = rank_fusion([dense, lexical], [1.0, 0.3], depth=3, rank_constant=60)
    assert found == {
        "a": 1 / 61,  # 4th in the lexical list, so cut there
        "b": 1 / 62,
        "c": 1 / 63 + 0.3 / 63,
        "d": 0.3 / 61,  # 4th in the dense list, so cut there
        "e": 0.3 / 62,
    }
    assert sorted(found, key=lambda d: found[d], reverse=True) == ["c", "a", "b", "d", "e"]


def test_the_authors_values_are_the_defaults() -> None:
    """A document at rank 20 of both lists counts, one at rank 21 does not."""
    scores = {f"d{i:02}": float(-i) for i in range(30)}
    found = rank_fusion([scores, scores], [1.0, 0.3])
    assert found == {f"d{i:02}": 1 / (61 + i) + 0.3 / (61 + i) for i in range(20)}
    model = hybrid(FixedRanking({}), FixedRanking({}))
    assert list(model.weights) == [1.0, 0.3]
    record = model.mteb_model_meta.experiment_kwargs
    assert (record["fusion_depth"], record["rrf_k"], record["weights"]) == (20, 60, [1.0, 0.3])


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4).map(float), max_size=8)


@given(
    lists=st.lists(SCORES, min_size=2, max_size=2),
    depth=st.integers(1, 9),
    constant=st.integers(0, 70),
    weights=st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.3, 1.0])),
)
def test_fusion_against_the_definition(
    lists: list[dict[str, float]], depth: int, constant: int, weights: tuple[float, float]
) -> None:
    found = rank_fusion(lists, weights, depth=depth, rank_constant=constant)
    for doc in "abcdefgh":
        terms = []
        for scores, weight in zip(lists, weights, strict=True):
            if doc in scores:
                rank = 1 + sum((s, other) > (scores[doc], doc) for other, s in scores.items())
                terms += [weight / (constant + rank)] if rank <= depth else []
        assert (doc in found) == bool(terms)
        assert found.get(doc, 0.0) == pytest.approx(sum(terms), abs=1e-15)
    shuffled = [dict(reversed(scores.items())) for scores in lists]
    assert rank_fusion(shuffled, weights, depth=depth, rank_constant=constant) == found


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"list 2 to be joined.*'b' has the score nan"):
        rank_fusion([{"a": 1.0}, {"b": float("nan")}], [1.0, 0.3])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"depth": 0}, "at least 1, got 0"),
        ({"weights": (1.0,)}, "weights must be two"),
        ({"weights": (1.0, -0.3)}, "weights must be two"),
        ({"weights": (0.0, 0.0)}, "weights must be two"),
        ({"weights": (1.0, float("inf"))}, "weights must be two"),
        ({"rank_constant": -1}, "greater than or equal to 0"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        hybrid(FixedRanking({}), FixedRanking({}), **options)


# ---- through mteb -----------------------------------------------------------------------------------------------


def predictions(model: Any, task: Any, folder: Path) -> dict[str, dict[str, float]]:
    mteb.evaluate(model, task, cache=None, prediction_folder=folder, show_progress_bar=False)
    content = json.loads((folder / "IFIRSample_predictions.json").read_text())
    return dict(content["default"]["test"])


def test_a_hybrid_joins_what_its_parts_find_alone(
    tmp_path: Path, tiny: SentenceTransformer, little_task: Callable[[], Any]
) -> None:
    dense = sliding_window(tiny, window=64, overlap=8)
    joined = predictions(hybrid(dense), little_task(), tmp_path / "hybrid")
    alone = [
        predictions(m, little_task(), tmp_path / name) for name, m in (("dense", dense), ("bm25", mteb.get_model(BM25)))
    ]
    assert len(joined) == len(alone[0]) == len(alone[1]) > 10
    sizes = set()
    for query, found in joined.items():
        expected: dict[str, float] = {}
        for weight, run in zip((1.0, 0.3), alone, strict=True):
            ranked = sorted(run[query], key=lambda d: (run[query][d], d), reverse=True)
            for rank, doc in enumerate(ranked[:20], start=1):
                expected[doc] = expected.get(doc, 0) + weight / (60 + rank)
        assert found == pytest.approx(expected)
        sizes.add(len(found))
    assert min(sizes) >= 20 and max(sizes) <= 40 and len(sizes) > 1, "mteb's own fusion would keep them all"


def test_variants_are_filed_apart(tmp_path: Path, tiny: SentenceTransformer, little_task: Callable[[], Any]) -> None:
    variants = [
        hybrid(tiny),
        hybrid(tiny, depth=5),
        hybrid(tiny, rank_constant=10),
        hybrid(tiny, weights=(1.0, 1.0)),
        hybrid(sliding_window(tiny, window=64, overlap=8)),
        hybrid(prompted(sliding_window(tiny, window=64, overlap=8), "default")),
        hybrid(prompted(tiny, "default"), prompted(mteb.get_model(BM25), "default")),
    ]
    names = [v.mteb_model_meta.experiment_name for v in variants]
    assert len(set(names)) == len(variants)
    # `evaluate` names a model once more, which loses nothing.
    assert [identified(v).mteb_model_meta.experiment_name for v in variants] == names
    own = HybridSearch([mteb.get_model(BM25), identified(tiny)])
    assert identified(own).mteb_model_meta.name != variants[0].mteb_model_meta.name
    for variant in variants[:2]:
        evaluate(variant, little_task(), output_folder=tmp_path, show_progress_bar=False)
    assert len(list(tmp_path.rglob("IFIRSample.json"))) == 2


def test_wrap_puts_prompts_around_windows_and_bm25_beside_both(tiny: SentenceTransformer) -> None:
    found = wrap(tiny, window=64, overlap=8, paper_window=True, prompts="instructor", bm25=True)
    dense, lexical = (m.mteb_model_meta for m in found.wrapped_models)
    prompts = dense.experiment_kwargs.pop("prompts")
    assert prompts.startswith("instructor-")
    assert dense.experiment_kwargs == {"window": 64, "overlap": 8, "paper_window": True}
    assert lexical.name == BM25 and not lexical.experiment_kwargs
    assert wrap(tiny) is tiny


def test_a_part_without_a_name_is_refused() -> None:
    class Nameless(FixedRanking):
        def __init__(self) -> None:
            super().__init__({})
            self.mteb_model_meta = self.mteb_model_meta.model_copy(update={"name": None})

    with pytest.raises(ValueError, match="needs a name and a revision"):
        hybrid(Nameless())
