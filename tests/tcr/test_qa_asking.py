"""What a reader is asked, calls that fail, and what a run of `mteb-beyond tcr qa` needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from qa_answerer import Answerer
from qa_parts import command

from evaluators.judge import Sampling
from evaluators.plugin.predictions import Predictions
from tcr_tasks.data import Question
from tcr_tasks.diagnostics.base import Base
from tcr_tasks.qa import published
from tcr_tasks.qa.asking import NO_TABLE, ORACLE, Exam, Setting, expected_answers, read_retrievers
from tcr_tasks.tasks import TCRTask

from language_model_server import LanguageModelServer  # isort: skip

pytestmark = pytest.mark.usefixtures("quick_runs")


def test_a_prompt_tells_of_shifted_columns_and_not_of_retrieval(task: TCRTask) -> None:
    asked = {a.question.id: a for a in Exam(task, None, "m", Sampling()).asked(Setting(ORACLE))}
    system, user = (m["content"] for m in asked["em-06"].request.messages)
    assert "Roman numerals" in system and "multiplied" in system and "YYYY-MM-DD" in system
    assert "Table 1 of 1\nThe values of column 'degrees (x 10)' were multiplied by 10; divide by 10 to get" in user
    assert "How warm was it in Seattle at three in the afternoon on the ninth of July 2010?" in user
    assert "retrieve a relevant table" not in system + user
    without = Exam(task, None, "m", Sampling()).asked(Setting(NO_TABLE))
    (none,) = {a.request.messages[-1]["content"].partition("<question>")[0] for a in without}
    assert none.strip() == "<tables>\n(no table is shown)\n</tables>"


def test_the_command_says_that_calls_failed(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    question = base.main.questions[0].text

    def faults(number: int, body: dict[str, Any]) -> str | None:
        return "context_exceeded" if question in body["messages"][-1]["content"] else None

    arguments = ("--llm", "m", "--out", tmp_path / "out", "--llm-base-url")
    with LanguageModelServer(scorer=Answerer(base), faults=faults) as server:
        assert command(*arguments, server.url) == 1
        assert "target alone: F1 absent (30 questions, 0 unreadable, 1 failed)" in capsys.readouterr().out
        assert "Oracle): –; no table: –" in (tmp_path / "out" / "report.md").read_text()
        asked = server.counts.as_dict()["requests"]
        # The same again once the server takes it: only what is missing is asked.
        server.faults = lambda number, body: None
        assert command(*arguments, server.url) == 0
        assert server.counts.as_dict()["requests"] == asked + 2
    assert "Oracle): 1.000 [1.000, 1.000]; no table: 0.000" in (tmp_path / "out" / "report.md").read_text()


def test_retrievers_have_names_of_their_own(tmp_path: Path) -> None:
    def made(name: str, revision: str, folder: str) -> Predictions:
        return Predictions(tmp_path / folder / "f.json", {"model_name": name, "revision": revision}, {})

    alone, first, second = read_retrievers([made("x", "1", "a"), made("y", "123456789", "b"), made("y", "2", "c")])
    assert (alone.name, first.name, second.name) == ("x", "y@12345678", "y@2")
    twice = read_retrievers([made("y", "1", "b"), made("y", "1", "c")])
    assert [r.name for r in twice] == [f"y ({tmp_path / 'b'})", f"y ({tmp_path / 'c'})"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "1 of 2 questions have no answer in the dataset: 'q2'"),
        ((), "1 of 2 questions have no answer"),
        ((None,), "1 questions have an answer that is no list of texts and numbers: 'q2'"),
        (([1],), "1 questions have an answer that is no list"),
    ],
)
def test_questions_without_an_answer_are_named(answer: Any, message: str) -> None:
    known = Question("q1", "?", "EM", "t", ("t", "u"), {}, (35156.0,))
    with pytest.raises(ValueError, match=message):
        expected_answers([known, Question("q2", "?", "EM", "t", ("t", "u"), {}, answer)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "x"), "needs --llm"),
        (("--llm", "m"), "with --out"),
        (("--llm", "m", "--dry-run", "--tolerance", "2"), "--tolerance lies in"),
        (("--llm", "m", "--dry-run", "--context-tokens", "4096"), "leaves no room beside a reply"),
        (("--llm", "m", "--dry-run", "--task", "TCRNone"), "no TCR task 'TCRNone'"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        command(*arguments)


@pytest.mark.parametrize("wrong", ["0", "1,x", ""])
def test_cut_offs_that_cannot_be_read(wrong: str) -> None:
    with pytest.raises(SystemExit):
        command("--llm", "m", "--dry-run", "--top-k", wrong)


def test_published_rows_agree_with_each_other() -> None:
    """All questions of Table 12 are the mean over its types, 98 EM, 55 SF and 56 SA; Eff@k as the formula gives it."""
    overall, *types = published.BY_TYPE
    weights = {"EM": 98, "SF": 55, "SA": 56}
    for name in ("qa", "recall"):
        for at in range(3):
            mean = sum(weights[row.name] * getattr(row, name)[at] for row in types) / 209
            assert getattr(overall, name)[at] == pytest.approx(mean, abs=0.001)
    assert overall.oracle == pytest.approx(sum(weights[row.name] * row.oracle for row in types) / 209, abs=0.001)
    for row in (*published.BY_RETRIEVER, *published.BY_TYPE):
        for eff, qa, recall in zip(row.efficiency, row.qa, row.recall, strict=True):
            assert eff == pytest.approx(qa / row.oracle / recall, abs=0.01)
