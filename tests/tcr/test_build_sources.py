"""Source tables: types told from cells, three kinds of sources alike, and everything that cannot be used is named."""

from __future__ import annotations

import datetime
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builder_tables import HEADER, shops, write_csv, write_sqlite
from hypothesis import given
from hypothesis import strategies as st

from tcr_tasks.builder.kinds import UnusableColumnError, typed
from tcr_tasks.builder.sources import Skipped, read_sources

# --- kinds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cells", "values", "kind"),
    [
        ("city", ["a", " b \n c ", "", "NA", None], ["a", "b c", None, None, None], "text"),
        ("n", ["1", "-2", "", "0"], [1, -2, None, 0], "integer"),
        ("n", [1, 5.0, math.nan], [1, 5, None], "integer"),  # whole numbers that a gap made floats
        ("n", ["9007199254740993", "5"], [9007199254740993, 5], "integer"),  # 2^53 + 1 is no double
        ("n", ["9223372036854775808", "5"], ["9223372036854775808", "5"], "identifier"),  # 2^63 is no 64-bit integer
        ("n", ["1", "2.5", None, "1e3"], [1.0, 2.5, None, 1000.0], "number"),
        ("postal", ["01234", "94110"], ["01234", "94110"], "identifier"),  # a leading zero is part of a code
        ("postal", ["01234", 94110], ["01234", "94110"], "identifier"),
        ("zip", ["94110", "10115", "94110"], [94110, 10115, 94110], "identifier"),
        ("raceId", ["4", "4", "9"], [4, 4, 9], "identifier"),
        ("row", [3, 4, 5, 7], [3, 4, 5, 7], "identifier"),  # rising by one: it numbers the rows
        ("year", [3, 4, 5, 7], [3, 4, 5, 7], "integer"),
        ("d", ["2012-02-29", None], ["2012-02-29", None], "date"),
        ("d", ["2012-02-29 00:00:00"], ["2012-02-29"], "date"),
        ("d", [datetime.date(2012, 2, 29), datetime.datetime(2012, 3, 1)], ["2012-02-29", "2012-03-01"], "date"),
        ("d", ["2013-02-29"], ["2013-02-29"], "text"),  # no such day
        ("d", ["2012-02-29 10:30:00"], ["2012-02-29 10:30:00"], "text"),
        ("flag", [True, False], ["True", "False"], "text"),
        ("size", ["S", "M", "40"], ["S", "M", "40"], "text"),
        ("amount", ["1,000", "2,000"], ["1,000", "2,000"], "text"),
    ],
)
def test_kinds(name: str, cells: list[Any], values: list[Any], kind: str) -> None:
    column, found = typed(name, cells)
    assert ([None if pd.isna(v) else v for v in column.tolist()], found) == (values, kind)
    assert [type(v) for v in column.tolist() if not pd.isna(v)] == [type(v) for v in values if v is not None]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([None, "", "NA"], "every cell is missing"),
        ([1, 2, 3, "many"], "mixed types: 3 numbers and 1 texts such as 'many'"),
        ([b"\x01"], "binary data"),
        ([["a"]], "nested data"),
        ([1.0, math.inf], "not finite"),
        (["1e999"], "not finite"),
        (["a\0b"], "NUL"),
        (["0.5", "9007199254740993"], "fractions beside integers beyond 2\\^53"),
    ],
)
def test_unusable_columns(cells: list[Any], reason: str) -> None:
    with pytest.raises(UnusableColumnError, match=reason):
        typed("c", cells)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_integers_stay_exact_as_text_and_as_numbers(values: list[int]) -> None:
    for cells in (values, [str(v) for v in values]):
        assert typed("n", cells)[0].tolist() == values


# --- sources -----------------------------------------------------------------------------------------------------


def test_sqlite_csv_and_a_folder_of_databases_give_the_same_table(tmp_path: Path) -> None:
    rows = shops(40)
    single = write_sqlite(tmp_path / "trade.sqlite", {"shops": (HEADER, rows)})
    write_csv(tmp_path / "csv" / "trade" / "shops.csv", HEADER, rows)
    write_sqlite(tmp_path / "databases" / "trade" / "trade.sqlite", {"shops": (HEADER, rows)})
    parquet = tmp_path / "parquet" / "trade"
    parquet.mkdir(parents=True)
    pd.DataFrame(rows, columns=list(HEADER)).to_parquet(parquet / "shops.parquet")
    expected = {
        "shop_id": "identifier",
        "city": "text",
        "zip": "identifier",
        "opened": "date",
        "staff": "integer",
        "revenue": "number",
        "manager": "text",
    }
    for path in (single, tmp_path / "csv" / "trade", tmp_path / "databases", parquet):
        (table,), skipped = read_sources([path])
        assert (table.db_id, table.name, table.kinds, table.n_rows, skipped) == ("trade", "shops", expected, 40, [])
        found = [tuple(None if pd.isna(v) else v for v in row) for row in table.frame.itertuples(index=False)]
        assert found == rows


def test_declared_keys_are_identifiers(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE city (place INTEGER PRIMARY KEY, size INTEGER, twice AS (2 * size))")
        connection.execute("CREATE TABLE shop (name TEXT, located INTEGER REFERENCES city(place), size INTEGER)")
        connection.execute("INSERT INTO city (place, size) VALUES (7, 50), (3, 20), (90, 50)")
        connection.execute("INSERT INTO shop VALUES ('x', 7, 1), ('y', 3, 1), ('z', 7, 2)")
        connection.commit()
    city, shop = read_sources([path])[0]
    assert city.kinds == {"place": "identifier", "size": "integer"}
    assert shop.kinds == {"name": "text", "located": "identifier", "size": "integer"}


def test_long_tables_are_sampled_in_order_and_it_is_said(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "long.sqlite", {"t": (("a", "b"), [(n * 10, f"x{n}") for n in range(3000)])})
    (first,), skipped = read_sources([path], seed=1, most_rows=100)
    (again,), _ = read_sources([path], seed=1, most_rows=100)
    (other,), _ = read_sources([path], seed=2, most_rows=100)
    assert skipped == [Skipped("long/t", "2900 of 3000 rows: 100 were drawn by the seed")]
    assert (len(first.frame), first.n_rows) == (100, 3000)
    assert first.frame.equals(again.frame) and not first.frame.equals(other.frame)
    values = first.frame["a"].tolist()
    assert values == sorted(values) and values[0] < 500 and values[-1] > 29000 - 500 * 10


def test_everything_unusable_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    write_csv(folder / "good.csv", ("a", "b", "", "x", "X", "empty", "mixed"), [
        (1, "p", 0, 1, 2, "", n) for n in ("1", "2", "3", "four")
    ])  # fmt: skip
    write_csv(folder / "one_row.csv", ("a", "b"), [(1, 2)])
    write_csv(folder / "one_column.csv", ("a",), [(1,), (2,)])
    write_csv(folder / "ragged.csv", ("a", "b"), [(1, 2), (1, 2, 3)])
    (folder / "nothing.csv").write_text("")
    (folder / "latin.csv").write_bytes("a,b\nö,1\nü,2\n".encode("latin-1"))
    (folder / "broken.parquet").write_bytes(b"PAR1 no")
    (folder / "notes.txt").write_text("not a table")
    (tmp_path / "fake.sqlite").write_text("this is no database")
    (folder / "beside.sqlite").write_bytes(b"")
    (tmp_path / "empty.db").write_bytes(b"")
    tables, skipped = read_sources([folder, tmp_path / "fake.sqlite", tmp_path / "empty.db"])
    assert [(t.place, list(t.frame.columns)) for t in tables] == [("odd/good", ["a", "b"])]
    reasons = {s.place: s.reason for s in skipped}
    assert reasons.pop("odd/good, column 3") == "it has no name"
    assert reasons.pop("odd/good.x") == reasons.pop("odd/good.X") == "2 columns have this name"
    assert reasons.pop("odd/good.empty") == "every cell is missing"
    assert reasons.pop("odd/good.mixed").startswith("mixed types")
    assert reasons.pop("odd/one_row").startswith("1 row(s)")
    assert reasons.pop("odd/nothing").startswith("0 row(s)")
    assert reasons.pop("odd/one_column").startswith("1 usable column(s)")
    assert "line 3 has 3 cells, the header 2" in reasons.pop("odd/ragged")
    assert "save it as UTF-8" in reasons.pop("odd/latin")
    assert "cannot be read" in reasons.pop("odd/broken")
    assert "SQLite" in reasons.pop(f"fake ({tmp_path / 'fake.sqlite'})")
    assert "without tables" in reasons.pop(f"empty ({tmp_path / 'empty.db'})")
    assert "name it by its own path" in reasons.pop(str(folder / "beside.sqlite"))
    assert "neither CSV nor parquet" in reasons.pop(str(folder / "notes.txt"))
    assert reasons == {}


def test_mistakes_of_the_user(tmp_path: Path) -> None:
    a = write_sqlite(tmp_path / "a" / "same.sqlite", {"t": (("a", "b"), [(1, 2), (3, 4)])})
    b = write_sqlite(tmp_path / "b" / "same.sqlite", {"t": (("a", "b"), [(1, 2), (3, 4)])})
    with pytest.raises(ValueError, match=r"two sources are called 'same'.*rename one"):
        read_sources([a, b])
    assert len(read_sources([a, a])[0]) == 1
    c = write_sqlite(tmp_path / "c" / "Same.sqlite", {"t": (("a", "b"), [(1, 2), (3, 4)])})
    with pytest.raises(ValueError, match=r"two sources are called 'Same'.*rename one"):
        read_sources([a, c])
    with pytest.raises(FileNotFoundError, match="no source"):
        read_sources([tmp_path / "missing"])
    with pytest.raises(ValueError, match="neither CSV nor parquet"):
        read_sources([tmp_path])
    with pytest.raises(ValueError, match="single table"):
        read_sources([write_csv(tmp_path / "c" / "t.csv", ("a", "b"), [(1, 2)])])
