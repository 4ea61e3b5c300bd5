"""The command line: mteb's commands and ours."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mteb
import pyarrow.parquet as pq
import pytest
from mteb.models.model_implementations import MODEL_REGISTRY

from evaluators.cli import build_parser, main
from evaluators.plugin.registry import load_plugins, registered_tasks
from followir_tasks.tasks import SAMPLE as FOLLOWIR_SAMPLE

load_plugins()


@pytest.fixture(autouse=True)
def options_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` sets options on task classes and models in mteb's registry for its process; undo that here."""
    for cls in registered_tasks():
        for name in [o.name for o in cls.task_options] + ["first_stage_predictions", "first_stage_top_k", "data_path"]:
            monkeypatch.setattr(cls, name, getattr(cls, name))
    before = dict(MODEL_REGISTRY)
    yield
    MODEL_REGISTRY.clear()
    MODEL_REGISTRY.update(before)


def run(*arguments: str) -> int:
    return main(["run", *arguments, "-v", "0"])


def test_help_lists_both_kinds_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name in ("run", "available-tasks", "create-model-results", "submit-results", "demo", "check", "show", "card"):
        assert f" {name} " in text
    assert "mteb's own commands" in text


def test_no_command_prints_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "demo" in capsys.readouterr().out


def test_every_command_of_mteb_is_there() -> None:
    from mteb.cli.build_cli import build_cli

    from evaluators.plugin.parsers import sub_commands

    assert set(sub_commands(build_cli())) < set(sub_commands(build_parser()))


def test_run_takes_a_local_directory_and_files_variants_apart(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    model = str(tiny_models["SentenceTransformer"])
    common = [
        "-m",
        model,
        "-t",
        "TCRSample",
        "--output-folder",
        str(tmp_path),
        "--prediction-folder",
        str(tmp_path / "p"),
    ]
    assert run(*common) == 0
    assert run(*common, "--instruction", "prepend") == 0
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("TCRSample*") if p.is_file())
    revision = files[0].split("/")[2]
    assert len(revision) == 40
    name = "local__SentenceTransformer"
    assert files == sorted(
        [
            f"p/{name}/{revision}/TCRSample_per_query.parquet",
            f"p/{name}/{revision}/TCRSample_predictions.json",
            f"p/{name}/{revision}/task_instruction_prepend/TCRSample_per_query.parquet",
            f"p/{name}/{revision}/task_instruction_prepend/TCRSample_predictions.json",
            f"results/{name}/{revision}/TCRSample.json",
            f"results/{name}/{revision}/experiments/task_instruction_prepend/TCRSample.json",
        ]
    )
    meta = json.loads((tmp_path / f"results/{name}/{revision}/model_meta.json").read_text())
    assert (meta["name"], meta["revision"]) == ("local/SentenceTransformer", revision)


def test_run_sets_stale_results_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["-m", "mteb/baseline-bm25s", "-t", "TCRSample", "--output-folder", str(tmp_path)]
    assert run(*common) == 0
    (path,) = tmp_path.rglob("TCRSample.json")
    content = json.loads(path.read_text())
    true_score = content["scores"]["test"][0]["recall_at_1"]
    content["dataset_revision"] = "old"
    content["scores"]["test"][0]["recall_at_1"] = content["scores"]["test"][0]["main_score"] = 0.999
    path.write_text(json.dumps(content))
    assert run(*common, "--overwrite-strategy", "never") == 1
    assert "does not hold any more" in capsys.readouterr().err
    assert run(*common) == 0
    assert json.loads(path.read_text())["scores"]["test"][0]["recall_at_1"] == true_score
    assert len(list(tmp_path.rglob("*.stale-*"))) == 1


def test_run_takes_data_of_the_user(tmp_path: Path) -> None:
    """The sample's first ten questions as data of one's own."""
    own = tmp_path / "own"
    shutil.copytree(str(mteb.get_task("TCRSample").source().directory), own)
    for config in ("queries", "qrels", "groups"):
        pq.write_table(pq.read_table(own / f"{config}.parquet").slice(0, 10), own / f"{config}.parquet")
    given = ("-m", "mteb/baseline-bm25s", "-t", "TCRSample", "--output-folder", str(tmp_path / "results"), "--data")
    assert run(*given, str(own)) == 0
    (file,) = (tmp_path / "results").rglob("TCRSample.json")
    result = json.loads(file.read_text())
    assert result["scores"]["test"][0]["n_queries"] == 10
    assert result["dataset_revision"] != mteb.get_task("TCRSample").metadata.revision
    assert run(*given, str(tmp_path / "none")) == 1


def test_run_reranks_a_first_stage(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    predictions = tmp_path / "p"
    bm25 = ["-m", "mteb/baseline-bm25s", "-t", "TCRSample", "IFIRSample", "--output-folder", str(tmp_path)]
    assert run(*bm25, "--prediction-folder", str(predictions)) == 0
    first = predictions  # the only model's predictions below it are found
    model = str(tiny_models["CrossEncoder"])
    reranked = ["-m", model, "-t", "TCRSample", "--output-folder", str(tmp_path), "--first-stage", str(first)]
    assert run(*reranked, "--first-stage-top-k", "5") == 0
    (path,) = (tmp_path / "results" / "local__CrossEncoder").rglob("TCRSample.json")
    scores = json.loads(path.read_text())["scores"]["test"][0]
    assert re.fullmatch(r"mteb/baseline-bm25s@0_3_0:5#[0-9a-f]{8}", scores["mteb_beyond"]["options"]["first_stage"])
    assert scores["previous_results_model_meta"]["model_name"] == "mteb/baseline-bm25s"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-t", "TCRSample"], "name a model with -m"),
        (["-m", "mteb/baseline-bm25s", "-t", "TCRSampel"], "TCRSample"),
        (
            ["-m", "mteb/baseline-bm25s", "-t", "TCRSample", "IFIRSample", "--instruction", "none"],
            "does not concern IFIRSample",
        ),
        (["-m", "mteb/baseline-bm25s", "-t", "NFCorpus", "--first-stage", "."], "not with NFCorpus"),
        (
            ["-m", "mteb/baseline-bm25s", "-t", "TCRSample", "--first-stage", "/nowhere"],
            "no TCRSample_predictions.json at or below",
        ),
        (
            ["-m", "mteb/baseline-bm25s", "-t", "TCRSample", "--first-stage", ".", "--first-stage-top-k", "0"],
            "at least 1",
        ),
        (["-m", ".", "-t", "TCRSample"], "holds no model"),
        (["-m", "./nothing", "-t", "TCRSample"], "is not a directory"),
        (["-m", "mteb/baseline-bm25s"], "name tasks with -t"),
        (["-m", "mteb/baseline-bm25s", "-t", "FollowIRSample", "--first-stage", "."], "has candidates"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, "--output-folder", str(tmp_path)) == 1
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
    assert not list(tmp_path.rglob("*.json"))


def test_a_traceback_is_there_for_who_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MTEB_BEYOND_TRACEBACK", "1")
    with pytest.raises(ValueError, match="name a model"):
        run("-t", "TCRSample", "--output-folder", str(tmp_path))


# ---- check, show, card ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["IFIRSample", "FollowIRSample", "TCRSample"])
def test_check_finds_nothing_wrong_with_the_samples(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", task]) == 0
    assert "no problem found" in capsys.readouterr().out
    folder = str(mteb.get_task(task).embedded)
    assert main(["check", folder]) == 0
    out = capsys.readouterr().out
    assert folder in out
    assert mteb.get_task(task).metadata.revision in out, "the same data have the same revision wherever they lie"


def test_check_prints_everything_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from evaluators.plugin.dataset import Card, write_dataset

    pair = ("q-og", "q-changed")
    write_dataset(
        tmp_path,
        {
            "corpus": [{"_id": d, "title": "", "text": t} for d, t in (("a", "x"), ("a", "y"), ("b", " "))],
            "queries": [{"_id": q, "text": "x"} for q in (*pair, "r-og", "odd")],
            "instruction": [{"query-id": q, "instruction": "x"} for q in (*pair, "r-og", "odd")],
            "qrels": [{"query-id": "q-og", "corpus-id": "zzz", "score": 1}],
            "top_ranked": [{"query-id": q, "corpus-ids": ["a", "a"]} for q in pair],
            "qrel_diff": [{"query-id": "unknown", "corpus-ids": ["b"]}],
        },
        Card("t", "t", "mit"),
    )
    assert main(["check", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    for told in (
        "corpus: 1 ids occur more than once: 'a'",
        "corpus: 1 have no text: 'b'",
        "not in the corpus, as (query, document): ('q-og', 'zzz')",
        "listed twice, as (query, document): ('q-og', 'a'), ('q-changed', 'a')",
        "have no candidates: 'odd', 'r-og'",
        "'odd' ends neither in '-og' nor in '-changed'",
        "without both -og and -changed: 'r'",
        "qrel_diff: 1 unknown queries: 'unknown'",
        "no topic has a changed document",
        "problem(s)",
    ):
        assert told in out, told


@pytest.mark.parametrize("target", ["Nothing", "EMPTY"])
def test_check_says_what_it_expects(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path) if target == "EMPTY" else target]) == 1
    assert "TCRSample" in (err := capsys.readouterr().err) or "no dataset in a known layout" in err


def test_show_prints_what_a_model_reads(capsys: pytest.CaptureFixture[str]) -> None:
    task = mteb.get_task("TCRSample")
    task.load_data()
    query = task.data.queries[4]
    assert main(["show", "TCRSample", "--query", query["id"]]) == 0
    out = capsys.readouterr().out
    target = next(iter(task.data.relevant_docs[query["id"]]))
    text = dict(zip(task.data.corpus["id"], task.data.corpus["text"], strict=True))[target]
    assert f"----8<----\n{query['text']}\n---->8----" in out
    assert f"----8<----\n{text.strip()}\n---->8----" in out
    assert "Given a TableQA query" in out
    assert "siblings" in out


def test_show_joins_query_and_instruction(capsys: pytest.CaptureFixture[str]) -> None:
    task = mteb.get_task("FollowIRSample")
    task.load_data()
    row = task.data.queries[0]
    assert main(["show", "FollowIRSample", "--documents", "0"]) == 0
    out = capsys.readouterr().out
    assert main(["show", str(FOLLOWIR_SAMPLE), "--documents", "0"]) == 0
    assert capsys.readouterr().out == out
    assert f"----8<----\n{row['text']} {row['instruction']}\n---->8----" in out
    assert "changed documents" in out


def test_show_names_an_unknown_query(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "IFIRSample", "--query", "nope"]) == 1
    assert "has no query 'nope'" in capsys.readouterr().err


def test_card_is_valid_and_says_how_to_register(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from huggingface_hub import DatasetCard

    out = tmp_path / "card.md"
    assert main(["card", "TCRSample", "--out", str(out)]) == 0
    text = out.read_text()
    assert "import mteb\nimport tcr_tasks  # pip install mteb-beyond" in text
    card = DatasetCard(text, ignore_metadata_errors=False)
    assert card.data.license == "mit"
    assert main(["card", "NFCorpus"]) == 1
    assert "mteb makes its card" in capsys.readouterr().err


def test_the_demo_is_offline_before_anything_can_look() -> None:
    # The hub's library reads its switch when it is imported, so the command must set it before.
    code = """
import sys
from evaluators import cli
assert not {"huggingface_hub", "transformers", "mteb"} & set(sys.modules)
cli.build_parser = lambda: sys.exit(0)
sys.argv = ["mteb-beyond", "demo"]
try:
    cli.main()
finally:
    import huggingface_hub.constants, transformers.utils.hub
    assert huggingface_hub.constants.HF_HUB_OFFLINE
    assert transformers.utils.hub.is_offline_mode()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
