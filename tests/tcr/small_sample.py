"""Three questions of the sample and the tables of their groups, as a dataset of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluators.plugin.dataset import config_files
from tcr_tasks.tasks import SAMPLE

QUESTIONS = ("em-01", "em-02", "em-03")


def write_small(folder: Path) -> Path:
    """Write it into a folder that does not exist yet."""
    folder.mkdir()
    read = {
        name: pq.read_table(config_files(SAMPLE, name)[0])
        for name in ("corpus", "queries", "qrels", "groups", "tables")
    }
    groups = read["groups"].filter(pc.is_in(read["groups"]["query-id"], pa.array(QUESTIONS)))
    tables = {t for group in groups["corpus-ids"].to_pylist() for t in group}
    keys = {t.split("::", 1)[1] for t in tables}
    kept = {
        "groups": groups,
        "queries": read["queries"].filter(pc.is_in(read["queries"]["_id"], pa.array(QUESTIONS))),
        "qrels": read["qrels"].filter(pc.is_in(read["qrels"]["query-id"], pa.array(QUESTIONS))),
        "corpus": read["corpus"].filter(pc.is_in(read["corpus"]["_id"], pa.array(sorted(tables)))),
        "tables": read["tables"].filter(pc.is_in(read["tables"]["table-key"], pa.array(sorted(keys)))),
    }
    for name, table in kept.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder
