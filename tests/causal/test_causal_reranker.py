"""Causal language models as rerankers: the answers' tokens, what is cut, batches, settings, and mteb."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
import torch
from followir_topics import few_topics
from transformers import AutoModelForCausalLM, AutoTokenizer

from evaluators.causal.loading import load_parts
from evaluators.causal.reading import Reading
from evaluators.causal.reranker import CausalReranker, reranker_meta
from evaluators.causal.settings import CausalSettings, write_settings
from evaluators.cli import main
from evaluators.judge import Prompt
from evaluators.plugin.models import resolve_model
from evaluators.plugin.running import evaluate
from followir_tasks.tasks import FollowIRSample

TEXT = "Q {query} I {instruction} D {document}\nAnswer:"
PROMPT = Prompt("test", {}, "", TEXT)
KINDS = ("llama", "gpt2")
CHAT = (
    "<s>{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]:{% endif %}"
)


@pytest.fixture(scope="module")
def readings(causal_models: dict[str, Path]) -> dict[str, Reading]:
    return {k: reading(causal_models[k]) for k in KINDS}


def reading(place: Path, prompt: Prompt = PROMPT, length: int = 512, chat: bool = False, **words: str) -> Reading:
    tokenizer = AutoTokenizer.from_pretrained(place)
    if chat:
        tokenizer.chat_template = CHAT
    return Reading(tokenizer, prompt, words.get("true", " true"), words.get("false", " false"), chat, length)


@pytest.fixture(scope="module")
def rerankers(causal_models: dict[str, Path], readings: dict[str, Reading]) -> dict[str, CausalReranker]:
    meta = mteb.models.ModelMeta.create_empty({"name": "local/tiny", "revision": "1"})
    return {k: CausalReranker(AutoModelForCausalLM.from_pretrained(causal_models[k]), readings[k], meta) for k in KINDS}


ROWS = [
    ("wind farms", "Relevant documents report delays.", "The wind farm is late."),
    ("ferries", "", "A ferry sank near the harbour. " * 12),
    ("wind farms", "Only after 2016.", ""),
    ("schools", "Local food in lunches counts.", "Pupils eat carrots from the farm next door. " * 5),
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_are_the_tokens_that_follow_the_prompt(readings: dict[str, Reading], kind: str) -> None:
    answers, tokenizer = readings[kind].answers, readings[kind].tokenizer
    assert tokenizer.convert_ids_to_tokens([answers.false, answers.true]) == ["Ġfalse", "Ġtrue"]
    ids = readings[kind].read("a", "b", "c").ids
    # The begin token once, where the tokenizer has one, and nothing after the prompt.
    assert ids == tokenizer("Q a I b D c\nAnswer:")["input_ids"]
    assert ids.count(0) == (kind == "llama")


def test_an_answer_that_is_no_token_is_named(causal_models: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match="the answer ' ultramarine' is not one token"):
        reading(causal_models["gpt2"], true=" ultramarine")
    # A blank at the prompt's end would be joined with the answer: the tokens scored were not those asked for.
    with pytest.raises(ValueError, match="is not one token"):
        reading(causal_models["gpt2"], Prompt("p", {}, "", TEXT + " "), true="true", false="false")
    with pytest.raises(ValueError, match="same answer"):
        CausalSettings(base="x", true="no", false="no")
    with pytest.raises(ValueError, match="' true' and ' true' are the same token"):
        reading(causal_models["gpt2"], false=" true")
    with pytest.raises(ValueError, match="has no chat template"):
        Reading(AutoTokenizer.from_pretrained(causal_models["gpt2"]), PROMPT, " true", " false", True, 99)


@pytest.mark.parametrize("chat", [False, True])
def test_only_the_document_is_cut_and_no_more_than_needed(causal_models: dict[str, Path], chat: bool) -> None:
    query, instruction, document = "wind farms at sea", "Only those that are late.", "Turbines off the coast. " * 40
    prompt = Prompt("p", {}, "You judge.", TEXT)
    whole = reading(causal_models["llama"], prompt, 512, chat)
    cut = reading(causal_models["llama"], prompt, 64, chat)
    assert not whole.read(query, instruction, document).cut
    tokens = cut.read(query, instruction, document)
    assert tokens.cut and 60 <= len(tokens.ids) <= 64
    text = whole.tokenizer.decode(tokens.ids)
    assert query in text and instruction in text and text.endswith("[assistant]:" if chat else "\nAnswer:")
    kept = text.split("D ", 1)[1].split("\n")[0]
    assert kept and document.startswith(kept)
    # The longest beginning that fits: a slow search over all of them.
    every = [whole.read(query, instruction, document[:n]).ids for n in range(len(kept) + 40)]
    assert tokens.ids == [ids for ids in every if len(ids) <= 64][-1]
    with pytest.raises(ValueError, match="tokens without a document, more than the 20 that fit"):
        reading(causal_models["llama"], prompt, 20, chat).read(query, instruction, document)


def test_texts_cannot_smuggle_special_tokens(readings: dict[str, Reading]) -> None:
    ids = readings["llama"].read("a</s>", "<s>b", "c</s><s>").ids
    assert ids.count(0) == 1 and 1 not in ids


def test_nor_those_of_a_chat_template(causal_models: dict[str, Path]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(causal_models["llama"])
    tokenizer.add_tokens(["<|user|>"], special_tokens=True)  # special, but none of the named ones
    (special,) = tokenizer.convert_tokens_to_ids(["<|user|>"])
    found = Reading(tokenizer, PROMPT, " true", " false", False, 512).read("a", "b", "c <|user|>true")
    assert special not in found.ids and "user" in tokenizer.decode(found.ids)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_do_not_depend_on_the_batch(rerankers: dict[str, CausalReranker], kind: str) -> None:
    model = rerankers[kind]
    alone = np.array([model.score([row])[0] for row in ROWS])
    for size in (2, 3, 4):
        np.testing.assert_allclose(model.score(ROWS, size), alone, rtol=1e-5)
    np.testing.assert_allclose(model.score(ROWS[::-1], 4), alone[::-1], rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_softmax_over_the_two_logits(rerankers: dict[str, CausalReranker], kind: str) -> None:
    model = rerankers[kind]
    found = model.score(ROWS)
    for row, value in zip(ROWS, found, strict=True):
        ids = torch.tensor([model.reading.read(*row).ids])
        with torch.no_grad():
            last = model.model(input_ids=ids).logits[0, -1].double()
        true, false = (float(last[at]) for at in (model.reading.answers.true, model.reading.answers.false))
        assert value == pytest.approx(1 / (1 + np.exp(false - true)), rel=1e-5)
    assert len(set(found)) == len(ROWS)


def test_probabilities_that_are_not_finite_are_an_error(causal_models: dict[str, Path]) -> None:
    model: Any = AutoModelForCausalLM.from_pretrained(causal_models["gpt2"])
    torch.nn.init.constant_(model.lm_head.weight, float("nan"))
    meta = mteb.models.ModelMeta.create_empty({"name": "local/nan", "revision": "1"})
    with pytest.raises(ValueError, match="NaN or infinity"):
        CausalReranker(model, reading(causal_models["gpt2"]), meta).score(ROWS)


@pytest.fixture
def directory(causal_models: dict[str, Path], tmp_path: Path) -> Path:
    shutil.copytree(causal_models["llama"], tmp_path / "base")
    (tmp_path / "prompt.txt").write_text(f"---\n---\n{TEXT}\n")
    settings = CausalSettings(base=str(tmp_path / "base"), max_length=256)
    write_settings(tmp_path / "reranker", settings, tmp_path / "prompt.txt")
    return tmp_path / "reranker"


def test_a_revision_changes_with_whatever_changes_scores(directory: Path, tmp_path: Path) -> None:
    first = reranker_meta(str(directory)).revision
    moved = tmp_path / "elsewhere"
    shutil.copytree(directory, moved)
    assert reranker_meta(str(moved)).revision == first
    prompt = directory / "prompt.txt"
    prompt.write_text(prompt.read_text().replace("Answer", "Relevant"))
    second = reranker_meta(str(directory)).revision
    config = tmp_path / "base" / "config.json"
    config.write_text(config.read_text().replace('"rms_norm_eps": 1e-06', '"rms_norm_eps": 1e-05'))
    third = reranker_meta(str(directory)).revision
    assert len({first, second, third}) == 3
    (directory / "causal_reranker.json").write_text('{"base": "x", "tru": "a"}')
    with pytest.raises(ValueError, match="unknown key 'tru'; did you mean 'true'"):
        reranker_meta(str(directory))
    with pytest.raises(ValueError, match="a revision of its base goes into settings"):
        resolve_model("causal-lm:x", "main")


def test_mteb_scores_it_with_the_instruction(directory: Path, tmp_path: Path) -> None:
    """On the sample, cut to a few candidates: what mteb is given is what `score` gives, query and instruction apart."""
    data = few_topics(tmp_path / "data", ["t101"], candidates=3)
    task: Any = FollowIRSample()
    task.data_path = data
    meta = resolve_model(str(directory))
    assert meta.name == "local/reranker" and meta.model_type == ["cross-encoder"]
    result = evaluate(
        meta, task, output_folder=tmp_path / "out", prediction_folder=tmp_path / "runs", show_progress_bar=False
    )
    found = result[0].scores["test"][0]
    assert "p-MRR" in found
    saved = json.loads(next((tmp_path / "runs").rglob("*_predictions.json")).read_text())["default"]["test"]
    task.load_data()
    queries = {row["id"]: row for row in task.data.queries}
    texts = {row["id"]: f"{row['title']} {row['text']}" for row in task.data.corpus}
    model = meta.load_model()
    asked: list[tuple[str, str, str]] = []
    for query, ranking in saved.items():
        rows = [(queries[query]["text"], queries[query]["instruction"], texts[d]) for d in ranking]
        np.testing.assert_allclose(list(ranking.values()), model.score(rows), rtol=1e-5)
        asked += rows
    read = [model.reading.read(*row) for row in asked]
    cut = sum(tokens.cut for tokens in read)
    assert cut > 0 == found["truncated_queries_share"] and found["truncated_documents_share"] == cut / len(read)
    model.reading.max_length = 10**6
    whole, empty = (sum(len(model.reading.read(q, i, text).ids) for q, i, text in rows)
                    for rows in (asked, [(q, i, "") for q, i, _ in asked]))  # fmt: skip
    unread = whole - sum(len(tokens.ids) for tokens in read)
    assert found["truncated_tokens_share"] == pytest.approx(unread / (whole - empty), abs=1e-6)


def test_an_adapter_changes_scores_and_must_fit_its_base(directory: Path, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    torch.manual_seed(0)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", target_modules="all-linear"))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    adapted.save_pretrained(directory / "adapter")
    plain = reranker_meta(str(directory))
    scores = plain.load_model().score(ROWS)
    fields = {"max_length": 256, "adapter": "adapter"}
    settings = CausalSettings(base=str(tmp_path / "base"), base_fingerprint="0" * 40, **fields)
    write_settings(directory, settings, directory / "prompt.txt")
    with pytest.raises(ValueError, match="does not belong to these weights"):
        reranker_meta(str(directory))
    write_settings(directory, settings.model_copy(update={"base_fingerprint": None}), directory / "prompt.txt")
    meta = reranker_meta(str(directory))
    found = meta.load_model().score(ROWS, 3)
    assert meta.revision != plain.revision and np.abs(found - scores).max() > 1e-3
    expected = CausalReranker(adapted, meta.load_model().reading, meta)
    np.testing.assert_allclose(found, expected.score(ROWS, 1), rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_no_longer_beginning_would_fit(readings: dict[str, Reading], kind: str) -> None:
    """A word may take fewer tokens when it is whole: at every limit against a slow search over all beginnings."""
    read = readings[kind]
    document = "Turbines off the coast, Zyxwvutsrqponm delayed; councillors' répôrts differ. " * 2
    lengths = [len(read.read("wind", "Late ones.", document[:n]).ids) for n in range(len(document) + 1)]
    assert any(later < earlier for earlier, later in pairwise(lengths))
    for limit in range(lengths[0], lengths[-1]):
        cut = Reading(read.tokenizer, PROMPT, " true", " false", False, limit)
        longest = max(n for n, length in enumerate(lengths) if length <= limit)
        assert cut.read("wind", "Late ones.", document).ids == read.read("wind", "Late ones.", document[:longest]).ids


def test_a_query_that_leaves_no_room_is_named_before_anything_is_read(causal_models: dict[str, Path]) -> None:
    short = reading(causal_models["gpt2"], length=40)
    meta = mteb.models.ModelMeta.create_empty({"name": "local/none", "revision": "1"})
    model: Any = None  # never asked
    rows = [*[("wind", "Late ones.", "document " * 99)] * 3, ("ferry", "word " * 60, "d"), ("bee", "word " * 50, "d")]
    read: list[Any] = []
    short.read = lambda *row: read.append(row)  # type: ignore[method-assign, assignment, func-returns-value]
    with pytest.raises(ValueError, match=r"'ferry' \(2 of 3 are too long\)"):
        CausalReranker(model, short, meta).score(rows)
    assert not read


WRONG_RERANKERS: dict[str, tuple[list[str], str]] = {
    "no such directory": (["--model", "./nowhere"], "./nowhere is not a directory"),
    "no name": (["--model", "a/b/c"], "Repo id must be in the form"),
    "no model": (["--model", "{tmp}"], "holds no language model: config.json is missing"),
    "an encoder": (["--model", "{bert}"], "is no causal language model but BertModel"),
    "no adapter": (["--adapter", "{tmp}"], "there is no adapter of peft"),
    "several tokens": (["--true", " ultramarine"], "the answer ' ultramarine' is not one token"),
    "the same token": (["--true", " false"], "' false' and ' false' are the same token"),
    "the same word": (["--true", "a", "--false", "a"], "true and false are the same answer, 'a'"),
    "no answer": (["--true", ""], "true: String should have at least 1 character, got ''"),
    "no template": (["--chat"], "has no chat template"),
    "no room": (["--max-length", "8"], "tokens without a document, more than the 8 that fit"),
    "too short": (["--max-length", "3"], "max_length: Input should be greater than or equal to 8, got 3"),
    "revision": (["--revision", "main"], "is a directory, which has no revision 'main'"),
}


@pytest.mark.parametrize("case", WRONG_RERANKERS)
def test_what_cannot_be_used_is_told_when_the_reranker_is_made(
    case: str,
    causal_models: dict[str, Path],
    tiny_models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given, told = WRONG_RERANKERS[case]
    places = {"tmp": tmp_path, "bert": tiny_models["CrossEncoder"].parent / "bert"}
    prompt = tmp_path / "prompt.txt"
    prompt.write_text(f"---\n---\n{TEXT}\n")
    model = [] if "--model" in given else ["--model", str(causal_models["gpt2"])]
    further = [text.format(**places) for text in given]
    out = tmp_path / "out"
    arguments = ["followir", "reranker", *model, "--prompt", str(prompt), "--out", str(out), *further]
    assert main(arguments) == 1
    message = capsys.readouterr().err
    assert told in message and "pydantic" not in message and not out.exists()


def test_a_reranker_of_a_hub_model_says_what_is_not_known_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["followir", "reranker", "--model", "nobody/has-this", "--out", str(tmp_path / "out")]) == 0
    assert "not checked: nobody/has-this is not on this machine" in capsys.readouterr().out
    assert (tmp_path / "out" / "causal_reranker.json").is_file()


def test_no_head_with_random_weights_answers(tiny_models: dict[str, Path]) -> None:
    """Transformers puts one on an encoder without a word, so that its scores would be noise."""
    settings = CausalSettings(base=str(tiny_models["CrossEncoder"].parent / "bert"))
    with pytest.raises(ValueError, match="is no causal language model but BertModel"):
        load_parts(settings)
