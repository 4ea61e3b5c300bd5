"""The routes of `ifir build` for FIRE and TREC-CDS, with and without a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from construction_sample import Messages, Rows, between, build, built, write_beir, write_source
from language_model_server import LanguageModelServer

from evaluators import cli
from ifir_tasks.construction.routes import citation_context

CASES: Rows = [{"_id": n, "title": "", "text": f"Prior case on {n}."} for n in ("estoppel", "negligence", "wages")]
JUDGEMENT = "The state had promised. In [?CITATION?] promises were held to bind. Care is due, see [?Citation?] on duty."
FIRE: dict[str, Rows] = {
    "corpus": CASES,
    "queries": [{"_id": "j1", "text": JUDGEMENT}, {"_id": "j2", "text": "No mark here."}],
    "qrels": [
        {"query-id": q, "corpus-id": c, "score": 1}
        for q, c in (("j1", "estoppel"), ("j1", "negligence"), ("j2", "wages"))
    ],
}


class Lawyer:
    """Knows which case each mark of the judgement cites."""

    def __init__(self) -> None:
        self.contexts: list[str] = []

    def __call__(self, messages: Messages) -> str:
        text = messages[-1]["content"]
        if "<passage>" in text:
            topic = between("query", text).split()[-1].rstrip("?")
            return f"Answer: {'yes' if topic in between('passage', text) else 'no'}\nReason: by topic."
        context = between("context", text)
        self.contexts.append(context)
        topic = "estoppel" if context.index("[?CITATION?]") < context.index("[another citation]") else "negligence"
        return f"Query: What was held in [?CITATION?] on {topic}?\nInstruction: Retrieve the case cited for {topic}."


@pytest.fixture
def lawyer() -> Lawyer:
    return Lawyer()


@pytest.fixture
def server(lawyer: Lawyer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LanguageModelServer]:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    with LanguageModelServer(scorer=lawyer) as running:
        yield running


def test_context_of_a_citation_mark() -> None:
    assert citation_context(JUDGEMENT, 0, 2) == "promised. In [?CITATION?] promises were"
    assert citation_context(JUDGEMENT, 1, 3) == "is due, see [?CITATION?] on duty."
    whole = citation_context(JUDGEMENT, 1, 100)
    assert whole.count("[?CITATION?]") == 1 and "In [another citation] promises" in whole


def test_fire(lawyer: Lawyer, server: LanguageModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = write_beir(tmp_path / "source", FIRE), tmp_path / "out"
    args = ("--route=fire", "--marks=2", "--accept-unreviewed")
    assert build(source, out, server.url, *args, domain="law") == 0
    assert "1 judgements without citation mark [?CITATION?] are left out: 'j2'" in capsys.readouterr().out
    # Both cases are relevant to the judgement; each mark keeps the one it cites.
    assert [(r["query-id"], r["corpus-id"]) for r in built(out, "qrels")] == [
        ("j1.1-v0", "estoppel"),
        ("j1.2-v0", "negligence"),
    ]
    assert [(r["_id"], r["text"]) for r in built(out, "queries")][:2] == [
        ("j1.1-og", "What was held in [?CITATION?] on estoppel?"),
        ("j1.1-v0", "What was held in [?CITATION?] on estoppel?"),
    ]
    assert len(lawyer.contexts) == 2
    assert cli.main(["check", str(out)]) == 0
    # One mark of each judgement is drawn by the seed.
    drawn = set()
    for seed in range(6):
        build(source, tmp_path / f"out-{seed}", server.url, "--route=fire", f"--seed={seed}", domain="law")
        rows = (tmp_path / f"out-{seed}" / "work" / "instructions-level-0.jsonl").read_text().splitlines()
        drawn |= {json.loads(row)["base"] for row in rows}
        assert len(rows) == 1
    assert drawn == {"j1.1", "j1.2"}
    assert len(lawyer.contexts) == 2  # the store knew the rest


def test_fire_needs_a_mark(server: LanguageModelServer, tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", FIRE | {"queries": FIRE["queries"][1:], "qrels": FIRE["qrels"][2:]})
    with pytest.raises(ValueError, match="no query has a citation mark"):
        build(source, tmp_path / "out", server.url, "--route=fire", domain="law")


def test_cds_asks_no_model(tmp_path: Path) -> None:
    topics = [{"_id": "1", "summary": "Chest pain.", "description": "A 58-year-old woman has episodic chest pain."}]
    rows = {
        "corpus": CASES,
        "queries": topics,
        "qrels": [
            {"query-id": "1", "corpus-id": "wages", "score": 2},
            {"query-id": "1", "corpus-id": "estoppel", "score": 0},
        ],
    }
    out = tmp_path / "out"
    source = write_beir(tmp_path / "source", rows)
    assert build(source, out, None, "--route=cds", "--accept-unreviewed", domain="health") == 0
    assert built(out, "queries") == [{"_id": "1-og", "text": "Chest pain."}, {"_id": "1-v0", "text": "Chest pain."}]
    assert built(out, "instruction") == [{"query-id": "1-v0", "instruction": topics[0]["description"]}]
    assert built(out, "qrels") == [{"query-id": "1-v0", "corpus-id": "wages", "score": 1}]
    assert "no language model" in (out / "README.md").read_text()
    source = write_beir(tmp_path / "lacking", rows | {"queries": [{"_id": "1", "text": "Chest pain."}]})
    with pytest.raises(ValueError, match="1 queries lack the field summary or description: '1'"):
        build(source, tmp_path / "none", None, "--route=cds", domain="health")
