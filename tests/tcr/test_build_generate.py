"""Planned questions: what SQL says of them, no trivial one among them, the mix of types, the seed; natural groups."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from builder_tables import HEADER, shops, write_csv, write_sqlite

from tcr_tasks.builder.assembly import settle
from tcr_tasks.builder.drafts import ColumnValues, Draft, draw
from tcr_tasks.builder.generate import Planned, Wishes, numbers_by_type, plan
from tcr_tasks.builder.kinds import Kind
from tcr_tasks.builder.natural import partitions, plan_natural
from tcr_tasks.builder.sources import SourceTable, read_sources
from tcr_tasks.builder.verify import Corpus
from tcr_tasks.queries import Condition, Query


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[SourceTable]:
    tables = {f"shops{n}": (HEADER, shops(seed=n)) for n in range(4)}
    return read_sources([write_sqlite(tmp_path_factory.mktemp("db") / "trade.sqlite", tables)])[0]


@pytest.fixture(scope="module")
def planned(sources: list[SourceTable]) -> list[Planned]:
    return plan(sources, Wishes(24, per_table=6, count=True), seed=3)[0]


def test_types_are_dealt_out_as_released() -> None:
    assert numbers_by_type(Wishes(209)) == {"EM": 98, "SF": 55, "SA": 56}
    # 20 * 98/209 = 9.38, 20 * 55/209 = 5.26, 20 * 56/209 = 5.36: the one left over goes to EM.
    assert numbers_by_type(Wishes(20)) == {"EM": 10, "SF": 5, "SA": 5}
    assert numbers_by_type(Wishes(3, shares={"SF": 1})) == {"EM": 0, "SF": 3, "SA": 0}


def test_planned_questions_are_as_many_and_of_the_types_wished(planned: list[Planned]) -> None:
    # 24 * 98/209 = 11.25, 24 * 55/209 = 6.32, 24 * 56/209 = 6.43: the one left over goes to SA.
    assert Counter(p.query.question_type for p in planned) == {"EM": 11, "SF": 6, "SA": 7}
    assert [p.id for p in planned] == [f"Q{n}" for n in range(24)]
    assert {p.query.aggregate for p in planned if p.query.question_type == "SA"} > {"COUNT"}


def test_answer_rows_are_those_of_sql(planned: list[Planned]) -> None:
    for p in planned:
        frame = p.source.frame.assign(row=np.arange(len(p.source.frame)))
        found = duckdb.query_df(frame, "t", f"SELECT row FROM t WHERE {p.query.where()} ORDER BY row").fetchall()
        assert [row for (row,) in found] == list(p.answer_rows) != []


def test_no_trivial_question(planned: list[Planned]) -> None:
    for p in planned:
        frame, query = p.source.frame, p.query
        most = 20 if query.question_type == "SA" else 5
        assert (2 if query.question_type == "SA" else 1) <= len(p.answer_rows) <= most
        for c in query.conditions:
            assert not all(c.holds(cell) for cell in frame[c.column].tolist())
        if query.aggregate not in (None, "COUNT"):
            assert p.source.kinds[query.target] in ("integer", "number")
        assert not {str(v) for v in query.answer(frame)} & {str(c.value) for c in query.conditions}
        # 6 significant digits are what every format prints.
        assert all(float(f"{c.value:.6g}") == c.value for c in query.conditions if isinstance(c.value, float))
        assert all(c.operator in ("=", "!=") for c in query.conditions if p.source.kinds[c.column] == "text")
        # A reader may take an empty cell for one that is "not X".
        assert all(frame[c.column].notna().all() for c in query.conditions if c.operator == "!=")
        # Without any one of its conditions more rows would answer.
        rows = [[c.holds(cell) for cell in frame[c.column].tolist()] for c in query.conditions]
        for at in range(len(rows) if len(rows) > 1 else 0):
            rest = zip(*rows[:at], *rows[at + 1 :], frame[query.target].notna(), strict=True)
            assert sum(map(all, rest)) > len(p.answer_rows)
    assert Counter(len(p.query.conditions) for p in planned).keys() >= {1, 2}


def test_questions_of_a_table_have_rows_of_their_own(planned: list[Planned]) -> None:
    seen = Counter((p.source.place, row) for p in planned for row in p.answer_rows)
    assert max(seen.values()) == 1
    assert len({(p.source.place, p.query) for p in planned}) == len(planned)


def test_the_seed_decides(sources: list[SourceTable], planned: list[Planned]) -> None:
    again = plan(sources, Wishes(24, per_table=6, count=True), seed=3)[0]
    other = plan(sources, Wishes(24, per_table=6, count=True), seed=4)[0]
    assert [(p.query, p.answer_rows) for p in again] == [(p.query, p.answer_rows) for p in planned]
    assert [p.query for p in other] != [p.query for p in planned]


def test_no_count_unless_asked_for(sources: list[SourceTable]) -> None:
    made = plan(sources, Wishes(12, shares={"SA": 1}), seed=0)[0]
    assert len(made) == 12 and "COUNT" not in {p.query.aggregate for p in made}


def drafted(query: Query, columns: dict[str, tuple[list[object], Kind]]) -> Draft:
    values = {name: ColumnValues.of(pd.Series(cells, name=name), kind) for name, (cells, kind) in columns.items()}
    each = tuple(values[c.column].holds(c.operator, c.value) for c in query.conditions)
    return Draft(query, values[query.target], each, np.logical_and.reduce([values[query.target].present, *each]))


COLUMNS: dict[str, tuple[list[object], Kind]] = {
    "id": ([7, 9, 4, 5], "identifier"),
    "n": ([1, 2, 3, 3], "integer"),
    "year": ([2001, 2002, 2003, 2003], "integer"),
    "one": (["x", None, "x", "x"], "text"),
    "zip": (["00420", "10115", "10117", "94110"], "identifier"),
    "x": ([0.5, 1.23456789, 2.5, 3.0], "number"),
    "lat": ([0.5, 1.5, 2.5, 3.5], "number"),
    "death_rate": ([0.1, 0.2, 0.3, 0.4], "number"),
    "yes": ([0, 1, 0, 1], "integer"),
    "t": (["Oslo", "Oslo", "Bonn", None], "text"),
    "u": (["Oslo", "b", "c" * 90, "d"], "text"),
}


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        (Query("EM", (Condition("n", "=", 1),), "x"), None),
        (Query("SF", (Condition("n", ">=", 1), Condition("id", "=", 7)), "x"), "a condition that every row meets"),
        (
            Query("SA", (Condition("n", ">", 1),), "id", "SUM"),
            "an aggregate over identifiers, years, coordinates or texts",
        ),
        (
            Query("SA", (Condition("n", ">", 1),), "year", "AVG"),
            "an aggregate over identifiers, years, coordinates or texts",
        ),
        (Query("SA", (Condition("n", ">", 1),), "id", "COUNT"), None),
        (Query("SA", (Condition("n", ">", 1),), "lat", "AVG"), "an aggregate over identifiers, years, coordinates"),
        (Query("SA", (Condition("n", ">", 1),), "death_rate", "SUM"), "a sum of rates or averages"),
        (Query("SA", (Condition("n", ">", 1),), "death_rate", "AVG"), None),
        (Query("SA", (Condition("n", ">", 1),), "yes", "SUM"), "an aggregate over two values, such as yes and no"),
        (Query("EM", (Condition("n", "=", 1),), "one"), "a target with the same value in every row"),
        (Query("EM", (Condition("t", "=", "Oslo"), Condition("n", "=", 1)), "u"), "an answer that the question"),
        (Query("SA", (Condition("n", ">=", 2),), "n", "MIN"), "an answer that the question itself holds"),
        (Query("SF", (Condition("x", ">=", 2.5), Condition("n", "=", 3)), "n"), "an answer that the question"),
        (Query("SF", (Condition("n", ">", 1),), "x"), "more than 2 rows answer"),
        (Query("SA", (Condition("n", ">", 1),), "x", "SUM"), None),
        (Query("SA", (Condition("n", "<", 2),), "x", "MAX"), "an aggregate over one row"),
        (Query("EM", (Condition("id", "=", 5),), "t"), "no answer"),  # the target is missing there
        (Query("EM", (Condition("x", "=", 1.23456789),), "n"), "a number that printing rounds"),
        (Query("EM", (Condition("n", "=", 1),), "zip"), "a text that printed tables show as a number"),
        (Query("EM", (Condition("zip", "=", "00420"),), "t"), "a text that printed tables show as a number"),
        (Query("EM", (Condition("u", "=", "c" * 90),), "n"), "a value of more than 80 characters"),
        # Where n is 3, x is above 2 anyway; where t is Oslo, each condition is needed to tell the two rows apart.
        (Query("SF", (Condition("x", ">", 2), Condition("n", "=", 3)), "id"), "a condition that leaves out no row"),
        (Query("SF", (Condition("t", "=", "Oslo"), Condition("x", ">", 0.5)), "n"), None),
    ],
)
def test_what_is_trivial(query: Query, fault: str | None) -> None:
    found = drafted(query, COLUMNS).fault(max_answers=2)
    assert (found or "").startswith(fault or "") and (found is None) == (fault is None)


def test_what_is_left_out_is_counted(sources: list[SourceTable]) -> None:
    made, left_out = plan(sources[:1], Wishes(50, per_table=50), seed=0)
    missing = sum(n for reason, n in left_out.items() if reason.startswith("no table left for another"))
    assert len(made) + missing == 50 and missing > 0
    assert {"a row answers another question, too", "too many rows of the table would answer questions"} <= set(left_out)


def test_columns_that_allow_no_question() -> None:
    import random

    same = {"a": ColumnValues.of(pd.Series(["x", "x"], name="a"), "text")}
    assert draw("EM", same, 5, ("SUM",), random.Random(0)) is None
    text = same | {"b": ColumnValues.of(pd.Series(["x", "y"], name="b"), "text")}
    assert draw("SA", text, 5, ("SUM",), random.Random(0)) is None  # nothing to compare


@pytest.mark.parametrize("wrong", [{"n_queries": 0}, {"max_answers": 0}, {"shares": {"EM": 0}}, {"shares": {"XX": 1}}])
def test_wishes_that_cannot_be_met(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|shares of the types"):
        Wishes(**({"n_queries": 5} | wrong))  # type: ignore[arg-type]


def test_copies_of_a_table_are_kept_apart(sources: list[SourceTable], planned: list[Planned]) -> None:
    """A copy's rows answer the questions to the original: no question may have its answer there."""
    first = planned[0]
    copied = replace(first.source, db_id="copy")
    other = next(p for p in planned if p.source is first.source and p is not first)
    asked = [first, Planned("same", copied, first.query, first.answer_rows), replace(other, id="moved", source=copied)]
    kept, forbidden, dropped = settle(asked, [*sources, copied])
    assert ([p.id for p in kept], dropped) == ([first.id, "moved"], 1)
    assert forbidden == {first.id: frozenset(other.answer_rows), "moved": frozenset(first.answer_rows)}


# --- natural groups ----------------------------------------------------------------------------------------------


def test_natural_questions_have_one_answering_partition(tmp_path: Path) -> None:
    for year in range(2019, 2023):
        write_csv(tmp_path / "sales" / f"sales_{year}.csv", HEADER, shops(60, seed=year))
    write_csv(tmp_path / "sales" / "staff.csv", ("name", "age"), [("a", 1), ("b", 2)])
    sources = read_sources([tmp_path / "sales"])[0]
    groups, alone = partitions(sources)
    assert [[s.name for s in g] for g in groups] == [[f"sales_{y}" for y in range(2019, 2023)]]
    assert [s.place for s in alone] == ["sales/staff"]
    with Corpus() as corpus:
        for s in sources:
            corpus.add(s.place, s.frame)
        made, left_out = plan_natural(groups, corpus, Wishes(9), seed=0)
    assert len({q.planned.source.place for q in made}) == len(made) == 4
    for q in made:
        answering = [s.name for s in q.group if q.planned.query.answer(s.frame)]
        assert answering == [q.planned.source.name]
        assert [s.name for s in q.group] == [f"sales_{y}" for y in range(2019, 2023)]
    # Every shop of the four tables has the same number, city and so on: most drafts are answered more than once.
    assert left_out["other tables answer, too"] > 0


def test_partitions_may_differ_in_order_and_number_type(tmp_path: Path) -> None:
    write_csv(tmp_path / "p" / "a.csv", ("n", "t"), [(1, "x"), (2, "y")])
    write_csv(tmp_path / "p" / "b.csv", ("t", "n"), [("x", 1.5), ("y", math.pi)])
    write_csv(tmp_path / "p" / "c.csv", ("t", "n"), [("x", "k"), ("y", "l")])
    groups, alone = partitions(read_sources([tmp_path / "p"])[0])
    assert [[s.name for s in g] for g in groups] == [["a", "b"]]
    assert [(s.place, s.reason) for s in alone] == [("p/c", "no other table has the same columns")]
