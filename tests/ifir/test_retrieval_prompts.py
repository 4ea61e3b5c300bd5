"""The exact text that each kind of model reads with a prompt, and the file that the prompts come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
from datasets import Dataset
from fixed_ranking import FixedRanking, scores_of
from mteb._create_dataloaders import create_dataloader
from mteb.models import ModelMeta
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
from mteb.types import PromptType
from sentence_transformers import SentenceTransformer

import ifir_tasks
from evaluators import cli
from evaluators.plugin import evaluate, with_variant
from evaluators.plugin.models import BM25
from evaluators.plugin.mteb_internals import query_texts
from ifir_tasks.retrieval import PromptFamily, TaskPrompts, hybrid, prompt_family, prompted, sliding_window
from ifir_tasks.retrieval.prompts import PROMPT_FILE, prompt_families

FAMILIES = ("instructor", "e5-mistral", "gritlm", "default", "none")
TASKS = {t.metadata.name for t in (*ifir_tasks.SUBSET_TASKS, ifir_tasks.IFIRSample)}
OWN = PromptFamily("own", "<{prompt}> ", {"IFIRSample": TaskPrompts("find")})
BOTH = PromptFamily("both", "<{prompt}> ", {"IFIRSample": TaskPrompts("find", "passage")})
SAMPLE = ifir_tasks.IFIRSample.metadata
QUESTION, INSTRUCTION = "May I sell?", "I rent a flat."
# The first instructed query of the sample.
INSTRUCTED = (
    "Should I pay off my student loans ahead of schedule? Please help me to find financial advice for this question."
)
# What mteb makes of a query, of one with an instruction, of a passage with and of one without a title.
QUERIES = [QUESTION, f"{QUESTION} {INSTRUCTION}"]
PASSAGES = ["Selling A buyer pays.", "A lease ends."]


def record(name: str) -> ModelMeta:
    return ModelMeta.create_empty({"name": f"tests/{name}", "revision": "1"})


class Reading:
    """An encoder by protocol that remembers what it read."""

    def __init__(self) -> None:
        self.mteb_model_meta = record("reading")
        self.read: dict[str, list[str]] = {"query": [], "document": []}

    def encode(self, inputs: Any, *, prompt_type: PromptType, **kwargs: Any) -> np.ndarray:
        batch = [text for batch in inputs for text in batch["text"]]
        self.read[prompt_type.value] += batch
        return np.array([[float(len(t)), 1.0] for t in batch])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return np.asarray(embeddings1) @ np.asarray(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return (np.asarray(embeddings1) * np.asarray(embeddings2)).sum(axis=1)


class ReadingCrossEncoder:
    def __init__(self) -> None:
        self.mteb_model_meta = record("reading-cross-encoder")
        self.read: list[tuple[str, str]] = []

    def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> np.ndarray:
        first, second = ([t for batch in inputs for t in batch["text"]] for inputs in (inputs1, inputs2))
        self.read += zip(first, second, strict=True)
        return np.arange(len(first), dtype=float)


def run(model: Any) -> None:
    """Have a model encode queries and passages as mteb does for a task."""
    queries = [
        {"id": "a-og", "text": QUESTION, "instruction": None},
        {"id": "a-v1", "text": QUESTION, "instruction": INSTRUCTION},
    ]
    passages = [{"id": "1", "title": "Selling", "text": "A buyer pays."}, {"id": "2", "title": "", "text": PASSAGES[1]}]
    for kind, rows in ((PromptType.query, queries), (PromptType.document, passages)):
        table = Dataset.from_list(rows)
        if kind == PromptType.query:  # as the task does, whose plain queries have no instruction
            table = Dataset.from_dict({"id": table["id"], "text": query_texts(table)})
        loader = create_dataloader(table, task_metadata=SAMPLE, prompt_type=kind, batch_size=1)
        found = model.encode(
            loader, task_metadata=SAMPLE, hf_split="test", hf_subset="default", prompt_type=kind, batch_size=2
        )
        assert len(found) == 2


def reading(model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What a sentence-transformers model is asked to embed, prompt included, until the test ends."""
    read: dict[str, list[str]] = {"query": [], "document": []}
    encode = model.encode

    def noting(inputs: Any, prompt_name: str | None = None, prompt: str | None = None, **kwargs: Any) -> Any:
        front = prompt if prompt is not None else model.prompts[prompt_name] if prompt_name else ""
        # mteb's instruction models do not say which it is.
        kind = kwargs.get("task") or ("document" if inputs == PASSAGES else "query")
        read[kind] += [front + text for text in inputs]
        return encode(inputs, prompt_name=prompt_name, prompt=prompt, **kwargs)

    monkeypatch.setattr(model, "encode", noting)
    return read


def check(read: dict[str, list[str]], query: str, document: str = "") -> None:
    assert read == {"query": [query + text for text in QUERIES], "document": [document + text for text in PASSAGES]}


# ---- the file ---------------------------------------------------------------------------------------------------


def test_every_family_has_prompts_for_every_task() -> None:
    for name in FAMILIES:
        family = prompt_family(name)
        assert set(family.tasks) == TASKS
        assert all(bool(p.query) == (name != "none") for p in family.tasks.values())
        assert all(bool(p.document) == (name == "instructor") for p in family.tasks.values())
    with pytest.raises(ValueError, match=r"unknown prompts 'bge'; choose from instructor, .*, none"):
        prompt_family("bge")


def test_the_file_says_which_prompt_is_the_paper_s() -> None:
    content = json.loads(PROMPT_FILE.read_text(encoding="utf-8"))
    origins = {
        (wording, task): entry["origin"]
        for wording, tasks in content["wordings"].items()
        for task, entry in tasks.items()
    }
    assert set(origins.values()) == {"paper", "ours"}
    assert [key for key, origin in origins.items() if origin == "paper"] == [("represent", "IFIRScifactOpenInstFol")]
    instructor = prompt_family("instructor")
    sentence = instructor.sentence("IFIRScifactOpenInstFol", PromptType.query)
    # Section 5.2, the one prompt that the paper prints, with its blank.
    assert instructor.rendered(sentence) == "Represent the science question for retrieval. "
    assert "project's own" in " ".join(content["about"])


def test_the_command_names_the_families(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["ifir", "run", "--help"])
    told = capsys.readouterr().out
    assert set(prompt_families()) == set(FAMILIES) and all(name in told for name in FAMILIES)


def test_templates() -> None:
    rendered = {name: prompt_family(name).rendered("Find it.") for name in FAMILIES}
    assert rendered == {
        "instructor": "Find it. ",
        "e5-mistral": "Instruct: Find it.\nQuery: ",
        "gritlm": "<|user|>\nFind it.\n<|embed|>\n",
        "default": "Find it. ",
        "none": "Find it.",
    }
    assert all(prompt_family(name).rendered("") == "" for name in FAMILIES)
    with pytest.raises(ValueError, match=r"prompts 'own' lacks \{prompt\}"):
        PromptFamily("own", "Find: ", {})


# ---- what models read -------------------------------------------------------------------------------------------


def test_an_encoder_by_protocol() -> None:
    model = Reading()
    run(prompted(model, OWN))
    check(model.read, "<find> ")
    model = Reading()
    run(prompted(model, BOTH))
    check(model.read, "<find> ", "<passage> ")


@pytest.mark.parametrize("own", [None, {"query": "query: ", "document": "passage: "}])
def test_sentence_transformers(
    tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, own: dict[str, str] | None
) -> None:
    inner = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu", prompts=own)
    query, document = ("query: ", "passage: ") if own else ("", "")
    read = reading(inner, monkeypatch)
    run(prompted(inner, OWN))
    check(read, f"{query}<find> ", document)
    read.update(query=[], document=[])
    run(prompted(inner, BOTH))
    check(read, f"{query}<find> ", f"{document}<passage> ")
    read.update(query=[], document=[])
    run(prompted(inner, "none"))
    check(read, query, document)


def test_prompts_of_mteb_s_wrapper_for_a_task_are_kept(
    tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")
    read = reading(inner, monkeypatch)
    run(prompted(SentenceTransformerEncoderWrapper(inner, model_prompts={"IFIRSample-query": "mine: "}), OWN))
    check(read, "mine: <find> ")


@pytest.mark.parametrize("to_passages", [False, True])
def test_instruction_models_of_mteb_bring_their_template(
    tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, to_passages: bool
) -> None:
    def template(instruction: str = "", prompt_type: PromptType | None = None) -> str:
        return f"<|user|>\n{instruction}\n<|embed|>\n" if instruction else "<|embed|>\n"

    model = InstructSentenceTransformerModel(
        str(tiny_models["SentenceTransformer"]),
        "1",
        device="cpu",
        instruction_template=template,
        apply_instruction_to_passages=to_passages,
    )
    model.mteb_model_meta = record("instruct")
    read = reading(model.model, monkeypatch)
    run(model)
    default = read["query"][0].split("\n")[1]
    assert default, "mteb gives such models an instruction of its own"
    document = "<|embed|>\n" if to_passages else ""
    for family, query in ((OWN, "<|user|>\nfind\n<|embed|>\n"), (prompt_family("none"), "<|embed|>\n")):
        read.update(query=[], document=[])
        run(prompted(model, family))
        check(read, query, document)
        assert default not in "".join(read["query"] + read["document"])
    assert model.get_instruction(SAMPLE, PromptType.query) == default


def test_an_instruction_model_without_template_gets_the_family_s(
    tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = InstructSentenceTransformerModel(str(tiny_models["SentenceTransformer"]), "1", device="cpu")
    model.mteb_model_meta = record("instruct")
    read = reading(model.model, monkeypatch)
    run(prompted(model, OWN))
    check(read, "<find> ")


def test_a_search_model() -> None:
    class Ranking(FixedRanking):
        def search(self, queries: Any, **kwargs: Any) -> Any:
            self.run = {q: {"00656edc-fin": 1.0} for q in queries["id"]}
            return super().search(queries, **kwargs)

    model = Ranking({})
    scores_of(mteb.get_task("IFIRSample"), prompted(model, OWN))
    assert model.texts["fin-01-v1"] == f"<find> {INSTRUCTED}"
    assert len(model.texts) == 144


def test_a_cross_encoder(tmp_path: Path) -> None:
    mteb.evaluate(mteb.get_model(BM25), mteb.get_task("IFIRSample"), cache=None, prediction_folder=tmp_path)
    task = mteb.get_task("IFIRSample").convert_to_reranking(tmp_path, top_k=2)
    model = ReadingCrossEncoder()
    scores_of(task, with_variant(prompted(model, OWN), task))
    assert len(model.read) == 288
    assert all(q.startswith("<find> ") and not d.startswith("<") for q, d in model.read)
    assert f"<find> {INSTRUCTED}" in {q for q, _ in model.read}


def test_the_prompt_is_part_of_every_window(tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    windows = sliding_window(
        SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu"), window=64, overlap=8
    )
    read = reading(windows.model, monkeypatch)
    run(prompted(windows, OWN))
    check(read, "<find> ")


# ---- refusals and records ---------------------------------------------------------------------------------------


def test_a_task_without_prompts_is_refused() -> None:
    model = prompted(Reading(), PromptFamily("own", "{prompt} ", {"IFIRPmInstFol": TaskPrompts("find")}))
    with pytest.raises(ValueError, match="'own' have none for the task IFIRSample, only for IFIRPmInstFol; give a Pr"):
        run(model)


def test_where_prompts_cannot_go() -> None:
    bm25 = mteb.get_model(BM25)
    with pytest.raises(ValueError, match="'instructor' concern documents too, which only an encoder reads"):
        prompted(bm25, "instructor")
    with pytest.raises(ValueError, match="in a hybrid around its parts"):
        prompted(hybrid(Reading(), bm25), "default")
    with pytest.raises(ValueError, match="prompts go around a model without them"):
        prompted(prompted(bm25, "default"), "none")


def test_families_and_edits_are_filed_apart(tmp_path: Path, little_task: Callable[[], Any]) -> None:
    edited = PromptFamily("own", "<{prompt}> ", {"IFIRSample": TaskPrompts("search")})
    for family in (OWN, edited, prompt_family("none")):
        evaluate(prompted(Reading(), family), little_task(), output_folder=tmp_path)
    folders = sorted(p.parent.name for p in tmp_path.rglob("IFIRSample.json"))
    assert len(folders) == 3
    assert [f.rsplit("-", 1)[0] for f in folders] == ["prompts_none", "prompts_own", "prompts_own"]
    assert prompted(Reading(), OWN).mteb_model_meta == prompted(Reading(), OWN).mteb_model_meta
