"""The files that `mteb-beyond report` writes, apart from how a browser shows one."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from many_results import TCR_SCORES, write_result
from markdown_it import MarkdownIt

from evaluators.cli import main
from hub_cards.report.collect import Collected, collect
from hub_cards.report.embedding import script_json
from hub_cards.report.tables import Cell, Column, Row, Table
from hub_cards.report.text import csv_text, markdown, markdown_table
from hub_cards.values import Score


def test_every_number_of_a_result_file_is_one_row_of_the_csv(made: Collected, made_results: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(made))))
    keys = [tuple(row[k] for k in ("source", "model", "variant", "task", "subset", "metric")) for row in rows]
    assert len(keys) == len(set(keys))
    assert all(row["scale"] for row in rows)
    (path,) = (made_results / "results").glob("*/*/TCRSample.json")
    (scores,) = json.loads(path.read_text())["scores"]["test"]
    found = {r["metric"]: r for r in rows if r["task"] == "TCRSample" and not r["variant"]}
    numbers = {k: v for k, v in scores.items() if isinstance(v, int | float) and not k.startswith("nauc_")}
    bounds = {k for k in numbers if k.endswith(("_low", "_high"))}
    assert found.keys() == numbers.keys() - bounds
    assert {"ds_at_1_low", "recall_at_1_high"} <= bounds
    assert all(float(found[k]["value"]) == v for k, v in numbers.items() if k not in bounds)
    assert float(found["ds_at_1"]["low"]) == scores["ds_at_1_low"]
    assert float(found["ds_at_1"]["chance"]) == scores["chance_ds_at_1"]
    assert found["p_null_n"]["scale"] == "count"
    assert found["ds_at_1_p_null"]["scale"] == "p-value, 0..1"
    assert next(r for r in rows if r["metric"] == "p-MRR")["scale"] == "-1..1"


def test_published_values_are_told_apart_in_the_csv(many: Collected) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(many))))
    (one,) = [
        r
        for r in rows
        if r["model"] == "Qwen3-Embedding-8B" and r["task"] == "TCRBenchMixed" and r["metric"] == "ds_at_1"
    ]
    assert one["source"] == "published: TCR-Bench, Table 8, interval Table 42, types Table 11"
    assert (one["value"], one["low"], one["high"]) == ("0.271", "0.2", "0.346")
    assert not any("published" in r["source"] for r in csv.DictReader(io.StringIO(csv_text(many, False))))


def test_markdown_has_a_table_for_the_overview_and_each_task_whatever_names_hold(tmp_path: Path) -> None:
    write_result(tmp_path, "a/*b*|<i>_c_", "TCRBenchMixed", TCR_SCORES)
    write_result(tmp_path, "a/two", "FollowIRCore17", {"p-MRR": -0.02, "followir_score": 0.1})
    found = collect([tmp_path])
    text = markdown(found, [], ["a note"])
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    assert rendered.count("<table>") == 3
    assert '<td style="text-align:left">a/*b*|&lt;i&gt;_c_</td>' in rendered
    assert "0.200 [0.100, 0.300]" in rendered
    assert "published: Qwen3-Embedding-8B" in rendered


# Letters that mean something in Markdown or HTML, and where a line or a cell could end.
_HOSTILE = "|`*_~<>[]()&;#!\\\n\r\t -+=.:1ab$^"


@given(st.lists(st.text(_HOSTILE, min_size=1).filter(str.strip), min_size=1, max_size=3), st.text(_HOSTILE, min_size=1))
@settings(max_examples=60)
def test_whatever_a_name_holds_a_table_keeps_its_cells_and_reads_as_the_name(names: list[str], about: str) -> None:
    cells = (Cell(Score(0.5, 0.4, 0.6), "0.500"), Cell(Score(None), "-"))
    columns = (Column("R@1", about), Column(names[0], about, "group"))
    table = Table("", columns, tuple(Row(name, cells) for name in names), (f"note {about}",))
    document = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse("\n\n".join(markdown_table(table)))
    found: list[list[str]] = []
    for token, after in itertools.pairwise(document):
        if token.type == "tr_open":
            found.append([])
        elif token.type in ("th_open", "td_open"):
            assert all(child.type in ("text", "text_special") for child in after.children or ())
            found[-1].append("".join(child.content for child in after.children or ()))
    plain = [" ".join(name.split()) for name in names]
    assert found[0] == ["model", "R@1", " ".join(f"group: {names[0]}".split())]
    assert found[1:] == [[name, "0.500 [0.400, 0.600]", "-"] for name in plain]
    assert [token.type for token in document if token.type.endswith("list_open")] == ["bullet_list_open"] * 2


_LEAVES = st.text() | st.floats(allow_nan=False, allow_infinity=False)


@given(st.recursive(_LEAVES, lambda x: st.lists(x, max_size=3), max_leaves=8))
def test_data_in_a_page_cannot_leave_their_script_element(data: Any) -> None:
    text = script_json({"x": data, "y": "</script><!--"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"x": data, "y": "</script><!--"}


def test_the_command_writes_all_three_files(made_results: Path, tmp_path: Path, capsys: Any) -> None:
    out = [f"--out={tmp_path / 'r'}.{suffix}" for suffix in ("html", "md", "CSV")]
    assert main(["report", str(made_results), "--queries", "2", *out]) == 0
    printed = capsys.readouterr().out
    assert "single queries of TCRSample: 2 of 30" in printed
    page = (tmp_path / "r.html").read_text()
    assert page.count("plotly.js v") == 1
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--out", "r.pdf"], "must end in"),
        (["--out", "r.md", "--out", "."], "must end in"),
        (["--out", "r.md", "--out", "folder.html"], "folder.html is a folder"),
        (["--out", "r.md", "--out", "file/r.html"], "file is a file, no folder"),
        (["--out", "r.html", "--queries", "-1"], "0 or more"),
        (["--out", "r.html", "--predictions", "nowhere"], "nowhere is no folder"),
    ],
)
def test_unusable_options_are_told_before_anything_is_written(
    more: list[str], told: str, made_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").touch()
    assert main(["report", str(made_results), *more]) == 1
    assert told in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"folder.html", "file"}


def test_results_without_predictions_say_so(tmp_path: Path, capsys: Any) -> None:
    write_result(tmp_path, "a/one", "TCRBenchMixed", TCR_SCORES)
    assert main(["report", str(tmp_path / "results"), "--out", str(tmp_path / "r.html")]) == 0
    assert "No single queries: no saved predictions" in capsys.readouterr().out
    assert "No single queries: no saved predictions" in (tmp_path / "r.html").read_text()


def test_a_folder_without_results_is_told(tmp_path: Path, capsys: Any) -> None:
    assert main(["report", str(tmp_path), "--out", "r.html"]) == 1
    assert "no result folder of mteb" in capsys.readouterr().err
