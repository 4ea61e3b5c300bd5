"""The FollowIR report: the paper's numbers, the shape of Table 2, missing values, and the command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from mteb.models.model_implementations import MODEL_REGISTRY
from result_files import write_result

from evaluators.cli import main
from followir_tasks.report.published import (
    AVERAGE,
    DIFFERENCE,
    ORIGINAL,
    Column,
    published_models,
    published_table,
    shown_models,
)
from followir_tasks.report.tables import CHANGED_SCORE, P_MRR, SCORE, TABLE_2_TASKS

FOLLOWIR_7B = "jhu-clsp/FollowIR-7B"


# --- what the paper printed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [SCORE, P_MRR])
def test_printed_averages_of_table_2_are_means_of_its_subsets(score: str) -> None:
    table = published_table("2")
    assert len(table.rows) == 24
    for model in table.rows:
        subsets = [table.value(model, Column(task, score)) for task in TABLE_2_TASKS]
        # Three values and their mean, each rounded to 0.1.
        assert table.value(model, Column(AVERAGE, score)) == pytest.approx(fmean(subsets), abs=0.1 + 1e-9), model


def test_cells_of_every_published_table() -> None:
    two, three, four = published_table("2"), published_table("3"), published_table("4")
    assert two.rows["FollowIR-7B"] == (24.8, 13.7, 29.6, 6.3, 20.0, 16.5, 24.8, 12.2)
    assert two.rows["BM25"] == (12.1, -3.1, 19.3, -2.1, 8.1, -1.1, 13.2, -2.1)
    assert two.value("FLAN-T5-large", Column("FollowIRNews21", P_MRR)) == 8.9
    assert math.copysign(1, two.value("GritLM-7B", Column(AVERAGE, P_MRR))) == -1  # printed -0.0
    assert three.rows["E5-mistral"] == (77.1, -5.1, 38.8, 0.3, 56.7, -6.5)
    assert three.value("Contriever", Column("FiQA2018", DIFFERENCE)) == -3.2
    assert len(three.rows) == 10
    assert four.rows["INSTRUCTOR-xl"] == (30.4, -3.1, 38.1, -0.1, 29.9, -2.8)
    assert four.value("BM25", Column("News21", ORIGINAL)) == 30.1
    assert len(four.rows) == 7
    assert [row for (row,) in published_table("instructir").rows.values()] == [26.9, 47.5, 52.6, 55.4, 35.3, 71.5]


def test_models_of_the_paper_are_models_of_mteb() -> None:
    models = published_models()
    assert [m.name for m in models] == list(published_table("2").rows)
    named = {name for m in models for name in m.mteb_names}
    assert named - MODEL_REGISTRY.keys() == {"hkunlp/instructor-base", "hkunlp/instructor-xl"}  # on the hub
    assert all(m.mteb_names or m.note for m in models)
    spelled = {name for table in ("3", "4", "instructir") for name in published_table(table).rows}  # type: ignore[arg-type]
    assert spelled - {m.name for m in models} == {"RepLLaMa"}


def test_which_published_rows_stand_beside() -> None:
    table = published_table("2")
    assert shown_models(table, [FOLLOWIR_7B, "x/y"], "matching") == ["FollowIR-7B"]
    assert shown_models(table, [], "matching") == shown_models(table, [FOLLOWIR_7B], "none") == []
    assert shown_models(table, [], "all") == list(table.rows)


# --- the report ----------------------------------------------------------------------------------------------------


def as_published(model: str) -> dict[str, dict[str, float]]:
    table = published_table("2")
    return {
        task: {key: table.value(model, Column(task, key)) / 100 for key in (SCORE, P_MRR)} | {CHANGED_SCORE: 0.5}
        for task in TABLE_2_TASKS
    }


def write(folder: Path, scores: Mapping[str, Mapping[str, Any]], name: str, **kwargs: Any) -> None:
    for task, of_task in scores.items():
        write_result(folder, task, of_task, name, **kwargs)


def rows_of(text: str, title: str) -> list[list[str]]:
    """The cells of the first table below a heading, heads first."""
    lines = text.partition(title)[2].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return [table[0], *table[2:]]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    write(folder, as_published("FollowIR-7B"), FOLLOWIR_7B)
    partly = as_published("BM25")
    del partly["FollowIRNews21"]
    partly["FollowIRCore17"][P_MRR] = math.nan  # without instruction
    write(folder, partly, "a/b", options={"task_instruction_form": "none"})
    details = {SCORE: 0.25, "followir_score_low": 0.2, "followir_score_high": 0.3, "chance_followir_score": 0.1}
    details |= {P_MRR: 0.05, "p-MRR_low": -0.01, "p-MRR_high": 0.11, "n_topics": 24, "n_missing_candidates": 0}
    note = {"mteb_beyond": {"notes": ["a subset: not comparable with the published ones"]}}
    write_result(folder, "FollowIRSample", details | note, "a/b")
    write_result(folder, "InstructIRRobustness", {"robustness_at_10": 0.715}, FOLLOWIR_7B)
    return folder


def test_results_stand_beside_the_published_row(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["followir", "report", str(results)]) == 0
    text = capsys.readouterr().out
    heads, own, variant, published = rows_of(text, "## Table 2")
    assert heads[1:] == [
        "Robust04 MAP",
        "p-MRR",
        "News21 nDCG@5",
        "p-MRR",
        "Core17 MAP",
        "p-MRR",
        "Average score",
        "p-MRR",
    ]
    printed = ["24.8", "+13.7", "29.6", "+6.3", "20.0", "+16.5", "24.8", "+12.2"]
    assert own == [FOLLOWIR_7B, *printed]
    assert published == ["published: FollowIR-7B", *printed]
    # Neither an absent result nor an undefined p-MRR becomes 0, and an average needs all three subsets.
    assert variant == ["a/b (task_instruction_form=none)", "12.1", "-3.1", "-", "-", "8.1", "-", "-", "-"]
    assert rows_of(text, "against the changed judgements:")[1][1] == "50.0"
    assert "no average, since there is no result of News21" in text
    assert [FOLLOWIR_7B, "71.5"] in rows_of(text, "## Figure 4")
    sample = next(row for row in rows_of(text, "## How sure") if row[1] == "FollowIRSample")
    assert sample == ["a/b", "FollowIRSample", "24", "25.0", "[20.0, 30.0]", "10.0", "+5.0", "[-1.0, 11.0]", "0", "-"]
    assert "FollowIRSample: a subset: not comparable" in text


def test_all_and_no_published_rows_and_a_file(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "report.md"
    assert main(["followir", "report", str(results), "--published", "all", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert sum(row[0].startswith("published: ") for row in rows_of(text, "## Table 2")) == 24
    assert "- published BM25: same method, another implementation" in text
    assert main(["followir", "report", str(results), "--published", "none", "--out", str(out)]) == 0
    assert "published: FollowIR-7B" not in out.read_text(encoding="utf-8")


def test_without_the_papers_sets_there_is_no_table_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_result(tmp_path, "FollowIRSample", {SCORE: 0.25, P_MRR: 0.05}, "a/b")
    write_result(tmp_path, "FollowIRSample", {P_MRR: 0.05}, "a/c")
    assert main(["followir", "report", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "There is no Table 2: no model here has a result on FollowIRRobust04" in text
    assert [row[3] for row in rows_of(text, "## How sure")] == ["score", "25.0", "-"]


def test_nothing_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_result(tmp_path, "IFIRSample", {"ndcg_at_20": 0.5}, "a/b")
    assert main(["followir", "report", str(tmp_path)]) == 1
    assert "FollowIRCore17" in capsys.readouterr().err
    assert main(["followir", "report", str(tmp_path), "--out", "x.txt"]) == 1
    assert "must end in .md" in capsys.readouterr().err
