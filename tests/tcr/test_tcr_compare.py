"""How sure a TCR result is: the intervals in its result file, and `mteb-beyond tcr compare` of two runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fixed_ranking import FixedRanking
from mteb.cache import ResultCache
from scipy import stats

from evaluators.cli import main
from evaluators.metrics.siblings import SiblingQuery
from evaluators.plugin.results import write_per_query
from tcr_tasks import TCRSample, TCRTask
from tcr_tasks.compare import QueryTable, compare, find_tables, read_tables
from tcr_tasks.data import Question
from tcr_tasks.statistics import interval_scores

Outcome = tuple[float | None, float | None]

# --- intervals in a result ---------------------------------------------------------------------------------------


class Run:
    """Two rankings of the sample and their scores: A's from the result file of mteb's run, B's computed directly."""

    def __init__(self, folder: Path) -> None:
        task = TCRSample()
        task.load_data()
        assert task.data is not None
        self.questions: list[Question] = task.data.side["questions"]
        self.folder = folder
        self.outsider = {q.id: next(t for t in task.data.corpus["id"] if t not in q.group) for q in self.questions}
        # A finds 12 targets, 9 siblings and 9 tables of other groups; B the first 3 of these targets.
        kinds = ["target"] * 12 + ["sibling"] * 9 + ["other"] * 9
        self.kinds = {"a": kinds, "b": kinds[:3] + ["sibling"] * 9 + kinds[12:]}
        of_b = task.special_scores(self.ranking("b"), task.data)
        write_per_query(task.per_query_file(folder / "b"), of_b.per_query, task.provenance())
        cache = ResultCache(folder / "cache")
        model = FixedRanking(self.ranking("a"))
        mteb.evaluate(
            model, task, cache=cache, prediction_folder=folder / "a", co2_tracker=False, show_progress_bar=False
        )
        (path,) = (folder / "cache").rglob("TCRSample.json")
        self.scores = {"a": json.loads(path.read_text())["scores"]["test"][0], "b": of_b.scores}

    def ranking(self, name: str) -> dict[str, dict[str, float]]:
        out = {}
        for q, kind in zip(self.questions, self.kinds[name], strict=True):
            sibling = next(t for t in q.group if t != q.target)
            out[q.id] = {{"target": q.target, "sibling": sibling, "other": self.outsider[q.id]}[kind]: 1.0}
        return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("runs"))


BOUNDS = {f"{score}_{bound}" for score in ("recall_at_1", "gr_at_1", "ds_at_1") for bound in ("low", "high")}


def test_a_result_file_says_how_sure_it_is(run: Run) -> None:
    scores = run.scores["a"]
    assert {key for key in scores if key.endswith(("_low", "_high"))} == BOUNDS
    added = BOUNDS | {"ds_at_1_p_bootstrap", "ds_at_1_p_null", "chance_ds_at_1_without_column_deletion"}
    assert all(isinstance(scores[key], float) and math.isfinite(scores[key]) for key in added)
    assert "ds_at_1_p_bootstrap_paper" not in scores  # 0.298 is not the sample's chance level
    assert scores["mteb_beyond"]["metric_version"] == TCRTask.metric_version == 2
    for key in ("recall_at_1", "gr_at_1", "ds_at_1"):
        assert scores[f"{key}_low"] < scores[key] < scores[f"{key}_high"]
    # 12 of 30 targets, 21 of 30 groups; a percentile interval of a mean lies near the quantiles of a binomial.
    for key, successes in (("recall_at_1", 12), ("gr_at_1", 21)):
        binomial = stats.binom(30, successes / 30).ppf([0.025, 0.975]) / 30
        assert [scores[f"{key}_low"], scores[f"{key}_high"]] == pytest.approx(list(binomial), abs=1.1 / 30)


def test_p_values_of_a_result(run: Run) -> None:
    rng = np.random.default_rng(0)
    for name, kinds in run.kinds.items():
        scores = run.scores[name]
        target, group = (np.array([kind in k for kind in kinds], float) for k in (["target"], ["target", "sibling"]))
        drawn = rng.integers(0, 30, (20_000, 30))
        resampled = target[drawn].sum(axis=1) / group[drawn].sum(axis=1)
        chance = np.mean([1 / len(q.group) for q in run.questions])
        assert scores["ds_at_1_p_bootstrap"] == pytest.approx(np.mean(resampled <= chance), abs=0.05)
        low, high = np.percentile(resampled, [2.5, 97.5])
        assert (scores["ds_at_1_low"], scores["ds_at_1_high"]) == pytest.approx((low, high), abs=0.05)
        of_hit = [1 / len(q.group) for q, hit in zip(run.questions, group, strict=True) if hit]
        exact = stats.poisson_binom.sf(target.sum() - 1, of_hit)
        assert scores["ds_at_1_p_null"] == pytest.approx(exact, abs=1e-6)  # result files are rounded
        assert scores["p_null_n"] == 21
    assert run.scores["a"]["ds_at_1_p_null"] < 0.01 < 0.5 < run.scores["b"]["ds_at_1_p_null"]


def test_chance_without_column_deletion_siblings(run: Run) -> None:
    rows = pq.read_table(Path(TCRSample.embedded or "") / "groups.parquet").to_pylist()
    left = [sum(label != "column_deletion" for label in row["strategies"]) for row in rows]
    expected = sum(1 / n for n in left) / len(left)
    assert run.scores["a"]["chance_ds_at_1_without_column_deletion"] == pytest.approx(expected, abs=1e-6)
    assert expected > run.scores["a"]["chance_ds_at_1"]


def published(labels: Mapping[str, str]) -> tuple[dict[str, SiblingQuery], list[Question]]:
    """As many questions as were published; the hits of Qwen3-Embedding-8B by the paper: 38 targets, 140 groups."""
    types = ["EM"] * 98 + ["SF"] * 55 + ["SA"] * 56
    questions = [Question(f"q{i}", "?", t, "t", ("t", "s", "c"), dict(labels)) for i, t in enumerate(types)]
    found = {
        q.id: SiblingQuery(3, {1: i < 38}, {1: int(i < 140)}, "t", False, 0.0, 0.0) for i, q in enumerate(questions)
    }
    return found, questions


def test_the_papers_constant_belongs_to_the_papers_questions() -> None:
    found, questions = published({})
    scores = interval_scores(found, questions, 637)
    assert scores["ds_at_1_p_bootstrap_paper"] == pytest.approx(0.748, abs=0.05)  # Table 42
    assert [scores["ds_at_1_low"], scores["ds_at_1_high"]] == pytest.approx([0.200, 0.346], abs=0.01)
    assert scores["ds_at_1_p_bootstrap"] > scores["ds_at_1_p_bootstrap_paper"]  # here chance is 1/3
    assert "ds_at_1_p_bootstrap_paper" not in interval_scores(found, questions, 636)
    assert "ds_at_1_p_bootstrap_paper" not in interval_scores(found, questions[1:], 637)


def test_groups_without_all_labels_have_no_chance_without_column_deletion() -> None:
    key = "chance_ds_at_1_without_column_deletion"
    for labels, expected in (
        ({}, None),
        ({"s": "resampling"}, None),
        ({"s": "resampling", "c": "column_deletion"}, 1 / 2),
        ({"t": "target", "s": "column_deletion", "c": "column_deletion"}, 1),
    ):
        found = interval_scores(*published(labels), 637).get(key)
        assert found == (None if expected is None else pytest.approx(expected))


# --- compare -----------------------------------------------------------------------------------------------------


def table(folder: Path, outcomes: Mapping[str, Outcome], task: str = "TCRBenchCSV", **provenance: Any) -> Path:
    """A table per query as a task writes it."""
    path = folder / f"{task}_per_query.parquet"
    rows = {query: {"recall_at_1": target, "gr_at_1": group} for query, (target, group) in outcomes.items()}
    write_per_query(path, rows, {"revision": "r1", "metric_version": 2, **provenance})
    return path


def read_only(path: Path) -> QueryTable:
    """The one comparable task of a table."""
    ((read,), others) = read_tables(path)[0].values(), read_tables(path)[1]
    assert not others
    return read


A: dict[str, Outcome] = {"q1": (1.0, 1.0), "q2": (0.0, 1.0)}
B: dict[str, Outcome] = {"q1": (0.0, 1.0), "q2": (0.0, 0.0)}


def test_compare_by_hand(tmp_path: Path) -> None:
    # B's rows are in another order; pairing is by query id.
    first, second = (
        read_only(table(tmp_path / name, rows)) for name, rows in (("a", A), ("b", dict(reversed(B.items()))))
    )
    found = compare(first, second)
    # R@1 1/2 - 0, GR@1 1 - 1/2, DS@1 1/2 - 0. Of the four resamples only "q2 twice" has no difference in DS@1.
    assert [score.value for score in found] == [0.5, 0.5, 0.5]
    assert found.ds_at_1.p_bootstrap() == pytest.approx(1 / 4, abs=0.05)
    assert found.gr_at_1.p_bootstrap() == pytest.approx(1 / 4, abs=0.05)  # only "q1 twice"
    back = compare(second, first)
    assert back.ds_at_1.value == -0.5
    assert back.ds_at_1.p_bootstrap() == 1


def cells(text: str) -> list[list[str]]:
    """The rows of the Markdown tables in a text, without their rules."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if set(row[0]) - set(":-")]


def test_the_command_on_two_runs(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tcr", "compare", str(run.folder / "a"), str(run.folder / "b")]) == 0
    text = capsys.readouterr().out
    assert f"A: test/fixed-ranking ({run.folder / 'a'})" in text
    assert f"B: unknown model ({run.folder / 'b'})" in text  # no predictions beside the table name it
    heads, first, second, difference_heads, difference = cells(text)
    assert heads == ["run", "task", "queries", "R@1 [95 % CI]", "GR@1 [95 % CI]", "DS@1 [95 % CI]"]
    for name, row in zip("ab", (first, second), strict=True):
        scores = run.scores[name]
        shown = [
            f"{scores[key]:.3f} [{scores[f'{key}_low']:.3f}, {scores[f'{key}_high']:.3f}]"
            for key in ("recall_at_1", "gr_at_1", "ds_at_1")
        ]
        assert row == [name.upper(), "TCRSample", "30", *shown]
    # The order of the paper's Table 43, then GR@1. 12/30 - 3/30, 12/21 - 3/12 ... of the same 21 groups.
    assert difference_heads == ["A - B", "ΔR@1", "95 % CI", "ΔDS@1", "95 % CI", "p (DS@1)", "ΔGR@1", "95 % CI"]
    assert difference[:2] == ["TCRSample", "+0.300"]
    assert difference[3] == f"{12 / 21 - 3 / 21:+.3f}"
    assert difference[5:] == ["<0.001", "+0.000", "[0.000, 0.000]"]
    low, high = json.loads(difference[4])
    assert 0 < low < 12 / 21 - 3 / 21 < high < 1


def test_several_tasks_and_other_kinds_of_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        for task in ("TCRBenchCSV", "TCRBenchHTML"):
            table(tmp_path / name / "model" / "1", A if name == "a" else B, task)
        write_per_query(tmp_path / name / "IFIRSample_per_query.parquet", {"q1": {"ndcg": 1.0}}, {"revision": "r1"})
    table(tmp_path / "a", A, "TCRBenchMixed", metric_version=1)
    places = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["tcr", "compare", *places]) == 0
    text = capsys.readouterr().out
    assert [row[0] for row in cells(text)[-2:]] == ["TCRBenchCSV", "TCRBenchHTML"]
    assert "only A has TCRBenchMixed: not compared" in text
    assert "different versions" not in text
    assert "IFIRSample: its queries have no recall_at_1 and gr_at_1 of 0 or 1" in text
    assert main(["tcr", "compare", *places, "--task", "IFIRSample"]) == 1
    assert "IFIRSample: its queries have no recall_at_1" in capsys.readouterr().err
    assert main(["tcr", "compare", *places, "--task", "TCRBenchHTML"]) == 0
    assert "TCRBenchCSV" not in capsys.readouterr().out
    table(tmp_path / "b", A, "TCRBenchMixed")
    assert main(["tcr", "compare", *places, "-t", "TCRBenchMixed"]) == 0
    assert "TCRBenchMixed: scored by different versions of the metrics, A by 1 and B by 2" in capsys.readouterr().out


def test_incomparable_runs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = table(tmp_path / "a", A)
    for name, rows, more, message in (
        ("b", B, {"revision": "r2"}, r"different data, revisions 'r1' and 'r2'"),
        ("c", {"q1": (1.0, 1.0), "q3": (0.0, 0.0)}, {}, r"\(only in A: 'q2'; only in B: 'q3'\)"),
        ("d", {**A, "q3": (0.0, 0.0)}, {}, r"\(only in B: 'q3'\)"),
        ("e", A, {"task": "TCRBenchHTML"}, "different tasks, TCRBenchCSV and TCRBenchHTML"),
    ):
        theirs = table(tmp_path / name, rows, **more)
        with pytest.raises(ValueError, match=message) as refused:
            compare(read_only(ours), read_only(theirs))
        assert str(ours) in str(refused.value) and str(theirs) in str(refused.value)
    assert main(["tcr", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "different data" in capsys.readouterr().err
    assert main(["tcr", "compare", str(tmp_path / "a"), str(tmp_path / "e")]) == 1
    assert "no task in common: TCRBenchCSV and TCRBenchHTML" in capsys.readouterr().err


def test_unusable_tables_are_named(tmp_path: Path) -> None:
    rows: dict[str, tuple[Outcome, str]] = {
        "null": ((None, 1.0), "'q1' has recall_at_1 = None"),
        "half": ((0.0, 0.5), "gr_at_1 = 0.5"),
        "no group": ((1.0, 0.0), "belongs to its group"),
    }
    for name, (outcome, message) in rows.items():
        with pytest.raises(ValueError, match=message):
            read_only(table(tmp_path / name, {"q1": outcome, "q2": (0.0, 1.0)}))
    path = table(tmp_path / "twice", A)
    pq.write_table(pa.concat_tables([pq.read_table(path)] * 2), path)
    with pytest.raises(ValueError, match="query 'q1' is in it twice"):
        read_only(path)
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    with pytest.raises(ValueError, match="does not say on which data"):
        read_only(path)
    path.write_bytes(b"not parquet")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        read_tables(path)


def test_tables_are_found_by_folder_or_file(tmp_path: Path) -> None:
    path = table(tmp_path / "runs" / "model one" / "1", A)
    assert find_tables(tmp_path) == find_tables(path) == find_tables(path, "TCRBenchCSV") == {"TCRBenchCSV": path}
    read = read_only(path)
    assert read == QueryTable(path, "TCRBenchCSV", "unknown model", "r1", 2, {q: A[q] for q in A})
    with pytest.raises(ValueError, match="is a table of TCRBenchCSV, not of TCRBenchHTML"):
        find_tables(path, "TCRBenchHTML")
    with pytest.raises(FileNotFoundError, match=r"no TCRBenchHTML_per_query.parquet at or below .*prediction-folder"):
        find_tables(tmp_path, "TCRBenchHTML")
    with pytest.raises(FileNotFoundError, match=r"no <task>_per_query.parquet at or below"):
        find_tables(tmp_path / "absent")
    other = tmp_path / "IFIRSample_per_query.parquet"
    write_per_query(other, {"q1": {"ndcg": 1.0}}, {})
    write_per_query(tmp_path / "elsewhere" / other.name, {"q1": {"ndcg": 1.0}}, {})  # no obstacle
    assert find_tables(tmp_path)["TCRBenchCSV"] == path
    tables, others = read_tables(other)
    assert not tables and "no recall_at_1 and gr_at_1" in others["IFIRSample"]
    other.unlink()
    with pytest.raises(ValueError, match="is no table of a task's scores per query"):
        find_tables(Path(__file__))
    second = table(tmp_path / "runs" / "model two", A)
    with pytest.raises(ValueError, match=r"several runs' tables TCRBenchCSV_per_query.parquet; name one of") as several:
        find_tables(tmp_path)
    assert str(path.parent) in str(several.value) and str(second.parent) in str(several.value)


def test_subsets_share_a_table_and_are_compared_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of A: ``sen`` written twice (the second counts) and ``pairs`` without outcomes; of B: ``sen`` alone."""
    name = "TCRDiagnosticVolume_per_query.parquet"
    about = {"revision": "r1", "metric_version": 2}

    def write(folder: str, subset: str, outcomes: Mapping[str, Outcome]) -> None:
        rows = {q: {"recall_at_1": target, "gr_at_1": group} for q, (target, group) in outcomes.items()}
        write_per_query(tmp_path / folder / name, rows, about, subset)

    write("a", "sen", B)
    write_per_query(tmp_path / "a" / name, {"q1": {"target_rank": 1}}, about, "pairs")
    write("a", "sen", A)
    write("b", "sen", B)
    tables, others = read_tables(tmp_path / "a" / name)
    assert {name: table.hits for name, table in tables.items()} == {"TCRDiagnosticVolume, sen": dict(A)}
    assert others.keys() == {"TCRDiagnosticVolume, pairs"}
    assert main(["tcr", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    text = capsys.readouterr().out
    assert cells(text)[-1][:2] == ["TCRDiagnosticVolume, sen", "+0.500"]
    assert "TCRDiagnosticVolume, pairs: its queries have no recall_at_1" in text
    assert "same run" not in text
    # Other data: nothing of the earlier table is kept.
    write_per_query(tmp_path / "a" / name, {"q1": {"target_rank": 1}}, {**about, "revision": "r2"}, "pairs")
    assert pq.read_table(tmp_path / "a" / name).num_rows == 1


def test_a_run_compared_with_itself_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(tmp_path, A)
    assert main(["tcr", "compare", str(tmp_path), str(tmp_path / ".")]) == 0
    assert "A and B are the same run" in capsys.readouterr().out
