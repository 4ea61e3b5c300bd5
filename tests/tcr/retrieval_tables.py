"""A TCR dataset of six tables in the authors' layout, and models by protocol that need no weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from mteb.models import ModelMeta
from mteb.types import PromptType

from evaluators.plugin.given import given_model
from evaluators.plugin.searching import searcher

CSV = {
    ("france", "city_T0"): ("csv", "city,mayor,area\nLyon,Doucet,47.9\nNice,Estrosi,71.9\nLille,Aubry,34.8\n"),
    ("france", "city_T1"): ("html", "city,mayor\nLyon,Doucet\nNice,Estrosi\nLille,Aubry\n"),
    ("france", "city_T2"): ("markdown", "city,mayor,area\nNice,Estrosi,71.9\nBrest,Cuillandre,49.5\n"),
    ("birds", "owl_T0"): ("html", "owl,wingspan,note\nbarn,90,\neagle,170,largest\nsnowy,150,white\n"),
    ("birds", "owl_T1"): ("markdown", "owl,wingspan\nbarn,90\ntawny,100\n"),
    ("birds", "owl_T2"): ("csv", "owl,note\nbarn,\neagle,largest\n"),
}
QUESTIONS = {
    "q1": ("EM", "france", "city_T0", "What is the area where the mayor is Doucet?"),
    "q2": ("SF", "birds", "owl_T0", "Which owls have a wingspan above 140?"),
}


def write_small(directory: Path) -> Path:
    """The dataset."""
    tables, questions = [], []
    for (db_id, path), (fmt, text) in CSV.items():
        name = path.partition("_")[0]
        tables.append({"db_id": db_id, "table_path": path, "table_name": name, "table_format": fmt})
        file = directory / "tables" / "TCR_8k" / db_id / f"{path}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for key, (kind, db_id, target, text) in QUESTIONS.items():
        group = [path for db, path in CSV if db == db_id]
        questions.append(
            {
                "question_id": key,
                "db_id": db_id,
                "highlighted_table": [target],
                "all_tables_in_group": group,
                "question": text,
                "question_type": kind,
            }
        )
    (directory / "data").mkdir()
    (directory / "data" / "TCR_Questions.json").write_text(json.dumps(questions))
    (directory / "data" / "TCR_Tables.json").write_text(json.dumps(tables))
    return directory


class WordEncoder:
    """A bag of hashed words, of any length unless ``unit``; it remembers how often it read a document."""

    def __init__(self, name: str = "tests/words", *, unit: bool = True) -> None:
        self.mteb_model_meta = ModelMeta.create_empty({"name": name, "revision": "1", "model_type": ["dense"]})
        self.unit = unit
        self.read: dict[str | None, list[str]] = {}

    def encode(self, inputs: Any, *, prompt_type: PromptType | None = None, **kwargs: Any) -> np.ndarray:
        texts = [text for batch in inputs for text in batch["text"]]
        self.read.setdefault(prompt_type and prompt_type.value, []).extend(texts)
        return self.vectors(texts)

    def vectors(self, texts: list[str]) -> np.ndarray:
        out = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(out, texts, strict=True):
            for word in text.lower().replace(".", " ").replace("?", " ").replace(",", " ").split():
                row[int(hashlib.md5(word.encode()).hexdigest(), 16) % 64] += 1
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9) if self.unit else out

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return np.asarray(embeddings1) @ np.asarray(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return (np.asarray(embeddings1) * np.asarray(embeddings2)).sum(axis=1)


def run_of(model: Any, task: Any) -> dict[str, dict[str, float]]:
    """What a model finds, searched as mteb does it, without the scores."""
    task.load_data()
    parts = task.dataset["default"]["test"]
    place = {
        "task_metadata": task.metadata,
        "hf_split": "test",
        "hf_subset": "default",
        "encode_kwargs": {"show_progress_bar": False},
        "num_proc": None,
    }
    search = searcher(given_model(model))
    search.index(parts["corpus"], **place)
    found: dict[str, dict[str, float]] = search.search(parts["queries"], top_k=1000, **place)
    return found


def small_task(directory: Path, name: str = "TCRBenchMixed") -> Any:
    """A task on the dataset."""
    task = mteb.get_task(name)
    task.data_path = str(directory)
    return task


def ranking(scores: dict[str, float]) -> list[str]:
    """Documents, best first, by (score, id)."""
    return sorted(scores, key=lambda d: (scores[d], d), reverse=True)
