"""The real part of TCR-Bench, where it is at hand: 4 of the 146 groups of siblings, 17 of the 637 tables."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import mteb
import pandas as pd
import pytest
from test_tcr_data import DIAGNOSTIC, MIXED, TASKS, loaded, texts_of

from tcr_tasks import TCRTask

VARIABLE, NAME = "MTEB_BEYOND_DATA", "TCR-Bench-Open"
TABLES = Path("tables") / "TCR_8k"


@pytest.fixture(scope="module")
def real() -> Path:
    base = os.environ.get(VARIABLE)
    if not base:
        pytest.skip(f"the environment variable {VARIABLE} is not set: no part of the real TCR-Bench to test on")
    folder = Path(base) / NAME
    if not folder.is_dir():
        pytest.skip(f"${VARIABLE} is {base!r}, which holds no folder {NAME}: no part of the real TCR-Bench to test on")
    tables = len(list((folder / TABLES).glob("*/*.csv")))
    if tables != 17:
        pytest.skip(f"{folder} holds {tables} tables; these tests know the part with 17")
    return folder


def data_of(task: TCRTask) -> Any:
    assert task.data is not None
    return task.data


def test_what_is_loaded(real: Path) -> None:
    task = loaded(MIXED, real)
    data = data_of(task)
    assert (len(data.queries), len(data.corpus)) == (4, 17)
    keys = {f"{f.parent.name}::{f.stem}" for f in (real / TABLES).glob("*/*.csv")}
    assert set(data.corpus["id"]) == {f"{hashlib.sha256(k.encode()).hexdigest()[:8]}::{k}" for k in keys}
    (note,) = data.notes
    assert note.startswith("4 questions")
    assert "over 17 tables" in note
    assert "these are other data" in note
    # As in the whole set: a target inside its group, no two questions with one target, groups of 3 to 8.
    questions = data.side["questions"]
    assert len({q.target for q in questions}) == 4
    assert all(q.target in q.group and 3 <= len(set(q.group)) == len(q.group) <= 8 for q in questions)


def test_the_source_is_found_by_the_variable(real: Path) -> None:
    task = MIXED()
    source = task.source()
    assert source.directory == real.resolve()
    task.load_data()
    assert task.metadata.revision == task.current_revision() != MIXED.metadata.revision
    assert len(data_of(task).corpus) == 17


def test_the_diagnostic_subset(real: Path) -> None:
    data = data_of(loaded(DIAGNOSTIC, real))
    questions = data.side["questions"]
    assert questions
    assert {q.type for q in questions} == {"EM"}
    assert set(data.corpus["id"]) == {table for q in questions for table in q.group}
    assert "these are other data" in data.notes[0]


def test_csv_texts_are_the_files_as_pandas_prints_them(real: Path) -> None:
    texts = texts_of(loaded(TASKS["TCRBenchCSV"], real))
    assert len(texts) == 17
    for key, text in texts.items():
        db_id, path = key.split("::")
        frame = pd.read_csv(real / TABLES / db_id / f"{path}.csv", low_memory=False)
        printed = frame.to_csv(index=False, lineterminator="\n")
        while "  " in printed:
            printed = printed.replace("  ", " ")
        assert text == f"{path.rsplit('_T', 1)[0]}:\n{printed}".strip()


def test_the_csv_text_of_a_plain_table_is_its_file(real: Path) -> None:
    # Whole numbers and words without gaps: pandas changes nothing.
    text = texts_of(loaded(TASKS["TCRBenchCSV"], real))["address::zip_congress_T0"]
    lines = (real / TABLES / "address" / "zip_congress_T0.csv").read_text(encoding="utf-8").splitlines()
    assert text.split("\n") == ["zip_congress:", *lines]
    assert lines[:2] == ["zip_code,district", "78384,TX-15"]


@pytest.mark.parametrize("cls", [MIXED, DIAGNOSTIC, TASKS["TCRBenchTSenS"]], ids=lambda c: c.metadata.name)
def test_bm25_runs(cls: type[TCRTask], real: Path, tmp_path: Path) -> None:
    task = cls()
    task.data_path = real
    result = mteb.evaluate(
        mteb.get_model("mteb/baseline-bm25s"),
        task,
        cache=None,
        prediction_folder=tmp_path,
        co2_tracker=False,
        show_progress_bar=False,
    )
    (scores,) = result.task_results[0].scores["test"]
    assert 0 <= scores["main_score"] == scores["recall_at_1"] <= scores["recall_at_5"] <= 1
    assert scores["recall_at_1"] <= scores["gr_at_1"]
    assert scores["n_queries"] == sum(scores.get(f"{t}_n_queries", 0) for t in ("EM", "SF", "SA")) > 0
    assert (tmp_path / f"{cls.metadata.name}_per_query.parquet").is_file()
