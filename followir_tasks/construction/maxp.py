"""Which passage stands for a document: the one that a model scores highest for the topic's query (MaxP).

FollowIR's paper (section 3) says MaxP and 400 words with 200 words overlap; it does not say which model scores. Here it
is the one of ``--maxp``, by default the first of the pool. A model that searches by itself, such as BM25, scores the
candidates' passages as a collection of their own.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from datasets import Dataset

from evaluators.construction.workspace import Row, Workspace, fingerprint
from followir_tasks.construction.collection import OVERLAP, WORDS, Collection
from followir_tasks.construction.pooling import Ranker, Scores, in_parts

__all__ = ["best_passages"]


def best_passages(
    workspace: Workspace,
    ranker: Ranker,
    collection: Collection,
    key: str,
    queries: Mapping[str, str],
    documents: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, str]]:
    """Topic -> {document: its passage}; of equal scores the earlier passage is taken.

    Args:
        workspace: where the step's file is.
        ranker: the model that scores.
        collection: with the passages.
        key: of the collection.
        queries, documents: by topic.

    Raises:
        ValueError: if the model leaves a document's passages without a score.
    """
    inputs = [[t, queries[t], list(listed)] for t, listed in documents.items()]
    settings = {"model": ranker.label, "documents": key, "words": WORDS, "overlap": OVERLAP}

    def make() -> list[Row]:
        passages = collection.of_documents({d for listed in documents.values() for d in listed})
        several = {t: {d: passages[d] for d in listed if len(passages[d]) > 1} for t, listed in documents.items()}
        scores: Scores = {t: {} for t in documents}
        if any(several.values()):
            wanted = {t: [p for ps in of.values() for p in ps] for t, of in several.items()}
            if ranker.by_parts:
                folder = workspace.work / f"passages-{fingerprint([settings, inputs])[:12]}"
                scores = _by_parts(ranker, collection, queries, wanted, folder)
                shutil.rmtree(folder, ignore_errors=True)
            else:
                scores = _whole(ranker, collection, queries, wanted)
        return [
            {"topic": t, "passages": {d: _best(t, d, passages[d], scores[t]) for d in listed}}
            for t, listed in documents.items()
        ]

    return {row["topic"]: row["passages"] for row in workspace.computed("passages", settings, inputs, make)}


def _best(topic: str, document: str, passages: Sequence[str], scores: Mapping[str, float]) -> str:
    if len(passages) == 1:
        return passages[0]
    lacking = [p for p in passages if p not in scores]
    if lacking:
        raise ValueError(
            f"topic {topic!r}: the model gave no score to {len(lacking)} passages of document {document!r}"
        )
    return max(passages, key=lambda p: scores[p])  # the first of equal ones


def _by_parts(
    ranker: Ranker,
    collection: Collection,
    queries: Mapping[str, str],
    wanted: Mapping[str, Sequence[str]],
    folder: Path,
) -> Scores:
    batches = list(collection.batches())
    known = {p for listed in wanted.values() for p in listed}

    def make(number: int) -> Scores:
        batch = batches[number]
        ids = batch["id"].to_pylist()
        chosen = batch.filter(pa.array([p in known for p in ids], pa.bool_()))
        there = set(chosen["id"].to_pylist())
        only = {t: here for t, listed in wanted.items() if (here := [p for p in listed if p in there])}
        if not only:
            return {}
        run = ranker.index(Dataset(pa.Table.from_batches([chosen])))
        return run({t: queries[t] for t in only}, max(map(len, only.values())), only)

    out: Scores = {t: {} for t in wanted}
    for found in in_parts(folder, len(batches), make, f"{ranker.name}, passages"):
        for topic, scores in found.items():
            out[topic] |= scores
    return out


def _whole(
    ranker: Ranker, collection: Collection, queries: Mapping[str, str], wanted: Mapping[str, Sequence[str]]
) -> Scores:
    passages = collection.some({p for listed in wanted.values() for p in listed})
    run = ranker.index(passages)
    out: Scores = {}
    for topic, listed in wanted.items():
        found = run({topic: queries[topic]}, len(passages), None)[topic] if listed else {}
        out[topic] = {p: found[p] for p in listed if p in found}
    return out
