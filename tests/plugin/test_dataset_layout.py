"""The directory layout: written, read back, loaded by `datasets`, fingerprinted; and where data are looked for."""

from __future__ import annotations

import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import datasets
import mteb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluators.plugin.dataset import Card, fingerprint, is_dataset_directory, read_config, write_dataset
from evaluators.plugin.registry import load_plugins
from evaluators.plugin.sources import choose_source, fetch_git_archive

load_plugins()
ROWS = {
    "corpus": [{"_id": "d1", "title": "", "text": "ä"}, {"_id": "d2", "title": "T", "text": "b"}],
    "queries": [{"_id": "q1", "text": "q"}],
    "qrels": [{"query-id": "q1", "corpus-id": "d1", "score": 2}],
    "top_ranked": [{"query-id": "q1", "corpus-ids": ["d2", "d1"]}],
}
CARD = Card("A title", "A body.", "mit", ("tag",))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert not is_dataset_directory(tmp_path)
    write_dataset(tmp_path, ROWS, CARD)
    assert is_dataset_directory(tmp_path)
    for name, rows in ROWS.items():
        table = read_config(tmp_path, name)
        assert table is not None
        assert table.to_pylist() == rows
    assert read_config(tmp_path, "groups") is None


@pytest.mark.parametrize("sample", ["IFIRSample", "FollowIRSample", "TCRSample"])
def test_datasets_loads_every_config_of_a_sample(sample: str, tmp_path: Path) -> None:
    folder = mteb.get_task(sample).embedded
    names = datasets.get_dataset_config_names(str(folder))
    assert {"corpus", "queries", "qrels"} < set(names)
    for name in names:
        loaded = datasets.load_dataset(str(folder), name, split="test", cache_dir=str(tmp_path))
        ours = read_config(folder, name)
        assert ours is not None
        assert list(loaded) == ours.to_pylist()


def test_mteb_s_own_loader_reads_the_layout(tmp_path: Path) -> None:
    from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader

    write_dataset(tmp_path, ROWS, CARD)
    parts = RetrievalDatasetLoader(hf_repo=str(tmp_path), revision="x").load()
    assert parts["relevant_docs"] == {"q1": {"d1": 2}}
    assert parts["top_ranked"] == {"q1": ["d2", "d1"]}


def test_a_folder_of_parquet_files_is_one_config(tmp_path: Path) -> None:
    write_dataset(tmp_path, ROWS, CARD)
    whole = pq.read_table(tmp_path / "corpus.parquet")
    (tmp_path / "corpus.parquet").unlink()
    (tmp_path / "corpus").mkdir()
    for n in range(2):
        pq.write_table(whole.slice(n, 1), tmp_path / "corpus" / f"test-0000{n}-of-00002.parquet")
    table = read_config(tmp_path, "corpus")
    assert table is not None
    assert table.to_pylist() == ROWS["corpus"]


def test_whole_numbers_become_ids_and_a_missing_title_becomes_empty(tmp_path: Path) -> None:
    write_dataset(tmp_path, ROWS, CARD)
    pq.write_table(pa.table({"_id": [1, 2], "text": ["a", "b"]}), tmp_path / "corpus.parquet")
    table = read_config(tmp_path, "corpus")
    assert table is not None
    assert table.select(["_id", "title", "text"]).to_pylist() == [
        {"_id": "1", "title": "", "text": "a"},
        {"_id": "2", "title": "", "text": "b"},
    ]


def test_faults_name_file_and_column(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without qrels"):
        write_dataset(tmp_path, {k: v for k, v in ROWS.items() if k != "qrels"}, CARD)
    with pytest.raises(ValueError, match="needs a column 'score'"):
        write_dataset(tmp_path, {**ROWS, "qrels": [{"query-id": "q1", "corpus-id": "d1"}]}, CARD)
    with pytest.raises(ValueError, match="row 1"):
        write_dataset(tmp_path, {**ROWS, "queries": [{"_id": "a", "text": "b"}, {"text": "b", "_id": "a"}]}, CARD)
    write_dataset(tmp_path, ROWS, CARD)
    pq.write_table(pa.table({"_id": ["q1"]}), tmp_path / "queries.parquet")
    with pytest.raises(ValueError, match=r"queries\.parquet.*lacks the column 'text'"):
        read_config(tmp_path, "queries")
    pq.write_table(pa.table({"query-id": ["q"], "corpus-id": ["d"], "score": ["high"]}), tmp_path / "qrels.parquet")
    with pytest.raises(ValueError, match="column 'score'"):
        read_config(tmp_path, "qrels")
    (tmp_path / "corpus.parquet").write_bytes(b"not parquet")
    with pytest.raises(ValueError, match="cannot read config 'corpus'"):
        read_config(tmp_path, "corpus")


def test_the_fingerprint_follows_the_data_and_nothing_else(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        write_dataset(folder, ROWS, CARD)
    assert fingerprint(first) == fingerprint(second)
    (second / "README.md").write_text("other")
    assert fingerprint(first) == fingerprint(second)
    write_dataset(second, {**ROWS, "queries": [{"_id": "q1", "text": "Q"}]}, CARD)
    assert fingerprint(first) != fingerprint(second)
    (first / "queries.parquet").rename(first / "questions.parquet")
    assert fingerprint(first) != fingerprint(second)
    with pytest.raises(ValueError, match="no file matches"):
        fingerprint(tmp_path, ("*.csv",))


# ---- where data are looked for ---------------------------------------------------------------------------------


def test_the_order_of_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MTEB_BEYOND_DATA", raising=False)
    public = choose_source("Set", "org/Set", "abc")
    assert (public.directory, public.repository, public.revision) == (None, "org/Set", "abc")
    (tmp_path / "Set").mkdir()
    monkeypatch.setenv("MTEB_BEYOND_DATA", str(tmp_path))
    assert choose_source("Set", "org/Set", "abc").directory == tmp_path / "Set"
    assert choose_source("Other", "org/Other", "abc").directory is None
    (tmp_path / "mine").mkdir()
    assert choose_source("Set", "org/Set", "abc", tmp_path / "mine").directory == tmp_path / "mine"
    with pytest.raises(FileNotFoundError, match="not a directory"):
        choose_source("Set", "org/Set", "abc", tmp_path / "absent")
    monkeypatch.setenv("MTEB_BEYOND_DATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match="MTEB_BEYOND_DATA"):
        choose_source("Set", "org/Set", "abc")


@pytest.fixture
def host() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A web server on loopback that serves what the test puts into a dictionary, path -> content."""
    files: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", files
    server.shutdown()
    server.server_close()


def archive(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_a_git_archive_is_fetched_once(
    host: tuple[str, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTEB_BEYOND_CACHE", str(tmp_path))
    url, files = host
    files["/org/repo/tar.gz/c0ffee"] = archive({"repo-c0ffee/data/x.json": json.dumps([1]).encode()})
    folder = fetch_git_archive("org/repo", "c0ffee", url)
    assert json.loads((folder / "data" / "x.json").read_text()) == [1]
    files.clear()
    assert fetch_git_archive("org/repo", "c0ffee", url) == folder


@pytest.mark.parametrize(
    "content", [None, b"no archive", archive({"../escape": b"x"})[:40]], ids=["missing", "no archive", "cut short"]
)
def test_a_failed_fetch_leaves_nothing_that_looks_finished(
    host: tuple[str, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    monkeypatch.setenv("MTEB_BEYOND_CACHE", str(tmp_path))
    url, files = host
    if content is not None:
        files["/org/repo/tar.gz/c0ffee"] = content
    with pytest.raises(ConnectionError, match="MTEB_BEYOND_DATA"):
        fetch_git_archive("org/repo", "c0ffee", url)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_an_archive_cannot_write_outside(
    host: tuple[str, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTEB_BEYOND_CACHE", str(tmp_path / "cache"))
    url, files = host
    files["/org/repo/tar.gz/c0ffee"] = archive({"../../../escape": b"x"})
    with pytest.raises(ConnectionError, match="outside"):
        fetch_git_archive("org/repo", "c0ffee", url)
    assert not list(tmp_path.rglob("escape"))
