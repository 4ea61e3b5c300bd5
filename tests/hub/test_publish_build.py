"""What is published: nothing is lost on the way into our layout, and every config loads."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import DatasetCard
from publish_files import TABLES, write_ifir, write_instructir, write_tcr

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.registry import load_plugins
from followir_tasks import FollowIRSample
from followir_tasks.data import read_followir
from followir_tasks.layout import write_followir
from hub_cards import publish_layout as layout
from hub_cards.publish_build import Built, build
from ifir_tasks import IFIRSample
from ifir_tasks.data import read_authors, read_own
from tcr_tasks import TCRSample

load_plugins()


def published(target: str | Path, folder: Path) -> Built:
    return build(str(target), folder / "built", "me/name")


def load_all(built: Built, cache: Path) -> dict[str, datasets.Dataset]:
    """Every config of the card, as `datasets.load_dataset` gives it for the directory."""
    configs = DatasetCard.load(built.folder / "README.md").data.configs
    return {
        c["config_name"]: datasets.load_dataset(
            str(built.folder.resolve()), c["config_name"], split="test", cache_dir=str(cache)
        )
        for c in configs
    }


@pytest.mark.parametrize("task", [IFIRSample, FollowIRSample, TCRSample])
def test_every_config_of_a_sample_loads(task: type, tmp_path: Path) -> None:
    built = published(task.__name__, tmp_path)
    loaded = load_all(built, tmp_path / "cache")
    assert task.embedded is not None
    kept = {path.stem: path for path in task.embedded.glob("*.parquet")}
    assert loaded.keys() == kept.keys()
    for name, rows in loaded.items():
        assert rows.num_rows == pq.read_metadata(kept[name]).num_rows
        assert (built.folder / f"{name}.parquet").read_bytes() == kept[name].read_bytes()
    assert set(built.files) == {"README.md", "eval.yaml", *(f"{name}.parquet" for name in kept)}


@pytest.mark.parametrize(
    ("write", "configs"),
    [
        (write_ifir, {f"nfcorpus-{c}" for c in ("corpus", "queries", "qrels", "instruction")}),
        (write_tcr, {"corpus", "queries", "qrels", "groups", "tables"}),
        (write_instructir, {"corpus", "queries", "qrels"}),
    ],
)
def test_every_config_of_a_collection_loads(write: Callable[[Path], Path], configs: set[str], tmp_path: Path) -> None:
    built = published(write(tmp_path / "source"), tmp_path)
    loaded = load_all(built, tmp_path / "cache")
    assert loaded.keys() == configs
    assert all(rows.num_rows > 0 for rows in loaded.values())
    # The same data give the same bytes, or publishing again would send them again.
    again = build(str(tmp_path / "source"), tmp_path / "again", "me/name")
    assert again.files == built.files
    assert all((again.folder / f).read_bytes() == (built.folder / f).read_bytes() for f in built.files)


def test_ifir_of_the_authors_in_our_layout(tmp_path: Path) -> None:
    source = write_ifir(tmp_path / "source")
    built = published(source, tmp_path)
    rows = {
        name: pq.read_table(built.folder / "nfcorpus" / f"{name}.parquet").to_pylist()
        for name in ("queries", "qrels", "instruction")
    }
    assert rows["queries"] == [
        {"_id": "q0-og", "text": "query 0"},
        {"_id": "q0-v0", "text": "query 0"},
        {"_id": "q1-og", "text": "query 1"},
        {"_id": "q1-v0", "text": "query 1"},
    ]
    # Blanks at its ends belong to it.
    assert rows["instruction"] == [{"query-id": f"q{i}-v0", "instruction": " what I want "} for i in range(2)]
    assert rows["qrels"] == [{"query-id": "q0-v0", "corpus-id": d, "score": 1} for d in ("d1", "d2")]
    before, after = read_authors(source / "nfcorpus", False), read_own(built.folder / "nfcorpus")
    assert layout.differences(before, after) == []


def test_tcr_of_the_authors_in_our_layout(tmp_path: Path) -> None:
    source = write_tcr(tmp_path / "source")
    built = published(source, tmp_path)
    tables = pq.read_table(built.folder / "tables.parquet").to_pylist()
    assert {t["table_path"]: t["csv"] for t in tables} == TABLES  # line ends and all
    (group,) = pq.read_table(built.folder / "groups.parquet").to_pylist()
    assert json.loads(group["record"])["answer"] == [3]
    assert group["target"].endswith("::town::shops_T0")
    told = yaml.safe_load((built.folder / "eval.yaml").read_text())
    assert {t["id"] for t in told["tasks"]} >= {
        "TCRBenchMixed",
        "TCRBenchHTML_default_test",
        "TCRBenchCSV_default_test_ds_at_1",
    }
    assert not any("Diagnostic" in t["id"] for t in told["tasks"])
    again = published(built.folder, tmp_path / "again")  # as a directory of one's own, which the sample's task reads
    assert yaml.safe_load((again.folder / "eval.yaml").read_text())["tasks"] == told["tasks"]
    card = (built.folder / "README.md").read_text()
    assert "| `TCRBenchMixed` | `minger-hsxz/TCR-Bench-Open` at " in card
    assert "these are other data, and their scores are not comparable" in card
    assert 'task.data_path = "hf://datasets/me/name@REVISION"' in card


def test_instructir_is_taken_as_it_is(tmp_path: Path) -> None:
    source = write_instructir(tmp_path / "source")
    built = published(source, tmp_path)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        assert (built.folder / name).read_bytes() == (source / name).read_bytes()


def test_nothing_of_the_samples_is_lost_when_they_are_written_anew(tmp_path: Path) -> None:
    assert FollowIRSample.embedded is not None and IFIRSample.embedded is not None
    followir = read_followir(FollowIRSample.embedded)
    write_followir(tmp_path / "followir", followir)
    assert layout.differences(followir, read_followir(tmp_path / "followir")) == []
    ifir = read_own(IFIRSample.embedded)
    layout.write_ifir(tmp_path / "ifir", ifir)
    assert layout.differences(ifir, read_own(tmp_path / "ifir")) == []


def test_what_is_lost_is_seen() -> None:
    assert FollowIRSample.embedded is not None
    whole, less = read_followir(FollowIRSample.embedded), read_followir(FollowIRSample.embedded)
    query = next(iter(less.relevant_docs))
    less.relevant_docs[query].popitem()
    less.side["qrel_diff"].popitem()
    less.corpus = less.corpus.select(range(1, len(less.corpus)))
    found = " ".join(layout.differences(whole, less))
    assert "qrels" in found and "qrel_diff" in found and "corpus" in found and "queries" not in found


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A dataset of one's own in our layout, with its card and things that are nobody's business beside it."""
    assert IFIRSample.embedded is not None
    shutil.copytree(IFIRSample.embedded, tmp_path / "own")
    (tmp_path / "own" / "work").mkdir()
    for name in ("notes.txt", "work/state.json", "work/rows.parquet", "extra.parquet"):
        (tmp_path / "own" / name).write_text("private")
    return tmp_path / "own"


def test_a_directory_of_ones_own_keeps_its_card_and_sends_nothing_else(own: Path, tmp_path: Path) -> None:
    built = published(own, tmp_path)
    assert (built.folder / "README.md").read_text().partition("---\n\n")[2] == (
        own / "README.md"
    ).read_text().partition("---\n\n")[2]
    assert not [name for name in built.files if "work" in name or "notes" in name or "extra" in name]
    assert "extra" not in (built.folder / "README.md").read_text()
    assert any("not sent" in line and "extra.parquet" in line for line in built.told)
    assert yaml.safe_load((built.folder / "eval.yaml").read_text())["name"] == "IFIR sample (mteb-beyond)"


def test_configs_of_a_card_are_filled_in(own: Path, tmp_path: Path) -> None:
    (own / "README.md").write_text("---\nlicense: cc0-1.0\n---\n\n# Mine\n\nWritten by me.\n")
    (own / "corpus").mkdir()
    (own / "corpus.parquet").rename(own / "corpus" / "0000.parquet")
    built = published(own, tmp_path)
    card = DatasetCard.load(built.folder / "README.md")
    assert card.data.license == "cc0-1.0" and "Written by me." in card.text
    paths = {c["config_name"]: c["data_files"][0]["path"] for c in card.data.configs}
    assert paths["corpus"] == "corpus/*.parquet" and paths["queries"] == "queries.parquet"
    assert load_all(built, tmp_path / "cache")["corpus"].num_rows == 324


@pytest.mark.parametrize(
    ("card", "told"), [(None, "has no README.md"), ("# Mine\n", "names no licence"), ("---\na: 1\n---\n", "no licence")]
)
def test_a_dataset_without_licence_is_not_published(own: Path, tmp_path: Path, card: str | None, told: str) -> None:
    (own / "README.md").unlink()
    if card is not None:
        (own / "README.md").write_text(card)
    with pytest.raises(ValueError, match=told):
        published(own, tmp_path)


@pytest.mark.parametrize(
    ("card", "told"),
    [("---\nlicense: mit\n---\nZürich".encode("latin-1"), "is not UTF-8"), (b"---\na: [\n---\n", "YAML header")],
)
def test_a_card_that_cannot_be_read_is_named(own: Path, tmp_path: Path, card: bytes, told: str) -> None:
    (own / "README.md").write_bytes(card)
    with pytest.raises(ValueError, match=f"^{re.escape(str(own / 'README.md'))} .*{told}"):
        published(own, tmp_path)


def test_damaged_data_are_named_where_they_lie(own: Path, tmp_path: Path) -> None:
    (own / "corpus.parquet").write_bytes((own / "corpus.parquet").read_bytes()[:-100])
    with pytest.raises(ValueError, match="corpus") as found:
        published(own, tmp_path)
    assert str(own) in str(found.value) and "built" not in str(found.value)


def test_wrong_data_are_not_published(own: Path, tmp_path: Path) -> None:
    rows = pq.read_table(own / "qrels.parquet")
    at = rows.column_names.index("corpus-id")
    ids = rows.column("corpus-id").to_pylist()
    import pyarrow as pa

    pq.write_table(rows.set_column(at, "corpus-id", pa.array(["nowhere", *ids[1:]])), own / "qrels.parquet")
    with pytest.raises(DatasetError, match="nowhere"):
        published(own, tmp_path)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("TCRBenchDiagnosticMixed", "publish TCRBenchMixed"),
        ("TCRDiagnosticMain", "publish TCRSample"),
        ("NFCorpus", "neither a directory nor one of our tasks"),
    ],
)
def test_what_has_no_data_of_its_own_is_refused(target: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        published(target, tmp_path)
