"""`mteb-beyond tcr qa` with a reader that executes the query on the tables it is shown, behind the local server."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from language_model_server import LanguageModelServer
from qa_answerer import Answerer
from qa_parts import META, command, rank, ranking, write_predictions

from evaluators.judge import Asking, Reply, Sampling
from evaluators.plugin.predictions import Predictions
from tcr_tasks.diagnostics.base import Base
from tcr_tasks.diagnostics.reading import read_base
from tcr_tasks.qa.asking import NO_TABLE, ORACLE, Exam, Setting, read_retrievers
from tcr_tasks.qa.examination import examine
from tcr_tasks.qa.scoring import ALL
from tcr_tasks.tasks import TCRTask

KS = (1, 3, 5)


class Done:
    """One run of the command on the sample with two retrievers, and what it left behind."""

    def __init__(self, folder: Path, base: Base) -> None:
        self.folder, self.base = folder, base
        self.runs = {f"test/{name}": ranking(base, seed) for seed, name in enumerate("ab")}
        self.predictions = folder / "predictions"
        for name, run in self.runs.items():
            write_predictions(self.predictions / name[-1], run, name)
        self.out = folder / "out"
        self.store = folder / "store.sqlite"
        self.answerer = Answerer(base)

    def command(self, url: str, *more: str | Path) -> int:
        return command("--predictions", self.predictions, "--llm", "rule", "--llm-base-url", url, *more)

    def rows(self) -> list[dict[str, Any]]:
        return list(pq.read_table(self.out / "per_query.parquet").to_pylist())

    def scores(self) -> pd.DataFrame:
        return pd.read_csv(self.out / "results.csv")

    def recall(self, name: str, k: int, kind: str = ALL) -> float:
        questions = [q for q in self.base.main.questions if kind in (ALL, q.type)]
        return sum(rank(self.runs[name][q.id], q.target) <= k for q in questions) / len(questions)


@pytest.fixture(scope="module")
def done(base: Base, tmp_path_factory: pytest.TempPathFactory) -> Done:
    run = Done(tmp_path_factory.mktemp("qa"), base)
    with pytest.MonkeyPatch.context() as patch, LanguageModelServer(scorer=run.answerer) as server:
        patch.setenv("MTEB_BEYOND_STORE", str(run.store))
        assert run.command(server.url, "--out", run.out) == 0
    return run


# --- a reader that makes no mistake ----------------------------------------------------------------------------------


def test_the_reader_answers_from_the_target_alone_and_not_from_nothing(done: Done) -> None:
    found = done.scores().query("source == 'measured' and retriever.isna()")
    scores = {(row["setting"], row["question_type"]): row["qa"] for row in found.to_dict("records")}
    assert scores == {(s, kind): f1 for s, f1 in ((ORACLE, 1.0), (NO_TABLE, 0.0)) for kind in (ALL, "EM", "SF", "SA")}


def test_with_the_best_tables_it_answers_where_the_target_was_found(done: Done) -> None:
    """Only one table of the sample answers a question, so F1 is 1 with it and 0 without: QA@k = R@k and Eff@k = 1."""
    measured = done.scores().query("source == 'measured' and retriever.notna()")
    assert len(measured) == 2 * len(KS) * 4
    for row in measured.to_dict("records"):
        expected = done.recall(row["retriever"], row["k"], row["question_type"])
        assert row["qa"] == pytest.approx(expected)
        assert row["recall"] == pytest.approx(expected)
        assert (row["eff"] == pytest.approx(1)) if expected else pd.isna(row["eff"])
        assert row["qa_low"] <= row["qa"] <= row["qa_high"]
        assert (row["n_unreadable"], row["n_failed"], row["tables_cut"]) == (0, 0, 0)
    overall = measured.query("question_type == 'All'")
    assert (overall["n"] == 30).all() and overall["qa"].between(0.05, 0.95).all()


def test_the_tables_are_shown_in_the_order_of_the_ranking(done: Done) -> None:
    rows = {(r["retriever"], r["setting"], r["query-id"]): r for r in done.rows()}
    assert len(rows) == 30 * (2 + 2 * len(KS))
    shown = {tuple(tables) for tables in done.answerer.seen}
    for question in done.base.main.questions:
        assert rows[None, ORACLE, question.id]["tables"] == [question.target]
        assert rows[None, NO_TABLE, question.id]["tables"] == []
        for name, run in done.runs.items():
            for k in KS:
                row = rows[name, f"top_{k}", question.id]
                assert row["tables"] == sorted(run[question.id], key=lambda t: -run[question.id][t])[:k]
                assert tuple(row["tables"]) in shown
                assert row["target_shown"] == (row["f1"] == 1.0) == (question.target in row["tables"])
                assert row["status"] == "read" and json.loads(row["expected"])


def test_the_report_has_the_published_rows_beside(done: Done) -> None:
    text = (done.out / "report.md").read_text()
    table = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    heads = ["QA@1", "QA@3", "QA@5", "Eff@1", "Eff@3", "Eff@5"]
    assert ["Method", *heads] in table and ["Type", "Oracle", "R@k", *heads] in table
    assert ["*Qwen3-E8B (published)*", "0.139", "0.266", "0.330", "1.014", "0.751", "0.657"] in table
    (row,) = [row for row in table if row[0] == "test/a"][:1]
    assert row[1].startswith(f"{done.recall('test/a', 1):.3f} [") and row[4].startswith("1.000")
    types = [row[0] for row in table if len(row) == 9]
    assert types == 2 * ["Type", "-" * 10, "All (30)", "EM (10)", "SF (9)", "SA (11)"] + types[-6:]
    assert "Target alone (Oracle): 1.000 [1.000, 1.000]; no table: 0.000" in text
    for part in ("reader: rule", "task: TCRSample", "this project's own", "published: 0.755 and 0.014"):
        assert part in text
    names = set(done.scores()["source"])
    assert names == {"measured", "published, Table 1", "published, Table 12"}


def test_nothing_is_asked_twice(
    done: Done, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(done.store))
    before = {path.name: path.read_bytes() for path in done.out.glob("r*")}
    with LanguageModelServer(scorer=lambda messages: "not to be asked") as server:
        assert done.command(server.url, "--dry-run") == 0
        assert ", 0 calls to make; about 0 prompt tokens" in capsys.readouterr().out
        assert done.command(server.url, "--out", done.out) == 0
        assert server.counts.as_dict()["requests"] == 0
    assert {path.name: path.read_bytes() for path in done.out.glob("r*")} == before


def test_another_reader_or_other_data_do_not_replace_the_answers(done: Done, small: Path) -> None:
    before = {path.name: path.read_bytes() for path in done.out.iterdir() if path.is_file()}
    held = r"holds other results, .*\(command tcr qa, task TCRSample, data revision \S+, reader rule, prompt version"
    with LanguageModelServer() as server:
        for other in (("--data", small, "--llm", "rule"), ("--llm", "another")):
            with pytest.raises(ValueError, match=held):
                command(*other, "--llm-base-url", server.url, "--out", done.out)
        assert server.counts.as_dict()["requests"] == 0
    assert {path.name: path.read_bytes() for path in done.out.iterdir() if path.is_file()} == before


def test_a_dry_run_counts_and_asks_nothing(
    done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "empty.sqlite"))
    assert done.command("http://127.0.0.1:9/v1", "--dry-run", "--llm-price", "1,2", "--llm-max-tokens", "100") == 0
    told = capsys.readouterr().out
    different = {(r["query-id"], *r["tables"]) for r in done.rows()}
    assert f"2 retriever(s), 30 questions: {len(different)} different requests, 0 already stored" in told
    assert f"at most {100 * len(different)} completion tokens; cost " in told
    assert re.search(r"about \d+ prompt tokens \(\d+ of them in tables, counted by .*cl100k_base; the rest: four", told)


# --- replies that are none -------------------------------------------------------------------------------------------


class Scripted:
    """A model in the place of the client: some questions fail, some get a reply without an answer."""

    def __init__(self, answerer: Answerer, failing: Sequence[str] = (), mumbling: Sequence[str] = ()) -> None:
        self.answerer, self.failing, self.mumbling = answerer, failing, mumbling
        self.asked: list[Any] = []

    def ask(self, requests: Sequence[Any], *, label: str, again: frozenset[str]) -> list[Any]:
        self.asked += requests
        return [self.outcome(request) for request in requests]

    def outcome(self, request: Any) -> Any:
        text = request.messages[-1]["content"]
        failed = any(question in text for question in self.failing)
        said = "I do not know." if any(q in text for q in self.mumbling) else self.answerer(request.messages)
        return Told(request, None if failed else Reply(said, "stop", 10, 5), "a filter" if failed else None)


class Told:
    cached = unreachable = False

    def __init__(self, request: Any, reply: Reply | None, failure: str | None) -> None:
        self.request, self.reply, self.failure = request, reply, failure


def test_an_unreadable_answer_is_wrong_and_a_failed_call_withholds_the_number(done: Done, task: TCRTask) -> None:
    questions = {q.id: q.text for q in done.base.main.questions}
    (retriever,) = read_retrievers([Predictions(done.predictions, META, done.runs["test/a"])])
    model = Scripted(done.answerer, failing=[questions["sa-01"]], mumbling=[questions["em-01"], questions["sf-02"]])
    results = examine(Exam(task, Asking(model, "m", Sampling())), [retriever], (3,), 1e-5)
    cells = {(c.setting.name, c.question_type): c for c in results.cells}
    assert not results.is_complete
    for setting in (ORACLE, "top_3"):
        found = cells[setting, ALL]
        assert (found.n, found.n_unreadable, found.n_failed) == (30, 2, 1)
        assert (found.qa, found.qa_interval, found.efficiency) == (None, None, None)
    # Of ten exact-match questions one is unreadable: nine tenths right, or all of what could be read.
    em = cells[ORACLE, "EM"]
    assert (em.qa, em.qa_readable, em.n_unreadable, em.n_failed) == (0.9, 1.0, 1, 0)
    assert cells[ORACLE, "SA"].qa is None and cells[ORACLE, "SA"].qa_readable == 1.0
    efficiency = cells["top_3", "EM"].efficiency
    assert efficiency is not None and efficiency.value is not None
    (row,) = [r for r in results.rows if (r["setting"], r["query-id"]) == (ORACLE, "sa-01")]
    assert (row["status"], row["f1"], row["reason"]) == ("failed", None, "a filter")
    (row,) = [r for r in results.rows if (r["setting"], r["query-id"]) == (ORACLE, "em-01")]
    assert (row["status"], row["f1"], row["reply"]) == ("unreadable", 0.0, "I do not know.")


def test_tables_beyond_the_context_window_lose_rows(done: Done, task: TCRTask) -> None:
    (retriever,) = read_retrievers([Predictions(done.predictions, META, done.runs["test/a"])])
    model = Scripted(done.answerer)
    exam = Exam(task, Asking(model, "m", Sampling(max_tokens=200)), context_tokens=1300)
    results = examine(exam, [retriever], (3,), 1e-5)
    lengths = [sum(exam.cutter.counter.count(m["content"]) for m in request.messages) for request in model.asked]
    assert 1000 < max(lengths) <= 1300 - 200
    cells = {c.setting.name: c for c in results.cells if c.question_type == ALL}
    cut = cells["top_3"]
    assert (cells[NO_TABLE].tables, cells[NO_TABLE].tables_cut) == (0, 0)
    assert cut.tables == 90 and 0 < cut.targets_cut < cut.tables_cut <= 90 and 0 < cut.rows_cut < cut.rows
    assert sum(r["rows_cut"] for r in results.rows if r["setting"] == "top_3") == cut.rows_cut
    # The rows that answer a question stand early, but not all of them are left.
    assert cut.qa is not None and cut.recall is not None and cut.efficiency is not None
    assert 0 < cut.qa < cut.recall and cut.efficiency.value == pytest.approx(cut.qa / cells[ORACLE].qa / cut.recall)
    with pytest.raises(ValueError, match=r"question 's[af]-\d+', oracle: table '.*its header alone has \d+ tok"):
        Exam(task, Asking(model, "m", Sampling(max_tokens=200)), context_tokens=700).asked(Setting(ORACLE))


# --- the real part ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> Iterator[Path]:
    folder = os.environ.get("MTEB_BEYOND_DATA")
    if not folder or not (Path(folder) / "TCR-Bench-Open").is_dir():
        pytest.skip("$MTEB_BEYOND_DATA holds no folder TCR-Bench-Open: no part of the real TCR-Bench to test on")
    return Path(folder) / "TCR-Bench-Open"


def test_the_real_part_where_the_construction_is_known(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three exact-match questions with their construct_information: the printed cells give the released answers."""
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    entries = json.loads((real / "data" / "TCR_Questions_EM.json").read_text(encoding="utf-8"))
    made = {entry["question"]: list(entry["construct_information"]["selected_values"].values()) for entry in entries}
    base = read_base(real)
    exact = Base("real", base.diagnostic, base.diagnostic)
    run = ranking(exact, 0)
    predictions = write_predictions(tmp_path / "p", run, "test/a", "TCRBenchDiagnosticMixed")
    with LanguageModelServer(scorer=Answerer(exact, made)) as server:
        assert (
            command(
                "--data",
                real,
                "--task",
                "TCRBenchDiagnosticMixed",
                "--predictions",
                predictions,
                "--llm",
                "m",
                "--llm-base-url",
                server.url,
                "--out",
                tmp_path / "out",
            )
            == 0
        )
    rows = pq.read_table(tmp_path / "out" / "per_query.parquet").to_pylist()
    by_setting = {s: [r["f1"] for r in rows if r["setting"] == s] for s in (ORACLE, NO_TABLE)}
    assert by_setting == {ORACLE: [1.0] * 3, NO_TABLE: [0.0] * 3}
    for row in rows:
        if row["retriever"]:
            target = next(q.target for q in exact.main.questions if q.id == row["query-id"])
            assert row["f1"] == float(rank(run[row["query-id"]], target) <= int(row["setting"][-1]))
