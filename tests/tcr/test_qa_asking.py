"""What a reader is asked, calls that fail, and what a run of `mteb-beyond tcr qa` needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fixed_ranking import FixedRanking
from qa_answerer import Answerer
from qa_parts import command, ranking, write_predictions

from evaluators.judge import Asking, Sampling
from evaluators.plugin.judged_runs import saved_predictions
from evaluators.plugin.models import recorded
from evaluators.plugin.predictions import Predictions, prediction_files
from evaluators.plugin.results import read_provenance, write_per_query, write_table
from evaluators.plugin.running import evaluate
from tcr_tasks.compare import read_tables
from tcr_tasks.data import Question
from tcr_tasks.diagnostics.base import Base
from tcr_tasks.qa import published
from tcr_tasks.qa.asking import NO_TABLE, ORACLE, Exam, Setting, expected_answers, read_retrievers
from tcr_tasks.reranking.first_stage import SavedRun
from tcr_tasks.tasks import TCRTask

from language_model_server import LanguageModelServer  # isort: skip


def test_a_prompt_tells_of_shifted_columns_and_not_of_retrieval(task: TCRTask) -> None:
    asked = {a.question.id: a for a in Exam(task, Asking(None, "m", Sampling())).asked(Setting(ORACLE))}
    system, user = (m["content"] for m in asked["em-06"].request.messages)
    assert "Roman numerals" in system and "multiplied" in system and "YYYY-MM-DD" in system
    assert "Table 1 of 1\nThe values of column 'degrees (x 10)' were multiplied by 10; divide by 10 to get" in user
    assert "How warm was it in Seattle at three in the afternoon on the ninth of July 2010?" in user
    assert "retrieve a relevant table" not in system + user
    without = Exam(task, Asking(None, "m", Sampling())).asked(Setting(NO_TABLE))
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
    def made(name: str, revision: str, folder: str, **settings: Any) -> Predictions:
        path = tmp_path / folder / "TCRSample_predictions.json"
        if settings:
            table = path.with_name("TCRSample_per_query.parquet")
            write_per_query(table, {"q": {"recall_at_1": 1.0}}, {}, settings=settings)
        return Predictions(path, {"model_name": name, "revision": revision}, {})

    def names(*saved: Predictions) -> list[str]:
        return [retriever.name for retriever in read_retrievers(saved)]

    assert names(made("x", "1", "a"), made("y", "123456789", "b"), made("y", "2", "c")) == [
        "x",
        "y @12345678",
        "y @2",
    ]
    # Nothing but the place differs: below the folder of both, so that a report can be moved.
    assert names(made("y", "1", "b"), made("y", "1", "c/d")) == ["y [b]", "y [c/d]"]
    named = [Predictions(tmp_path / f"{n}.json", {"model_name": "y", "revision": "1"}, {}) for n in "mn"]
    assert names(*named) == ["y [m.json]", "y [n.json]"]
    # Variants: by their settings, or by the folder that a run without a record of them has.
    assert names(
        made("o/y", "1", "o__y/1"),
        made("o/y", "1", "e", budget=3, task_instruction="prepend"),
        made("o/y", "1", "f", budget=5, task_instruction="prepend"),
        made("o/y", "1", "o__y/1/budget_7"),
        made("o/z", "1", "o__y/1/budget_7"),
    ) == [
        "o/y",
        "o/y (budget=3, instruction=prepend)",
        "o/y (budget=5, instruction=prepend)",
        "o/y (experiment=budget_7)",
        "o/z",
    ]


def test_a_run_of_a_variant_is_named_by_its_settings(task: TCRTask, base: Base, tmp_path: Path) -> None:
    """What `run` saves, `tcr qa` and `tcr compare` read; mteb gives the folder of so many settings a bare hash."""
    settings = {"first_stage": "x" * 250, "budget": 3}
    for kwargs in ({}, settings):
        model = recorded(FixedRanking(ranking(base, 0)), FixedRanking({}).mteb_model_meta, kwargs)
        evaluate(model, task, output_folder=tmp_path / "r", prediction_folder=tmp_path / "p")
    saved = saved_predictions(task, prediction_files(tmp_path / "p", "TCRSample"))
    plain, variant = sorted((r.name for r in read_retrievers(saved)), key=len)
    assert variant == f"{plain} (budget=3, first_stage={'x' * 47}…)"
    tables = sorted((tmp_path / "p").rglob("*_per_query.parquet"))
    assert {read_tables(path)[0]["TCRSample"].model for path in tables} == {plain, variant}
    assert any(path.parent.name.startswith("exp_") for path in tables)


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


def test_a_folder_of_one_run_stands_for_it_and_a_folder_above_for_all(base: Base, tmp_path: Path) -> None:
    """The same rule for `tcr qa`, `tcr rerank` and `run --first-stage`: below a run lie the model's variants."""
    run = ranking(base, 0)
    plain = write_predictions(tmp_path / "m" / "1", run, "t/m")
    variant = write_predictions(tmp_path / "m" / "1" / "instruction_x", run, "t/m")
    write_predictions(tmp_path / "other", run, "t/m", task="TCRBenchCSV")
    assert prediction_files(plain, "TCRSample") == prediction_files(plain.parent, "TCRSample") == [plain]
    assert prediction_files(tmp_path, "TCRSample") == [plain, variant]
    assert SavedRun(plain.parent, "TCRSample").predictions.path == plain
    assert SavedRun(variant.parent, "TCRSample").predictions.path == variant
    with pytest.raises(ValueError, match=r"several runs' predictions of TCRSample; name one of\n  .*/m/1\n  .*_x"):
        SavedRun(tmp_path, "TCRSample")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("csv/TCRBenchCSV_predictions.json", "holds predictions of TCRBenchCSV; expected those of TCRSample"),
        ("csv", "found predictions of 'TCRBenchCSV'; expected those of TCRSample"),
        ("nothing", "it holds no predictions at all; expected those of TCRSample"),
        ("nowhere", "there is no such file or folder; expected those of TCRSample"),
        ("renamed.json", r"ranks the queries 'q1', 'q2', none of those of TCRSample, 'em-01', "),
    ],
)
def test_predictions_of_another_task_are_named(base: Base, tmp_path: Path, place: str, message: str) -> None:
    (tmp_path / "nothing").mkdir()
    other = write_predictions(tmp_path / "csv", {"q1": {"d": 1.0}, "q2": {"d": 1.0}}, "t/m", task="TCRBenchCSV")
    (tmp_path / "renamed.json").write_text(other.read_text())
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        command("--llm", "m", "--dry-run", "--predictions", tmp_path / place)


def test_a_table_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "per_query.parquet"
    write_table(path, pa.table({"query-id": ["q"]}), {"task": "t"})
    before = path.read_bytes()

    def fail(table: pa.Table, part: Path) -> None:
        part.write_bytes(b"PAR1 half")
        raise OSError("no space left")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="no space left"):
        write_table(path, pa.table({"query-id": ["q", "r"]}), {"task": "t"})
    assert path.read_bytes() == before and read_provenance(path) == {"task": "t"}
    assert [p.name for p in path.parent.iterdir()] == [path.name]
