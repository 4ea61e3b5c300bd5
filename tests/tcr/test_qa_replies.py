"""`mteb-beyond tcr qa` and replies that cannot be used: marked, told, and asked for again on demand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from language_model_server import LanguageModelServer
from qa_answerer import Answerer
from qa_parts import command, rank, ranking, write_predictions

from tcr_tasks.diagnostics.base import Base

from language_model_replies import Messages  # isort: skip


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))


@pytest.mark.parametrize("said", ['Answer: ["\\ud800", "caf\\u00e9"]', 'Answer: ["\ud800", "café"]'])
def test_half_a_character_in_an_answer_ends_no_run(tmp_path: Path, said: str) -> None:
    """As JSON writes it, and as a server may send it: the answer is read, and all files can be written."""
    out = tmp_path / "out"
    with LanguageModelServer(scorer=lambda messages: said) as server:
        for _ in range(2):
            assert command("--llm", "m", "--llm-base-url", server.url, "--out", out) == 0
    rows = pq.read_table(out / "per_query.parquet").to_pylist()
    assert {row["answer"] for row in rows} == {'["\ufffd", "café"]'} and {row["status"] for row in rows} == {"read"}


def test_what_cannot_be_read_is_no_result_until_it_is_asked_for_again(
    base: Base, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, answerer = tmp_path / "out", Answerer(base)
    predictions = write_predictions(tmp_path / "p", ranking(base, 0), "t/a")

    def run(*more: str) -> tuple[list[str], list[str], str]:
        found = ("--llm", "m", "--llm-base-url", server.url, "--predictions", predictions, "--top-k", "1")
        assert command(*found, "--out", out, *more) == 0
        told = capsys.readouterr()
        return told.out.splitlines(), told.err.splitlines(), (out / "report.md").read_text(encoding="utf-8")

    with LanguageModelServer(scorer=lambda messages: "I do not know.") as server:
        told, warned, text = run()
        line = "target alone: F1 absent (30 questions, 30 unreadable, 0 failed; no reply could be read: no result)"
        assert line in told
        assert warned[-1] == (
            "warning: t/a, top 1: 30 of 30 replies cannot be used; --ask-again asks anew where a reply cannot be read"
        )
        assert "**Target alone (Oracle): – †; no table: – †**" in text
        # The note stands directly under each table with a mark: once below the line, by retriever, by type.
        assert text.count("\n\n† more than 5 % of the replies behind it cannot be used") == 3
        found = pd.read_csv(out / "results.csv").query("source == 'measured'")
        assert found["qa"].isna().all() and found["eff"].isna().all() and found["mark"].str.startswith("†").all()
        asked = server.counts.as_dict()["requests"]
        server.scorer = answerer
        # Kept for good, unless one asks for more.
        assert line in run()[0] and server.counts.as_dict()["requests"] == asked
        assert command(*("--llm", "m", "--llm-base-url", server.url, "--dry-run", "--ask-again")) == 0
        assert "60 different requests, 0 already stored, 60 calls to make" in capsys.readouterr().out
        told, warned, text = run("--ask-again")
        assert "target alone: F1 1.000 (30 questions, 0 unreadable, 0 failed)" in told and "†" not in text
        assert not any(line.startswith("warning") for line in warned)
        assert server.counts.as_dict()["requests"] == 2 * asked


def test_a_few_unreadable_replies_are_wrong_and_marked(base: Base, tmp_path: Path) -> None:
    """Two of thirty are more than a twentieth, one is not."""
    answerer, texts = Answerer(base), [q.text for q in base.main.questions]
    for n_silent, marked in ((1, False), (2, True)):

        def says(messages: Messages, silent: tuple[str, ...] = tuple(texts[:n_silent])) -> str:
            text = str(messages[-1]["content"])
            return "Hm." if any(question in text for question in silent) else str(answerer(messages))

        with LanguageModelServer(scorer=says) as server:
            out = tmp_path / str(n_silent)
            assert command("--llm", f"m{n_silent}", "--llm-base-url", server.url, "--out", out) == 0
        found = pd.read_csv(out / "results.csv").query("setting == 'oracle' and source == 'measured'").iloc[0]
        assert found["qa"] == pytest.approx(1 - n_silent / 30) and (found["mark"] == found["mark"]) == marked
        assert ("†" in (out / "report.md").read_text(encoding="utf-8").split("## By")[0]) == marked


def test_the_reason_of_a_failed_call_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with LanguageModelServer(scorer=lambda messages: "Answer: []") as server:
        server.faults = lambda number, body: "context_exceeded" if number % 10 == 0 else None
        assert command("--llm", "m", "--llm-base-url", server.url, "--out", tmp_path / "out") == 1
    assert "the first call without a reply: HTTP 400: The context length is exceeded." in capsys.readouterr().out
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert text.endswith("The first call without a reply: `HTTP 400: The context length is exceeded.`\n")
    assert "target alone: 3 of 30 calls failed; the first one, " in caplog.text


def test_cut_offs_are_told_with_blanks_or_commas(
    base: Base, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ranking(base, 0)
    predictions = write_predictions(tmp_path / "p", run, "t/a")
    told = []
    for more in ((), ("--top-k", "1", "3", "5"), ("--top-k", "1,3,5"), ("--top-k", "1", "3,5", "3")):
        assert command("--llm", "m", "--predictions", predictions, "--dry-run", *more) == 0
        told.append(capsys.readouterr().out)
    # A target that is also the best table makes one prompt.
    same = sum(rank(run[q.id], q.target) == 1 for q in base.main.questions)
    assert len(set(told)) == 1 and f" {30 * 5 - same} different requests" in told[0]


def test_cut_offs_without_predictions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--top-k concerns --predictions only"):
        command("--llm", "m", "--dry-run", "--top-k", "3")
