"""Which tables answer: DuckDB's stacked tables against ``Query.answer`` on every table by itself."""

from __future__ import annotations

from typing import Any, get_args

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.builder.verify import Corpus, answering, twin
from tcr_tasks.queries import Aggregate, Condition, Query, QuestionType

TEXTS = st.sampled_from(["", "x", "O'Hare", '"q"', "Ünal", "10", "1", "%", "\\", "NULL", "--"])
# Names that differ in case alone are one name to DuckDB.
NAMES = ("a", "A", 'q"uote', "it's", "select", "table")
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXTS,
    "Int64": st.integers(-3, 3),
    "float64": st.integers(-6, 6).map(lambda n: n / 2),
}


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    n_rows = draw(st.integers(0, 4))
    columns = {}
    for name in names:
        kind = draw(st.sampled_from(sorted(CELLS)))
        cells = draw(st.lists(st.none() | CELLS[kind], min_size=n_rows, max_size=n_rows))
        columns[name] = pd.Series(cells, dtype=kind)
    return pd.DataFrame(columns)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    kind: QuestionType = draw(st.sampled_from(get_args(QuestionType)))
    operators = ["="] if kind == "EM" else ["!=", "<", "<=", ">", ">=", "="]
    conditions = []
    for at in range(draw(st.integers(1, 3))):
        operator = draw(st.sampled_from(operators[: 5 if at == 0 else None]))
        value = draw(st.one_of(*CELLS.values()))
        conditions.append(Condition(draw(st.sampled_from(NAMES)), operator, value))
    aggregate: Aggregate | None = draw(st.sampled_from(get_args(Aggregate))) if kind == "SA" else None
    return Query(kind, tuple(conditions), draw(st.sampled_from(NAMES)), aggregate)


# Few examples of many tables and questions each: what takes time is opening a database.
@settings(max_examples=25, deadline=None)
@given(tables=st.lists(frames(), min_size=4, max_size=8), asked=st.lists(queries(), min_size=8, max_size=16))
def test_duckdb_and_the_query_agree(tables: list[pd.DataFrame], asked: list[Query]) -> None:
    found, _ = answering(((str(at), t) for at, t in enumerate(tables)), {str(at): q for at, q in enumerate(asked)})
    for at, query in enumerate(asked):
        assert found[str(at)] == tuple(str(n) for n, t in enumerate(tables) if query.answer(as_read(t, query)))


def as_read(table: pd.DataFrame, query: Query) -> pd.DataFrame:
    """The table with the query's names for columns that a reader takes for the same ("a" and "A")."""
    there = table.dropna(axis="columns", how="all")
    names = {c: c.lower() for c in NAMES}
    wanted = {names[c]: c for c in query.columns if c not in there.columns}
    out = pd.DataFrame(index=there.index)
    for name in there.columns:
        out[name] = there[name]
        if names[name] in wanted:
            out[wanted[names[name]]] = there[name]
    return out


def test_one_name_in_another_style_is_the_same_column() -> None:
    """Headers are printed in any style, so a reader cannot tell these tables' columns apart."""
    query = Query("EM", (Condition("zip_code", "=", 10115),), "store_name")
    styles = (("zip_code", "store_name"), ("zipCode", "storeName"), ("ZIP Code", "Store Name"), ("zip", "store"))
    tables = [(str(at), pd.DataFrame({code: [10115], name: ["A"]})) for at, (code, name) in enumerate(styles)]
    found, n_pairs = answering(tables, {"q": query})
    assert found["q"] == ("0", "1", "2") and n_pairs == 3


def test_an_abbreviation_is_the_same_column() -> None:
    """Nobody can tell "lat" from "latitude". That "lat" may mean "latency" as well costs a question at most."""
    frames = {
        "short": pd.DataFrame({"lat": [1.5], "Lon": [7]}),
        "long": pd.DataFrame({"longitude": [8], "LATITUDE": [1.5]}),
        "both": pd.DataFrame({"lat": [2.5], "latitude": [1.5], "lon": [9]}),
        "other": pd.DataFrame({"latency": [1.5], "lon": [9], "lo": [3]}),
    }
    ask = {
        name: Query("EM", (Condition(name, "=", 1.5),), target)
        for name, target in (("latitude", "longitude"), ("lat", "lon"))
    }
    assert answering(frames.items(), ask)[0] == {
        "latitude": ("short", "long", "both"),
        "lat": ("short", "long", "other"),
    }


@settings(max_examples=15, deadline=None)
@given(tables=st.lists(frames(), min_size=2, max_size=5), asked=st.lists(queries(), min_size=4, max_size=8))
def test_rows_are_those_of_the_query(tables: list[pd.DataFrame], asked: list[Query]) -> None:
    with Corpus() as corpus:
        for at, table in enumerate(tables):
            corpus.add(str(at), table)
        for query in asked:
            wanted = {str(at): set(query.rows(as_read(table, query))) for at, table in enumerate(tables)}
            # An aggregate that cannot be computed answers nothing.
            if query.aggregate is None:
                assert corpus.rows(query) == {key: rows for key, rows in wanted.items() if rows}


def test_the_same_name_with_another_type_in_another_database() -> None:
    numbers = pd.DataFrame({"zip": [10115, 94110], "city": ["Berlin", "San Francisco"]})
    texts = pd.DataFrame({"zip": ["10115", "94110"], "city": [7, 8]})
    found, _ = answering(
        [("numbers", numbers), ("texts", texts)],
        {
            "number": Query("EM", (Condition("zip", "=", 10115),), "city"),
            "text": Query("EM", (Condition("zip", "=", "10115"),), "city"),
            "order": Query("SF", (Condition("zip", ">", 0),), "city"),
            "sum": Query("SA", (Condition("zip", "!=", 1),), "city", "SUM"),  # cities have no sum
            "other": Query("EM", (Condition("code", "=", 10115),), "city"),  # another name
        },
    )
    assert found == {"number": ("numbers",), "text": ("texts",), "order": ("numbers",), "sum": (), "other": ()}


def test_the_same_code_as_number_and_as_text() -> None:
    query = Query("EM", (Condition("zip", "=", 10115), Condition("t", "=", "x")), "city")
    as_text = Query("EM", (Condition("zip", "=", "10115"), Condition("t", "=", "x")), "city")
    assert twin(query) == as_text
    assert twin(as_text) is None
    assert twin(Query("SF", (Condition("zip", ">", 10115),), "city")) is None  # texts have another order


def test_big_integers_and_other_cells() -> None:
    big = 2**53
    frame = pd.DataFrame({"n": pd.Series([big, big + 1], dtype="Int64"), "t": ["x", "y"]})
    ask = {str(n): Query("EM", (Condition("n", "=", n),), "t") for n in (big + 1, big + 2)}
    assert answering([("k", frame)], ask)[0] == {str(big + 1): ("k",), str(big + 2): ()}
    with Corpus() as corpus, pytest.raises(ValueError, match="table 'k', column 'm': it holds mixed-integer"):
        corpus.add("k", pd.DataFrame({"m": pd.Series([1, "x"], dtype=object)}))


def test_tables_beyond_one_batch() -> None:
    frame = pd.DataFrame({"n": range(60_000), "t": "x"})
    tables = ((f"k{at}", frame.assign(n=frame["n"] + at * 60_000)) for at in range(4))
    ask = {"one": Query("EM", (Condition("n", "=", 130_000),), "t"), "all": Query("SF", (Condition("n", ">", 0),), "t")}
    assert answering(tables, ask)[0] == {"one": ("k2",), "all": ("k0", "k1", "k2", "k3")}
