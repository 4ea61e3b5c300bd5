"""The paper's tables against one another: what the published numbers say about how they were averaged."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

import numpy as np
import pytest
from mteb.models.model_implementations import MODEL_REGISTRY
from scipy.optimize import linprog

from ifir_tasks.instfol import inst_fol_means
from ifir_tasks.report.published import (
    AVERAGE,
    LEVELLED,
    LEVELS,
    SUBSET_TASK_NAMES,
    Column,
    Measure,
    published_models,
    published_tables,
)
from ifir_tasks.scores import averages
from ifir_tasks.tasks import SUBSETS

TABLES = published_tables()
MODELS = [model.name for model in published_models()]
HALF_CENT = 0.005  # what rounding to two decimals hides
INSTRUCTED = [row.model for row in TABLES[9].rows][::2]


def test_the_tables_are_complete() -> None:
    assert {number: (len(t.rows), len(t.columns)) for number, t in TABLES.items()} == {
        3: (15, 16),
        8: (19, 16),
        9: (10, 8),
        10: (15, 12),
        11: (15, 12),
    }
    assert len(MODELS) == 15
    for number in (3, 10, 11):
        assert {row.model for row in TABLES[number].rows} == set(MODELS)
    settings = Counter(row.setting for row in TABLES[8].rows)
    assert settings == {"end-to-end": 15, "hybrid": 4}
    assert Counter(row.setting for row in TABLES[9].rows) == {"without prompt": 5, "with prompt": 5}
    assert [t.source for t in TABLES.values()] == [f"IFIR, Table {n}" for n in TABLES]


@pytest.mark.parametrize(
    ("number", "model", "setting", "column", "value"),
    [
        (3, "GTR-XL", "end-to-end", Column("FiQA", "ndcg"), 0.44),
        (3, "OpenAI-v3-small", "end-to-end", Column(AVERAGE, "instfol"), 0.45),
        (8, "Promptriever-7B", "hybrid", Column("TREC-CDS", "mrr"), 0.09),
        (9, "E5-mistral-7B", "with prompt", Column("FIRE", "ndcg"), 0.574),
        (10, "BM25", "end-to-end", Column("AILA", "ndcg", 2), 0.060),
        (11, "Promptriever-7B", "end-to-end", Column("TREC-PM", "instfol", 3), 25.21),
    ],
)
def test_single_cells_looked_up_in_the_paper(
    number: int, model: str, setting: str, column: Column, value: float
) -> None:
    assert TABLES[number].row(model, setting)[column] == value  # type: ignore[arg-type]


def test_a_line_that_is_not_there() -> None:
    with pytest.raises(KeyError, match="Table 8 has no line 'BM25', hybrid"):
        TABLES[8].row("BM25", "hybrid")


def test_ranges() -> None:
    for table in TABLES.values():
        for row in table.rows:
            for column, value in row.values.items():
                low, high = (-100, 100) if column.measure == "instfol" else (0, 1)
                assert low <= value <= high, (table.source, row.model, column)


def test_every_paper_name_of_a_subset_is_one_of_our_tasks() -> None:
    assert list(SUBSET_TASK_NAMES.values()) == [subset.name for subset in SUBSETS]
    assert {SUBSET_TASK_NAMES[name] for name in LEVELLED} == {subset.name for subset in SUBSETS if subset.levels}


def test_models_that_are_mapped_have_names_that_mteb_takes() -> None:
    mapped = [model.mteb_name for model in published_models() if model.mteb_name is not None]
    assert len(set(mapped)) == len(mapped) == 12
    assert {name for name in mapped if name not in MODEL_REGISTRY} == {
        f"hkunlp/instructor-{size}"
        for size in ("base", "large", "xl")  # mteb takes these from the hub
    }
    for model in published_models():
        assert model.mteb_name is not None or model.note, model.name


# --- the same number printed twice ---------------------------------------------------------------------------------


def test_table_8_repeats_the_ndcg_of_table_3() -> None:
    for model in MODELS:
        again = TABLES[8].row(model)
        for column, value in TABLES[3].row(model).items():
            if column.measure == "ndcg":
                assert again[column] == value, (model, column)


def test_table_9_has_another_decimal_of_table_3() -> None:
    for model in INSTRUCTED:
        for column, value in TABLES[9].row(model, "without prompt").items():
            assert value == pytest.approx(TABLES[3].row(model)[column], abs=HALF_CENT + 1e-9), (model, column)


def test_ndcg_is_never_below_mrr() -> None:
    """133 of 133 cells; holds for the authors' ideal ranking of the retrieved documents only."""
    cells = [
        (row.values[Column(subset, "ndcg")], row.values[Column(subset, "mrr")])
        for row in TABLES[8].rows
        for subset in SUBSET_TASK_NAMES
    ]
    assert len(cells) == 133
    assert all(ndcg >= mrr for ndcg, mrr in cells)


# --- how averages were taken ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "measure", "rounding"),
    [(3, "ndcg", 0.005), (3, "instfol", 0.005), (8, "ndcg", 0.005), (8, "mrr", 0.005), (9, "ndcg", 0.0005)],
)
def test_the_average_is_the_plain_mean_of_the_seven_subsets(number: int, measure: Measure, rounding: float) -> None:
    """Both sides are rounded, so they may differ by twice half a unit of the last decimal."""
    for row in TABLES[number].rows:
        mean = fmean(row.values[Column(subset, measure)] for subset in SUBSET_TASK_NAMES)
        assert mean == pytest.approx(row.values[Column(AVERAGE, measure)], abs=2 * rounding), row.model


@pytest.mark.parametrize("subset", LEVELLED)
def test_overall_instfol_is_the_mean_of_the_levels(subset: str) -> None:
    """All 60 cells of Tables 3 and 11, up to the rounding of both."""
    for model in MODELS:
        levels = TABLES[11].row(model)
        mean = fmean(levels[Column(subset, "instfol", level)] for level in LEVELS)
        assert mean == pytest.approx(TABLES[3].row(model)[Column(subset, "instfol")], abs=2 * HALF_CENT), model


def level_and_overall_ndcg(subset: str) -> tuple[np.ndarray, np.ndarray]:
    """The nDCG of the 15 models by level (15 x 3, Table 10) and overall (15, Table 3)."""
    by_level = [[TABLES[10].row(m)[Column(subset, "ndcg", level)] for level in LEVELS] for m in MODELS]
    return np.array(by_level), np.array([TABLES[3].row(m)[Column(subset, "ndcg")] for m in MODELS])


def fitted_weights(subset: str) -> tuple[np.ndarray, float]:
    """Weights of the levels that sum to 1 and miss the overall cells by as little as possible, and by how much."""
    by_level, overall = level_and_overall_ndcg(subset)
    slack = -np.ones((len(overall), 1))
    found = linprog(
        [0, 0, 0, 1],
        A_ub=np.block([[by_level, slack], [-by_level, slack]]),
        b_ub=np.concatenate([overall, -overall]),
        A_eq=[[1, 1, 1, 0]],
        b_eq=[1],
    )
    assert found.success
    return found.x[:3], float(found.x[3])


@pytest.mark.parametrize("subset", LEVELLED)
def test_overall_ndcg_is_a_weighted_mean_of_the_levels(subset: str) -> None:
    _, largest_miss = fitted_weights(subset)
    assert largest_miss < 0.006


@pytest.mark.parametrize(("subset", "miss"), [("FiQA", 0.010), ("AILA", 0.028), ("SciFact-open", 0.0077)])
def test_overall_ndcg_is_no_plain_mean_of_the_levels(subset: str, miss: float) -> None:
    by_level, overall = level_and_overall_ndcg(subset)
    assert np.abs(by_level.mean(axis=1) - overall).max() == pytest.approx(miss, abs=0.0005)


def test_the_weights_of_fiqa_and_aila() -> None:
    """Least squares over the 15 models; the sum of 1 is one more, heavily weighted equation."""
    for subset, expected in (("FiQA", (0.374, 0.333, 0.293)), ("AILA", (0.48, None, None))):
        by_level, overall = level_and_overall_ndcg(subset)
        heavy = 1e4
        weights, *_ = np.linalg.lstsq(np.vstack([by_level, heavy * np.ones(3)]), np.append(overall, heavy), rcond=None)
        for weight, value in zip(weights, expected, strict=True):
            assert value is None or weight == pytest.approx(value, abs=0.01), subset


# The number of instructions per level that fit FiQA's and AILA's cells, as a share of 1,000.
QUERIES = {"FiQA": (374, 333, 293), "AILA": (477, 308, 215)}


@pytest.mark.parametrize("subset", QUERIES)
def test_our_average_gives_the_published_overall_ndcg(subset: str) -> None:
    """Queries that all have their level's published nDCG must average to the published overall value."""
    for model in MODELS:
        values = TABLES[10].row(model)
        rows = {
            f"q{number}-v{level}": _row(f"q{number}", level, values[Column(subset, "ndcg", level)])
            for level, n in zip(LEVELS, QUERIES[subset], strict=True)
            for number in range(n)
        }
        found = averages(rows)
        published = TABLES[3].row(model)[Column(subset, "ndcg")]
        assert found["paper_ndcg_at_20"] == pytest.approx(published, abs=0.006), model
        for level in LEVELS:
            expected = values[Column(subset, "ndcg", level)]
            assert found[f"level_{level}_paper_ndcg_at_20"] == pytest.approx(expected, abs=1e-9)


def _row(base: str, level: int, value: float) -> dict[str, object]:
    measures = {f"{kind}{m}_at_20": value for kind in ("", "paper_", "query_only_") for m in ("ndcg", "mrr")}
    return {"base_query": base, "level": level, "n_relevant": 1, "chance_ndcg_at_20": 0.0, **measures}


def test_our_overall_instfol_of_published_levels_is_the_published_one() -> None:
    """Levels with different numbers of queries, each query at its level's published mean."""
    cells = 0
    for model in MODELS:
        by_level, overall = TABLES[11].row(model), TABLES[3].row(model)
        for subset in LEVELLED:
            rows = {
                f"{number}-v{level}": dict.fromkeys(
                    ("instfol_at_20", "paper_instfol_at_20"), by_level[Column(subset, "instfol", level)]
                )
                for level in LEVELS
                for number in range(5 - level)
            }
            found = inst_fol_means(rows)
            # Both sides are rounded to two decimals.
            published = pytest.approx(overall[Column(subset, "instfol")], abs=0.0101)
            assert found["paper_instfol_at_20"] == found["instfol_at_20"] == published, (model, subset)
            cells += 1
    assert cells == 60
