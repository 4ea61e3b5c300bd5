"""`mteb-beyond tcr retrieve`: every method runs, and the table has the paper's columns, from mteb's own results."""

from __future__ import annotations

import csv
import json
import shutil
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from language_model_server import LanguageModelServer
from retrieval_tables import WordEncoder, write_small

import tcr_tasks
from evaluators.plugin.models import BM25
from tcr_tasks.command import add_commands
from tcr_tasks.retrieval.command import METHODS, add_retrieve_command
from tcr_tasks.retrieval.hybrid import hybrid, told_weights
from tcr_tasks.retrieval.results import Row, add_rows, markdown, read_rows, rows_of

assert tcr_tasks.BENCHMARK_TASKS  # the import registers the tasks


def command(*arguments: str | Path) -> int:
    parser = ArgumentParser()
    add_retrieve_command(parser.add_subparsers())
    parsed = parser.parse_args(["retrieve", *map(str, arguments)])
    return int(parsed.func(parsed))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("tcr"))


@pytest.fixture(scope="module")
def dense(tiny_models: dict[str, Path]) -> Path:
    return tiny_models["SentenceTransformer"]


def test_every_retrieving_method_shares_a_table(
    dense: Path,
    tiny_models: dict[str, Path],
    small: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tcr_tasks.retrieval.hybrid.GRID", (0.5, 0.9))  # fewer runs
    out = tmp_path / "out"
    runs = [
        ("single", "-m", BM25),
        ("single", "-m", tiny_models["MultiVectorEncoder"]),
        ("rows", "-m", dense, "--reduce", "max", "mean", "top3"),
        ("hybrid", "-m", dense),
        ("hybrid", "-m", dense, "--grid"),
        ("cascade", "--stages", f"{BM25}:4", f"{dense}:2"),
        ("thyme", "-m", dense),
    ]
    for method, *rest in runs:
        assert command("--method", method, *rest, "--data", small, "--out", out) == 0
    rows = read_rows(out)
    # 0.9 : 0.1 is one of the grid's, and stands there once.
    assert len(rows) == 1 + 1 + 3 + 2 + 1 + 1
    assert {row.task for row in rows} == {"TCRBenchMixed"}
    files = {
        json.loads(f.read_text())["scores"]["test"][0]["recall_at_1"]
        for f in (out / "results").rglob("TCRBenchMixed.json")
    }
    assert {row.scores["recall_at_1"] for row in rows} == files
    assert len(list((out / "predictions").rglob("TCRBenchMixed_predictions.json"))) == len(rows)
    printed = (out / "table.md").read_text()
    assert "| Model | Type | Setting | R@1 | R@3 | R@5 | GR@1 | DS@1 |" in printed
    assert "row-level multi-vector | top3 |" in printed and "Table 10" not in printed
    assert str(out / "table.csv") in capsys.readouterr().out
    before = {f: f.stat().st_mtime_ns for f in (out / "results").rglob("*.json")}
    assert command("--method", "rows", "-m", dense, "--data", small, "--out", out) == 0
    assert {f: f.stat().st_mtime_ns for f in before} == before, "what is there is not run again"


def test_augmentation_reports_hits_beside_group_recall(
    dense: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))

    def say(messages: object) -> str:
        if "question>" in str(messages):
            return "Name: n\n```csv\na,b\n1,2\n```"
        return "Theme: t\nColumns: c\nValues: v\nTitle: t\nDescription: d"

    with LanguageModelServer(scorer=say) as server:
        llm = ("--llm", "stand-in", "--llm-base-url", server.url, "--data", small, "--out", tmp_path)
        assert command("--method", "meta", "-m", dense, *llm) == 0
        assert command("--method", "q2t", "-m", BM25, *llm) == 0
        assert command("--method", "cascade", "--stages", f"{BM25}:4", f"{dense}:2", *llm) == 0
    printed = (tmp_path / "table.md").read_text()
    assert "| R@1 | R@3 | R@5 | Hit@1 | Hit@3 | Hit@5 | GR@1 | GR@3 | GR@5 | DS@1 |" in printed
    assert "compare it with Hit@k only" in printed and "CRAFT, re-created" in printed
    with (tmp_path / "table.csv").open() as file:
        assert {"group_hit_at_3", "gr_at_3", "recall_at_1_low"} <= set(csv.DictReader(file).fieldnames or ())


def test_a_dry_run_tells_what_a_run_would_ask(
    dense: Path, small: Path, server: LanguageModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    before = server.counts.as_dict()["requests"]
    llm = ("--llm", "m", "--llm-base-url", server.url, "--llm-price", "1,2", "--data", small, "--dry-run")
    asked = {
        ("meta", "-m", dense): "meta, TCRBenchMixed: 6 different requests, 0 already stored, 6 calls",
        ("cascade", "--stages", f"{BM25}:4", f"{dense}:2"): "cascade, TCRBenchMixed: 6 different requests, 0 already",
        ("q2t", "-m", BM25): "q2t, TCRBenchMixed: 2 different requests, 0 already stored, 2 calls",
    }
    for arguments, expected in asked.items():
        assert command("--method", *arguments, *llm) == 0
        (told,) = capsys.readouterr().out.splitlines()
        assert told.startswith(expected) and "; cost " in told
        assert (" prompt tokens (0 of them in tables" in told) == (arguments[0] == "q2t")
    assert server.counts.as_dict()["requests"] == before
    for wrong, error in ((("--dry-run",), "there is no --llm"), ((), "with --out")):
        with pytest.raises(ValueError, match=error):
            command("--method", "single", "-m", BM25, *wrong)


def line(task: str, scores: dict[str, float], notes: str = "", **more: str) -> Row:
    told = {"model": "m|x", "kind": "dense", "setting": "", "instruction": "mteb", "revision": "1", "record": ""}
    return Row(task=task, data_revision="r", scores=scores, notes=notes, **told | more)


def test_failed_calls_are_told_and_made_again(
    small: Path,
    tmp_path: Path,
    server: LanguageModelServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scores of the second run are those of one that never failed."""

    def say(messages: object) -> str:
        table = "Name: n\n```csv\na,b\n1,2\n```"
        return table if "question>" in str(messages) else "Title: t\nDescription: d"

    monkeypatch.setattr(server, "scorer", say)
    runs = {
        "q2t": ("--method", "q2t", "-m", BM25),
        "cascade": ("--method", "cascade", "--stages", f"{BM25}:4", f"{BM25}:2"),
    }
    llm = ("--llm", "stand-in", "--llm-base-url", server.url, "--data", small)
    for name, arguments in runs.items():
        out = tmp_path / name
        caplog.clear()
        failing = {"q2t": "owls", "cascade": "mayor,area"}[name]
        server.faults = lambda number, body, word=failing: "context_exceeded" if word in str(body) else None
        assert command(*arguments, *llm, "--out", out) == 1
        assert "1 calls to stand-in stayed without a reply" in caplog.text
        assert read_rows(out)[0].notes.startswith("1 calls to the language model failed")
        server.faults = lambda number, body: None
        before = len(server.counts.requests)
        assert command(*arguments, *llm, "--out", out) == 0
        assert len(server.counts.requests) == before + 1, "only what is missing is asked"
        (row,) = read_rows(out)
        assert "failed" not in row.notes and "failed" not in (out / "table.md").read_text()
        assert command(*arguments, *llm, "--out", tmp_path / f"{name}-whole") == 0
        assert read_rows(tmp_path / f"{name}-whole") == [row]
        assert command(*arguments, *llm, "--out", out) == 0
        assert len(server.counts.requests) == before + 1 and read_rows(out) == [row]


def test_unreadable_replies_can_be_asked_for_again(
    small: Path, tmp_path: Path, server: LanguageModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--method", "q2t", "-m", BM25, "--llm", "stand-in", "--llm-base-url", server.url, "--data", small)
    monkeypatch.setattr(server, "scorer", lambda messages: "I cannot think of a table.")
    before = len(server.counts.requests)
    assert command(*arguments, "--out", tmp_path) == 0
    monkeypatch.setattr(server, "scorer", lambda messages: "Name: n\n```csv\na,b\n1,2\n```")
    assert command(*arguments, "--out", tmp_path) == 0
    assert len(server.counts.requests) == before + 2 and "cannot be used" in read_rows(tmp_path)[0].notes
    assert command(*arguments, "--ask-again", "--out", tmp_path) == 0
    assert len(server.counts.requests) == before + 4 and "cannot be used" not in read_rows(tmp_path)[0].notes


def test_a_folder_keeps_to_one_state_of_the_data(small: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    shutil.copytree(small, other)
    table = next(other.rglob("city_T0.csv"))
    table.write_text(table.read_text().replace("Lyon", "Nancy"))
    assert command("--method", "single", "-m", BM25, "--data", small, "--out", out) == 0
    written = (out / "table.md").read_text()
    with pytest.raises(ValueError, match=r"table.csv holds other .*\(task TCRBenchMixed, data revision .* with --out"):
        command("--method", "single", "-m", BM25, "--data", other, "--out", out)
    assert (out / "table.md").read_text() == written
    # Another task has a heading of its own.
    assert command("--method", "single", "-m", BM25, "--data", small, "-t", "TCRBenchCSV", "--out", out) == 0
    assert len(read_rows(out)) == 2


def test_instructions_have_lines_of_their_own(dense: Path, small: Path, tmp_path: Path) -> None:
    run = ("--method", "single", "-m", dense, "--data", small, "--out", tmp_path)
    assert command(*run) == 0
    assert "Instruction" not in (tmp_path / "table.md").read_text()
    assert command(*run, "--instruction", "prepend") == 0
    assert [row.instruction for row in read_rows(tmp_path)] == ["mteb", "prepend"]
    printed = (tmp_path / "table.md").read_text()
    assert "| Instruction |" in printed and "| prepend |" in printed and "| mteb |" in printed


def test_lines_that_look_alike_are_told_apart() -> None:
    one = line("T", {"recall_at_1": 0.5})
    printed = markdown(
        [one, replace(one, revision="2" * 40), replace(one, record="llm=m temperature=0.5"), line("A", {})]
    )
    assert "| dense | 1 |" in printed and "| dense | 22222222 |" in printed
    assert "| dense | 1; llm=m temperature=0.5 |" in printed
    assert printed.count("| dense | 0.5") == 0, "each of the three has something beside its name"


def test_a_line_keeps_digits_that_result_files_lack(tmp_path: Path) -> None:
    full = line("T", {"recall_at_1": 1 / 12, "n_queries": 12.0})
    add_rows(tmp_path, [full])
    add_rows(tmp_path, [replace(full, scores={"recall_at_1": 0.083333, "n_queries": 12.0})])
    assert read_rows(tmp_path) == [full]
    other = replace(full, scores={"recall_at_1": 0.083334, "n_queries": 12.0})
    add_rows(tmp_path, [other])
    assert read_rows(tmp_path) == [other]


def test_a_share_that_is_not_0_is_not_told_as_0() -> None:
    scores = {"hf_subset": "default", "recall_at_1": 0.5, "tied_top_share": 1 / 637, "n_failed_calls": 0.0}
    found = SimpleNamespace(task_name="T", dataset_revision="r", scores={"test": [scores]})
    result = SimpleNamespace(task_results=[found], model_revision="1", experiment_name=None)
    (row,) = rows_of(result, model="m", kind="k", setting="", instruction="mteb")
    assert row.notes == "queries with tied first tables: 0.2%"


def test_all_digits_of_weights_are_told_and_none_is_negative() -> None:
    made = [
        hybrid(WordEncoder(), WordEncoder("tests/b"), dense_weight=w) for w in (0.12345678, 0.12345671, 0.0, -0.0, 0.9)
    ]
    assert [told_weights(m) for m in made] == [
        "0.12345678 : 0.87654322", "0.12345671 : 0.87654329", "0 : 1", "0 : 1", "0.9 : 0.1",
    ]  # fmt: skip
    assert made[2].mteb_model_meta.experiment_name == made[3].mteb_model_meta.experiment_name


@pytest.mark.parametrize(
    "arguments",
    [
        ("retrieve", "--method", "single", "-m", "nothing"),
        ("qa", "--llm", "m", "--data", "nowhere"),
        ("rerank", "--first-stage", "nothing", "--ce", "nothing"),
        ("train", "--config", "nothing"),
        ("build", "nowhere"),
        ("diagnose", "-m", "nothing"),
    ],
)
def test_a_file_for_a_folder_is_refused_before_all_else(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    parser = ArgumentParser()
    add_commands(parser.add_subparsers())
    for out in (tmp_path / "file", tmp_path / "file" / "in it"):
        parsed = parser.parse_args(["tcr", *arguments, "--out", str(out)])
        with pytest.raises(NotADirectoryError, match="file is a file; name a folder with --out"):
            parsed.func(parsed)
    assert (tmp_path / "file").read_text() == "x"


def test_the_table_by_hand(tmp_path: Path) -> None:
    scores = {"recall_at_1": 0.25, "recall_at_1_low": 0.1, "recall_at_1_high": 0.4, "gr_at_1": 0.5, "n_queries": 4.0}
    row = line("T", scores, notes="tied: 3%")
    add_rows(tmp_path, [row])
    assert read_rows(tmp_path) == [row]
    changed = replace(row, data_revision="r2", scores={**scores, "chance_ds_at_1": 1 / 3}, notes="")
    add_rows(tmp_path, [changed, line("A", scores)])
    assert [r.key[0] for r in read_rows(tmp_path)] == ["A", "T"]
    printed = (tmp_path / "table.md").read_text()
    assert "| m\\|x | dense | 0.250 [0.10, 0.40] | 0.500 |" in printed
    assert "data revision r2; 4 queries; DS@1 by chance 0.333." in printed
    assert markdown([row]).count("tied: 3%") == 1
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"is no table of this version's `tcr retrieve`"):
        read_rows(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--method", "rows"), "needs --model"),
        (("--method", "cascade", "-m", "x"), "takes its models from --stages"),
        (("--method", "cascade", "--stages", "x"), "not of the form MODEL:KEEP"),
        (("--method", "meta", "-m", BM25), "needs a language model: --llm"),
        (("--method", "rows", "-m", BM25, "--grid"), "--grid concerns --method hybrid only"),
        (("--method", "single", "-m", BM25, "--dense-weight", "0"), "--dense-weight concerns --method hybrid only"),
        (("--method", "hybrid", "-m", BM25, "--grid", "--dense-weight", "1"), "takes no --dense-weight"),
        (("--method", "single", "-m", BM25, "--batch-size", "0"), "at least 1, got 0"),
        (
            ("--method", "single", "-m", BM25, "-t", "FollowIRSample"),
            "no TCR task 'FollowIRSample'; one of TCRBenchMixed",
        ),
        (("--method", "rows", "-m", BM25), "need an encoder with dense embeddings"),
        (("--method", "dtr", "-m", "google/tapas"), "needs a local directory"),
        (("--method", "single", "-m", "bm25"), "mteb's BM25 is named mteb/baseline-bm25s"),
        (("--method", "cascade", "--stages", "BM25s:5", "x:2"), "mteb's BM25 is named mteb/baseline-bm25s"),
    ],
)
def test_impossible_orders(arguments: tuple[str, ...], error: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, NotADirectoryError), match=error):
        command(*arguments, "--out", tmp_path)


def test_every_method_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command("--help")
    told = " ".join(capsys.readouterr().out.split())
    assert all(name in told for name in METHODS)
    assert BM25 in told
