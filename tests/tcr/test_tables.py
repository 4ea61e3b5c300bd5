"""What a table remembers of what it printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import Table

TABLE = Table("db", "towns_T1", "towns", TableFormat.CSV, "town,people\nOslo,7\n")


def test_each_table_and_format_has_a_text_of_its_own_and_is_printed_once() -> None:
    text = TABLE.text()
    assert text == "towns:\ntown,people\nOslo,7\n\n\n"
    assert TABLE.text(TableFormat.CSV) is text
    assert replace(TABLE).text() is text
    assert TABLE.text(TableFormat.TSEN) == "towns:\ntown is Oslo. people is 7.\n\n"
    assert replace(TABLE, name="cities").text() == text.replace("towns:", "cities:")
    assert replace(TABLE, csv="town,people\nOslo,8\n").text() == text.replace("7", "8")
    assert replace(TABLE, format=TableFormat.TSEN).text() == TABLE.text(TableFormat.TSEN)


def test_a_file_that_changes_is_printed_anew(tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    table = replace(TABLE, csv=file)
    for people in ("7", "8"):
        file.write_text(f"town,people\nOslo,{people}\n")
        assert table.text() == TABLE.text().replace("7", people)
    file.unlink()
    with pytest.raises(ValueError, match="'db::towns_T1' cannot be read"):
        table.text()


def test_what_cannot_be_read_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="'db::towns_T1' cannot be read"):
            replace(TABLE, csv="").text()
