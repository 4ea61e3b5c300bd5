"""What the diagnostics ask of models: how much they read, embeddings kept on disk, sparse embeddings."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluators.plugin.models import identified, register_local_model
from evaluators.plugin.mteb_internals import wrapped_model
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.models import _GrowingCache, characters_read, encoded_once
from tcr_tasks.diagnostics.tasks import CaseTask

GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi"


@pytest.mark.parametrize("prompts", [{}, {"document": "a passage with words before it: "}, {"passage": "passage: "}])
def test_characters_read_against_the_embedding(tiny_models: dict[str, Path], prompts: dict[str, str]) -> None:
    """What lies beyond the place makes no difference to the model's embedding; the last word before it does."""
    from sentence_transformers import SentenceTransformer

    inner = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu", prompts=prompts)
    inner.max_seq_length = 20
    read = characters_read(wrapped_model(inner)[0], CaseTask.metadata)
    assert read is not None
    place = read(GREEK, "")
    assert 0 < place < len(GREEK)
    texts = [GREEK, GREEK[:place], GREEK[: GREEK.rindex(" ", 0, place)]]
    whole, same, shorter = inner.encode_document(texts, batch_size=1)
    assert np.allclose(whole, same, atol=1e-6)
    assert not np.allclose(whole, shorter, atol=1e-4)
    assert read("alpha", "") == len("alpha")


# ---- the cache ---------------------------------------------------------------------------------------------------

ITEMS = [{"text": f"text {i}"} for i in range(6)]
VECTORS = np.arange(1, 25, dtype=np.float32).reshape(6, 4)


def zero_from_the_fourth(folder: Path) -> None:
    with (folder / "vectors.npy").open("r+b") as handle:
        handle.seek(3 * 4 * 4)
        handle.write(bytes(100))


DAMAGE: dict[str, tuple[Callable[[Path], object], int]] = {
    "dimension empty": (lambda f: (f / "dimension").write_text(""), 0),
    "dimension of another model": (lambda f: (f / "dimension").write_text("1000000"), 0),
    "no dimension": (lambda f: (f / "dimension").unlink(), 0),
    "vectors cut": (lambda f: (f / "vectors.npy").write_bytes(bytes(32)), 0),
    "no vectors": (lambda f: (f / "vectors.npy").unlink(), 0),
    "index cut": (lambda f: (f / "index.json").write_text('{"a": 0,'), 0),
    "no index": (lambda f: (f / "index.json").unlink(), 0),
    "index of other rows": (lambda f: (f / "index.json").write_text('{"a": 7}'), 0),
    "rows of zero": (zero_from_the_fourth, 3),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_cache_gives_what_is_whole_and_is_filled_again(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage, whole = DAMAGE[name]
    cache = _GrowingCache(tmp_path)
    cache.load()
    cache.add(ITEMS, VECTORS)
    cache.save()
    cache.close()
    damage(tmp_path)
    again = _GrowingCache(tmp_path)
    with caplog.at_level(logging.WARNING):
        again.load()
    assert str(tmp_path) in caplog.text
    assert [again.get_vector(item) is not None for item in ITEMS] == [True] * whole + [False] * (6 - whole)
    again.add(ITEMS[whole:], VECTORS[whole:])
    again.save()
    again.close()
    last = _GrowingCache(tmp_path)
    last.load()
    assert np.array_equal(np.stack([np.asarray(last.get_vector(item)) for item in ITEMS]), VECTORS)


# ---- sparse embeddings -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse(tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.models import MLMTransformer, SpladePooling
    from transformers import AutoConfig, AutoTokenizer, BertForMaskedLM

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("sparse")
    source = tiny_models["SentenceTransformer"].parent / "bert"
    BertForMaskedLM(AutoConfig.from_pretrained(source)).save_pretrained(folder / "mlm")
    AutoTokenizer.from_pretrained(source).save_pretrained(folder / "mlm")
    SparseEncoder(modules=[MLMTransformer(str(folder / "mlm")), SpladePooling()], device="cpu").save(
        str(folder / "splade")
    )
    return folder / "splade"


@pytest.mark.parametrize("with_candidates", [False, True])
def test_sparse_encoders_rank_as_their_dense_matrix(sparse: Path, tmp_path: Path, with_candidates: bool) -> None:
    from sentence_transformers import SparseEncoder

    texts = {f"d{i}": f"{word} and {word} again" for i, word in enumerate(GREEK.split()[:9])}
    queries = {"q1": "what of gamma?", "q2": "where is eta?"}
    candidates = {"q1": ("d0", "d2", "d5"), "q2": ("d6", "d3")} if with_candidates else None
    case = Case(
        documents=texts,
        queries=queries,
        targets={"q1": ("d2",), "q2": ("d6",)},
        groups={"q1": ("d2", "d0"), "q2": ("d6", "d3")},
        candidates=candidates,
    )
    task = CaseTask(case, "r")
    wrapped, _ = wrapped_model(identified(register_local_model(sparse).load_model(device="cpu")))
    run(encoded_once(wrapped, tmp_path), task)
    inner: Any = SparseEncoder(str(sparse), device="cpu")
    documents = inner.encode_document(list(texts.values())).to_dense().numpy()
    asked = inner.encode_query(list(queries.values())).to_dense().numpy()
    for query, row in zip(queries, asked @ documents.T, strict=True):
        expected = {d: s for d, s in zip(texts, row, strict=True) if candidates is None or d in candidates[query]}
        assert task.runs["default"][query] == pytest.approx(expected, rel=1e-4)


def run(model: Any, task: CaseTask) -> None:
    import mteb

    mteb.evaluate(model, task, cache=None, show_progress_bar=False)
