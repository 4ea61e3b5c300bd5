"""`tcr build` end to end on small tables: what is written is right, loads, goes on, is reviewed and reworded."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mteb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from builder_tables import HEADER, shops, write_csv, write_sqlite

from evaluators import cli
from evaluators.files import only_run
from evaluators.plugin.checks import DatasetError
from tcr_tasks.builder.length import Budget
from tcr_tasks.builder.pipeline import build
from tcr_tasks.builder.plans import Options
from tcr_tasks.builder.review import Decisions, checked_sheet, decide, read_sheet
from tcr_tasks.builder.tokens import OfflineCounter
from tcr_tasks.queries import Query
from tcr_tasks.serialize import TableFormat, read_table

OPTIONS = Options(n_queries=6, budget=Budget(300, 450), count=True, layout="both", top_k=2, seed=5)
COPY = 60


def trade() -> dict[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]:
    """Two tables; the second repeats rows of the first, so that one table's answers lie in the other, too."""
    first = shops(240, seed=1)
    return {"shops": (HEADER, first), "old_shops": (HEADER, first[:COPY] + shops(300, seed=2)[COPY:])}


def run(source: Path, out: Path, options: Options = OPTIONS, **more: Any) -> dict[str, Any]:
    return build([source], out, options, OfflineCounter(), tell=lambda text: None, **more)


def rows(directory: Path, config: str) -> list[dict[str, Any]]:
    return pq.read_table(directory / f"{config}.parquet").to_pylist()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sqlite(tmp_path_factory.mktemp("source") / "trade.sqlite", trade())


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "out"
    run(source, out)
    return out


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    """The benchmark, to be changed."""
    return Path(shutil.copytree(built, tmp_path / "copy"))


def test_exactly_one_table_answers_each_question(built: Path) -> None:
    """Read without the builder: pandas guesses the types, and ``Query.answer`` looks at every table."""
    frames = {row["table-key"]: read_table(io.StringIO(row["canonical_csv"])) for row in rows(built, "tables")}
    groups = rows(built, "groups")
    assert len(groups) == len(rows(built, "queries")) > 3
    for group in groups:
        query = Query.from_json(group["query"])
        answering = [key for key, frame in frames.items() if query.answer(frame)]
        assert [group["target"].split("::", 1)[1]] == answering
        assert query.answer(frames[answering[0]]) == json.loads(group["answer"])


def test_rows_of_siblings_come_from_the_source(built: Path) -> None:
    known = {name: {tuple(map(str, row)) for row in table} for name, (_, table) in trade().items()}
    for table in rows(built, "tables"):
        header, *body = csv.reader(io.StringIO(table["canonical_csv"]))
        at = [HEADER.index(column) for column in header]
        cells = {
            tuple("" if row[i] == "None" else row[i].removesuffix(".0") for i in at)
            for row in known[table["source"].split("/")[1]]
        }
        assert {tuple(cell.removesuffix(".0") for cell in row) for row in body} <= cells


@pytest.mark.parametrize("layout", ["", "tcr-open"])
def test_it_loads_as_a_task_and_passes_the_check(built: Path, layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    task = mteb.get_task("TCRBenchMixed")
    task.data_path = built / layout
    task.load_data()
    report = json.loads((built / "report.json").read_text())
    assert (len(task.data.queries), len(task.data.corpus)) == (
        report["written"]["n_questions"],
        report["written"]["n_tables"],
    )
    assert cli.main(["check", str(built / layout)]) == 0
    assert f"{report['written']['n_questions']} queries" in capsys.readouterr().out


def test_both_layouts_say_the_same(built: Path) -> None:
    groups = {row["query-id"]: row for row in rows(built, "groups")}
    for question in json.loads((built / "tcr-open" / "data" / "TCR_Questions.json").read_text()):
        group = groups[question["question_id"]]
        assert group["target"].endswith(f"::{question['db_id']}::{question['highlighted_table'][0]}")
        assert json.loads(group["answer"]) == question["answer"]
        path = f"{question['db_id']}/{question['highlighted_table'][0]}.csv"
        printed = (built / "tcr-open" / "tables" / "TCR_8k" / path).read_text()
        assert len(printed.splitlines()) > max(question["answer_index"])


def test_the_report_counts_everything(built: Path) -> None:
    report = json.loads((built / "report.json").read_text())
    written, questions = report["written"], report["questions"]
    assert questions["n_wished"] == 6
    assert questions["n_planned"] == written["n_questions"] + questions["n_without_group"]
    missing = sum(n for why, n in questions["n_drafts_left_out"].items() if "another question, too" not in why)
    assert missing > 0
    assert sum(written["strategies"].values()) == written["n_tables"] == len(rows(built, "tables"))
    assert written["strategies"]["target"] == written["n_questions"] == sum(written["by_type"].values())
    assert Counter(row["table_format"] for row in rows(built, "tables")) == written["formats"]
    sizes = [len(row["corpus-ids"]) for row in rows(built, "groups")]
    assert written["chance_ds_at_1"] == pytest.approx(sum(1 / size for size in sizes) / len(sizes))
    assert 300 <= written["tokens"]["min"] <= written["tokens"]["max"] <= 450
    # Each row that answers a question is kept out of the tables of every other question about its table.
    assert report["verification"]["n_rows_kept_out"] > 0
    assert report["verification"]["ambiguous"] == {}
    assert report["record"]["token_counter"] == OfflineCounter.name
    assert (built / "report.md").read_text().count("\n## ") == 7


def test_csv_and_sqlite_give_the_same_bytes(built: Path, tmp_path: Path) -> None:
    for name, (header, table) in trade().items():
        write_csv(tmp_path / "trade" / f"{name}.csv", header, table)
    run(tmp_path / "trade", tmp_path / "out", replace(OPTIONS, layout="own", top_k=0))
    for config in ("tables", "corpus", "queries", "qrels", "groups"):
        assert (tmp_path / "out" / f"{config}.parquet").read_bytes() == (built / f"{config}.parquet").read_bytes()


def test_an_interrupted_build_goes_on(source: Path, built: Path, copy: Path) -> None:
    kept, lost = sorted((copy / "work" / "groups").iterdir())[:2]
    before = kept.stat().st_mtime_ns
    lost.unlink()
    (copy / "groups.parquet").unlink()
    # What is asked is no part of the groups.
    run(source, copy, replace(OPTIONS, text="sentential", layout="own", top_k=0))
    assert (copy / "groups.parquet").read_bytes() == (built / "groups.parquet").read_bytes()
    assert kept.stat().st_mtime_ns == before
    assert lost.read_bytes() == (built / "work" / "groups" / lost.name).read_bytes()
    sentences = {row["query-id"]: row["question_sentence"] for row in rows(built, "groups")}
    assert {row["_id"]: row["text"] for row in rows(copy, "queries")} == sentences


def test_other_arguments_are_refused_unless_told(source: Path, copy: Path) -> None:
    other = replace(
        OPTIONS, seed=7, n_queries=2, format=TableFormat.HTML, text="template", layout="own", top_k=0, natural=False
    )
    with pytest.raises(ValueError, match=r"n_queries \(was 6, is 2\); seed \(was 5, is 7\).*--redo"):
        run(source, copy, other)
    report = run(source, copy, other, redo=True)
    assert report["questions"]["n_wished"] == 2
    assert not (copy / "tcr-open").exists()
    assert {row["table_format"] for row in rows(copy, "tables")} == {"html"}
    templates = {row["query-id"]: row["question_template"] for row in rows(copy, "groups")}
    assert {row["_id"]: row["text"] for row in rows(copy, "queries")} == templates


def test_foreign_directories_are_left_alone(source: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="was not made by this command"):
        run(source, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


# --- review ------------------------------------------------------------------------------------------------------


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, table: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def test_the_sheet_shows_wordings_and_tables_of_other_groups(built: Path) -> None:
    groups = {row["query-id"]: row for row in rows(built, "groups")}
    texts = {row["_id"]: row["text"] for row in rows(built, "queries")}
    shown = sheet(built / "work" / "review.csv")
    assert {row["question"]: row["text"] for row in shown if row["row"] == "wording"} == texts
    signals: Counter[str] = Counter()
    for row in (row for row in shown if row["row"] == "table"):
        assert not any(member.endswith(f"::{row['table']}") for member in groups[row["question"]]["corpus-ids"])
        names = [part.split() for part in row["signals"].split(", ")]
        assert all(int(rank) <= 2 for _, rank in names)
        signals.update(name for name, _ in names)
    # Every question has the columns of all tables, so two tables by schema and two by BM25.
    assert signals["schema"] == signals["bm25"] == 2 * len(texts)
    assert signals["values"] > 0


def test_a_review_drops_and_rewrites(source: Path, copy: Path) -> None:
    path = copy / "work" / "review.csv"
    filled = sheet(path)
    ids = list(dict.fromkeys(row["question"] for row in filled))
    of = {(row["question"], row["row"]): row for row in filled}
    of[ids[0], "wording"] |= {"decision": "Rewrite", "rewrite": "Where is it?", "comment": "clearer"}
    of[ids[1], "table"] |= {"decision": "drop"}
    of[ids[2], "wording"] |= {"decision": "drop"}
    of[ids[3], "wording"] |= {"decision": "keep"}
    fill(path, filled)
    report = run(source, copy, replace(OPTIONS, review=path))
    texts = {row["_id"]: row["text"] for row in rows(copy, "queries")}
    assert list(texts) == [ids[0], *ids[3:]] and texts[ids[0]] == "Where is it?"
    assert report["questions"]["n_dropped_by_review"] == 2
    assert report["review"] | {"n_undecided": 0} == {
        "n_kept": 1,
        "n_rewritten": 1,
        "n_wordings_rejected": 1,
        "n_paraphrases_replaced_by_template": 0,
        "n_dropped_since_a_table_answers_too": 1,
        "n_undecided": 0,
        "n_decisions_without_question": 0,
        # The person's word counts, but the value is not in it any more.
        "notes": [f"{ids[0]}: please look again, the rewrite lost a value: Where is it?"],
    }
    targets = {row["target"] for row in rows(copy, "groups")}
    assert targets < {row["_id"] for row in rows(copy, "corpus")}
    assert sheet(path) == filled
    # Without the sheet nothing is dropped, and what was said stays in it.
    run(source, copy, replace(OPTIONS, layout="own"))
    assert [row["_id"] for row in rows(copy, "queries")] == ids
    assert sheet(path) == filled


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"decision": "yes"}, "row 2, column decision: 'yes' is none of keep, drop, rewrite"),
        ({"decision": "rewrite"}, "row 2, column rewrite: it is empty"),
        ({"rewrite": "Where?"}, "row 2, column decision: it must be rewrite"),
        ({"row": "thing"}, "row 2, column row: 'thing' is neither wording nor table"),
    ],
)
def test_faults_in_a_sheet_are_named(built: Path, tmp_path: Path, change: dict[str, str], fault: str) -> None:
    table = sheet(built / "work" / "review.csv")
    fill(tmp_path / "sheet.csv", [table[0] | change])
    with pytest.raises(DatasetError, match=re.escape(fault)):
        checked_sheet(tmp_path / "sheet.csv")


def test_rows_that_contradict_each_other_are_named(built: Path, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    row = next(row for row in sheet(built / "work" / "review.csv") if row["row"] == "wording")
    blank = dict.fromkeys(row, "")
    said = [row | {"decision": decision} for decision in ("keep", "Keep ", "drop")]
    # The header is row 1, and rows left blank count.
    fill(path, [said[0], blank, said[1], said[2]])
    with pytest.raises(DatasetError, match="row 5, column decision: row 2 decides otherwise on the same wording"):
        checked_sheet(path)
    fill(path, [said[0], blank, said[1]])
    texts, asked = {row["question"]: row["text"]}, {row["question"]: row["meaning"]}
    assert decide(checked_sheet(path), texts, asked, ()).kept == 2


def test_two_builds_into_one_folder(source: Path, tmp_path: Path) -> None:
    with only_run(tmp_path / "out" / "work"), pytest.raises(BlockingIOError, match="another run uses"):
        run(source, tmp_path / "out", OPTIONS)


def test_files_that_are_no_sheet(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no review file"):
        read_sheet(tmp_path / "nothing.csv")
    (tmp_path / "other.csv").write_text("question,decision\nQ0,keep\n")
    with pytest.raises(
        DatasetError, match="row 1: the columns row, table, signals, text, meaning, answer, rewrite, comment"
    ):
        read_sheet(tmp_path / "other.csv")


def test_what_was_said_of_another_wording_is_void() -> None:
    row = {
        "question": "Q1",
        "row": "wording",
        "table": "",
        "text": "Where was it?",
        "meaning": "SQL",
        "decision": "drop",
        "rewrite": "",
    }
    table = row | {"row": "table", "table": "a::b"}

    def decided(*rows: dict[str, str]) -> Decisions:
        return decide(rows, {"Q1": "Where is it?"}, {"Q1": "SQL"}, {"a::b"})

    found = decided(row, row | {"question": "Q9"})
    assert (found.rejected, found.unknown) == (frozenset(), 2)
    assert decided(table).ambiguous == {"Q1"}
    asked = {"Q1": "Where is “it”?"}
    straight = row | {"text": 'Where is "it"?'}
    assert decide([straight], asked, {"Q1": "SQL"}, ()).rejected == {"Q1"}
    # A sheet of another build, whose Q1 was another question, or whose table is gone.
    assert decided(table | {"meaning": "other SQL"}, table | {"table": "a::c"}) == Decisions(unknown=2)


# --- natural groups ----------------------------------------------------------------------------------------------


def test_natural_groups_are_the_tables_as_they_are(tmp_path: Path) -> None:
    for year in (2020, 2021, 2022):
        write_csv(tmp_path / "sales" / f"sales {year}.csv", HEADER, shops(30, seed=year))
    report = run(tmp_path / "sales", tmp_path / "out", replace(OPTIONS, natural=True))
    tables = {row["table_path"]: row for row in rows(tmp_path / "out", "tables")}
    assert sorted(tables) == ["sales 2020", "sales 2021", "sales 2022"]
    assert report["written"]["strategies"] == {"natural": 3}
    for name, row in tables.items():
        assert row["csv"] == row["canonical_csv"]
        expected = pd.read_csv(tmp_path / "sales" / f"{name}.csv", dtype=str)
        found = pd.read_csv(io.StringIO(row["csv"]), dtype=str)
        assert found.drop(columns="revenue").equals(expected.drop(columns="revenue"))
        assert found["revenue"].astype(float).equals(expected["revenue"].astype(float))
    frames = {key: read_table(io.StringIO(row["canonical_csv"])) for key, row in tables.items()}
    groups = rows(tmp_path / "out", "groups")
    assert len(groups) == 3
    for group in groups:
        query = Query.from_json(group["query"])
        assert [group["target"].split("::")[-1]] == [key for key, frame in frames.items() if query.answer(frame)]
    assert cli.main(["check", str(tmp_path / "out")]) == 0


# --- mistakes ----------------------------------------------------------------------------------------------------


def test_sources_that_give_nothing(tmp_path: Path) -> None:
    write_csv(tmp_path / "one" / "t.csv", ("a", "b"), [(1, 2)])
    with pytest.raises(ValueError, match=r"no usable table: one/t: 1 row\(s\)"):
        run(tmp_path / "one", tmp_path / "out")
    write_csv(tmp_path / "same" / "t.csv", ("a", "b"), [("x", "y")] * 9)
    with pytest.raises(ValueError, match="give no question: the columns, or the row drawn, allow no such question"):
        run(tmp_path / "same", tmp_path / "out")
    with pytest.raises(ValueError, match="no natural group: same/t: no other table"):
        run(tmp_path / "same", tmp_path / "out", replace(OPTIONS, natural=True))
    write_csv(tmp_path / "short" / "t.csv", HEADER, shops(12))
    with pytest.raises(ValueError, match="no question is left"):
        run(tmp_path / "short", tmp_path / "out", replace(OPTIONS, budget=Budget(20, 30)))
