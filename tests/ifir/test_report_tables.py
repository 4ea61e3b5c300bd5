"""The tables of `mteb-beyond ifir report`: results that repeat the paper's numbers must give the paper's lines."""

from __future__ import annotations

import json
from pathlib import Path

import mteb
import pytest
from fixed_ranking import FixedRanking
from report_files import published_scores, write_published, write_result

from evaluators.judge.judges import FacetJudge
from evaluators.plugin.running import evaluate
from ifir_tasks.report.content import NDCG, PAPER_NDCG, Block, Line, Place, Section, published_line, value
from ifir_tasks.report.published import AVERAGE, SUBSET_TASK_NAMES, published_tables
from ifir_tasks.report.results import load_results
from ifir_tasks.report.tables import Which, report_sections
from ifir_tasks.tasks import IFIRTask

GTR = "sentence-transformers/gtr-t5-xl"
INSTRUCTOR = "hkunlp/instructor-xl"


def sections(folder: Path, which: Which = "matching") -> dict[str, Section]:
    """The report's sections by the first words of their titles."""
    return {s.title.split(":")[0]: s for s in report_sections(load_results(folder).models, which)}


def block(section: Section, key: str) -> Block:
    (found,) = [b for b in section.blocks if b.title.split(":")[0] == key]
    return found


def labels(of: Block, published: bool) -> list[str]:
    return [line.label for line in of.lines if line.values and line.published is published]


@pytest.fixture
def gtr(tmp_path: Path) -> Path:
    write_published(tmp_path, "GTR-XL", name=GTR)
    return tmp_path


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("Table 3", "paper_ndcg_at_20"),
        ("Table 3", "paper_instfol_at_20"),
        ("Table 8", "paper_ndcg_at_20"),
        ("Table 8", "paper_mrr_at_20"),
        ("Table 10", "paper_ndcg_at_20"),
        ("Table 11", "paper_instfol_at_20"),
    ],
)
def test_own_and_published_lines_agree_where_the_numbers_do(gtr: Path, table: str, key: str) -> None:
    """Only the average is computed anew; from rounded cells it may be off by twice half a hundredth."""
    found = block(sections(gtr)[table], key)
    own, published = [line for line in found.lines if line.values][:2]
    assert (own.label, own.published) == (GTR, False)
    assert (published.label, published.published) == ("GTR-XL", True)
    for place, ours, theirs in zip(found.places, own.values, published.values, strict=True):
        assert theirs is not None
        tolerance = 0.01 if place.subset == AVERAGE else 1e-9
        assert ours == pytest.approx(theirs, abs=tolerance), place
    assert len(found.places) == (12 if table in ("Table 10", "Table 11") else 8)


def test_the_standard_measure_never_stands_beside_published_lines(gtr: Path) -> None:
    for section in sections(gtr, "all").values():
        for found in section.blocks:
            if not found.title.startswith("paper_"):
                assert labels(found, published=True) == [], found.title
                assert "not comparable with the paper" in found.title
            else:
                assert "COMPARE THIS" in found.title
    standard = block(sections(gtr)["Table 3"], "ndcg_at_20")
    assert standard.lines[0].values == (0.5,) * 8
    with pytest.raises(ValueError, match="no published value compares with ndcg_at_20"):
        published_line(published_tables()[3].rows[0], NDCG, standard.places)


def test_which_published_lines_are_shown(gtr: Path) -> None:
    def shown(which: Which) -> list[str]:
        return labels(block(sections(gtr, which)["Table 3"], "paper_ndcg_at_20"), published=True)

    assert shown("matching") == ["GTR-XL"]
    assert shown("none") == []
    assert shown("all") == [row.model for row in published_tables()[3].rows]


def test_an_average_needs_all_seven_subsets(tmp_path: Path) -> None:
    for task, scores in published_scores("GTR-XL").items():
        if task not in ("IFIRFireInstFol", "IFIRCdsInstFol"):
            write_result(tmp_path, task, scores, GTR)
    table = sections(tmp_path)["Table 3"]
    own = block(table, "paper_ndcg_at_20").lines[0]
    assert own.values == (0.44, 0.54, 0.60, 0.05, None, 0.31, None, None)
    assert f"{GTR}: no average, since FIRE, TREC-CDS have no result." in table.notes


def test_what_was_not_judged_is_missing_and_said(tmp_path: Path) -> None:
    for number, task in enumerate(SUBSET_TASK_NAMES.values()):
        judged = {"instfol_at_20": 0.07, "paper_instfol_at_20": 0.05, "n_judged": 40, "n_unscored": 2, "weighted": 0.5}
        withheld = {"n_judged": 10, "n_unscored": 32, "weighted": 1.0}
        write_result(tmp_path, task, {"paper_ndcg_at_20": 0.3} | ({}, judged, withheld)[min(number, 2)])
    found = sections(tmp_path)
    assert block(found["Table 3"], "instfol_at_20").lines[0].values == (None, pytest.approx(7.0), *[None] * 6)
    notes = " ".join(found["Table 3"].notes)
    assert "1 of 7 results have no InstFol" in notes and "--judge MODEL" in notes
    assert "5 of 7 results were judged, but too many pairs lack a score" in notes
    (judging,) = found["Judging behind InstFol (the paper"].blocks
    assert [line.label.strip() for line in judging.lines] == ["test/model", "n_judged", "n_unscored", "weighted x100"]
    assert judging.lines[1].values[:3] == (None, 40.0, 10.0)
    assert judging.lines[3].values[:3] == (None, 50.0, 100.0)


def test_judges_are_named_with_their_settings(tmp_path: Path) -> None:
    for name, judge in (("test/a", "gpt-4o-mini"), ("test/b", "gpt-4o-mini"), ("test/c", "other")):
        record = {"judge": "LLMJudge", "model": judge, "endpoint": "http://localhost", "rubrics": "ab12"}
        scores = {"instfol_at_20": 0.1, "n_judged": 5, "mteb_beyond": {"judge": record}}
        write_result(tmp_path, "IFIRFiQAInstFol", scores, name)
    notes = sections(tmp_path)["Judging behind InstFol (the paper"].notes
    assert "Judged by LLMJudge (model=gpt-4o-mini, rubrics=ab12): test/a, test/b." in notes
    assert "Judged by LLMJudge (model=other, rubrics=ab12): test/c." in notes


def test_prompts_stand_below_the_same_model_without(tmp_path: Path) -> None:
    write_published(tmp_path, "Instructor-XL", "without prompt", name=INSTRUCTOR)
    write_published(tmp_path, "Instructor-XL", "with prompt", name=INSTRUCTOR, options={"prompts": "instructor-1"})
    write_published(tmp_path, "GTR-XL", name=GTR, options={"window": 512})
    write_result(tmp_path, "IFIRFiQAInstFol", {"paper_ndcg_at_20": 0.9}, GTR, options={"window": 512, "prompts": "x"})
    write_result(tmp_path, "IFIRFiQAInstFol", {"paper_ndcg_at_20": 0.8}, GTR, options={"window": 256, "prompts": "x"})
    found = block(sections(tmp_path)["Table 9"], "paper_ndcg_at_20")
    assert [(line.label, line.values[0], line.published) for line in found.lines] == [
        (INSTRUCTOR, 0.484, False),
        (f"{INSTRUCTOR} (prompts=instructor-1)", 0.489, False),
        (f"(no result without prompt) {GTR}", None, False),
        (f"{GTR} (prompts=x, window=256)", 0.8, False),
        (f"{GTR} (window=512)", 0.44, False),
        (f"{GTR} (prompts=x, window=512)", 0.9, False),
        ("Instructor-XL without prompt", 0.484, True),
        ("Instructor-XL with prompt", 0.489, True),
    ]
    for own, published in ((0, 6), (1, 7)):
        assert found.lines[own].values == pytest.approx(found.lines[published].values, abs=0.001)


def test_without_prompts_table_9_says_so(gtr: Path) -> None:
    table = sections(gtr)["Table 9"]
    assert table.blocks == () and "No result has a prompt" in table.notes[-1]


def test_hybrids_stand_apart_and_beside_the_published_hybrid(tmp_path: Path) -> None:
    name = "mteb/baseline-hybrid-rrf_of_top-gtr-t5-xl-baseline-bm25s"
    options = {"models": f"{GTR}@1+window_512 mteb/baseline-bm25s@0_3_0", "weights": [1.0, 0.3]}
    write_published(tmp_path, "GTR-XL", "hybrid", name=name, options=options, model_type="hybrid")
    found = block(sections(tmp_path)["Table 8"], "paper_mrr_at_20")
    label = f"{name} (weights=[1.0, 0.3])"
    assert [(line.label, line.published, bool(line.values)) for line in found.lines] == [
        ("End-to-end retrieval", False, False),
        ("GTR-XL", True, True),
        ("BM25", True, True),
        ("Hybrid retrieval", False, False),
        (label, False, True),
        ("GTR-XL", True, True),
    ]
    assert found.lines[4].values[:7] == found.lines[5].values[:7]


def test_better_averages_come_first(tmp_path: Path) -> None:
    for model in ("ColBERT", "GritLM-7B", "BM25"):
        write_published(tmp_path, model, name=f"test/{model}")
    write_result(tmp_path, "IFIRFiQAInstFol", {"paper_ndcg_at_20": 0.99}, "test/incomplete")
    found = block(sections(tmp_path)["Table 3"], "paper_ndcg_at_20")
    assert labels(found, published=False) == ["test/GritLM-7B", "test/BM25", "test/ColBERT", "test/incomplete"]


# --- reading results -----------------------------------------------------------------------------------------------


def test_variants_and_revisions_are_told_apart(tmp_path: Path) -> None:
    long = "x" * 60
    for revision, options, score in (
        ("aaaaaaaaaa", None, 0.1),
        ("bbbbbbbbbb", None, 0.2),
        ("aaaaaaaaaa", {"window": 512}, 0.3),
        ("aaaaaaaaaa", {"note": long + "1"}, 0.4),
        ("aaaaaaaaaa", {"note": long + "2"}, 0.5),
    ):
        write_result(tmp_path, "IFIRFiQAInstFol", {"paper_ndcg_at_20": score}, revision=revision, options=options)
    found = {m.label: value(m, PAPER_NDCG, Place("FiQA")) for m in load_results(tmp_path).models}
    assert found == {
        "test/model @aaaaaaaa": 0.1,
        "test/model @bbbbbbbb": 0.2,
        "test/model (window=512)": 0.3,
        f"test/model (note={long}1) @aaaaaaaaaa": 0.4,
        f"test/model (note={long}2) @aaaaaaaaaa": 0.5,
    }


def test_the_results_folder_itself_will_do(gtr: Path) -> None:
    assert load_results(gtr / "results").models == load_results(gtr).models


def test_notes_on_data_are_passed_on(tmp_path: Path) -> None:
    remark = {"mteb_beyond": {"notes": ["1 instructed queries, the published set has 1718"]}}
    write_result(tmp_path, "IFIRFiQAInstFol", remark, "test/a")
    write_result(tmp_path, "IFIRFiQAInstFol", remark, "test/b", data="r2")
    assert load_results(tmp_path).notes == (
        "IFIRFiQAInstFol: 1 instructed queries, the published set has 1718",
        "IFIRFiQAInstFol: results come from different data revisions: r1 (test/a); r2 (test/b)",
    )


def test_a_variant_without_record_is_left_out_and_named(tmp_path: Path) -> None:
    tmp_path = tmp_path / "experiments" / "today"  # the name alone makes no variant
    plain = write_result(tmp_path, "IFIRFiQAInstFol", {"paper_ndcg_at_20": 0.1})
    path = write_result(tmp_path, "IFIRFiQAInstFol", {"paper_ndcg_at_20": 0.3}, options={"window": 512})
    for result in (plain, path):
        (result.parent / "model_meta.json").unlink()
    loaded = load_results(tmp_path)
    assert [m.label for m in loaded.models] == ["test/model"]
    assert len(loaded.notes) == 1 and str(path) in loaded.notes[0] and "model_meta.json" in loaded.notes[0]


def test_results_of_other_tasks_do_not_disturb(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder 'results'"):
        load_results(tmp_path)
    other = write_result(tmp_path, "NFCorpus", {})
    with pytest.raises(FileNotFoundError, match="holds no result of IFIRFiQAInstFol"):
        load_results(tmp_path)
    other.write_text("{")
    write_result(tmp_path, "IFIRFiQAInstFol", {"paper_ndcg_at_20": 0.1})
    assert len(load_results(tmp_path).models) == 1


@pytest.mark.parametrize("content", ["{", "[]", '{"task_name": 3}', None])
def test_unreadable_results_are_named(tmp_path: Path, content: str | None) -> None:
    path = write_result(tmp_path, "IFIRFiQAInstFol", {})
    if content is None:
        saved = json.loads(path.read_text())
        saved["scores"]["dev"] = saved["scores"].pop("test")
        content = json.dumps(saved)
    path.write_text(content)
    with pytest.raises(ValueError, match=str(path)):
        load_results(tmp_path)


def test_unreadable_records_of_models_are_named(tmp_path: Path) -> None:
    record = write_result(tmp_path, "IFIRFiQAInstFol", {}).parent / "model_meta.json"
    record.write_text('{"name": "test/model"}')
    with pytest.raises(ValueError, match=str(record)):
        load_results(tmp_path)


# --- a real run ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("fresh_cache")
def test_the_sample_has_a_section_of_its_own(tmp_path: Path) -> None:
    """A ranker by ground truth is perfect, and shows so; the sample never meets the paper's tables."""
    task = mteb.get_task("IFIRSample")
    assert isinstance(task, IFIRTask)
    task.judge = FacetJudge()
    task.load_data()
    assert task.data is not None
    facets: dict[str, dict[str, float]] = {}
    for row in task.data.side["facets"].to_pylist():
        facets.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    model = FixedRanking({q: facets[q.rsplit("-", 1)[0]] for q in task.data.queries["id"]})
    evaluate(model, task, output_folder=tmp_path, co2_tracker=False, show_progress_bar=False)
    (section,) = report_sections(load_results(tmp_path).models)
    assert section.title == "IFIRSample" and "not part of the paper" in section.notes[0]
    lines = {line.label.strip(): line for line in section.blocks[0].lines}
    assert lines["test/fixed-ranking"] == Line("test/fixed-ranking")
    assert lines["ndcg_at_20"].values == lines["paper_ndcg_at_20"].values == (1.0,) * 5
    # With the queries without levels, which count as a level of their own; the plain query already gets the best.
    assert lines["instfol_at_20 x100"].values == (0.0,) * 5
    judged, unscored, weighted = section.blocks[1].lines[1:]
    assert judged.values[0] > 0 and (unscored.values, weighted.values) == ((0.0,), (0.0,))
    assert "Judged by FacetJudge: test/fixed-ranking." in section.notes
