"""The base of the diagnostics: what is known of the questions of a dataset, in either layout."""

from __future__ import annotations

import csv
import io
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_tcr_data import Authors, cid, own, own_rows
from test_tcr_real import real  # noqa: F401  (a fixture)

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import read_config
from tcr_tasks.diagnostics.base import Base, BaseQuestion, matching_rows
from tcr_tasks.diagnostics.columns import align, cell_texts, find_column, same_value
from tcr_tasks.diagnostics.reading import read_base
from tcr_tasks.queries import Condition, Query
from tcr_tasks.sample_build import SAMPLE_DIRECTORY


@cache
def sample_base() -> Base:
    return read_base()


def sample_rows(config: str) -> list[dict[str, Any]]:
    table = read_config(SAMPLE_DIRECTORY, config)
    assert table is not None
    return list(table.to_pylist())


def some_questions(*ids: str) -> dict[str, list[dict[str, Any]]]:
    """The sample's configs for a few questions alone; a copy to change."""
    out = {name: sample_rows(name) for name in ("tables", "corpus", "queries", "qrels", "groups")}
    for name, key in (("queries", "_id"), ("qrels", "query-id"), ("groups", "query-id")):
        out[name] = [row for row in out[name] if row[key] in ids]
    used = {table for row in out["groups"] for table in row["corpus-ids"]}
    out["corpus"] = [row for row in out["corpus"] if row["_id"] in used]
    out["tables"] = [row for row in out["tables"] if cid(row["db_id"], row["table_path"]) in used]
    return out


def by_id(questions: tuple[BaseQuestion, ...]) -> dict[str, BaseQuestion]:
    return {q.id: q for q in questions}


# --- columns ------------------------------------------------------------------------------------------------------


def test_cells_as_csv_prints_them() -> None:
    frame = pd.read_csv(io.StringIO("a,b,c\n1,x,True\n,NA,False\n2.5,,True\n"))
    assert [cell_texts(frame[c]) for c in frame] == [["1.0", "", "2.5"], ["x", "", ""], ["True", "False", "True"]]


@pytest.mark.parametrize(
    ("value", "cell", "same"),
    [
        (12366, "12366", True),
        (35156.0, "35156", True),
        ("OH", "OH", True),
        ("OH", "oh", False),
        (True, "true", True),
        (True, "1", False),
        (3, "three", False),
        (None, "", False),
    ],
)
def test_a_stated_value_and_a_cell(value: object, cell: str, same: bool) -> None:
    assert same_value(value, cell) is same


FOUND = pd.DataFrame({"Zip_Code": [1, 2], "town name": ["a", "b"], "n": [5, 6], "m": [5, 7]})


@pytest.mark.parametrize(
    ("name", "rows", "values", "taken", "header"),
    [
        ("n", [0], [9], [], "n"),  # by name, whatever it holds
        ("zipcode", [0], [9], [], "Zip_Code"),  # but for case and underscores
        ("city", [1], ["b"], [], "town name"),  # by what it holds
        ("city", [0, 1], ["a", "b"], [], "town name"),
        ("x", [0], [5], [], None),  # two columns hold 5
        ("x", [0], [5], ["n"], "m"),  # one of which is another column of the query
        ("x", [0, 1], [5], [], None),  # not in every row
        ("x", [0], [], [], None),
    ],
)
def test_a_query_column_is_found(
    name: str, rows: list[int], values: list[object], taken: list[str], header: str | None
) -> None:
    assert find_column(name, FOUND, rows, values, taken) == header


TARGET = pd.DataFrame({"zip": ["1", "2"], "kind": ["PO", "Box"], "state": ["Ohio", "Iowa"], "abbr": ["OH", "IA"]})


def columns_of(**columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        # Reworded, as many: by place.
        (columns_of(a=["9"], b=["x"], c=["y"], d=["z"]), {"zip": "a", "kind": "b", "state": "c", "abbr": "d"}),
        # One is missing: kind by its value, abbr by its value, so state is not there.
        (columns_of(a=["nine"], b=["PO"], c=["IA"]), {"zip": "a", "kind": "b", "abbr": "c"}),
        # By a word of the header.
        (columns_of(postalZip=["x"], kind=["y"], STATE=["z"]), {"zip": "postalZip", "kind": "kind", "state": "STATE"}),
        # Nothing tells which two are left, so nothing is said.
        (columns_of(x=["q"], y=["r"]), {}),
        # The order contradicts: names alone.
        (columns_of(abbr=["OH"], zip=["3"], b=["PO"], c=["Ohio"]), {"zip": "zip", "abbr": "abbr"}),
        # More columns than the target: names alone.
        (columns_of(zip=["1"], a=["1"], b=["1"], c=["1"], d=["1"]), {"zip": "zip"}),
    ],
)
def test_columns_of_siblings_are_aligned(other: pd.DataFrame, expected: dict[str, str]) -> None:
    assert align(TARGET, other) == expected
    assert align(TARGET, TARGET) == {c: c for c in TARGET.columns}


def test_rows_that_answer() -> None:
    frame = pd.DataFrame({"row": ["a", "b", "a", "a"], "n": ["1", "2.5", "", "10"], "zip": ["01", "1", "02", ""]})
    assert matching_rows(Query("EM", (Condition("row", "=", "a"),), "n"), frame) == (0, 3)  # row 2 has no value
    assert matching_rows(Query("SF", (Condition("n", ">", 2),), "row"), frame) == (
        1,
        3,
    )  # numbers: 10 > 2
    assert matching_rows(Query("SA", (Condition("n", ">=", 1),), "n", "AVG"), frame) == (0, 1, 3)
    assert matching_rows(Query("EM", (Condition("zip", "=", "01"),), "row"), frame) == (0,)  # as text: 1 is not 01
    assert matching_rows(Query("SF", (Condition("zip", "!=", "1"),), "row"), frame) == (0, 2)  # nothing is not "not 1"
    assert matching_rows(Query("EM", (Condition("row", "=", "a"),), "absent"), frame) == ()


# --- the project's layout -----------------------------------------------------------------------------------------


def test_the_sample() -> None:
    base = sample_base()
    assert (len(base.main.questions), len(base.main.tables)) == (30, 159)
    assert (len(base.diagnostic.questions), len(base.diagnostic.tables)) == (10, 46)
    assert base.notes == ()
    labels = {
        row["query-id"]: dict(zip(row["corpus-ids"], row["strategies"], strict=True)) for row in sample_rows("groups")
    }
    for question in base.main.questions:
        assert question.strategies == labels[question.id] and not question.inferred
        assert question.structure is not None and question.template and question.sentence
    assert all(q.type == "EM" for q in base.diagnostic.questions)
    assert base.diagnostic.tables.keys() == {t for q in base.diagnostic.questions for t in q.group}


def test_the_samples_answers_stand_in_the_answer_rows() -> None:
    """Read with the csv module: the stored answers are the target's cells in these rows, and in no others."""
    base, cells = sample_base(), {}
    for row in sample_rows("tables"):
        header, *rest = csv.reader(io.StringIO(row["canonical_csv"]))
        cells[cid(row["db_id"], row["table_path"])] = [dict(zip(header, r, strict=True)) for r in rest]
    for row in sample_rows("groups"):
        question = by_id(base.main.questions)[row["query-id"]]
        query, rows = json.loads(row["query"]), question.answer_rows
        assert rows
        canonical = cells[question.target]
        if query["aggregate"] is None:
            found = [canonical[at][query["target"]] for at in rows]
            assert all(same_value(a, c) for a, c in zip(json.loads(row["answer"]), found, strict=True))
        if query["question_type"] == "EM":
            conditions = {c["column"]: c["value"] for c in query["conditions"]}
            matching = [at for at, r in enumerate(canonical) if all(same_value(v, r[c]) for c, v in conditions.items())]
            assert list(rows) == matching


def test_printed_headers_and_canonical_columns() -> None:
    base = sample_base()
    question = by_id(base.diagnostic.questions)["em-01"]  # which town has the airport SUN?
    assert question.structure is not None and question.structure.query is not None
    target = base.main.tables[question.target]
    assert target.columns is not None and target.canonical is not None
    assert [target.columns[c] for c in question.structure.columns] == ["iata", "city"]
    assert question.answer_rows is not None
    printed = target.frame[question.structure.target].iloc[list(question.answer_rows)]
    assert printed.tolist() == ["Hailey"]
    missing = {
        table: {"iata", "city"} - {target.columns[c] for c in base.diagnostic.counterparts(question, table)}
        for table, strategy in question.strategies.items()
        if strategy == "column_deletion"
    }
    assert sorted(map(sorted, missing.values())) == [["city"], ["iata"]]


def test_alignment_by_headers_and_values_agrees_with_the_canonical_columns() -> None:
    """The sample rewords its headers and says what they are: what is aligned without that is right, and most is."""
    main = sample_base().main
    total = found = 0
    for question in main.questions:
        target = main.tables[question.target].frame
        for table in question.group:
            true, aligned = main.counterparts(question, table), align(target, main.tables[table].frame)
            assert all(aligned.get(header, other) == other for header, other in true.items())
            total, found = total + len(true), found + len(aligned.keys() & true.keys())
            # The strategy that is inferred where none is labelled.
            assert question.structure is not None
            fewer = len(main.tables[table].frame.columns) < len(target.columns)
            lacks = fewer and not set(question.structure.columns) <= aligned.keys()
            assert lacks is (question.strategies[table] == "column_deletion")
    assert found > 0.95 * total


def test_an_unchanged_table_is_printed_as_the_task_prints_it() -> None:
    for table in sample_base().diagnostic.tables.values():
        assert table.text() == table.table.text()


def test_strategies_are_inferred_where_they_are_not_labelled(tmp_path: Path) -> None:
    configs = some_questions("em-01", "em-04")
    configs["groups"] = [{k: v for k, v in row.items() if k != "strategies"} for row in configs["groups"]]
    built = by_id(sample_base().main.questions)
    for question in read_base(own(tmp_path, configs)).main.questions:
        assert question.inferred
        expected = {
            table: label if label in ("target", "column_deletion") else "sibling"
            for table, label in built[question.id].strategies.items()
        }
        assert question.strategies == expected


def test_a_dataset_without_queries_has_no_structure(tmp_path: Path) -> None:
    base = read_base(own(tmp_path, own_rows()))
    assert base.main.questions
    assert all(q.structure is None and q.answer_rows is None for q in base.main.questions)


@pytest.mark.parametrize("change", ["rows", "columns"])
def test_canonical_tables_that_do_not_fit_are_refused(change: str, tmp_path: Path) -> None:
    configs = some_questions("em-01", "em-04")
    row = configs["tables"][3]
    if change == "rows":
        row["canonical_csv"] = row["canonical_csv"].rstrip("\n").rsplit("\n", 1)[0] + "\n"
    else:
        row["canonical_columns"] = "{}"
    with pytest.raises(ValueError, match=f"table '{row['table-key']}': its canonical table has"):
        read_base(own(tmp_path, configs))


def test_a_query_without_answer_is_noted(tmp_path: Path) -> None:
    configs = some_questions("em-01", "em-04")
    row = next(r for r in configs["groups"] if r["query-id"] == "em-01")
    row["query"] = row["query"].replace("SUN", "XXX")
    base = read_base(own(tmp_path, configs))
    assert by_id(base.main.questions)["em-01"].structure is None
    assert [n for n in base.notes if n.startswith("1 of 2 questions: their query finds no answer") and "em-01" in n]


def test_what_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_base(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="no TCR dataset"):
        read_base(tmp_path)


# --- the authors' layout ------------------------------------------------------------------------------------------


def made(columns: dict[str, object], target: str) -> dict[str, Any]:
    return {"selected_columns": list(columns), "selected_values": columns, "target_column": target}


def authors(**changes: Any) -> Authors:
    """The tables of the loader's tests; the diagnostic question on sales asks: unit price of order B7 (row 1)."""
    out = Authors()
    question = out.em_questions[1]
    question |= {
        "question_template": "What is the unit price when order id is B7?",
        "question_sentence": "order id is B7. unit price is ?",
        "answer": [10],
        "answer_index": [1],
        "construct_information": made({"order_id": "B7"}, "price per unit"),
        **changes,
    }
    out.questions[0] |= {"answer": question["answer"], "answer_index": question["answer_index"]}
    return out


def test_the_authors_layout(tmp_path: Path) -> None:
    base = read_base(authors().write(tmp_path))
    assert len(base.main.questions) == 4
    (_, question) = base.diagnostic.questions
    assert question.id == "Question_G1_Q0" and question.answer_rows == (1,)
    assert question.template == "What is the unit price when order id is B7?"
    assert question.sentence == "order id is B7. unit price is ?"
    # order_id but for the underscore; price per unit by the answer 10 in row 1.
    assert question.structure is not None and question.structure.columns == ("order id", "unit price")
    target, more, fewer = (cid("Sales Orders", f"Sales Orders_T{n}") for n in (1, 0, 2))
    assert question.strategies == {target: "target", more: "sibling", fewer: "column_deletion"}
    assert question.inferred
    assert base.diagnostic.counterparts(question, fewer) == {"order id": "order id"}
    # The diagnostic file gives tables other formats than the main one.
    assert base.main.tables[target].table.format == "html" and base.diagnostic.tables[target].table.format == "markdown"


def test_the_main_question_of_the_same_target_and_text_has_the_structure_too(tmp_path: Path) -> None:
    base = read_base(authors().write(tmp_path))
    known = {q.id: q.structure and q.structure.columns for q in base.main.questions}
    assert known["Question_G0_Q0"] == ("order id", "unit price")
    assert [v for k, v in known.items() if k != "Question_G0_Q0"] == [None] * 3
    other = read_base(authors(question="What else?").write(tmp_path))
    assert all(q.structure is None for q in other.main.questions)


@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        ({"answer": [11]}, (1,)),  # no column holds 11, and none is called "price per unit"
        ({"construct_information": made({"number": "C9"}, "unit price")}, (1,)),
        ({"construct_information": None}, (1,)),
        ({"answer_index": [2]}, None),  # the table has rows 0 and 1
        ({"answer_index": []}, None),
    ],
)
def test_what_cannot_be_found_leaves_no_structure(
    changes: dict[str, Any], rows: tuple[int, ...] | None, tmp_path: Path
) -> None:
    question = read_base(authors(**changes).write(tmp_path)).diagnostic.questions[1]
    assert question.structure is None and question.answer_rows == rows


def test_without_the_diagnostic_file(tmp_path: Path) -> None:
    directory = authors().write(tmp_path)
    os.remove(directory / "data" / "TCR_Questions_EM.json")
    base = read_base(directory)
    assert [q.id for q in base.diagnostic.questions] == ["Question_G0_Q0", "Question_G2_Q0"]
    assert len(base.diagnostic.tables) == 5


def test_the_real_part(real: Path) -> None:  # noqa: F811
    base = read_base(real)
    assert (len(base.main.questions), len(base.diagnostic.questions), len(base.diagnostic.tables)) == (4, 3, 14)
    cities = next(q for q in base.diagnostic.questions if "Ohio" in q.text)
    assert cities.structure is not None and cities.structure.columns == ("short_state", "state", "city")
    assert cities.answer_rows == (23, 121)
    # By eye: T2 has six reworded headers; T4 five, in which only the state's full name is missing.
    table = {path.rsplit("_", 1)[1]: path for path in cities.group}
    assert base.diagnostic.counterparts(cities, table["T2"])["city"] == "UrbanArea"
    assert base.diagnostic.counterparts(cities, table["T4"]) == {
        "zip_code": "postal_zip",
        "type": "category",
        "city": "municipality",
        "county": "district",
        "short_state": "abbrev_state",
    }
    lacking = sorted(n for n, path in table.items() if cities.strategies[path] == "column_deletion")
    assert lacking == ["T1", "T3", "T4"]
