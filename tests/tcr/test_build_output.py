"""What the builder writes: both layouts load through the readers and are the same benchmark.

Oracles: :func:`read_own` and :func:`read_authors`; the keys and the fixed fields of released questions
(TCR_Questions_EM.json).
"""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evaluators.plugin.data import TaskData
from evaluators.plugin.dataset import Card
from tcr_tasks.builder.output import BuiltQuestion, BuiltTable, completed, write_layout, write_tcr_open
from tcr_tasks.data import is_authors_layout, read_authors, read_own
from tcr_tasks.queries import Condition, Query
from tcr_tasks.serialize import TableFormat

TINY_CARD = Card(title="Built", body="For a test.", license="other")
# Quotes, pipes, line ends and blanks in cells, letters beyond ASCII, a number with a gap.
CSV = 'Name,Größe (x 10)\n"a ""b""|\n c",10\nJosé,\n"d,  e",12.5\n'
QUERIES = (
    Query("EM", (Condition("name", "=", "José"), Condition("size", "=", 2**60)), "size"),
    Query("SF", (Condition("size", ">", 1), Condition("size", "<", 1.2)), "name"),
    Query("SA", (Condition("name", "!=", "x"),), "size", "AVG"),
)


def table(db_id: str, path: str, fmt: str = "csv", strategy: str = "target") -> BuiltTable:
    csv = CSV if strategy != "column_deletion" else 'Name\nx\n""\ny\n'
    columns = {"Name": "name", "Größe (x 10)": "size"}
    return BuiltTable(db_id, path, path[:-3], TableFormat(fmt), csv, CSV, columns, "source.csv", strategy)


def question(at: int, db_id: str, name: str, siblings: int = 2) -> BuiltQuestion:
    query = QUERIES[at % 3]
    return BuiltQuestion(
        id=f"Q{at}",
        text=f"What about {name}?",
        query=query,
        target_key=f"{db_id}::{name}_T1",
        group_keys=[f"{db_id}::{name}_T{n}" for n in range(siblings + 1)],
        template=query.template(1),
        sentence=query.sentential(),
        answer=[2**60, "é", 1.5],
        answer_rows=[1, 2],
    )


STRATEGIES = ("row_deletion", "target", "column_deletion", "resampling")


def benchmark() -> tuple[list[BuiltTable], list[BuiltQuestion]]:
    groups = [("db one", "Sales Orders", 2), ("db one", "ärzte", 3), ("db-2", "sales orders", 2), ("db-2", "x", 2)]
    tables = [
        table(db_id, f"{name}_T{n}", ("csv", "html", "markdown")[n % 3], STRATEGIES[n])
        for db_id, name, siblings in groups
        for n in range(siblings + 1)
    ]
    return tables, [question(at, *group) for at, group in enumerate(groups)]


def essence(data: TaskData) -> dict[str, Any]:
    """What both layouts must agree on."""
    return {
        "corpus": dict(zip(data.corpus["id"], data.corpus["text"], strict=True)),
        "queries": dict(zip(data.queries["id"], data.queries["text"], strict=True)),
        "relevant": data.relevant_docs,
        "groups": {q.id: (q.type, q.target, sorted(q.group)) for q in data.side["questions"]},
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both layouts of :func:`benchmark`."""
    folder = tmp_path_factory.mktemp("built")
    write_layout(folder / "own", *benchmark(), TINY_CARD)
    write_tcr_open(folder / "open", *benchmark())
    return folder


@pytest.mark.parametrize("fmt", [None, "csv", "html", "markdown", "tsen", "safe_markdown"])
@pytest.mark.parametrize("part", ["", "_EM"])
def test_both_layouts_are_the_same_benchmark(written: Path, fmt: str | None, part: str) -> None:
    chosen = TableFormat(fmt) if fmt else None
    own, theirs = read_own(written / "own", chosen, part), read_authors(written / "open", chosen, part)
    assert essence(own) == essence(theirs)
    assert (len(own.corpus), len(own.queries)) == ((6, 2) if part else (13, 4))
    assert is_authors_layout(written / "open") and not is_authors_layout(written / "own")


def test_questions_have_the_released_keys(written: Path) -> None:
    """Keys as in TCR_Questions_EM.json, values of one question by hand."""
    entry = json.loads((written / "open/data/TCR_Questions_EM.json").read_text(encoding="utf-8"))[0]
    assert list(entry) == [
        *("question_id", "db_id", "highlighted_table", "all_tables_in_group", "question", "question_template"),
        *("answer", "question_type", "construct_information", "template", "answer_index", "question_sentence"),
    ]
    assert entry["db_id"] == "db one" and entry["highlighted_table"] == ["Sales Orders_T1"]
    assert (
        entry["question_template"]
        == "Please find the size for rows where name is José and size is 1152921504606846976."
    )
    assert entry["template"] == "Please find the {target} for rows where {conds}."
    assert entry["question_sentence"] == "name is José. size is 1152921504606846976. size is ?"
    assert entry["answer"] == [2**60, "é", 1.5] and entry["answer_index"] == [1, 2]
    assert entry["construct_information"] == {
        "selected_columns": ["name", "size"],
        "selected_values": {"name": "José", "size": 2**60},
        "target_column": "size",
        "row_filter_count": 2,
        "row_indices": [1, 2],
        "answer_values": [2**60, "é", 1.5],
        "template_filled": entry["question_template"],
        "condition_type": "exact_match",
        "conditions": [
            {"column": "name", "operator": "=", "value": "José"},
            {"column": "size", "operator": "=", "value": 2**60},
        ],
        "aggregate": None,
    }


def test_every_type_can_be_rebuilt_from_what_is_written(written: Path) -> None:
    entries = json.loads((written / "open/data/TCR_Questions.json").read_text(encoding="utf-8"))
    assert [entry["question_type"] for entry in entries] == ["EM", "SF", "SA", "EM"]
    for at, entry in enumerate(entries):
        info = entry["construct_information"]
        conditions = tuple(Condition(**condition) for condition in info["conditions"])
        assert Query(entry["question_type"], conditions, info["target_column"], info["aggregate"]) == QUERIES[at % 3]
        assert entry["template"] == QUERIES[at % 3].templates()[1]
    assert [entry["construct_information"]["condition_type"] for entry in entries[1:3]] == [
        "selective_filtering",
        "selective_aggregation",
    ]


def test_a_table_is_a_file_of_its_text(written: Path) -> None:
    file = written / "open/tables/TCR_8k/db one/Sales Orders_T1.csv"
    assert file.read_bytes() == CSV.encode()
    assert len(list((written / "open/tables/TCR_8k").glob("*/*.csv"))) == 13
    assert pd.read_csv(io.BytesIO(file.read_bytes()))["Name"].tolist()[1] == "José"


# --- what cannot be written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "a:b", "nul\0", "tab\t", " a", "a.", "q?", "ä" * 101])
@pytest.mark.parametrize("what", ["db_id", "table_path"])
def test_unsafe_names_are_refused(tmp_path: Path, name: str, what: str) -> None:
    tables, questions = benchmark()
    unsafe = replace(tables[0], db_id=name) if what == "db_id" else replace(tables[0], table_path=name)
    wanted = re.escape(f"{what} {name!r} does not make a file name")
    with pytest.raises(ValueError, match=wanted):
        write_layout(tmp_path / "x", [unsafe, *tables[1:]], questions, TINY_CARD)
    with pytest.raises(ValueError, match=wanted):
        write_tcr_open(tmp_path / "x", [unsafe, *tables[1:]], questions)
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_with_a_benchmark_is_listed(tmp_path: Path) -> None:
    tables, questions = benchmark()
    broken = [
        questions[0],
        replace(questions[1], id="Q0"),
        replace(questions[2], group_keys=["db-2::sales orders_T1", "db-2::gone_T9"]),
        replace(questions[3], target_key="db one::Sales Orders_T1", group_keys=["db one::Sales Orders_T1"]),
    ]
    with pytest.raises(ValueError) as error:
        write_layout(tmp_path / "x", [*tables, tables[0]], broken, TINY_CARD)
    for part in (
        "table 'db one::Sales Orders_T0' is listed twice",
        "question 'Q0' is listed twice",
        "db-2::gone_T9",
        "'Q3': its group has no sibling",
        "tables that are the target of several questions",
    ):
        assert part in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_what_the_authors_layout_cannot_say_is_refused(tmp_path: Path) -> None:
    tables, questions = benchmark()
    mixed = replace(questions[0], group_keys=[*questions[0].group_keys, "db-2::x_T0"])
    with pytest.raises(ValueError, match=r"'Q0': its group lies in several databases: \['db one', 'db-2'\]"):
        write_tcr_open(tmp_path / "x", tables, [mixed, *questions[1:]])
    with pytest.raises(ValueError, match="table 'db-2::X_T0': another one differs in case only"):
        write_tcr_open(tmp_path / "x", [*tables, table("db-2", "X_T0")], questions)
    with pytest.raises(ValueError, match="table 'DB-2::y_T0': its db_id differs from another one in case only"):
        write_tcr_open(tmp_path / "x", [*tables, table("DB-2", "y_T0")], questions)
    with pytest.raises(ValueError, match="'Q0': 'Which one\\?' is none of its query's template forms"):
        write_tcr_open(tmp_path / "x", tables, [replace(questions[0], template="Which one?"), *questions[1:]])
    assert list(tmp_path.iterdir()) == []
    # The project's layout can: its tables are rows, and a group is a list of ids.
    write_layout(tmp_path / "x", [*tables, table("db-2", "X_T0")], [mixed, *questions[1:]], TINY_CARD)
    assert len(read_own(tmp_path / "x", None).corpus) == 14


def test_a_folder_with_something_in_it_stays(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / "plain").write_text("mine")
    for place in ("full", "plain"):
        with pytest.raises(ValueError, match="is not an empty folder; name another one with --out"):
            write_layout(tmp_path / place, *benchmark(), TINY_CARD)
    assert (tmp_path / "full" / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    write_layout(tmp_path / "empty", *benchmark(), TINY_CARD)
    assert len(read_own(tmp_path / "empty", None).corpus) == 13


def test_an_interrupted_build_leaves_no_half_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = tmp_path / "deep" / "out"

    def interrupted() -> None:
        with completed(wanted) as unfinished:
            (unfinished / "corpus.parquet").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(wanted.parent.iterdir()) == []
    # A killed process cleans nothing up; the next build does.
    (wanted.parent / ".out.unfinished").mkdir()
    (wanted.parent / ".out.unfinished" / "old.parquet").write_text("half")
    monkeypatch.chdir(wanted.parent)
    write_tcr_open(Path("out"), *benchmark())
    assert os.listdir(wanted.parent) == ["out"]
    assert sorted(os.listdir(wanted)) == ["data", "tables"]
