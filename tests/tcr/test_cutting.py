"""Tables cut by rows to fit into a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.builder.tokens import OfflineCounter
from tcr_tasks.cutting import Cutter, shares
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import Table

COUNT = OfflineCounter().count


def cutter(fmt: TableFormat, *rows: int) -> tuple[Cutter, dict[str, Table]]:
    made = [
        Table("d", f"t_T{n}", "t", fmt, "\n".join(["id,note", *(f'{i},"a, {i}{n}"' for i in range(size))]) + "\n")
        for n, size in enumerate(rows)
    ]
    tables = {table.id: table for table in made}
    return Cutter(tables, {key: table.text() for key, table in tables.items()}, None, OfflineCounter()), tables


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(-5, 120))
def test_shares(lengths: list[int], budget: int) -> None:
    given_shares = shares(lengths, budget)
    assert sum(given_shares) <= max(budget, 0)
    assert all(0 <= share <= length for share, length in zip(given_shares, lengths, strict=True))
    short = [share for share, length in zip(given_shares, lengths, strict=True) if share < length]
    if short:
        # What is not given would not make one more for each; none gets less than another but for 1, or its need.
        assert max(budget, 0) - sum(given_shares) < len(short)
        assert max(short) - min(short) <= 1 and min(short) >= max(given_shares) - 1


@pytest.mark.parametrize("fmt", [TableFormat.CSV, TableFormat.HTML, TableFormat.MARKDOWN])
def test_the_header_and_the_first_rows_stay(fmt: TableFormat) -> None:
    cut, tables = cutter(fmt, 3, 60, 40)
    keys = list(tables)
    whole = [COUNT(tables[key].text()) for key in keys]
    assert cut.shown(keys) == cut.shown(keys, sum(whole))
    shown = cut.shown(keys, sum(whole) // 2)
    assert [table.id for table in shown] == keys
    assert sum(COUNT(table.text) for table in shown) <= sum(whole) // 2
    assert [table.is_cut for table in shown] == [False, True, True]
    for table in shown[1:]:
        full = tables[table.id].frame()
        assert (table.rows, 0 < table.kept < table.rows) == (len(full), True)
        # As if the table had these rows only, and nearly as many as fit.
        lines = str(tables[table.id].csv).splitlines(keepends=True)[: table.kept + 1]
        assert table.text == Table("d", "x", "t", fmt, "".join(lines)).text()
        row = (COUNT(tables[table.id].text()) - COUNT(table.text)) / (table.rows - table.kept)
        assert COUNT(table.text) + 3 * row > shares(whole, sum(whole) // 2)[keys.index(table.id)]


def test_a_header_that_does_not_fit_is_named() -> None:
    cut, tables = cutter(TableFormat.CSV, 5)
    bare = COUNT(Table("d", "x", "t", TableFormat.CSV, "id,note\n").text())
    (shown,) = cut.shown(list(tables), bare)
    assert shown.kept == 0 and "id,note" in shown.text
    with pytest.raises(ValueError, match=r"table 'd::t_T0': its header alone has \d+ tokens, and \d+ are left"):
        cut.shown(list(tables), bare - 1)
