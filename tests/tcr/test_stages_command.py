"""`mteb-beyond tcr retrieve`: every method runs, and the table has the paper's columns, from mteb's own results."""

from __future__ import annotations

import csv
import json
from argparse import ArgumentParser
from pathlib import Path

import pytest
from language_model_server import LanguageModelServer
from retrieval_tables import write_small

import tcr_tasks
from evaluators.plugin.models import BM25
from tcr_tasks.retrieval.command import METHODS, add_retrieve_command
from tcr_tasks.retrieval.results import Row, add_rows, markdown, read_rows

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


def test_the_table_by_hand(tmp_path: Path) -> None:
    scores = {"recall_at_1": 0.25, "recall_at_1_low": 0.1, "recall_at_1_high": 0.4, "gr_at_1": 0.5, "n_queries": 4.0}
    row = Row("T", "r", "m|x", "dense", "", scores, "tied: 3%")
    add_rows(tmp_path, [row])
    assert read_rows(tmp_path) == [row]
    changed = Row("T", "r2", "m|x", "dense", "", {**scores, "chance_ds_at_1": 1 / 3})
    add_rows(tmp_path, [changed, Row("A", "r", "m", "dense", "", scores)])
    assert [r.key[0] for r in read_rows(tmp_path)] == ["A", "T"]
    printed = (tmp_path / "table.md").read_text()
    assert "| m\\|x | dense | 0.250 [0.10, 0.40] | 0.500 |" in printed
    assert "data revision r2; 4 queries; DS@1 by chance 0.333." in printed
    assert markdown([row]).count("tied: 3%") == 1
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"is no table of `tcr retrieve`"):
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
        (("--method", "dtr", "-m", "nowhere"), "holds no TAPAS model"),
    ],
)
def test_impossible_orders(arguments: tuple[str, ...], error: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=error):
        command(*arguments, "--out", tmp_path)


def test_every_method_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command("--help")
    told = " ".join(capsys.readouterr().out.split())
    assert all(name in told for name in METHODS)
