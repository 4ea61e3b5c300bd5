"""`mteb-beyond tcr diagnose` on three groups of the sample, with tiny models: results, resuming, report, figures."""

from __future__ import annotations

import argparse
import csv
import logging
import math
import os
import re
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock
from small_sample import write_small

from evaluators import drawing
from evaluators.figures import Figure
from evaluators.plugin.models import loaded
from tcr_tasks.diagnostics import diagnose as diagnosing
from tcr_tasks.diagnostics.catalogue import CATALOGUE
from tcr_tasks.diagnostics.command import add_diagnose_command
from tcr_tasks.diagnostics.diagnose import FINDINGS, Order, data_revision, diagnose
from tcr_tasks.diagnostics.models import encoded_once
from tcr_tasks.diagnostics.reading import read_base
from tcr_tasks.diagnostics.report import report
from tcr_tasks.diagnostics.results import NO_EMBEDDINGS, Origin, Store
from tcr_tasks.diagnostics.running import run
from tcr_tasks.tasks import SAMPLE

FAMILIES = ("main", "position", "volume")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("tcr") / "small")


@pytest.fixture(scope="module")
def order(small: Path, tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Order:
    return Order(str(tiny_models["SentenceTransformer"]), small, FAMILIES, tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def written(order: Order) -> list[Path]:
    return diagnose(order)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures have their files, which no test looks at, and are not drawn: half the time of a run."""

    def named(figures: Sequence[Figure], folder: Path) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{figure.name}.{kind}" for kind in ("html", "png") for figure in figures]
        for path in paths:
            path.touch()  # one that is there stays as it is
        return paths

    monkeypatch.setattr(drawing, "draw", named)


def rows(order: Order) -> list[dict[str, Any]]:
    return list(pq.read_table(order.out / "results.parquet").to_pylist())


def found(order: Order, diagnostic: str, metric: str) -> dict[str, Any]:
    wanted = [r for r in rows(order) if (r["diagnostic"], r["metric"], r["stratum"]) == (diagnostic, metric, "")]
    assert len(wanted) == 1, (diagnostic, metric, wanted)
    return wanted[0]


def test_every_diagnostic_has_a_number_or_a_reason(order: Order, written: list[Path]) -> None:
    told = {row["diagnostic"] for row in rows(order)}
    assert told == {d.key for d in CATALOGUE if d.family in FAMILIES}
    for row in rows(order):
        if row["value"] is None:
            assert row["metric"] in ("not_measurable", "not_possible")
            assert row["note"]
        else:
            # DS@1 rests on the queries whose group was hit, of which there may be none.
            assert row["n"] > 0 or (row["metric"].startswith("ds_at_1") and row["n"] == 0)
            assert row["low"] is None or row["low"] <= row["value"] <= row["high"]


def test_csv_and_parquet_hold_the_same_rows(order: Order, written: list[Path]) -> None:
    with (order.out / "results.csv").open(newline="", encoding="utf-8") as handle:
        read = list(csv.DictReader(handle))
    table = rows(order)
    assert len(read) == len(table)
    assert list(read[0]) == list(table[0])
    assert [(r["diagnostic"], r["metric"]) for r in read] == [(r["diagnostic"], r["metric"]) for r in table]
    assert [float(r["value"]) for r in read if r["value"]] == [r["value"] for r in table if r["value"] is not None]


def test_numbers_against_sentence_transformers_alone(order: Order, written: list[Path]) -> None:
    """R@1, GR@1, d_eff and the margins of main/markdown, from the model's own encode and numpy."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(order.model, device="cpu")
    base = read_base(order.data)
    ids = list(base.main.tables)
    documents = model.encode([base.main.texts(None)[i] for i in ids], normalize_embeddings=True)
    cosines = {q.id: documents @ model.encode([q.text], normalize_embeddings=True)[0] for q in base.main.questions}
    best = {q: ids[int(np.argmax(c))] for q, c in cosines.items()}
    n = len(base.main.questions)
    assert (
        found(order, "main/mixed", "recall_at_1")["value"]
        == sum(best[q.id] == q.target for q in base.main.questions) / n
    )
    assert found(order, "main/mixed", "gr_at_1")["value"] == sum(best[q.id] in q.group for q in base.main.questions) / n
    margins = []
    for q in base.main.questions:
        by_id = dict(zip(ids, cosines[q.id], strict=True))
        margins.append(by_id[q.target] - max(by_id[t] for t in q.group if t != q.target))
    assert found(order, "main/mixed", "mean_margin")["value"] == pytest.approx(np.mean(margins), abs=1e-5)
    values = np.linalg.svd(documents - documents.mean(axis=0), compute_uv=False) ** 2
    d_eff = values.sum() ** 2 / (values**2).sum()
    assert found(order, "main/mixed", "global_d_eff")["value"] == pytest.approx(d_eff, rel=1e-3)
    assert found(order, "main/mixed", "global_d_eff")["n"] == len(ids)
    tokens = np.array([len(i) for i in model.tokenizer([base.main.texts(None)[i].strip() for i in ids])["input_ids"]])
    limit = model.max_seq_length
    assert (tokens > limit).mean() > 0
    assert found(order, "main/mixed", "truncated_documents_share")["value"] == pytest.approx((tokens > limit).mean())
    unread = (tokens - limit).clip(0).sum() / tokens.sum()
    assert found(order, "main/mixed", "truncated_tokens_share")["value"] == pytest.approx(unread)


def test_one_number_has_one_interval(order: Order, written: list[Path]) -> None:
    for name in ("csv", "html", "mixed"):
        best, hit = (found(order, f"main/{name}", metric) for metric in ("top_is_target", "recall_at_1"))
        assert [best[k] for k in ("value", "low", "high", "n")] == [hit[k] for k in ("value", "low", "high", "n")]


@pytest.mark.usefixtures("undrawn")
def test_a_text_is_encoded_once(order: Order, written: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleting the findings but not the embeddings: nothing is left for the model to encode."""
    from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper

    before = rows(order)
    for kept in (order.out / FINDINGS).rglob("volume__*.json"):
        kept.unlink()
    asked: list[int] = []
    original = SentenceTransformerEncoderWrapper.encode

    def counted(self: Any, inputs: Any, **kwargs: Any) -> Any:
        asked.append(len(inputs.dataset))
        return original(self, inputs, **kwargs)

    monkeypatch.setattr(SentenceTransformerEncoderWrapper, "encode", counted)
    diagnose(order)
    assert asked == []
    assert rows(order) == before


@pytest.mark.usefixtures("undrawn")
def test_what_is_finished_is_not_run_again(
    order: Order, written: list[Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mteb.evaluate", None)  # whatever ran would fail
    with caplog.at_level(logging.WARNING):
        diagnose(order)
    total = sum(d.family in FAMILIES for d in CATALOGUE)
    assert f"{total} of {total} diagnostics are in {order.out} already" in caplog.text


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_run_goes_on(
    order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = replace(order, only=("position",), out=tmp_path)
    real, runs = diagnosing.run, []

    def interrupted(*args: Any) -> Any:
        for number, finding in enumerate(real(*args)):
            if number == 2:
                raise KeyboardInterrupt
            runs.append(finding.diagnostic)
            yield finding

    monkeypatch.setattr(diagnosing, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        diagnose(mine)
    assert len(runs) == 2
    assert {r["diagnostic"] for r in rows(mine)} >= set(runs)  # what is finished is reported already
    monkeypatch.setattr(diagnosing, "run", real)
    # An interrupt while mteb writes its cache leaves half an index.
    index = next((tmp_path / "embeddings").rglob("index.json"))
    index.write_text(index.read_text()[:20])
    diagnose(mine)
    # No terminal: a line per finished diagnostic, of the first run and of the second.
    lines = re.findall(r"^(\d of \d: position/\S+), \d+\.\d s$", capsys.readouterr().err, flags=re.M)
    assert [line[:6] for line in lines] == ["1 of 4", "2 of 4", "1 of 1"]  # the third was kept, but not yet told
    expected = [r for r in rows(order) if r["family"] == "position"]
    assert rows(mine)[0].keys() <= expected[0].keys()
    assert [(r["metric"], r["value"]) for r in rows(mine)] == [(r["metric"], r["value"]) for r in expected]


@pytest.mark.usefixtures("undrawn")
def test_sigterm_ends_a_run_as_an_interrupt_does(order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, real = replace(order, only=("position",), out=tmp_path), diagnosing.run

    def terminated(*args: Any) -> Any:
        for number, finding in enumerate(real(*args)):
            if number == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            yield finding

    monkeypatch.setattr(diagnosing, "run", terminated)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        diagnose(mine)
    assert signal.getsignal(signal.SIGTERM) is before
    assert (tmp_path / "report.md").is_file() and {r["diagnostic"] for r in rows(mine)}


def test_another_dataset_or_seed_does_not_take_the_findings_place(
    order: Order, written: list[Path], tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in (order.out / FINDINGS).rglob("*.json")}
    other = shutil.copytree(order.data or SAMPLE, tmp_path / "other")
    for mine, match in (
        (replace(order, data=other), "dataset small with seed 0; those on other with seed 0 .*--out"),
        (replace(order, seed=1), "dataset small with seed 0; those on small with seed 1 .*--out"),
    ):
        with pytest.raises(ValueError, match=match):
            diagnose(mine)
    assert {path: path.read_bytes() for path in (order.out / FINDINGS).rglob("*.json")} == before


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_results_need_a_folder(order: Order, tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file is a file; name a folder with --out"):
        diagnose(replace(order, model="never loaded", out=tmp_path / "file" / below))


@pytest.mark.usefixtures("undrawn")
def test_a_model_that_fails_is_told_and_tried_again(order: Order, tmp_path: Path) -> None:
    """Weights of NaN, as half precision leaves them: every diagnostic has its reason, and none is a number."""
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(order.model, device="cpu")
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)
    model.save_pretrained(str(tmp_path / "nan"))
    mine = replace(order, model=str(tmp_path / "nan"), only=("position",), out=tmp_path / "out")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"local/nan failed in 4 of 4 diagnostics .*hold NaN or infinity"):
            diagnose(mine)
    told = rows(mine)
    assert [r["value"] for r in told] == [None] * 4
    assert all("hold NaN or infinity" in r["note"] for r in told)
    assert "hold NaN" in (mine.out / "report.md").read_text(encoding="utf-8")


def test_a_zero_embedding_costs_the_geometry_alone(order: Order, tmp_path: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(order.model, device="cpu")
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
    model.save_pretrained(str(tmp_path / "zero"))
    wrapped, name, revision = loaded(str(tmp_path / "zero"))
    origin = Origin(name, revision, "small", data_revision(order.data), 0, 1)
    pictured = [d for d in CATALOGUE if d.key == "main/mixed"]
    once = encoded_once(wrapped, tmp_path / "cache")
    base = read_base(order.data)
    found = next(run(once, base, pictured, origin, Store(tmp_path), 8))
    assert found.value("recall_at_1") is not None and not found.failed
    assert found.value("mean_margin") is None
    n = len(base.main.tables) + len(base.main.questions)
    assert any(f"local/zero gives {n} embeddings of length 0" in note for note in found.notes)
    assert next(iter(base.main.tables)) in " ".join(found.notes)


@pytest.mark.usefixtures("undrawn")
def test_changed_data_are_run_again_and_said(order: Order, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    copied = tmp_path / "data"
    shutil.copytree(order.data or SAMPLE, copied)
    mine = Order(order.model, copied, ("position",), tmp_path / "out")
    diagnose(mine)
    queries = pq.read_table(copied / "queries.parquet")
    texts = pa.array([f"{text} Please." for text in queries["text"].to_pylist()])
    pq.write_table(queries.set_column(queries.column_names.index("text"), "text", texts), copied / "queries.parquet")
    with caplog.at_level(logging.WARNING):
        diagnose(mine)
    assert re.search(
        r"position/top-middle is run again: data_revision was \w+ and is " + data_revision(copied), caplog.text
    )
    assert {row["data_revision"] for row in rows(mine)} == {data_revision(copied)}


def test_report(order: Order, written: list[Path]) -> None:
    text = (order.out / "report.md").read_text(encoding="utf-8")
    for title in ("(Table 8)", "(Table 2)", "(Table 23)", "(Table 27)"):
        assert title in text
    assert "(Table 26)" not in text  # not asked for
    assert "none is the paper's" in text
    assert "Transposed" not in text
    assert "Shorter tables" not in text  # only the tables it would be compared with were run
    assert re.search(r"Answer at the top against answer at the middle: .*(n = 3|since)", text)
    assert re.search(r"The target among its siblings, all questions, Mixed: .*(of 3|of the 3)", text)
    assert "plotly.min.js" in text
    words = text.split("## Words")[1]
    assert "**SenSS" in words or "SenSS**" in words
    assert "RID" not in words  # not asked for
    assert all((order.out / link).is_file() for link in re.findall(r"\]\((figures/[^)]+)\)", text))


def test_figures_work_offline(order: Order, written: list[Path]) -> None:
    pages = {path.name: path for path in written if path.suffix == ".html"}
    assert {"figure-8.html", "figure-5.html", "figure-7.html"} == pages.keys()  # no lengths and no parts were asked for
    for page in pages.values():
        assert "cdn.plot.ly" not in re.sub(
            r"<script[^>]*>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S
        )
    drawn = [path for path in written if path.suffix == ".png"]
    assert len(drawn) == len(pages)
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in drawn)


@pytest.mark.usefixtures("undrawn")
def test_a_model_without_embeddings_and_one_that_reads_pairs(
    order: Order, written: list[Path], tiny_models: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """BM25 and a cross-encoder join the folder: they rank everything, have no geometry, and share the report."""
    capsys.readouterr()
    for model in ("mteb/baseline-bm25s", str(tiny_models["CrossEncoder"])):
        diagnose(replace(order, model=model, only=("position",)))
    models = {row["model"] for row in rows(order)}
    assert len(models) == 3
    assert "BM25S" not in capsys.readouterr().err  # its progress bars, which would run through ours
    bm25 = [r for r in rows(order) if r["model"] == "mteb/baseline-bm25s"]
    # It reads a bag of words: where the answer stands makes no difference.
    assert {(r["metric"], r["value"]) for r in bm25} == {("not_measurable", None)}
    assert all("equal scores" in r["note"] for r in bm25)


def test_without_embeddings_there_is_no_geometry(order: Order, tmp_path: Path) -> None:
    model, name, revision = loaded("mteb/baseline-bm25s")
    origin = Origin(name, revision, "small", data_revision(order.data), 0, 1)
    pictured = [d for d in CATALOGUE if d.key == "main/mixed"]
    found = next(run(model, read_base(order.data), pictured, origin, Store(tmp_path), 8))
    assert found.value("recall_at_1") is not None
    assert found.value("mean_margin") is None
    assert any("no embeddings" in note for note in found.notes)
    assert found.value("truncated_tokens_share") is None  # no length limit is known
    text = report({name: {found.diagnostic: found}}, origin, (), {})
    assert "(Table 8)" in text
    assert not re.search(r"^### .*(Table 23|Table 24|Pearson)", text, flags=re.M)
    assert f"left out of {name}: {NO_EMBEDDINGS}" in text


def test_two_runs_in_one_folder(order: Order, tmp_path: Path) -> None:
    with FileLock(tmp_path / ".lock"), pytest.raises(BlockingIOError, match="another run uses"):
        diagnose(replace(order, only=("position",), out=tmp_path))


@pytest.mark.usefixtures("undrawn")
def test_command_line(order: Order, written: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_diagnose_command(parser.add_subparsers())
    line = [
        "diagnose",
        "--model",
        order.model,
        "--data",
        str(order.data),
        "--only",
        "position",
        "--out",
        str(order.out),
    ]
    args = parser.parse_args(line)
    assert args.func(args) == 0
    assert str(order.out / "report.md") in capsys.readouterr().out
    with pytest.raises(ValueError, match="--batch-size"):
        args.func(parser.parse_args([*line, "--batch-size", "0"]))
    with pytest.raises(ValueError, match="--seed must be at least 0, got -1"):
        args.func(parser.parse_args([*line, "--seed", "-1"]))
    with pytest.raises(SystemExit):
        parser.parse_args(["diagnose", "--model", "m", "--out", "o", "--only", "nothing"])


def test_missing_data_are_named(order: Order, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        diagnose(Order(order.model, tmp_path / "nowhere", (), tmp_path))
