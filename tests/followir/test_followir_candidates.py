"""Pooling and the choice of passages with mteb models, against slow definitions; a killed run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from evaluators.construction.workspace import Workspace
from followir_tasks.construction import collection as collection_module
from followir_tasks.construction.collection import Collection, write_collection
from followir_tasks.construction.documents import find_documents
from followir_tasks.construction.maxp import best_passages
from followir_tasks.construction.pooling import Ranker, pool
from followir_tasks.construction.selection import Chosen

BM25 = "mteb/baseline-bm25s"
QUERIES = {"1": "ships in the harbour", "2": "wages of miners"}
WORDS = [
    "ships",
    "harbour",
    "wages",
    "miners",
    "train",
    "bridge",
    "salt",
    "glass",
    "tower",
    "river",
    "market",
    "winter",
]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Thirty short documents and three long ones, whose second half alone speaks of ships."""
    rng = np.random.default_rng(0)
    out = {f"d{n}": " ".join(rng.choice(WORDS, 12)) for n in range(30)}
    for n in range(3):
        filler = " ".join(rng.choice(["stone", "paper", "cloud"], 450))
        out[f"long{n}"] = f"{filler} ships in the harbour, ships and ships {' '.join(['quiet'] * 200)}"
    return out


@pytest.fixture
def collection(texts: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    monkeypatch.setattr(collection_module, "_PER_PART", 8)
    lines = [json.dumps({"_id": d, "title": "about", "text": text}) + "\n" for d, text in texts.items()]
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    return write_collection(find_documents(str(tmp_path / "docs.jsonl")), tmp_path / "collection.arrow")


@pytest.fixture
def topics() -> list[Chosen]:
    return [
        Chosen("1", QUERIES["1"], "n", {"d3": 1, "d4": 2}, ["d5"]),
        Chosen("2", QUERIES["2"], "n", {"d1": 1}, []),
    ]


def workspace(folder: Path) -> Workspace:
    return Workspace(folder / "out", None, tell=lambda text: None)


def passages_of(collection: Collection) -> Iterator[tuple[str, str, str]]:
    for batch in collection.batches():
        yield from zip(*(batch[c].to_pylist() for c in ("id", "document", "text")), strict=True)


@pytest.fixture(scope="module")
def encoder(tiny_models: dict[str, Path]) -> Path:
    return tiny_models["SentenceTransformer"]


def slow_scores(encoder: Path, collection: Collection) -> dict[str, dict[str, float]]:
    """Query -> passage -> cosine, all at once and without mteb."""
    model = SentenceTransformer(str(encoder), device="cpu")
    listed = list(passages_of(collection))
    documents = model.encode([f"about {text}" for _, _, text in listed], normalize_embeddings=True)
    queries = model.encode(list(QUERIES.values()), normalize_embeddings=True)
    return {
        q: dict(zip((i for i, _, _ in listed), row.tolist(), strict=True))
        for q, row in zip(QUERIES, queries @ documents.T, strict=True)
    }


def test_an_encoder_pools_by_best_passage_part_by_part(
    encoder: Path, collection: Collection, topics: list[Chosen], tmp_path: Path
) -> None:
    assert len(list(collection.batches())) > 3
    found = pool(workspace(tmp_path), 1, Ranker(str(encoder)), collection, "key", topics, 10)
    owner = {i: d for i, d, _ in passages_of(collection)}
    for topic in topics:
        best: dict[str, float] = {}
        for passage, score in slow_scores(encoder, collection)[topic.topic].items():
            best[owner[passage]] = max(score, best.get(owner[passage], -2.0))
        expected = sorted((d for d in best if d not in topic.relevant), key=lambda d: -best[d])
        assert [best[d] for d in found[topic.topic]] == pytest.approx([best[d] for d in expected[:10]], abs=1e-5)
        assert not set(found[topic.topic]) & topic.relevant.keys() and len(found[topic.topic]) == 10


def test_a_killed_run_goes_on_behind_the_last_part(
    encoder: Path, collection: Collection, topics: list[Chosen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pool(workspace(tmp_path / "whole"), 1, Ranker(str(encoder)), collection, "key", topics, 10)
    sizes: list[int] = []
    index = Ranker.index

    def killed_at_third(self: Ranker, passages: Any) -> Any:
        if len(sizes) == 2:
            raise KeyboardInterrupt
        sizes.append(len(passages))
        return index(self, passages)

    monkeypatch.setattr(Ranker, "index", killed_at_third)
    with pytest.raises(KeyboardInterrupt):
        pool(workspace(tmp_path), 1, Ranker(str(encoder)), collection, "key", topics, 10)
    resumed: list[int] = []

    def counted(self: Ranker, passages: Any) -> Any:
        resumed.append(len(passages))
        return index(self, passages)

    monkeypatch.setattr(Ranker, "index", counted)
    # A killed process leaves a folder that only holds parts; the state is written with the first finished step.
    (tmp_path / "out" / "work" / "state.json").write_text("{}")
    assert pool(workspace(tmp_path), 1, Ranker(str(encoder)), collection, "key", topics, 10) == whole
    assert sizes + resumed == [batch.num_rows for batch in collection.batches()]
    assert [p.name for p in (tmp_path / "out" / "work").iterdir() if p.is_dir()] == []
    assert pool(workspace(tmp_path), 1, Ranker(str(encoder)), collection, "key", topics, 10) == whole
    assert len(sizes + resumed) == len(list(collection.batches()))


def test_bm25_pools_documents_until_there_are_enough(
    collection: Collection, topics: list[Chosen], tmp_path: Path
) -> None:
    found = pool(workspace(tmp_path), 1, Ranker(BM25), collection, "key", topics, 31)
    assert {len(set(listed)) for listed in found.values()} == {31}
    # Only documents with a word of the query score: all of them come first. (BM25 takes "in" and "the" for no words.)
    texts: dict[str, str] = {}
    for _, document, text in passages_of(collection):
        texts[document] = f"{texts.get(document, '')} {text}"
    for topic, words in (("1", {"ships", "harbour"}), ("2", {"wages", "miners"})):
        hits = [bool(words & set(texts[d].replace(",", "").split())) for d in found[topic]]
        assert hits == sorted(hits, reverse=True) and any(hits)


@pytest.mark.parametrize("kind", ["bm25", "SentenceTransformer", "CrossEncoder"])
def test_the_best_passage_stands_for_a_document(
    kind: str, tiny_models: dict[str, Path], collection: Collection, tmp_path: Path
) -> None:
    name = BM25 if kind == "bm25" else str(tiny_models[kind])
    documents = {"1": ["long0", "d1", "long2"], "2": ["long0", "d2"]}
    found = best_passages(workspace(tmp_path), Ranker(name), collection, "key", QUERIES, documents)
    assert {t: list(of) for t, of in found.items()} == documents
    assert found["1"]["d1"] == "d1" and found["2"]["d2"] == "d2"
    if kind == "bm25":
        # By hand: words 450 to 460 speak of ships; they are in the passages of words 200-600 and 400-657. Both have all
        # of them, and BM25 prefers the shorter one.
        assert (found["1"]["long0"], found["1"]["long2"]) == ("long0::3", "long2::3")
        assert found["2"]["long0"] == "long0::1"  # no passage has a word of the query: the first one
    elif kind == "SentenceTransformer":
        scores = slow_scores(tiny_models[kind], collection)
        for topic, of in found.items():
            for document in of.keys() & {"long0", "long2"}:
                mine = {p: s for p, s in scores[topic].items() if p.startswith(f"{document}::")}
                assert mine[of[document]] == pytest.approx(max(mine.values()), abs=1e-5)


def test_a_cross_encoder_cannot_pool(
    tiny_models: dict[str, Path], collection: Collection, topics: list[Chosen], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="a cross-encoder cannot search a collection; name a retriever"):
        pool(workspace(tmp_path), 1, Ranker(str(tiny_models["CrossEncoder"])), collection, "key", topics, 5)
