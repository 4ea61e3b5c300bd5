"""The embedded sample: it is what its builder makes, and exactly one table answers each question.

Nothing here needs a model, and only the rebuild needs vega-datasets.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import re
import sqlite3
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from evaluators.plugin.dataset import card_text, read_config
from tcr_tasks.queries import Query
from tcr_tasks.sample_build import CARD, SAMPLE_DIRECTORY, build
from tcr_tasks.sample_questions import QUESTIONS
from tcr_tasks.sample_sources import SOURCES, load
from tcr_tasks.sample_surface import MONTHS, forms, ordinal, roman, under_hundred, year_words
from tcr_tasks.sample_tables import group
from tcr_tasks.serialize import read_table, serialize

CONFIGS = ("tables", "corpus", "queries", "qrels", "groups")
COLUMNS = {
    "tables": (
        *("table-key", "db_id", "table_path", "table_name", "table_format", "csv", "canonical_csv"),
        *("canonical_columns", "source", "strategy", "prompt_notes"),
    ),
    "corpus": ("_id", "title", "text"),
    "queries": ("_id", "text"),
    "qrels": ("query-id", "corpus-id", "score"),
    "groups": (
        *("query-id", "corpus-ids", "target", "question_type", "strategies", "question_template"),
        *("question_sentence", "query", "answer"),
    ),
}


@cache
def config(name: str) -> list[dict[str, Any]]:
    table = read_config(SAMPLE_DIRECTORY, name)
    assert table is not None
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def corpus_id(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:8] + "::" + key


@cache
def tables() -> dict[str, dict[str, Any]]:
    return {corpus_id(t["table-key"]): t for t in config("tables")}


# --- the files ---------------------------------------------------------------------------------------------------


def test_a_rebuild_gives_the_files_in_the_package() -> None:
    pytest.importorskip("vega_datasets", reason="vega-datasets, from which the sample is built, is not installed")
    built = build()
    assert tuple(built) == CONFIGS
    for name in CONFIGS:
        assert len(built[name]) == len(config(name)), name
        for new, old in zip(built[name], config(name), strict=True):
            assert new == old, f"{name}: rebuild the sample with python -m tcr_tasks.sample_build"
    assert (SAMPLE_DIRECTORY / "README.md").read_text(encoding="utf-8") == card_text(CARD, CONFIGS)


def test_another_seed_gives_other_tables_with_the_same_answer() -> None:
    pytest.importorskip("vega_datasets", reason="vega-datasets, from which the sample is built, is not installed")
    question = next(q for q in QUESTIONS if q.id == "sf-03")
    rows = load(SOURCES[question.source])
    first, again, other = (group(question, rows, random.Random(seed)) for seed in ("0", "0", "1"))
    assert [t.csv for t in first] == [t.csv for t in again]
    assert {t.canonical_csv for t in first}.isdisjoint(t.canonical_csv for t in other)
    for tables_of_seed in (first, other):
        assert [t.strategy for t in tables_of_seed].index("target") == 0
        answers = [sorted(question.query.answer(read_table(io.StringIO(t.canonical_csv)))) for t in tables_of_seed]
        assert answers[0] == [2005, 2006, 2007]
        assert not any(answers[1:])


def test_a_source_of_another_version_is_refused() -> None:
    pytest.importorskip("vega_datasets", reason="vega-datasets, from which the sample is built, is not installed")
    with pytest.raises(ValueError, match=r"wheat.json has the SHA-256 .*; use vega-datasets 0.9.0"):
        load(replace(SOURCES["wheat"], sha256="0" * 64))


def test_columns_and_counts() -> None:
    for name, columns in COLUMNS.items():
        assert {tuple(row) for row in config(name)} == {columns}
    assert len(config("queries")) == len(config("qrels")) == len(config("groups")) == 30
    assert Counter(g["question_type"] for g in config("groups")) == {"EM": 10, "SF": 9, "SA": 11}
    assert len(config("tables")) == len(config("corpus"))
    assert len({t["source"] for t in config("tables")}) == 13
    assert {t["table_format"] for t in config("tables")} == {"csv", "html", "markdown"}
    assert sum(f.stat().st_size for f in SAMPLE_DIRECTORY.iterdir()) < 1_200_000


def test_first_and_last_query() -> None:
    first, last = config("queries")[0], config("queries")[-1]
    assert first == {
        "_id": "em-01",
        "text": "As a travel planner, could you tell me which town is served by the airfield with the code SUN?",
    }
    assert last == {
        "_id": "sa-11",
        "text": "Please calculate what a good workman earned per week on average from 1700 to 1720.",
    }


# --- ids and groups ----------------------------------------------------------------------------------------------


def test_ids_point_at_rows_that_exist() -> None:
    ids = [row["_id"] for row in config("corpus")]
    assert ids == list(tables()), "one corpus row per table, in the same order, with the hash of its key"
    assert len(set(ids)) == len(ids)
    for table in config("tables"):
        assert table["table-key"] == f"{table['db_id']}::{table['table_path']}"
        assert re.fullmatch(re.escape(table["table_name"]) + r"_T\d", table["table_path"])
    query_ids = [q["_id"] for q in config("queries")]
    assert query_ids == [r["query-id"] for r in config("qrels")] == [g["query-id"] for g in config("groups")]
    for qrel, row in zip(config("qrels"), config("groups"), strict=True):
        assert (qrel["corpus-id"], qrel["score"]) == (row["target"], 1)
        assert row["query-id"].startswith(row["question_type"].lower() + "-")


def test_groups_hold_their_target_and_label_every_sibling() -> None:
    for row in config("groups"):
        members = row["corpus-ids"]
        assert members == sorted(set(members))
        assert 3 <= len(members) <= 8
        assert row["target"] in members
        assert [tables()[m]["strategy"] for m in members] == row["strategies"]
        assert [m for m, s in zip(members, row["strategies"], strict=True) if s == "target"] == [row["target"]]
        assert len({tables()[m]["source"] for m in members}) == 1
    targets = [g["target"] for g in config("groups")]
    assert len(set(targets)) == len(targets)
    # The number says nothing: about one target in five is the first of its group.
    assert sum(t.endswith("_T0") for t in targets) < len(targets) / 3


def test_every_strategy_is_used_and_does_what_its_name_says() -> None:
    used = Counter(s for g in config("groups") for s in g["strategies"])
    assert set(used) == {"target", "column_deletion", "row_deletion", "resampling"}
    assert min(used.values()) >= 10
    for row in config("groups"):
        needed = set(Query.from_json(row["query"]).columns)
        target = cells(tables()[row["target"]]["canonical_csv"])
        rows = {tuple(r) for r in target[1:]}
        assert len(rows) == len(target) - 1, "no row twice"
        for member, strategy in zip(row["corpus-ids"], row["strategies"], strict=True):
            header, *body = cells(tables()[member]["canonical_csv"])
            if strategy == "column_deletion":
                assert len(needed - set(header)) == 1
                assert set(target[0]) - set(header) == needed - set(header)
                continue
            assert header == target[0]
            if strategy == "row_deletion":
                assert 0.3 <= len(rows & {tuple(r) for r in body}) / len(rows) <= 0.7


# --- answers -----------------------------------------------------------------------------------------------------


def typed(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def database() -> sqlite3.Connection:
    """All canonical tables in one database, read without pandas; columns of numbers hold numbers."""
    connection = sqlite3.connect(":memory:")
    for doc_id, table in tables().items():
        header, *body = cells(table["canonical_csv"])
        columns = ", ".join(f'"{name}"' for name in header)
        connection.execute(f'CREATE TABLE "{doc_id}" ({columns})')
        rows = [[typed(cell) for cell in row] for row in body]
        for i in range(len(header)):
            if any(isinstance(row[i], str) for row in rows):
                for row, original in zip(rows, body, strict=True):
                    row[i] = original[i]
        marks = ", ".join("?" * len(header))
        connection.executemany(f'INSERT INTO "{doc_id}" VALUES ({marks})', rows)
    return connection


def test_exactly_one_table_of_the_whole_sample_answers_each_query() -> None:
    connection = database()
    headers = {doc_id: cells(table["canonical_csv"])[0] for doc_id, table in tables().items()}
    for row in config("groups"):
        query = Query.from_json(row["query"])
        answers = {}
        for doc_id, header in headers.items():
            # SQLite takes the quoted name of a missing column for a text.
            if set(query.columns) <= set(header):
                found = [values[0] for values in connection.execute(query.sql(doc_id))]
                if found not in ([], [None]):
                    answers[doc_id] = found
        assert list(answers) == [row["target"]], row["query-id"]
        recorded = json.loads(row["answer"])
        if query.aggregate is None:
            assert recorded == answers[row["target"]], row["query-id"]
        else:
            assert recorded == pytest.approx(answers[row["target"]]), row["query-id"]


def test_exact_match_queries_have_one_answer() -> None:
    assert {len(json.loads(g["answer"])) for g in config("groups") if g["question_type"] != "SF"} == {1}


def test_recorded_queries_and_their_forms() -> None:
    for row in config("groups"):
        query = Query.from_json(row["query"])
        assert query.question_type == row["question_type"]
        assert row["question_sentence"] == query.sentential()
        assert row["question_template"] in {
            query.template(form) for form in range(6 if query.question_type == "EM" else 4)
        }
    assert {len(Query.from_json(g["query"]).conditions) for g in config("groups")} == {1, 2, 3}


def test_some_answers_by_hand() -> None:
    answers = {g["query-id"]: json.loads(g["answer"]) for g in config("groups")}
    assert answers["em-01"] == ["Hailey"]  # Friedman Memorial, Hailey, Idaho
    assert sorted(answers["sf-03"]) == [2005, 2006, 2007]
    assert answers["sa-10"] == [863]  # -73 + 193 + 226 + 517
    assert answers["sa-04"] == pytest.approx([3.05])  # (2.68 + 3.30 + 3.30 + 2.92) / 4


# --- printed tables ----------------------------------------------------------------------------------------------


def test_the_corpus_is_the_serialised_printed_table() -> None:
    for row, table in zip(config("corpus"), config("tables"), strict=True):
        frame = read_table(io.StringIO(table["csv"]))
        assert row["text"] == serialize(table["table_name"], frame, table["table_format"])
        assert row["title"] == ""


def test_the_printed_table_maps_to_the_canonical_one() -> None:
    for table in config("tables"):
        printed = read_table(io.StringIO(table["csv"]))
        canonical = read_table(io.StringIO(table["canonical_csv"]))
        names = json.loads(table["canonical_columns"])
        assert list(printed.columns) == list(names), table["table-key"]
        assert list(printed.rename(columns=names).columns) == list(canonical.columns)
        assert printed.shape == canonical.shape
        assert not printed.isna().to_numpy().any()
        assert not canonical.isna().to_numpy().any()


def test_a_printed_column_says_all_that_the_canonical_one_says() -> None:
    # Per column: the same value is always printed alike, and two values never alike.
    for table in config("tables"):
        printed, canonical = cells(table["csv"]), cells(table["canonical_csv"])
        for i, name in enumerate(canonical[0]):
            pairs = {(typed(c[i]), p[i]) for p, c in zip(printed[1:], canonical[1:], strict=True)}
            assert len(pairs) == len({c for c, _ in pairs}) == len({p for _, p in pairs}), (table["table-key"], name)


def test_headers_of_a_group_vary() -> None:
    for row in config("groups"):
        headers = {tuple(cells(tables()[m]["csv"])[0]) for m in row["corpus-ids"]}
        assert len(headers) > len(row["corpus-ids"]) / 2, row["query-id"]


def test_tables_of_a_group_differ_early() -> None:
    # A model of 256 tokens must be able to tell them apart.
    text = {row["_id"]: row["text"] for row in config("corpus")}
    for row in config("groups"):
        starts = {tuple(re.findall(r"\w+|[^\w\s]", text[m])[:200]) for m in row["corpus-ids"]}
        assert len(starts) == len(row["corpus-ids"]), row["query-id"]


# --- surface forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (
            "date",
            "2023-01-15",
            ["2023-01-15", "15/Jan/2023", "Jan. 15, 2023", "January 15th, 2023", "2023-I-15"],
        ),
        ("date", "2012-05-02", ["2012-05-02", "2/May/2012", "May 2, 2012", "May 2nd, 2012", "2012-V-2"]),
        ("month", "2008-11-01", ["2008-11", "Nov/2008", "November 2008", "2008-XI", "11/2008"]),
        (
            "hour",
            "2010-07-09 15:00",
            [
                *("2010-07-09 15:00", "9/Jul/2010 15:00", "Jul. 9, 2010, 15:00"),
                *("July 9th, 2010, 3 p.m.", "2010-VII-9 15:00"),
            ],
        ),
        (
            "hour",
            "2010-07-10 00:00",
            [
                *("2010-07-10 00:00", "10/Jul/2010 00:00", "Jul. 10, 2010, 00:00"),
                *("July 10th, 2010, 12 a.m.", "2010-VII-10 00:00"),
            ],
        ),
        ("year", "1973", ["1973", "MCMLXXIII", "nineteen seventy-three"]),
        ("count", "12850", ["12850", "12.85k", "12,850"]),
        ("count", "15000", ["15000", "15k", "15,000"]),
        ("count", "-759", ["-759", "-759", "-759"]),
        ("small", "8", ["8", "eight", "VIII"]),
        ("number", "12.80", [*["12.80"] * 5, "128"]),
        ("number", "0.25", [*["0.25"] * 5, "2.5"]),
        ("text", "Oslo", ["Oslo"]),
    ],
)
def test_forms(kind: Any, text: str, expected: list[str]) -> None:
    assert [form.show(text) for form in forms(kind)] == expected


def test_forms_with_a_unit_say_it_in_the_header_or_in_the_cell() -> None:
    found = [(form.show("1.5"), form.note) for form in forms("number", "mm")]
    assert found == [*[("1.5", "")] * 5, ("15", "x 10"), ("1.5", "mm"), ("1.5 mm", "")]


def test_words_and_numerals() -> None:
    assert [roman(n) for n in (1, 4, 9, 14, 40, 90, 400, 900, 1994)] == (
        ["I", "IV", "IX", "XIV", "XL", "XC", "CD", "CM", "MCMXCIV"]
    )
    assert [under_hundred(n) for n in (0, 13, 20, 99)] == ["zero", "thirteen", "twenty", "ninety-nine"]
    assert [year_words(y) for y in ("1565", "1700", "1805", "2000", "2008", "2010")] == [
        *("fifteen sixty-five", "seventeen hundred", "eighteen oh five", "two thousand", "two thousand eight"),
        "twenty ten",
    ]
    assert [ordinal(d) for d in (1, 2, 3, 4, 11, 12, 13, 21, 22, 30)] == (
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "30th"]
    )
    assert len(MONTHS) == 12
    with pytest.raises(ValueError, match="no 0"):
        roman(0)
    with pytest.raises(ValueError, match="100 is not between"):
        under_hundred(100)
