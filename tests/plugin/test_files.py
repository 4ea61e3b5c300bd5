"""Files that are there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluators.files import unfinished, write_text
from evaluators.plugin.results import write_per_query


def test_a_file_that_could_not_be_finished_leaves_the_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.txt"
    write_text(path, "whole\r\n")

    def interrupted() -> None:
        with unfinished(path) as part:
            part.write_text("hal")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"whole\r\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_table_per_query_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "T_per_query.parquet"
    write_per_query(path, {"q1": {"score": 0.5}}, {"revision": "1"})
    write = pq.write_table

    def interrupted(table: object, where: Path) -> None:
        write(table, where)
        where.write_bytes(where.read_bytes()[:40])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_per_query(path, {"q2": {"score": 0.1}}, {"revision": "2"})
    assert pq.read_table(path).to_pylist() == [{"query-id": "q1", "score": 0.5}]
    assert list(tmp_path.iterdir()) == [path]
