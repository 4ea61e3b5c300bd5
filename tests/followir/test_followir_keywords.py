"""Keywords in place of instructions on mteb's own tasks, read from small repositories in their layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
import yaml
from datasets import Dataset
from mteb.abstasks import AbsTask
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
from mteb.types import PromptType
from sentence_transformers import SentenceTransformer
from torch.utils.data import DataLoader

from evaluators.cli import main
from evaluators.metrics.standard import trec_measure
from evaluators.plugin.predictions import read_predictions
from evaluators.plugin.prompting import with_prompts
from followir_tasks.ablation.keywords import TASKS, keyword_families, markdown, run_keywords
from followir_tasks.report.published import published_table

pytestmark = pytest.mark.usefixtures("fresh_cache")

BM25 = "mteb/baseline-bm25s"
DOCS = {
    "d1": "A science paper on the health of bees in spring",
    "d2": "Bees gather pollen in gardens and fields",
    "d3": "How to verify a claim about bees",
    "d4": "Markets fell and interest rose",
    "d5": "A gardener's year with flowers",
}
QUERIES = {"q1": "bees in gardens", "q2": "interest on markets", "q3": "flowers of the year"}
QRELS = {"q1": {"d2": 1, "d3": 1}, "q2": {"d4": 1}, "q3": {"d5": 2, "d1": 1}}


def write_repository(folder: Path, queries: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    rows: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"_id": d, "title": "", "text": text} for d, text in DOCS.items()],
        "queries": [{"_id": q, "text": text} for q, text in queries.items()],
        "default": [
            {"query-id": q, "corpus-id": d, "score": grade} for q, docs in QRELS.items() for d, grade in docs.items()
        ],
    }
    configs = []
    for name, listed in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in listed))
        split = "test" if name == "default" else name
        configs.append({"config_name": name, "data_files": [{"split": split, "path": f"{name}.jsonl"}]})
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n")
    return folder


def scifact(folder: Path) -> Callable[[], AbsTask]:
    """mteb's task, whose data are the small repository."""

    def make() -> AbsTask:
        task = mteb.get_task("SciFact", eval_splits=["test"])
        dataset = {"path": str(folder), "revision": "1"}
        task.metadata = task.metadata.model_copy(update={"dataset": dataset})
        return task

    return make


def test_the_keywords_are_those_of_table_5() -> None:
    families = keyword_families()
    assert {f.printed: f.prompts.tasks["FiQA2018"].query for f in families.values()} == {
        "BM25/Contriever/E5/MonoT5": "Finance web",
        "TART-dual": "financial web",
        "INSTRUCTOR-base": "financial supporting:",
        "BGE-base": "relevant passages:",
        "INSTRUCTOR-xl": "finance supporting:",
        "E5-Mistral": "financial replies",
        "TART-T5-FLAN-xl": "financial web",
    }
    assert all(set(f.prompts.tasks) == set(TASKS) for f in families.values())
    assert families["instructor-xl"].prompts.tasks["NFCorpus"].query == "nutrition facts public medical:"
    # Every model of Table 3 has its keywords.
    assert sorted(m for f in families.values() for m in f.models) == sorted(published_table("3").rows)


def test_keywords_stand_before_the_query_and_the_difference_is_paired(tmp_path: Path) -> None:
    family = keyword_families()["no-instruction"]
    (run,) = run_keywords(BM25, family, [scifact(write_repository(tmp_path / "set", QUERIES))], tmp_path / "out", 8)
    files = sorted((tmp_path / "out" / "predictions").rglob("SciFact_predictions.json"), key=lambda p: len(p.parts))
    plain, prompted = (trec_measure(read_predictions(f, "default", "test").run, QRELS, "ndcg_cut.10") for f in files)
    assert (run.original, run.keywords) == (plain, prompted)
    assert plain != prompted
    # mteb's own number of the same runs.
    results = sorted((tmp_path / "out" / "results").rglob("SciFact.json"), key=lambda p: len(p.parts))
    for scores, path in zip((plain, prompted), results, strict=True):
        saved = json.loads(path.read_text())["scores"]["test"][0]["ndcg_at_10"]
        assert sum(scores.values()) / 3 == pytest.approx(saved, abs=1e-5)
    # The same as queries that have the keywords in them.
    written = {q: f"science paper verify {text}" for q, text in QUERIES.items()}
    (other,) = run_keywords(BM25, family, [scifact(write_repository(tmp_path / "b", written))], tmp_path / "out2", 8)
    assert other.original == run.keywords
    text = markdown([run], family)
    assert "| science paper verify |" in text and "published BM25: same method" in text
    row = next(line for line in text.splitlines() if line.startswith("| BM25 "))
    assert [cell.strip() for cell in row.strip("|").split("|")][1:3] == ["67.9", "-1.7"]
    # Nothing is run again; without predictions it is.
    before = [path.stat().st_mtime_ns for path in results]
    again = list(run_keywords(BM25, family, [scifact(tmp_path / "set")], tmp_path / "out", 8))
    assert again == [run] and [path.stat().st_mtime_ns for path in results] == before
    files[1].unlink()
    assert list(run_keywords(BM25, family, [scifact(tmp_path / "set")], tmp_path / "out", 8)) == [run]


@pytest.mark.parametrize(
    ("own", "kept"),
    [("Represent this sentence for searching relevant passages: ", ""), ("query: ", "query: "), (None, "")],
)
def test_keywords_take_the_place_of_a_models_own_instruction(
    own: str | None, kept: str, tmp_path: Path, tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the tokenizer gets the queries of BGE, of E5, and of a model without prompts."""
    model = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")
    if own is not None:
        model.prompts["query"] = own
    model.save_pretrained(str(tmp_path / "model"))
    read: list[str] = []
    tokenize = SentenceTransformer.preprocess

    def noting(self: Any, inputs: Any, prompt: str | None = None, **kwargs: Any) -> Any:
        read.extend((prompt or "") + text for text in inputs if text in QUERIES.values())
        return tokenize(self, inputs, prompt=prompt, **kwargs)

    monkeypatch.setattr(SentenceTransformer, "preprocess", noting)
    make = scifact(write_repository(tmp_path / "set", QUERIES))
    list(run_keywords(str(tmp_path / "model"), keyword_families()["bge-base"], [make], tmp_path / "out", 8))
    fronts = (own or "", f"{kept}relevant passages: ")
    assert sorted(read) == sorted(front + text for front in fronts for text in QUERIES.values())


def test_a_wrapper_that_uses_prompts_in_its_own_way(tiny_models: dict[str, Path]) -> None:
    read: list[str] = []

    class OwnWay(SentenceTransformerEncoderWrapper):
        def encode(self, inputs: Any, **kwargs: Any) -> Any:
            read.extend(text for batch in inputs for text in batch["text"])
            return np.zeros((len(read), 2))

    def encode(own: str) -> None:
        inner = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")
        model = with_prompts(OwnWay(inner, model_prompts={"query": own}), keyword_families()["bge-base"].prompts)
        queries = DataLoader(Dataset.from_dict({"id": ["q"], "text": ["bees"]}))
        model.encode(queries, task_metadata=mteb.get_task("SciFact").metadata, prompt_type=PromptType.query)

    encode("query: ")
    assert read == ["relevant passages: bees"]  # and its own mark before it
    with pytest.raises(ValueError, match="uses it in a way of its own: the prompts 'keywords-bge-base' cannot take"):
        encode("Represent this sentence: ")


def test_a_task_without_keywords(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["followir", "keywords", BM25, "--family", "bge-base", "--out", str(tmp_path / "out"), "-t", "ArguAna"]
    assert main(asked) == 1
    assert "no keywords for ArguAna, only for SciFact" in capsys.readouterr().err
