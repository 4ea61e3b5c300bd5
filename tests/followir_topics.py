"""Parts of the FollowIR sample, as directories of their own."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evaluators.metrics.pmrr import CHANGED_SUFFIX, ORIGINAL_SUFFIX
from evaluators.plugin.dataset import Card, write_dataset
from followir_tasks.tasks import SAMPLE


def few_topics(directory: Path, topics: Collection[str], candidates: int | None = None) -> Path:
    """Write some topics of the sample; of each judgement at most so many documents, and all candidates if ``None``."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: pq.read_table(SAMPLE / f"{name}.parquet").to_pylist()
        for name in ("corpus", "queries", "instruction", "qrels", "top_ranked", "qrel_diff")
    }
    kept = {f"{topic}{suffix}" for topic in topics for suffix in (ORIGINAL_SUFFIX, CHANGED_SUFFIX)}
    for name in ("instruction", "qrels", "top_ranked"):
        rows[name] = [row for row in rows[name] if row["query-id"] in kept]
    rows["queries"] = [row for row in rows["queries"] if row["_id"] in kept]
    rows["qrel_diff"] = [row for row in rows["qrel_diff"] if row["query-id"] in topics]
    if candidates is not None:
        chosen = {t: _chosen(rows["qrels"], t, candidates) for t in topics}
        for row in rows["top_ranked"]:
            row["corpus-ids"] = sorted(chosen[row["query-id"].rpartition("-")[0]])
        for row in rows["qrel_diff"]:
            row["corpus-ids"] = [d for d in row["corpus-ids"] if d in chosen[row["query-id"]]]
        rows["qrels"] = [row for row in rows["qrels"] if row["corpus-id"] in chosen[row["query-id"].rpartition("-")[0]]]
    used = {document for row in rows["top_ranked"] for document in row["corpus-ids"]}
    rows["corpus"] = [row for row in rows["corpus"] if row["_id"] in used]
    write_dataset(directory, rows, Card("part", "Part of the sample.", "mit"))
    return directory


def _chosen(qrels: list[dict[str, Any]], topic: str, most: int) -> set[str]:
    """So many documents each that stay relevant, that lose it, and that never were."""
    grades: dict[str, dict[str, int]] = {}
    for row in qrels:
        name, _, variant = row["query-id"].rpartition("-")
        if name == topic:
            grades.setdefault(row["corpus-id"], {})[variant] = row["score"]
    kinds: dict[tuple[int, ...], list[str]] = {}
    for document, found in sorted(grades.items()):
        kinds.setdefault((found["og"], found["changed"]), []).append(document)
    return {document for documents in kinds.values() for document in documents[:most]}


def short_topics(directory: Path, subjects: Collection[str] = ("ferry", "school", "bee", "film")) -> Path:
    """Topics with documents of a few words: on the subject from the south (stays relevant), from the north (loses
    relevance under the changed instruction), and on another subject; two of each."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("corpus", "queries", "instruction", "qrels", "top_ranked", "qrel_diff")
    }
    texts = {
        f"{subject}-{place}-{year}": f"A {subject} story from the {place} in {year}."
        for subject in subjects
        for place in ("south", "north")
        for year in (2001, 2012)
    }
    rows["corpus"] = [{"_id": key, "title": "", "text": text} for key, text in texts.items()]
    for at, subject in enumerate(subjects):
        other = list(subjects)[at - 1]
        own = sorted(key for key in texts if key.split("-")[0] == subject)
        candidates = [*own, f"{other}-south-2001", f"{other}-north-2012"]
        for suffix, instruction in (
            (ORIGINAL_SUFFIX, "All parts of the country."),
            (CHANGED_SUFFIX, "Only the south, not the north."),
        ):
            key = subject + suffix
            rows["queries"].append({"_id": key, "text": f"{subject} stories"})
            rows["instruction"].append({"query-id": key, "instruction": instruction})
            rows["top_ranked"].append({"query-id": key, "corpus-ids": candidates})
            for document in candidates:
                on, place, _ = document.split("-")
                relevant = on == subject and (place == "south" or suffix == ORIGINAL_SUFFIX)
                rows["qrels"].append({"query-id": key, "corpus-id": document, "score": int(relevant)})
        excluded = [f"{subject}-north-{year}" for year in (2001, 2012)]
        rows["qrel_diff"].append({"query-id": subject, "corpus-ids": excluded})
    write_dataset(directory, rows, Card("short", "Made by tests.", "mit"))
    return directory
