"""Dataset cards: they match their data, the hub can read them, and they describe every task."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard, DatasetCardData

from evaluators.plugin.dataset import SCHEMAS
from evaluators.plugin.mteb_internals import metadata_of
from evaluators.plugin.registry import load_plugins, registered_tasks
from followir_tasks import FollowIRSample
from followir_tasks.subsets import SUBSETS as FOLLOWIR_SUBSETS
from hub_cards.cards import FAMILIES, Family, card, family_of, scores, statistics
from ifir_tasks import IFIRSample
from ifir_tasks.tasks import SUBSETS as IFIR_SUBSETS
from tcr_tasks import TCRSample

SAMPLES = [family for family in FAMILIES if family.sample]
ANEW = "run `python -m hub_cards.cards` and look at what changes"


def by_name(family: Family) -> str:
    return family.name


@pytest.mark.parametrize("family", FAMILIES, ids=by_name)
def test_the_card_in_the_repository_is_the_one_that_is_rendered_now(family: Family) -> None:
    kept = (statistics.DATASETS / f"{family.name}.md").read_text(encoding="utf-8")
    assert kept == card(family), ANEW


@pytest.mark.parametrize("family", SAMPLES, ids=by_name)
def test_the_kept_statistics_are_those_of_the_data(family: Family) -> None:
    task = family.tasks[0]()
    assert statistics.compute(task) == statistics.kept()[task.metadata.name], ANEW


def test_statistics_tell_when_data_change(tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    assert FollowIRSample.embedded is not None
    shutil.copytree(FollowIRSample.embedded, changed)
    corpus = pq.read_table(changed / "corpus.parquet").to_pylist()
    corpus[0]["text"] += " More."
    pq.write_table(pa.Table.from_pylist(corpus), changed / "corpus.parquet")
    task = FollowIRSample()
    task.data_path = changed
    kept, now = statistics.kept()["FollowIRSample"], statistics.compute(task)
    # " More." has six characters.
    assert now.values["number_of_characters"] == kept.values["number_of_characters"] + 6
    assert now.revision != kept.revision
    assert card(family_of(task), found={"FollowIRSample": now}) != card(family_of(task))


def test_computing_statistics_leaves_the_installed_mteb_alone() -> None:
    task = IFIRSample()
    statistics.compute(task)
    assert not task.metadata.descriptive_stat_path.exists()
    assert task.metadata.descriptive_stats is None


def test_statistics_of_the_samples_by_hand() -> None:
    assert FollowIRSample.embedded is not None
    folder = FollowIRSample.embedded
    qrels = pq.read_table(folder / "qrels.parquet").to_pylist()
    queries = {row["query-id"] for row in qrels}
    values = statistics.kept()["FollowIRSample"].values
    assert values["num_queries"] == len(queries) == 48
    assert values["num_documents"] == pq.read_metadata(folder / "corpus.parquet").num_rows
    relevant = sum(row["score"] > 0 for row in qrels)
    assert values["relevant_docs_statistics"]["average_relevant_docs_per_query"] == pytest.approx(relevant / 48)
    assert values["top_ranked_statistics"]["average_top_ranked_per_query"] == 100


def test_a_mean_lies_within_its_range_and_tells_how_many_queries_it_is_about() -> None:
    shown = "\n".join(card(family) for family in FAMILIES).replace(",", "")
    ranges = [tuple(map(float, found)) for found in re.findall(r"\| ([\d.]+) \((\d+) to (\d+)\)", shown)]
    assert len(ranges) > 30
    assert all(low <= mean <= high for mean, low, high in ranges)
    # 1744 relevant documents of 40 queries; mteb's smallest number for one query, 135, is of judged ones.
    assert "| 40 | 19899 | 43.60 | 436 (" in shown
    # 735 relevant documents, but 152 queries: 735 / 5.44 = 135.
    assert "| 152 | 500000 | 5.44 (1 to 24) over 135 queries |" in shown


def test_facts_on_the_collections_are_those_that_their_loaders_expect() -> None:
    found = statistics.kept()
    for subset in IFIR_SUBSETS:
        values = found[subset.name].values
        assert (values["num_queries"], values["num_documents"]) == (subset.n_queries, subset.n_passages)
    for followir in FOLLOWIR_SUBSETS:
        values = found[followir.name].values
        assert (values["num_queries"], values["num_documents"]) == (followir.n_queries, followir.n_documents)
        assert found[followir.name].revision == metadata_of(followir.upstream).revision
    # The paper, section 3.3: 209 queries and 637 tables.
    assert found["TCRBenchMixed"].values["num_queries"] == 209
    assert found["TCRBenchMixed"].values["num_documents"] == 637
    # Nothing that nobody counted.
    assert "documents_text_statistics" not in found["TCRBenchMixed"].values
    assert all("not computed here" in found[t].origin for t in found if not t.endswith("Sample"))


@pytest.mark.parametrize("family", SAMPLES, ids=by_name)
def test_measured_scores_are_about_the_data_of_today(family: Family) -> None:
    task = family.tasks[0].metadata
    entry = scores.kept()[task.name]
    assert entry["revision"] == task.revision, "run the demo, then `python -m hub_cards.cards --results beyond-demo`"
    assert set(entry["models"]) == {"mteb/baseline-bm25s", "sentence-transformers/all-MiniLM-L6-v2"}
    assert all(set(found) == set(family.measured) for found in entry["models"].values())


def test_scores_of_other_data_are_refused(tmp_path: Path, demo_files: Path) -> None:
    name = "TCRSample.json"
    for path in demo_files.rglob(name):
        path.write_text(path.read_text().replace(TCRSample.metadata.revision, "0" * 40))
    with pytest.raises(ValueError, match=f"{name} is about 0000"):
        scores.measure(demo_files)


def test_scores_of_another_metric_version_are_refused(demo_files: Path) -> None:
    for path in demo_files.rglob("IFIRSample.json"):
        path.write_text(path.read_text().replace('"metric_version": 3', '"metric_version": 2'))
    with pytest.raises(ValueError, match=r"IFIRSample\.json is of metric version 2, now 3"):
        scores.measure(demo_files)


def test_scores_of_samples_by_different_models_are_refused(demo_files: Path) -> None:
    next(demo_files.rglob("IFIRSample.json")).unlink()
    with pytest.raises(ValueError, match="no result of IFIRSample"):
        scores.measure(demo_files)


@pytest.fixture
def demo_files(tmp_path: Path) -> Path:
    """Result files of one model on the samples, with a score and a revision each."""
    import json

    folder = tmp_path / "out"
    model = folder / "results" / "me__model" / "1"
    model.mkdir(parents=True)
    for family in SAMPLES:
        task = family.tasks[0].metadata
        record = {"metric_version": family.tasks[0].metric_version}
        measured = {**dict.fromkeys(family.measured, 0.5), "main_score": 0.5, "mteb_beyond": record}
        entry = {"hf_subset": "default", "languages": ["eng-Latn"], **measured}
        result = {
            "dataset_revision": task.revision,
            "task_name": task.name,
            "mteb_version": "2.26.24",
            "scores": {"test": [entry]},
            "evaluation_time": 1.0,
            "kg_co2_emissions": None,
        }
        (model / f"{task.name}.json").write_text(json.dumps(result))
    return folder


def test_measuring_reads_the_shown_scores(demo_files: Path) -> None:
    found = scores.measure(demo_files)
    assert found["IFIRSample"]["models"] == {"me/model": {"ndcg_at_20": 0.5}}
    assert found["TCRSample"]["revision"] == TCRSample.metadata.revision


@pytest.mark.parametrize("family", FAMILIES, ids=by_name)
def test_the_hub_can_read_the_header(family: Family) -> None:
    read = DatasetCard(card(family), ignore_metadata_errors=False).data
    again = DatasetCardData(**read.to_dict())
    assert again.to_dict() == read.to_dict()
    assert {c["config_name"]: c["data_files"][0]["path"] for c in read.configs} == dict(family.files)
    assert read.license == family.license
    assert (read.get("license_name") is not None) == (read.license == "other")
    assert all(c["data_files"][0]["split"] == "test" for c in read.configs)


@pytest.mark.parametrize("family", FAMILIES, ids=by_name)
def test_a_card_says_what_a_reader_needs(family: Family) -> None:
    text = card(family)
    for heading in ("Why", "Licence and attribution", "Statistics", "Columns", "Evaluate a model", "Expected scores"):
        assert f"\n## {heading}\n" in text
    assert "How it was made" in text or "**How it was made" in text
    assert "limits" in text.lower()
    example = text.partition("```python\n")[2].partition("```")[0]
    assert len(example.splitlines()) == 3
    compile(example, "example", "exec")
    assert "$" not in text.replace("$MTEB", "")
    assert text.count("@") >= 1 and "```bibtex" in text
    for task in (*family.tasks, *family.others):
        assert f"`{task.metadata.name}`" in text


def test_every_task_has_a_card_and_every_config_a_description() -> None:
    load_plugins()
    for task in registered_tasks():
        assert family_of(task)
    files = {name.rsplit("-", 1)[-1] for family in FAMILIES for name in family.files}
    assert set(SCHEMAS) <= files


def test_published_extremes_of_ifir_by_hand() -> None:
    # Table 3: NV-Embed-v2 has 0.68 on FiQA, ColBERT 0.07; Promptriever-7B an InstFol of 8.95, GTR-Large of -6.47.
    line = "| FiQA | 0.07 (ColBERT) to 0.68 (NV-Embed-v2) | -6.47 (GTR-Large) to 8.95 (Promptriever-7B) |"
    assert line in card(FAMILIES[0])
