"""Where the topics of a training and of its evaluations are: whole sets, or parts of them as sets of their own."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluators.plugin.dataset import SCHEMAS, Card, is_dataset_directory, read_config, write_dataset
from evaluators.training.selection import folder_name
from evaluators.training.splits import of_part
from followir_tasks.construction.exclusion import plain
from followir_tasks.ids import parse_query_id
from followir_tasks.tasks import SAMPLE
from followir_tasks.teaching.config import Data, TeachingConfig

__all__ = ["PARTS", "place_of", "with_parts", "write_part"]

PARTS = "parts"


def place_of(data: Data) -> Path:
    """The directory or file of a set, all parts of it."""
    return SAMPLE if data.data is None else data.data


def with_parts(config: TeachingConfig, out: Path) -> TeachingConfig:
    """The configuration with directories in place of tasks and parts.

    Parts are written as datasets of their own, so that other models can be scored on them, too.

    Args:
        config: the training.
        out: where the parts are written, in folders by the evaluation's name or the number of the training set.

    Raises:
        ValueError: if a part is empty, or of a file.
    """

    def placed(data: Data, name: str) -> Path:
        place = place_of(data)
        if data.part == "all":
            return place
        if not is_dataset_directory(place):
            raise ValueError(f"{place} is no dataset directory, so it has no part {data.part!r}")
        chosen = of_part(_units(place), data.part, config.split, str(place))
        return write_part(place, chosen, out / folder_name(name))

    train = [Data(data=placed(data, f"train {number}")) for number, data in enumerate(config.train, 1)]
    evaluations = [
        e.model_copy(update={"data": placed(e, f"evaluation {e.name}"), "task": None, "part": "all"})
        for e in config.evaluations
    ]
    return config.model_copy(update={"train": tuple(train), "evaluations": tuple(evaluations)})


def write_part(source: Path, queries: Collection[str], out: Path) -> Path:
    """Write some queries of a dataset with their documents as a dataset; returns its directory.

    Args:
        source: the dataset.
        queries: ids.
        out: the directory.
    """
    topics = {_topic(query) for query in queries}
    tables = {name: table for name in SCHEMAS if (table := read_config(source, name)) is not None}
    rows = {
        name: [row for row in table.to_pylist() if row.get("query-id") in {*queries, *topics}]
        for name, table in tables.items()
        if "query-id" in table.column_names
    }
    used = {row["corpus-id"] for row in rows["qrels"]}
    used |= {document for row in rows.get("top_ranked", []) for document in row["corpus-ids"]}
    rows["queries"] = [row for row in tables["queries"].to_pylist() if row["_id"] in queries]
    rows["corpus"] = [row for row in tables["corpus"].to_pylist() if row["_id"] in used]
    body = f"{len(queries)} queries of another dataset, chosen by `mteb-beyond followir train`."
    write_dataset(out, rows, Card(f"Part of {source.name}", body, "unknown"))
    return out


def _units(directory: Path) -> dict[str, frozenset[str]]:
    """Query id -> what joins it with others: its topic, the query's words, and what is relevant to it."""
    queries, qrels = (read_config(directory, name) for name in ("queries", "qrels"))
    assert queries is not None and qrels is not None
    out = {key: {f"topic {_topic(key)}", f"query {plain(text)}"} for key, text in _columns(queries, "_id", "text")}
    for query, document, grade in _columns(qrels, "query-id", "corpus-id", "score"):
        if grade is not None and grade > 0 and query in out:
            out[query].add(f"document {document}")
    return {key: frozenset(units) for key, units in out.items()}


def _columns(table: pa.Table, *names: str) -> zip[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)


def _topic(query_id: str) -> str:
    try:
        return parse_query_id(query_id)[0]
    except ValueError:  # of a set that knows no topics
        return query_id
