"""Small collections in the layouts of their authors, and a hub on this machine in place of the real one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub.constants
import pytest
from hub_server import TOKEN, Hub, hub_server
from huggingface_hub.utils import _http
from tenacity import wait_none

from hub_cards import publish_send

# Where the tests publish.
REPO = "me/sample"
TABLES = {
    "shops_T0": "city,staff\r\nGhent,3\r\nTurku,5\r\n",
    "shops_T1": "city\nGhent\n",
    "shops_T2": "city,staff\nGraz,3\n",
}


@contextmanager
def stand_in(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[Hub]:
    """A hub on this machine, which huggingface_hub takes for the real one until the block ends."""
    with hub_server() as hub:
        constants = huggingface_hub.constants
        # HF_ENDPOINT and the other variables were read when the library was imported.
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + template)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(publish_send, "_WAIT", wait_none())
        # Uploads are repeated by the library itself, after a second.
        monkeypatch.setattr(_http, "time", SimpleNamespace(sleep=lambda seconds: None))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield hub


def write_ifir(root: Path, folder: str = "nfcorpus") -> Path:
    """A subset of IFIR without levels: two queries, one of them without a relevant passage."""
    directory = root / folder
    directory.mkdir(parents=True)
    passages = [{"_id": f"d{i}", "title": f"T{i}", "text": f'Passage {i}: über, "quoted"\tand 漢字.'} for i in range(3)]
    lines = "".join(json.dumps(passage, ensure_ascii=False) + "\n" for passage in passages)
    (directory / f"{folder}-corpus.jsonl").write_text(lines, encoding="utf-8")
    entries = [
        {
            "_id": f"q{i}",
            "text": f"query {i}",
            "corpus": [{"_id": "d1"}, {"_id": "d2"}],
            "instructions": [{"level": 0, "instruction": " what I want ", "rel": relevant}],
        }
        for i, relevant in enumerate(([0, 1], []))
    ]
    (directory / "test_data.json").write_text(json.dumps(entries), encoding="utf-8")
    return root


def write_tcr(root: Path) -> Path:
    """TCR-Bench with one question and a group of three tables."""
    (root / "data").mkdir(parents=True)
    place = root / "tables" / "TCR_8k" / "town"
    place.mkdir(parents=True)
    for name, csv in TABLES.items():
        (place / f"{name}.csv").write_text(csv, encoding="utf-8", newline="")
    tables = [
        {"db_id": "town", "table_path": name, "table_name": "shops", "table_format": fmt}
        for name, fmt in zip(TABLES, ("csv", "html", "markdown"), strict=True)
    ]
    question = {
        "question_id": "q1",
        "db_id": "town",
        "highlighted_table": ["shops_T0"],
        "all_tables_in_group": list(TABLES),
        "question": "How many work in Ghent?",
        "question_type": "EM",
        "answer": [3],
    }
    for part in ("", "_EM"):
        (root / "data" / f"TCR_Questions{part}.json").write_text(json.dumps([question]))
        (root / "data" / f"TCR_Tables{part}.json").write_text(json.dumps(tables))
    return root


def write_instructir(root: Path) -> Path:
    """InstructIR's three files: one base query under two instructions."""
    root.mkdir(parents=True)
    passages = [{"_id": f"d{i}", "title": "", "text": f"passage {i}"} for i in range(3)]
    queries = [{"_id": f"7_{i}", "text": "query", "instruction": f"I am {i}."} for i in range(2)]
    for name, rows in (("corpus", passages), ("queries", queries)):
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n7_0\td0\t1\n7_1\td1\t1\n")
    return root
