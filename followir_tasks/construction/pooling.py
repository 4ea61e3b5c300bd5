"""Candidates: the best non-relevant documents of several models, taken in turn (FollowIR, section 3).

The paper's pool has five models and does not name them, nor the query that they were given. Here they get the query
without any instruction, so that the candidates favour neither of a pair's instructions, and search the passages of the
whole collection; a document stands where its best passage does (MaxP).

Pooling takes every document of the collection, not only judged ones: an encoder embeds all of them, part by part; a
model that searches by itself, such as BM25, keeps its index of all of them in memory.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from evaluators.construction.workspace import Row, Workspace, fingerprint
from evaluators.files import write_text
from evaluators.metrics.ranking import top
from evaluators.plugin.checks import column, shown
from evaluators.plugin.models import loaded, resolve_model
from evaluators.plugin.mteb_internals import is_cross_encoder
from evaluators.plugin.searching import is_searcher, searcher
from followir_tasks.construction.collection import Collection
from followir_tasks.construction.selection import Chosen

__all__ = ["Ranker", "candidates", "in_parts", "interleaved", "pool"]

Scores = dict[str, dict[str, float]]


class Ranker:
    """An mteb model that ranks passages, loaded when it is first needed.

    Args:
        name: as the command line takes models.
        batch_size: texts that it encodes at a time.
    """

    def __init__(self, name: str, batch_size: int = 32) -> None:
        meta = resolve_model(name)
        self.name, self.label = name, f"{meta.name}@{meta.revision}"
        self._batch_size = batch_size
        self._model: Any = None

    @property
    def model(self) -> Any:
        """The model as mteb runs it."""
        if self._model is None:
            self._model = loaded(self.name)[0]
        return self._model

    @property
    def by_parts(self) -> bool:
        """Whether a passage's score does not depend on the others, so that the collection can be searched in parts."""
        return not is_searcher(self.model)

    @property
    def pairs_only(self) -> bool:
        """Whether it is a cross-encoder, which cannot search."""
        return is_cross_encoder(self.model)

    def index(self, passages: Dataset) -> Callable[[Mapping[str, str], int, Mapping[str, list[str]] | None], Scores]:
        """Take passages (``id``, ``title``, ``text``); returns what searches them: (queries, depth, candidates)."""
        from followir_tasks.tasks import FollowIRSample

        search = searcher(self.model)
        settings: dict[str, Any] = {
            "task_metadata": FollowIRSample.metadata,
            "hf_split": "test",
            "hf_subset": "default",
            "encode_kwargs": {"batch_size": self._batch_size, "show_progress_bar": False},
        }
        search.index(passages.select_columns(["id", "title", "text"]), **settings)

        def run(queries: Mapping[str, str], depth: int, only: Mapping[str, list[str]] | None = None) -> Scores:
            asked = Dataset(pa.table({"id": list(queries), "text": list(queries.values())}))
            found = search.search(asked, top_k=depth, top_ranked=only, **settings)
            return {query: dict(scores) for query, scores in found.items()}

        return run


def in_parts(folder: Path, n_parts: int, make: Callable[[int], Any], label: str) -> Iterator[Any]:
    """The results of parts in turn, each from its file if it was made before: a killed run goes on behind the last."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    for number in tqdm(range(n_parts), desc=label, unit="part", disable=None):
        path = folder / f"part-{number:05d}.json"
        if not path.is_file():
            write_text(path, json.dumps(make(number)))
        yield json.loads(path.read_text(encoding="utf-8"))


def pool(
    workspace: Workspace,
    place: int,
    ranker: Ranker,
    collection: Collection,
    key: str,
    topics: Sequence[Chosen],
    depth: int,
) -> dict[str, list[str]]:
    """A model's best documents that are not relevant, by topic, best first; ties by document id, descending.

    Args:
        workspace: where the step's file is.
        place: the model's number, for the file's name.
        ranker: the model.
        collection: what it searches.
        key: of the collection; changes with it.
        topics: their relevant documents are left out.
        depth: documents a topic; fewer if the collection has no more.

    Raises:
        ValueError: if the model is a cross-encoder.
    """
    inputs = [[t.topic, t.query, sorted(t.relevant)] for t in topics]
    settings = {"model": ranker.label, "documents": key, "depth": depth}

    def make() -> list[Row]:
        if ranker.pairs_only:
            raise ValueError(f"--pool {ranker.name}: a cross-encoder cannot search a collection; name a retriever")
        folder = workspace.work / f"pool-{place}-{fingerprint([settings, inputs])[:12]}"
        run = _by_parts if ranker.by_parts else _whole
        found = run(ranker, collection, topics, depth, folder)
        rows = [
            {"topic": topic, "documents": (listed := top(scores, depth, topic)), "scores": [scores[d] for d in listed]}
            for topic, scores in found.items()
        ]
        shutil.rmtree(folder, ignore_errors=True)
        return rows

    return {row["topic"]: row["documents"] for row in workspace.computed(f"pool-{place}", settings, inputs, make)}


def _by_parts(ranker: Ranker, collection: Collection, topics: Sequence[Chosen], depth: int, folder: Path) -> Scores:
    queries = {t.topic: t.query for t in topics}
    batches = list(collection.batches())  # mapped, not read

    def make(number: int) -> Scores:
        part = Dataset(pa.Table.from_batches([batches[number]]))
        found = ranker.index(part)(queries, len(part), None)
        documents = dict(zip(part["id"], part["document"], strict=True))
        return {t.topic: _best(t, found[t.topic], documents, depth) for t in topics}

    out: Scores = {t.topic: {} for t in topics}
    for found in in_parts(folder, len(batches), make, ranker.name):
        for topic, scores in found.items():
            merged = out[topic] | scores
            out[topic] = {d: merged[d] for d in top(merged, depth, topic)}
    return out


def _whole(ranker: Ranker, collection: Collection, topics: Sequence[Chosen], depth: int, folder: Path) -> Scores:
    """Search deeper until there are enough documents: several passages of a ranking may be of one document."""
    passages = collection.passages()
    documents = dict(zip(column(passages, "id"), column(passages, "document"), strict=True))
    run = ranker.index(passages)
    out: Scores = {}
    for topic in topics:
        deep = 4 * (depth + len(topic.relevant))
        while True:
            deep = min(deep, len(passages))
            found = _best(topic, run({topic.topic: topic.query}, deep, None)[topic.topic], documents, depth)
            if len(found) >= depth or deep == len(passages):
                break
            deep *= 4
        out[topic.topic] = found
    return out


def _best(topic: Chosen, scores: Mapping[str, float], documents: Mapping[str, str], depth: int) -> dict[str, float]:
    """The best documents by their best passage, without the relevant ones."""
    best: dict[str, float] = {}
    for passage, score in scores.items():
        document = documents[passage]
        if document not in topic.relevant:
            best[document] = max(score, best.get(document, score))
    return {d: best[d] for d in top(best, depth, topic.topic)} if best else {}


def interleaved(lists: Sequence[Sequence[str]], number: int) -> list[str]:
    """The first documents of all lists, then the second ones, and so on, each once, up to a number.

    Within a rank the lists come in their order.
    """
    out: dict[str, None] = {}
    for rank in range(max(map(len, lists), default=0)):
        for listed in lists:
            if rank < len(listed) and len(out) < number:
                out.setdefault(listed[rank])
    return list(out)


def candidates(
    relevant: Mapping[str, Sequence[str]], pools: Sequence[Mapping[str, Sequence[str]]], number: int
) -> dict[str, list[str]]:
    """A fixed number of documents a topic: all relevant ones, then pooled ones.

    Args:
        relevant: by topic, those that the dataset knows.
        pools: each model's list by topic, without relevant documents.
        number: how many there must be.

    Raises:
        ValueError: naming topics with more relevant documents, or for which the collection has too few.
    """
    many = [f"{t} ({len(ds)})" for t, ds in relevant.items() if len(ds) > number]
    if many:
        raise ValueError(
            f"{len(many)} topics have more than {number} relevant documents: {shown(many)}; "
            "allow more with --candidates"
        )
    out = {
        topic: [*documents, *interleaved([pool[topic] for pool in pools], number - len(documents))]
        for topic, documents in relevant.items()
    }
    few = min(map(len, out.values()), default=number)
    if few < number:
        raise ValueError(
            f"the collection does not have {number} candidates for every topic, the smallest number is {few}: pass "
            f"--candidates {few}, or more documents"
        )
    return out
