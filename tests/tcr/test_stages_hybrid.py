"""Hybrids, cascades and the re-creation of THYME: by hand, at their end points, and against separate runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mteb
import pytest
import torch
from fixed_ranking import FixedRanking
from mteb.models import ModelMeta
from retrieval_tables import WordEncoder, ranking, run_of, small_task, write_small
from sentence_transformers import MultiVectorEncoder, SparseEncoder
from sentence_transformers.sparse_encoder.models import MLMTransformer, SpladePooling

import tcr_tasks
from evaluators.plugin import evaluate
from evaluators.plugin.models import BM25, identified
from evaluators.plugin.searching import SearchedOnce
from tcr_tasks.retrieval.cascade import cascade
from tcr_tasks.retrieval.hybrid import GRID, hybrid, hybrid_grid
from tcr_tasks.retrieval.multivector import multi_vector
from tcr_tasks.retrieval.thyme import thyme

assert tcr_tasks.BENCHMARK_TASKS  # the import registers the tasks


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("tcr"))


class Fixed(FixedRanking):
    """A ranking with a name of its own, which keeps to its candidates and counts its searches."""

    def __init__(self, run: dict[str, dict[str, float]], name: str = "test/fixed") -> None:
        super().__init__(run)
        self.mteb_model_meta = ModelMeta.create_empty({"name": name, "revision": "1"})
        self.searches: list[Any] = []

    def search(self, queries: Any, *, top_ranked: Any = None, **kwargs: Any) -> Any:
        self.searches.append(top_ranked)
        found = super().search(queries, **kwargs)
        return found if top_ranked is None else {q: {d: found[q][d] for d in top_ranked[q]} for q in found}


# --- interpolation -----------------------------------------------------------------------------------------------


def test_relative_scores_by_hand() -> None:
    dense = {"a": 0.9, "b": 0.5, "c": 0.1}  # scaled: 1, 0.5, 0
    words = {"a": 2.0, "b": 10.0, "d": 4.0}  # scaled: 0, 1, 0.25; c is not there and counts 0
    found = hybrid(Fixed({}), Fixed({}), dense_weight=0.9).fuse([dense, words])
    assert found == pytest.approx({"a": 0.9, "b": 0.45 + 0.1, "c": 0.0, "d": 0.025})
    flat = hybrid(Fixed({}), Fixed({}), dense_weight=0.9).fuse([{"a": 3.0, "b": 3.0}, {"a": 1.0, "b": 0.0}])
    assert flat == pytest.approx({"a": 0.45 + 0.1, "b": 0.45})


def test_the_grid_and_the_papers_weights() -> None:
    assert GRID == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
    assert list(hybrid(Fixed({}), Fixed({})).weights) == [0.9, 0.1]
    names = [model.mteb_model_meta.experiment_name for model in hybrid_grid(Fixed({}), Fixed({}))]
    assert len(set(names)) == 11
    same = hybrid(Fixed({}), Fixed({}), dense_weight=0.3).mteb_model_meta.experiment_name
    assert names[3] == same, "a point of the grid is filed as the hybrid of that weight"


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_an_impossible_weight_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match=r"must lie in 0\.\.1"):
        hybrid(Fixed({}), Fixed({}), dense_weight=weight)


def test_end_points_are_the_parts_and_the_grid_runs_each_part_once(small: Path) -> None:
    encoder, words = WordEncoder(), mteb.get_model(BM25)
    searched = []
    search = words.search
    words.search = lambda *args, **kwargs: searched.append(1) or search(*args, **kwargs)  # type: ignore[func-returns-value]
    grid = hybrid_grid(encoder, words)
    runs = {at: run_of(grid[at], small_task(small)) for at in (0, 7, 10)}
    assert len(searched) == 1
    assert len(encoder.read["query"]) == 2 and len(encoder.read["document"]) == 6
    alone = [
        run_of(WordEncoder(), small_task(small)),
        run_of(mteb.get_model(BM25), small_task(small)),
    ]
    for query in alone[0]:
        assert ranking(runs[10][query]) == ranking(alone[0][query])
        assert ranking(runs[0][query]) == ranking(alone[1][query])
        scaled = []
        for run in alone:
            least, most = min(run[query].values()), max(run[query].values())
            scaled.append({d: (s - least) / (most - least) for d, s in run[query].items()})
        expected = {d: 0.7 * scaled[0][d] + 0.3 * scaled[1][d] for d in scaled[0]}
        assert runs[7][query] == pytest.approx(expected, abs=1e-6)


def test_a_remembered_search_notices_other_data(small: Path) -> None:
    once = SearchedOnce(WordEncoder())
    first = run_of(once, small_task(small))
    other = run_of(once, small_task(small, "TCRBenchCSV"))
    assert first != other
    assert other == run_of(WordEncoder(), small_task(small, "TCRBenchCSV"))


# --- cascade -----------------------------------------------------------------------------------------------------


def test_cut_offs_by_hand(small: Path) -> None:
    task = small_task(small)
    task.load_data()
    ids = sorted(task.dataset["default"]["test"]["corpus"]["id"])
    first = Fixed({q: {d: float(at) for at, d in enumerate(ids)} for q in ("q1", "q2")}, "test/first")
    second = Fixed({q: {d: float(-at) for at, d in enumerate(ids)} for q in ("q1", "q2")}, "test/second")
    third = Fixed({q: {d: float(at % 2) for at, d in enumerate(ids)} for q in ("q1", "q2")}, "test/third")
    run = run_of(cascade([(first, 4), (second, 3), (third, 2)]), task)
    # The first keeps numbers 5, 4, 3, 2; the second of them 2, 3, 4; the third 3 (score 1), then 4 before 2 by its id.
    assert set(second.searches[0]["q1"]) == {ids[2], ids[3], ids[4], ids[5]}
    assert set(third.searches[0]["q1"]) == {ids[2], ids[3], ids[4]}
    assert run["q1"] == {ids[3]: 1.0, ids[4]: 0.0}


def test_a_cascade_that_keeps_everything_is_its_last_stage(small: Path) -> None:
    run = run_of(cascade([(mteb.get_model(BM25), 6), (WordEncoder(), 6)]), small_task(small))
    alone = run_of(WordEncoder(), small_task(small))
    assert {q: pytest.approx(scores, abs=1e-6) for q, scores in alone.items()} == run


def test_encoders_read_only_what_is_left(small: Path) -> None:
    encoder = WordEncoder()
    run_of(cascade([(mteb.get_model(BM25), 2), (encoder, 2)]), small_task(small))
    assert len(encoder.read["document"]) <= 4


def test_a_cross_encoder_as_the_last_stage(small: Path) -> None:
    class Overlap:
        mteb_model_meta = ModelMeta.create_empty(
            {"name": "tests/overlap", "revision": "1", "model_type": ["cross-encoder"]}
        )

        def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> Any:
            pairs = zip(*([t for b in side for t in b["text"]] for side in (inputs1, inputs2)), strict=True)
            return [float(len({*a.split()} & {*b.split()})) for a, b in pairs]

    made = cascade([(mteb.get_model(BM25), 4), (multi_vector(WordEncoder()), 3), (Overlap(), 2)])
    run = run_of(made, small_task(small))
    assert set(map(len, run.values())) == {2}


@pytest.mark.parametrize(
    ("cuts", "error"), [((5,), "at least two stages"), ((3, 4), "cannot keep more"), ((3, 0), "at least 1, got 0")]
)
def test_impossible_stages_are_refused(cuts: tuple[int, ...], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        cascade([(Fixed({}), keep) for keep in cuts])


def test_cascades_are_filed_apart() -> None:
    a, b = Fixed({}, "test/a"), Fixed({}, "test/b")
    made = [cascade([(a, 5), (b, 2)]), cascade([(a, 5), (b, 3)]), cascade([(b, 5), (a, 2)]), cascade([(a, 6), (b, 2)])]
    assert len({m.mteb_model_meta.experiment_name for m in made}) == 4
    assert [identified(m).mteb_model_meta.experiment_name for m in made] == [
        m.mteb_model_meta.experiment_name for m in made
    ]


# --- learned sparse, late interaction, THYME ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse(tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> SparseEncoder:
    """A tiny, randomly initialised SPLADE."""
    from transformers import BertForMaskedLM, BertTokenizerFast

    torch.manual_seed(0)
    bert = tiny_models["SentenceTransformer"].parent / "bert"
    place = tmp_path_factory.mktemp("splade")
    BertForMaskedLM.from_pretrained(bert).save_pretrained(place)
    BertTokenizerFast.from_pretrained(bert).save_pretrained(place)
    model = SparseEncoder(modules=[MLMTransformer(str(place)), SpladePooling()], device="cpu")
    model.save_pretrained(str(place / "model"))
    return SparseEncoder(str(place / "model"), device="cpu")


def test_learned_sparse_and_late_interaction_search_and_rerank(
    sparse: SparseEncoder, tiny_models: dict[str, Path], small: Path
) -> None:
    late = MultiVectorEncoder(str(tiny_models["MultiVectorEncoder"]), device="cpu")
    for model in (identified(sparse), identified(late)):
        alone = run_of(model, small_task(small))
        staged = run_of(cascade([(mteb.get_model(BM25), 6), (model, 6)]), small_task(small))
        first = run_of(cascade([(model, 6), (WordEncoder(), 6)]), small_task(small))
        for query, scores in alone.items():
            assert len(scores) == len(first[query]) == 6
            assert staged[query] == pytest.approx(scores, rel=1e-4)


def test_thyme_joins_schema_columns_and_words(sparse: SparseEncoder, small: Path, tmp_path: Path) -> None:
    run = run_of(thyme(WordEncoder()), small_task(small))
    parts = [
        run_of(multi_vector(WordEncoder(), pieces="schema"), small_task(small)),
        run_of(multi_vector(WordEncoder(), pieces="columns"), small_task(small)),
        run_of(mteb.get_model(BM25), small_task(small)),
    ]
    for query, found in run.items():
        expected = dict.fromkeys(found, 0.0)
        for part in parts:
            least, most = min(part[query].values()), max(part[query].values())
            for document, score in part[query].items():
                expected[document] += (score - least) / (most - least)
        assert found == pytest.approx(expected, abs=1e-6)
    learned = thyme(WordEncoder(), sparse)
    result = evaluate(learned, small_task(small), output_folder=tmp_path, show_progress_bar=False)
    assert 0 <= result.task_results[0].scores["test"][0]["recall_at_1"] <= 1
    assert learned.mteb_model_meta.experiment_kwargs["recreation"] == "thyme-1"
    with pytest.raises(ValueError, match="weights must be three finite numbers"):
        thyme(WordEncoder(), weights=(1.0, -1.0, 0.0))
