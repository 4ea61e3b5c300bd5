"""Printed tables cut by rows to fit into a prompt."""

from __future__ import annotations

import random
from functools import cache

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.builder.tokens import OfflineCounter
from tcr_tasks.cutting import Cutter, split_rows
from tcr_tasks.serialize import TableFormat, serialize

COUNTER = OfflineCounter()
FORMATS = list(TableFormat)[:4]


@cache
def printed(rows: int, fmt: TableFormat, *, plain: bool = False) -> str:
    """A table; unless plain with cells of which each format prints something awkward."""
    rng = random.Random(rows)
    cells = [f"a, {n}" if plain else f'row {n}, "x"\n{n}' for n in range(rows)]
    numbers = list(range(rows)) if plain else [rng.random() for _ in range(rows)]
    return serialize("some table", pd.DataFrame({"name": cells, "n": numbers}), fmt)


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("fmt", FORMATS)
def test_parts_make_the_table(fmt: TableFormat, rows: int) -> None:
    parts = split_rows(printed(rows, fmt))
    assert parts.text() == printed(rows, fmt)
    if fmt in (TableFormat.CSV, TableFormat.HTML):  # the others print a cell's line end as it is
        assert len(parts.rows) == rows


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=4), st.integers(0, 900))
def test_tables_are_cut_to_what_is_allowed(sizes: list[int], budget: int) -> None:
    """Each is whole or has a number of rows with which one more would be beyond the length that all may have."""
    tables = {str(n): printed(rows, FORMATS[n % 4]) for n, rows in enumerate(sizes)}
    wholes = {key: split_rows(text) for key, text in tables.items()}
    shown = Cutter(COUNTER).shown(tables, budget)
    heads = [COUNTER.count(parts.head) + COUNTER.count(parts.tail) for parts in wholes.values()]
    if shown is None:
        assert sum(heads) > budget
        return
    assert [table.id for table in shown] == list(tables)
    lengths = [COUNTER.count(table.text) for table in shown]
    assert sum(lengths) <= budget
    for table in shown:
        parts = wholes[table.id]
        assert table.text == parts.text(table.kept) and table.rows == len(parts.rows)
        assert table.is_cut == (table.kept < table.rows)

    # Counted part by part, as joined parts may have a few tokens less.
    def sizes_of(key: str) -> list[int]:
        parts = wholes[key]
        return [sum(map(COUNTER.count, [parts.head, *parts.rows[:n], parts.tail])) for n in range(len(parts.rows) + 1)]

    cut = [table for table in shown if table.is_cut]
    if cut:
        next_length = min(sizes_of(table.id)[table.kept + 1] for table in cut)
        assert all(sizes_of(table.id)[table.kept] < next_length or not table.kept for table in shown)
        fitting = ([size for size in sizes_of(key) if size <= next_length] for key in tables)
        assert sum(max(found, default=head) for found, head in zip(fitting, heads, strict=True)) > budget


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_header_and_the_first_rows_stay(fmt: TableFormat) -> None:
    tables = {str(rows): printed(rows, fmt, plain=True) for rows in (3, 60, 40)}
    cutter = Cutter(COUNTER)
    whole = sum(map(COUNTER.count, tables.values()))
    all_of_them = cutter.shown(tables)
    assert all_of_them == cutter.shown(tables, whole)
    assert all_of_them is not None and [table.text for table in all_of_them] == list(tables.values())
    shown = cutter.shown(tables, whole // 2)
    assert shown is not None and [table.is_cut for table in shown] == [False, True, True]
    for table in shown[1:]:
        assert 10 < table.kept < table.rows
        # As if the table had these rows only, but that Markdown's columns keep their width; the first sentence is the
        # header of a table in sentences.
        rows = table.kept + (fmt is TableFormat.TSEN)
        assert " ".join(table.text.split()) == " ".join(printed(rows, fmt, plain=True).split())


def test_the_longest_table_is_cut_first() -> None:
    tables = {"short": "a:\nx\n1\n2\n", "long": "b:\nx\n" + "".join(f"{n}\n" for n in range(1000, 1400))}
    cutter = Cutter(COUNTER)
    shown = cutter.shown(tables, 200)
    assert shown is not None and shown[0].text == tables["short"]
    assert [(table.rows, table.is_cut) for table in shown] == [(2, False), (400, True)] and 0 < shown[1].kept < 100
    heads = sum(map(cutter.header_tokens, tables.values()))
    least = cutter.shown(tables, heads)
    assert least is not None and [table.text for table in least] == ["a:\nx\n", "b:\nx\n"]
    assert cutter.shown(tables, heads - 1) is None and cutter.shown(tables, -5) is None
