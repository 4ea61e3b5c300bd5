"""`mteb-beyond tcr rerank`: its report and files, runs that go on, what it would ask, published values beside it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rerank_parts import command, rows_of, save_predictions, says, shuffled_run

from evaluators.drawing import draw
from tcr_tasks.compare import compare, read_tables
from tcr_tasks.reranking import pair_scores, published
from tcr_tasks.reranking.cross_encoder import CrossEncoding
from tcr_tasks.tasks import TCRTask

from language_model_server import LanguageModelServer  # isort: skip


def test_the_command(
    small: Path,
    small_task: TCRTask,
    server: LanguageModelServer,
    tiny_models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.scorer = says
    # One figure stands for those of the other methods.
    monkeypatch.setattr("tcr_tasks.reranking.run.draw", lambda figures, folder: draw(figures[:1], folder))
    out, name = tmp_path / "out", small_task.metadata.name
    saved = save_predictions(tmp_path / "saved", name, shuffled_run(small_task)).parent
    arguments = ["--first-stage", saved, "--data", small, "--out", out, "--ce", tiny_models["CrossEncoder"]]
    arguments += ["--llm", "org/m", "--llm-base-url", server.url, "--budgets", "3", "all", "3"]
    assert command(*arguments, "--methods", "exec", "ce", "lw") == 0
    printed = capsys.readouterr().out
    # One's own rows, with nothing published between them and the prompt.
    assert len(printed.splitlines()) < 20 and "| AAR-CE (T3) " in printed and "Qwen3" not in printed
    text = (out / "report.md").read_text(encoding="utf-8")
    rows = rows_of(out)
    methods = ["first stage"] + [m for m in ("AAR-CE", "AAR-Exec", "AAR-LLM-LW") for _ in range(2)]
    assert [row["method"] for row in rows] == methods
    assert [row["budget"] for row in rows] == ["", *["3", "all"] * 3]
    n_tables = len(small_task.data.side["tables"])  # type: ignore[union-attr]
    for row in rows[1:]:
        beyond = row["budget"] == "3"
        assert (row["recall_at_4"] == "", row["gr_at_5"] == "") == (beyond, beyond)
        assert row["recall_at_3"] != "" and row["ds_at_1_minus_first_stage"] != ""
        calls = 1 if row["method"] in ("AAR-LLM-LW", "AAR-Exec") else 3 if beyond else n_tables
        assert float(row["calls_per_query"]) == calls
        assert (row["prompt_tokens_per_query"] == "") == (row["method"] == "AAR-CE")
        assert float(row["seconds_per_query"]) > 0
    listwise = json.loads(next(r for r in rows if r["method"] == "AAR-LLM-LW" and r["budget"] == "3")["counts"])
    assert listwise["missing ids"] == 3
    assert "| AAR-CE (T3) " in text and "| AAR-LLM-LW (T∞, shuffled) " in text and "[" in text
    assert next(line.count(" - ") for line in text.splitlines() if line.startswith("| AAR-CE (T3) ")) == 5
    # Whatever is counted stands in both.
    counted = next(block for block in text.split("\n\n") if " what " in block.split("\n")[0])
    told = {tuple(cell.strip() for cell in line.split("|")[1:4]) for line in counted.splitlines()[2:]}
    names = {"3": "T3", "all": "T∞"}
    for row in rows[1:]:
        label = f"{row['method']} ({names[row['budget']]}{', shuffled' if row['method'] == 'AAR-LLM-LW' else ''})"
        counts = {name: str(number) for name, number in json.loads(row["counts"]).items()}
        assert {what: number for method, what, number in told if method == label} == counts
        assert ("rows shown or cut" in counts) == (row["method"] == "AAR-LLM-LW")
    # The published rows stand in tables of their own, marked, and in no file of results.
    blocks = [block for block in text.split("\n\n") if block.startswith("| ")]
    marked = [block for block in blocks if "*AAR-" in block]
    assert len(marked) == 2 and not any("| AAR-" in block for block in marked)
    assert "| *Qwen3-E0.6B* | *AAR-CE (T∞)*" in " ".join(marked[0].split()) and "0.507" in marked[0]
    assert "### Published: Table 29" in text and "### Published: Table 4" in text
    assert "local/CrossEncoder reads only the beginning of 100% of the tables" in text
    assert (out / "figures" / "figure-9-aar-ce-1.png").is_file()
    assert (out / "figures" / "figure-9-aar-ce-1.html").is_file()
    # What `tcr compare` reads gives the report's differences.
    tables = {p.parent: read_tables(p)[0][name] for p in sorted((out / "predictions").rglob("*_per_query.parquet"))}
    assert len(tables) == 7
    stage = next(t for folder, t in tables.items() if "saved_" in folder.name and "budget" not in folder.name)
    one = next(t for f, t in tables.items() if f.parent.parent.name.startswith("AAR-CE") and "budget_3" in f.name)
    assert float(rows[1]["ds_at_1_minus_first_stage"]) == compare(one, stage).ds_at_1.value
    assert float(rows[1]["recall_at_1"]) == sum(hit for hit, _ in one.hits.values()) / 3


def test_a_second_run_pays_for_nothing(
    small: Path,
    small_task: TCRTask,
    server: LanguageModelServer,
    tiny_models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tcr_tasks.reranking.run.draw", lambda figures, folder: [])
    server.scorer = says
    asked: list[int] = []
    server.faults = lambda number, body: asked.append(number)
    out = tmp_path / "out"
    arguments = ["--first-stage", tiny_models["SentenceTransformer"], "--data", small, "--out", out]
    arguments += ["--ce", tiny_models["CrossEncoder"], "--llm", "m", "--llm-base-url", server.url, "--methods"]
    assert command(*arguments, "pw", "ce", "--budgets", "3") == 0
    before, n_asked = rows_of(out), len(asked)
    assert n_asked == 9 and len(before) == 3

    def forbidden(*_: Any) -> Any:
        raise AssertionError("a pair was scored again")

    monkeypatch.setattr(CrossEncoding, "_predict", forbidden)
    assert command(*arguments, "pw", "ce", "--budgets", "3", "2") == 0
    after = rows_of(out)
    assert len(asked) == n_asked
    assert [row for row in after if row["budget"] != "2"] == before
    assert pair_scores._PAIRS_PER_COMMIT > 9
    server.faults = lambda number, body: None


def test_failed_calls_are_told_by_exit_code_and_report(
    small: Path, server: LanguageModelServer, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    server.scorer = says
    server.faults = lambda number, body: "context_exceeded" if number % 3 == 0 else None
    arguments = ["--first-stage", tiny_models["SentenceTransformer"], "--data", small, "--out", tmp_path / "out"]
    arguments += ["--llm", "m", "--llm-base-url", server.url, "--methods", "pw", "--budgets", "3"]
    assert command(*arguments) == 1
    told = (tmp_path / "out" / "report.md").read_text()
    assert " calls stayed without a reply" in told and "not yet the language model's scores" in told
    # Their waits are not what a reply takes.
    assert not (tmp_path / "out" / "costs.json").exists()
    server.faults = lambda number, body: None
    assert command(*arguments) == 0
    assert "without a reply" not in (tmp_path / "out" / "report.md").read_text()
    # Other data do not replace them.
    kept = (tmp_path / "out" / "results.csv").read_bytes()
    other = [x for x in arguments if x not in ("--data", small)]
    with pytest.raises(ValueError, match=r"holds other results, .*\(command tcr rerank, task TCRBenchMixed, data rev"):
        command(*other)
    assert (tmp_path / "out" / "results.csv").read_bytes() == kept


def test_a_failed_call_is_made_once_a_run(
    small: Path,
    small_task: TCRTask,
    server: LanguageModelServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the budgets that need it; the next run makes it again, and only it."""
    monkeypatch.setattr("tcr_tasks.reranking.run.draw", lambda figures, folder: [])
    server.scorer = says
    asked: Counter[str] = Counter()
    failing: set[str] = set()

    def faults(number: int, body: Any) -> str | None:
        prompt = json.dumps(body["messages"])
        asked[prompt] += 1
        if len(asked) == 2 and not failing:
            failing.add(prompt)
        return "context_exceeded" if prompt in failing else None

    server.faults = faults
    saved = save_predictions(tmp_path / "saved", small_task.metadata.name, shuffled_run(small_task)).parent
    arguments = ["--first-stage", saved, "--data", small, "--out", tmp_path / "out", "--llm", "m"]
    arguments += ["--llm-base-url", server.url, "--methods", "pw", "--budgets", "2", "3", "4"]
    assert command(*arguments) == 1
    assert len(asked) == 12 and set(asked.values()) == {1}
    first = rows_of(tmp_path / "out")[1:]
    assert [json.loads(row["counts"])["failed calls"] for row in first] == [1, 1, 1]
    told = (tmp_path / "out" / "report.md").read_text()
    assert "Note: 1 calls stayed without a reply" in told
    assert "The first one: `HTTP 400: The context length is exceeded.`" in told
    # The budget with the failed call has 6; the calls of the two behind it, 3 each, all had a reply.
    (costs,) = json.loads((tmp_path / "out" / "costs.json").read_text()).values()
    assert costs["calls"] == 6 and costs["seconds"] > 0
    asked.clear()
    assert command(*arguments) == 1
    assert asked == dict.fromkeys(failing, 1)
    failing.clear()
    failing.add("none")
    assert command(*arguments) == 0
    assert sum(asked.values()) == 2
    server.faults = lambda number, body: None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((), "name a cross-encoder with --ce"),
        (("--methods", "pw"), "need a language model: --llm"),
        (("--methods", "ce", "--llm", "m"), "needs a cross-encoder: --ce"),
        (("--ce", "x", "--budgets", "0"), "a budget is a whole number"),
        (("--ce", "x", "--batch-size", "0"), "--batch-size"),
        (("--llm", "m", "--context-tokens", "512"), "--context-tokens 512 leaves no room beside a reply of"),
        (("--llm", "m", "--prompts", "nowhere"), "holds none of pointwise.txt, listwise.txt, exec.txt"),
        (("--ce", "x", "-t", "TCRDiagnosticMain"), "there is no TCR task 'TCRDiagnosticMain'"),
        (("--llm", "m", "--methods", "pw", "--protocol", "paper"), "--protocol concerns --methods lw only"),
        (("--llm", "m", "--methods", "exec", "--seed", "0"), "--seed concerns --methods lw only"),
        (("--llm", "m", "--protocol", "paper", "--seed", "1"), "--seed concerns --protocol shuffled only"),
        (("--llm", "m", "--methods", "pw", "--ce", "x"), "--ce concerns --methods ce only"),
        (("--ce", "x", "--llm", "m", "--methods", "ce"), "--llm concerns the methods pw, lw and exec only"),
        (("--ce", "x", "--ask-again"), "--ask-again concerns the methods pw, lw and exec only"),
        (("--ce", "x", "--context-tokens", "9"), "--context-tokens concerns the methods pw, lw and exec only"),
        (
            ("--llm", "m", "--batch-size", "8"),
            "--batch-size concerns a cross-encoder, or a model as --first-stage, only",
        ),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, wrong: tuple[str, ...], message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        command("--first-stage", tmp_path, "--out", tmp_path / "out", *wrong)
    assert not (tmp_path / "out").exists()


def test_a_run_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with --out"):
        command("--first-stage", tmp_path, "--ce", "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file; name a folder"):
        command("--first-stage", tmp_path, "--ce", "x", "--out", tmp_path / "file")


def test_a_dry_run_tells_what_a_run_would_ask(
    small: Path,
    small_task: TCRTask,
    server: LanguageModelServer,
    tiny_models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tcr_tasks.reranking.run.draw", lambda figures, folder: [])
    server.scorer = says
    saved = save_predictions(tmp_path / "saved", small_task.metadata.name, shuffled_run(small_task)).parent
    arguments = ["--first-stage", saved, "--data", small, "--ce", tiny_models["CrossEncoder"]]
    arguments += ["--llm", "m", "--llm-base-url", server.url, "--llm-price", "1,2", "--llm-max-tokens", "100"]
    arguments += ["--methods", "ce", "pw", "lw", "exec"]
    before = server.counts.as_dict()["requests"]
    budgets = ("--budgets", "2", "1")
    assert command(*arguments, *budgets, "--dry-run") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "AAR-CE (T1, T2), 3 questions: 6 pairs to score"
    # Yes or no of each pair; listings and queries of each question with its one and with its two candidates.
    for at, method in ((1, "PW"), (2, "LW")):
        start = f"AAR-LLM-{method} (T1, T2), 3 questions: 6 different requests, 0 already stored, 6 calls to make"
        assert told[at].startswith(start) and "at most 600 completion tokens; cost" in told[at]
    assert told[3].startswith("AAR-Exec (T1, T2), 3 questions: 6 different requests, 0 already stored")
    assert len(told) == 4
    (pointwise, in_pairs), (listwise, in_lists) = (tokens_of(told[at]) for at in (1, 2))
    # A listing of one shows the best table again, so that it has half as many more.
    assert in_pairs < in_lists < listwise and in_pairs < pointwise
    assert server.counts.as_dict()["requests"] == before and not (tmp_path / "out").exists()
    out = tmp_path / "out"
    # A run with one of the budgets answers all pairs, and the listings and queries of that budget.
    assert command(*arguments, "--budgets", "2", "--out", out) == 0
    capsys.readouterr()
    assert server.counts.as_dict()["requests"] == before + 12
    assert command(*arguments, *budgets, "--out", out, "--dry-run") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].endswith(": 0 pairs to score") and "6 already stored, 0 calls" in told[1]
    assert all("3 already stored, 3 calls" in told[at] for at in (2, 3))
    assert tokens_of(told[1]) == (0, 0)


def tokens_of(told: str) -> tuple[int, int]:
    """An estimate's prompt tokens, and those of them in tables."""
    found = re.search(r"; about (\d+) prompt tokens \((\d+) of them in tables, counted by ", told)
    assert found is not None
    return int(found[1]), int(found[2])


# --- published values --------------------------------------------------------------------------------------------


def test_published_rows_agree_with_each_other_and_with_table_4() -> None:
    """DS@1 = R@1 / GR@1, more tables hold the target at least as often, and Table 4 repeats three rows."""
    for row in published.ROWS:
        assert row.recall[0] is not None and row.group_recall[0] is not None
        assert row.ds_at_1 == pytest.approx(row.recall[0] / row.group_recall[0], abs=0.002)
        recall = [value for value in row.recall if value is not None]
        assert recall == sorted(recall) and len(recall) == min(row.budget or 5, 5)
        assert [value is None for value in row.recall] == [value is None for value in row.group_recall]
    assert len(published.ROWS) == len({(row.stage, row.name) for row in published.ROWS}) == 22
    table4 = {"AAR-CE": (0.574, 0.656, 0.766, 0.750), "AAR-LLM-PW": (0.536, 0.737, 0.761, 0.704)}
    table4["AAR-LLM-LW"] = (0.450, 0.708, 0.770, 0.584)
    found = {r.method: r for r in published.ROWS if (r.stage, r.budget) == published.TABLE_4}
    assert {m: (r.recall[0], r.recall[4], r.group_recall[0], r.ds_at_1) for m, r in found.items()} == table4
