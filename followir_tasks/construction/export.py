"""The dataset directory, in the project's layout: pairs of queries over the same candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaluators.construction.workspace import Row, Workspace, fingerprint
from evaluators.files import unfinished, write_text
from evaluators.metrics.pmrr import CHANGED_SUFFIX, ORIGINAL_SUFFIX
from evaluators.plugin.dataset import SCHEMAS, Card, card_text, is_dataset_directory, write_dataset
from followir_tasks.construction.collection import Collection
from followir_tasks.construction.settling import Settled

__all__ = ["Pair", "configs", "write"]

_NAME = "export"


@dataclass(frozen=True)
class Pair:
    """A topic as it goes into the dataset.

    Attributes:
        topic, query, original, changed: its number, the query and both instructions.
        grades: grades of the relevant documents under the original instruction.
        judged: documents judged and not relevant.
        settled: what stays and what leaves.
        passages: candidate document -> the passage that stands for it.
    """

    topic: str
    query: str
    original: str
    changed: str
    grades: Mapping[str, int]
    judged: Sequence[str]
    settled: Settled
    passages: Mapping[str, str]


def configs(pairs: Sequence[Pair]) -> dict[str, list[Row]]:
    """The rows of all configs but the corpus.

    Under the original instruction the relevant documents have their grades; under the changed one those that stay have
    the same grade and those that leave have 0. Candidates that were judged and not relevant have 0 under both. The
    candidates are the same under both, sorted by id. ``qrel_diff`` lists what leaves.
    """
    out: dict[str, list[Row]] = {
        name: [] for name in ("queries", "instruction", "qrels", "top_ranked", "qrel_diff", "passages")
    }
    documents: dict[str, str] = {}
    for pair in pairs:
        listed = sorted(pair.passages.values())
        nothing = {pair.passages[d]: 0 for d in pair.judged if d in pair.passages}
        original = {pair.passages[d]: pair.grades[d] for d in (*pair.settled.stay, *pair.settled.leave)}
        left = {pair.passages[d]: 0 for d in pair.settled.leave}
        for suffix, instruction, grades in (
            (ORIGINAL_SUFFIX, pair.original, nothing | original),
            (CHANGED_SUFFIX, pair.changed, nothing | original | left),
        ):
            query = f"{pair.topic}{suffix}"
            out["queries"].append({"_id": query, "text": pair.query})
            out["instruction"].append({"query-id": query, "instruction": instruction})
            out["top_ranked"].append({"query-id": query, "corpus-ids": listed})
            out["qrels"] += [
                {"query-id": query, "corpus-id": passage, "score": grade} for passage, grade in sorted(grades.items())
            ]
        out["qrel_diff"].append({"query-id": pair.topic, "corpus-ids": sorted(left)})
        documents |= {passage: document for document, passage in pair.passages.items()}
    out["passages"] = [{"_id": passage, "document": documents[passage]} for passage in sorted(documents)]
    return out


def write(
    workspace: Workspace, pairs: Sequence[Pair], collection: Collection, key: str, card: Card, *, whole: bool = False
) -> None:
    """Write the dataset; nothing but the card is written if it is there already.

    Args:
        workspace: the dataset's directory.
        pairs: its topics.
        collection, key: with all passages, and what changes with them.
        card: of the dataset.
        whole: whether the corpus is the whole collection. A document that is a candidate stands in it with the passages
            that were chosen for it, every other document with all of its passages.
    """
    rows = configs(pairs)
    names = ["corpus", *rows]
    now = fingerprint([rows, key, whole])
    others = sorted(path for path in workspace.directory.glob("*.parquet") if path.stem not in names)

    def written() -> None:
        for path in others:
            _put_away(workspace, path)
        _write(workspace, rows, collection, card, whole=whole)

    if workspace.write_once(_NAME, now, written, there=is_dataset_directory(workspace.directory)):
        n_passages = len(rows["passages"])
        workspace.tell(
            f"{workspace.directory}: dataset written, {len(pairs)} topics, {n_passages} passages as candidates"
        )
        return
    if not others:  # else the card tells of them, too
        write_text(workspace.directory / "README.md", card_text(card, names))
    workspace.tell(f"{workspace.directory}: the dataset is written already")


def _put_away(workspace: Workspace, path: Path) -> None:
    """Keep a config that was added to an earlier state of the dataset: what it says may hold no more."""
    kept = workspace.work / f"{path.name}.earlier"  # under its own name it would be taken for a part of the dataset
    if kept.exists():
        workspace.set_aside(kept)
    path.rename(kept)
    workspace.tell(f"{path.name}: it was added to the earlier dataset, and is kept as {kept}; add it again")


def _write(
    workspace: Workspace, rows: dict[str, list[Row]], collection: Collection, card: Card, *, whole: bool
) -> None:
    chosen = collection.some({row["_id"] for row in rows["passages"]})
    corpus = [
        {"_id": i, "title": title, "text": text}
        for i, title, text in zip(chosen["id"], chosen["title"], chosen["text"], strict=True)
    ]
    write_dataset(workspace.directory, {"corpus": corpus, **rows}, card)
    if whole:
        _write_whole(workspace.directory / "corpus.parquet", collection, rows["passages"])


def _write_whole(path: Path, collection: Collection, candidates: Sequence[Row]) -> None:
    """Replace the corpus by the collection. Memory: one part of it."""
    schema = pa.schema(list(SCHEMAS["corpus"].items()))
    chosen, documents = {row["_id"] for row in candidates}, {row["document"] for row in candidates}
    with unfinished(path) as part, pq.ParquetWriter(part, schema, compression="zstd", write_statistics=False) as out:
        for batch in collection.batches():
            pairs = zip(batch["id"].to_pylist(), batch["document"].to_pylist(), strict=True)
            kept = batch.filter(pa.array([p in chosen or d not in documents for p, d in pairs], pa.bool_()))
            out.write_batch(pa.record_batch([kept["id"], kept["title"], kept["text"]], schema=schema))
