"""Saved predictions as TREC runs: read back by trec_eval's own parser, they give the scores of the result files."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import unquote

import mteb
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from evaluators.cli import main
from hub_cards.runs import export_runs

META = {"model_name": "someone/some-model", "revision": "abc"}


def saved(folder: Path, run: dict[str, dict[str, float]], task: str = "T", subset: str = "default") -> Path:
    """A prediction file of mteb."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task}_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": META, subset: {"test": run}}), encoding="utf-8")
    return path


def lines(path: Path) -> list[list[str]]:
    return [line.split(" ") for line in path.read_text(encoding="utf-8").splitlines()]


def ndcg(run_file: Path, qrels: dict[str, dict[str, int]], cut: int) -> float:
    with run_file.open(encoding="utf-8") as file:
        run = pytrec_eval.parse_run(file)
    found = pytrec_eval.RelevanceEvaluator(qrels, {f"ndcg_cut.{cut}"}).evaluate({q: run[q] for q in qrels})
    return fmean(one[f"ndcg_cut_{cut}"] for one in found.values())


def test_exported_runs_give_the_scores_of_the_result_files(made_results: Path, tmp_path: Path) -> None:
    assert main(["runs", "export", str(made_results / "predictions"), "--out", str(tmp_path)]) == 0
    plain = {p.name.split(".")[-2]: p for p in tmp_path.glob("*.run") if "instruction" not in p.name}
    assert sorted(plain) == ["FollowIRSample", "IFIRSample", "TCRSample"]
    assert len(list(tmp_path.glob("*.run"))) == 4  # and one of the variant
    scores: dict[str, dict[str, Any]] = {}
    for name in plain:
        (path,) = (made_results / "results").glob(f"*/*/{name}.json")
        (scores[name],) = json.loads(path.read_text())["scores"]["test"]
    for name, run_file in plain.items():
        task = mteb.get_task(name)
        task.load_data()
        qrels = {q: docs for q, docs in task.data.relevant_docs.items() if any(docs.values())}
        if name == "FollowIRSample":
            for suffix in ("og", "changed"):
                part = {q: docs for q, docs in qrels.items() if q.endswith(suffix)}
                assert ndcg(run_file, part, 5) == pytest.approx(scores[name][suffix]["ndcg_at_5"], abs=1e-5)
        else:  # of IFIR only instructed queries have judgements
            assert ndcg(run_file, qrels, 20) == pytest.approx(scores[name]["ndcg_at_20"], abs=1e-5)


def test_a_line_is_query_q0_document_rank_score_tag_and_ties_stand_in_mtebs_order(tmp_path: Path) -> None:
    saved(tmp_path / "p", {"q1": {"a": 0.5, "c": 0.5, "b": 0.5, "d": 2.0}, "q2": {"a": -1.25}})
    (path,) = export_runs(tmp_path / "p", tmp_path / "out")
    assert path.name == "someone__some-model__abc.T.run"
    tag = "someone__some-model__abc"
    assert lines(path) == [
        ["q1", "Q0", "d", "1", "2.0", tag],
        ["q1", "Q0", "c", "2", "0.5", tag],
        ["q1", "Q0", "b", "3", "0.5", tag],
        ["q1", "Q0", "a", "4", "0.5", tag],
        ["q2", "Q0", "a", "1", "-1.25", tag],
    ]


def test_each_subset_split_and_variant_has_a_file_of_its_own(tmp_path: Path) -> None:
    content = {"mteb_model_meta": META, "en": {"dev": {"q": {"d": 1.0}}, "test": {"q": {"d": 2.0}}}}
    folder = tmp_path / "p" / "someone__some-model" / "abc"
    saved(folder / "a=b c", {"q": {"d": 3.0}})
    (folder / "T_predictions.json").write_text(json.dumps(content))
    names = [path.name for path in export_runs(tmp_path / "p", tmp_path / "out")]
    assert names == [
        "someone__some-model__abc.T.en.dev.run",
        "someone__some-model__abc.T.en.run",
        "someone__some-model__abc__a-b-c.T.run",
    ]


def test_queries_without_a_document_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """trec_eval's own parser finds only the others in the file."""
    saved(tmp_path / "p", {"q1": {"a": 1.0}, "q2": {}, "q3": {}}, "Some")
    saved(tmp_path / "p", {"q1": {"a": 1.0}}, "All")
    assert main(["runs", "export", str(tmp_path / "p"), "--out", str(tmp_path / "out")]) == 0
    every, some = sorted((tmp_path / "out").glob("*.run"))
    with some.open(encoding="utf-8") as file:
        assert list(pytrec_eval.parse_run(file)) == ["q1"]
    told = "  queries without any document: 2, not in the file; `trec_eval -c` counts them as 0"
    assert capsys.readouterr().out.splitlines() == [f"written: {every}", f"written: {some}", told]


def test_a_model_without_a_revision_is_written_as_mteb_does(tmp_path: Path) -> None:
    path = saved(tmp_path / "p" / "someone__some-model" / "None" / "variant", {"q": {"d": 1.0}})
    path.write_text(path.read_text().replace('"abc"', "null"))
    (written,) = export_runs(tmp_path / "p", tmp_path / "out")
    assert written.name == "someone__some-model__no_revision_available__variant.T.run"


ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(
    run=st.dictionaries(ids, st.dictionaries(ids, st.floats(-1e6, 1e6), min_size=1, max_size=5), min_size=1, max_size=4)
)
def test_what_is_written_reads_back(run: dict[str, dict[str, float]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("runs")
    saved(folder, run)
    try:
        (path,) = export_runs(folder, folder / "out")
    except ValueError as error:
        # Only an id that looks like another one's written form, as `a%20b` beside `a b`, is refused.
        if "written alike" in str(error) and any("%" in n for n in {*run, *(d for ds in run.values() for d in ds)}):
            return
        raise
    changed = json.loads(p.read_text()) if (p := path.with_suffix(".ids.json")).is_file() else {}
    assert all(unquote(written) == name for written, name in changed.items())
    back: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        query, zero, document, rank, score, _ = line.split()
        scores = back.setdefault(changed.get(query, query), {})
        scores[changed.get(document, document)] = float(score)
        assert (zero, rank) == ("Q0", str(len(scores)))
    assert back == run
    for scores in back.values():
        assert list(scores) == sorted(scores, key=lambda d: (scores[d], d), reverse=True)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[1", "cannot be read as JSON"),
        ("{}", "does not say which model"),
        (json.dumps({"mteb_model_meta": META, "default": 1}), "holds no rankings by split"),
        (json.dumps({"mteb_model_meta": META, "default": {"test": {"q": {"d": float("nan")}}}}), "must be finite"),
        (json.dumps({"mteb_model_meta": META, "default": {"test": {"q": {"": 1.0}}}}), "empty id"),
        (json.dumps({"mteb_model_meta": META, "default": {"test": {"q": {"a b": 1.0, "a%20b": 2.0}}}}), "alike"),
        (json.dumps({"mteb_model_meta": META, "default": {"test": {"q 1": {"a": 1.0}, "q%201": {"a": 2.0}}}}), "alike"),
        (json.dumps({"mteb_model_meta": META, "default": {"test": {"q": 5}}}), "default"),
        (json.dumps({"mteb_model_meta": META, "default": {"test": {"q": {}, "r": {}}}}), "none of its 2 queries"),
        (json.dumps({"mteb_model_meta": META, "default": {"test": {}}}), "none of its 0 queries"),
        (json.dumps({"mteb_model_meta": META | {"model_name": None}, "default": {"test": {}}}), "names no model"),
    ],
)
def test_a_damaged_file_is_named(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "T_predictions.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=told) as caught:
        export_runs(tmp_path, tmp_path / "out")
    assert str(path) in str(caught.value)


def test_a_folder_without_predictions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="--prediction-folder"):
        export_runs(tmp_path, tmp_path / "out")


def test_the_help_tells_what_becomes_of_blanks_and_ties(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["runs", "export", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert all(words in told for words in ("(%20, %25)", ".ids.json", "equal score", "trec_eval -c"))


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        saved(tmp_path / folder, {"q": {"d": 1.0}})
    with pytest.raises(ValueError, match="would both be written"):
        export_runs(tmp_path, tmp_path / "out")
