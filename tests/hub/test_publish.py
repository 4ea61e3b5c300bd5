"""`mteb-beyond publish` against a hub on this machine: one commit, resumed, repeated, private, on a branch."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import re
import shutil
import signal
import threading
from pathlib import Path

import huggingface_hub.constants
import mteb
import pyarrow.parquet as pq
import pytest
from hub_server import TOKEN, Commit, File, Hub
from publish_files import REPO, write_ifir, write_tcr

from evaluators.cli import main
from evaluators.plugin.sources import choose_source
from followir_tasks import FollowIRSample
from hub_cards.publish_build import Built, build
from hub_cards.publish_send import send
from ifir_tasks.tasks import IFIRNFCorpusInstFol

UPLOADS = "^PUT /lfs/"
COMMITS = "^POST /api/datasets/me/sample/commit/"


def n_parquet(built: Built) -> int:
    return sum(name.endswith(".parquet") for name in built.files)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_is_sent_is_what_the_dry_run_wrote(
    hub: Hub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    # What HF_DEBUG switches on: every request is logged.
    monkeypatch.setattr(huggingface_hub.constants, "HF_DEBUG", True)
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)
    caplog.set_level("DEBUG", "huggingface_hub")
    dry = tmp_path / "dry"
    command = ["publish", "FollowIRSample", "--repo", REPO]
    assert main([*command, "--dry-run", "--out", str(dry)]) == 0
    assert f"nothing was sent; {dry} holds exactly what would be sent to {REPO}" in capsys.readouterr().out
    assert hub.requests == []
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert main(command) == 0
    assert hub.files(REPO) == contents(dry)
    assert hub.commits(REPO) == ["initial commit", "Publish with mteb-beyond"]
    assert not hub.repositories[REPO].private
    head = hub.repositories[REPO].branches["main"][-1].oid
    out, err = capsys.readouterr()
    assert f'dataset={{"path": "{REPO}", "revision": "{head}"}}' in out
    assert f"published: {hub.url}/datasets/{REPO} at {head}" in out
    assert "FollowIRSample: 48 queries" in out
    assert "curl" in caplog.text
    assert TOKEN not in out + err + caplog.text and not any(
        TOKEN.encode() in content for content in contents(dry).values()
    )
    # A second dry run does not mix with the first.
    assert main([*command, "--dry-run", "--out", str(dry)]) == 1
    assert "is not an empty folder" in capsys.readouterr().err


def test_publishing_again_changes_nothing(hub: Hub, built: Built) -> None:
    first = send(built, REPO, private=False, branch=None)
    uploads, commits = hub.count(UPLOADS), hub.count(COMMITS)
    again = send(built, REPO, private=False, branch=None)
    assert first.changed and not again.changed
    assert again.revision == first.revision
    assert (hub.count(UPLOADS), hub.count(COMMITS)) == (uploads, commits) == (n_parquet(built), 1)


def test_only_what_changed_is_sent(hub: Hub, built: Built, tmp_path: Path) -> None:
    first = send(built, REPO, private=False, branch=None)
    shutil.copytree(built.folder, tmp_path / "changed")
    rows = pq.read_table(tmp_path / "changed" / "topics.parquet")
    pq.write_table(rows.slice(1), tmp_path / "changed" / "topics.parquet")
    second = send(built._replace(folder=tmp_path / "changed"), REPO, private=False, branch=None)
    assert second.changed and second.revision != first.revision
    assert hub.count(UPLOADS) == n_parquet(built) + 1
    assert hub.files(REPO) == contents(tmp_path / "changed")


def test_a_branch_and_a_private_repository(hub: Hub, built: Built) -> None:
    found = send(built, REPO, private=True, branch="v2")
    assert hub.repositories[REPO].private
    assert hub.commits(REPO) == ["initial commit"]
    assert hub.repositories[REPO].branches["v2"][-1].oid == found.revision
    assert hub.files(REPO, "v2") == contents(built.folder)
    assert not send(built, REPO, private=True, branch="v2").changed


def test_nothing_private_gets_into_a_public_repository(hub: Hub, built: Built) -> None:
    send(built, REPO, private=False, branch="other")
    sent = hub.count("^(PUT|POST)")
    with pytest.raises(ValueError, match="exists and is public"):
        send(built, REPO, private=True, branch=None)
    assert hub.count("^(PUT|POST)") == sent


def test_files_of_others_are_neither_mixed_in_nor_removed(hub: Hub, built: Built) -> None:
    send(built, REPO, private=False, branch=None)
    commits = hub.repositories[REPO].branches["main"]
    commits.append(Commit("a" * 40, "by hand", {**commits[-1].files, "extra.parquet": File(b"x", "0", True)}))
    with pytest.raises(ValueError, match=r"no part of this dataset: extra\.parquet"):
        send(built, REPO, private=False, branch=None)
    assert len(commits) == 3


@pytest.mark.parametrize("branch", [None, "new"])
def test_another_dataset_is_not_overwritten(hub: Hub, built: Built, tmp_path: Path, branch: str | None) -> None:
    send(built, REPO, private=False, branch=None)
    shutil.copytree(built.folder, tmp_path / "mine")
    other = built._replace(folder=tmp_path / "mine")
    told = (other.folder / "eval.yaml").read_text()
    (other.folder / "eval.yaml").write_text(told.replace("FollowIR sample (mteb-beyond)", "Mine"))
    sent = hub.count("^(PUT|POST)")
    with pytest.raises(ValueError, match=r"'FollowIR sample \(mteb-beyond\)', and this is 'Mine'.*--replace"):
        send(other, REPO, private=False, branch=branch)
    assert hub.count("^(PUT|POST)") == sent
    assert send(other, REPO, private=False, branch=branch, replace=True).changed
    assert hub.files(REPO, branch or "main") == contents(other.folder)


def test_files_put_there_by_hand_are_not_overwritten(hub: Hub, built: Built) -> None:
    send(built, REPO, private=False, branch=None)
    commits = hub.repositories[REPO].branches["main"]
    commits.append(Commit("a" * 40, "by hand", {"corpus.parquet": File(b"x", "0", True)}))
    with pytest.raises(ValueError, match=r"not published with eval\.yaml \(corpus\.parquet\).*--replace"):
        send(built, REPO, private=False, branch=None)


def test_a_card_edited_on_the_hub_is_told(hub: Hub, built: Built, capsys: pytest.CaptureFixture[str]) -> None:
    assert not send(built, REPO, private=False, branch=None).card_replaced
    commits = hub.repositories[REPO].branches["main"]
    commits.append(Commit("a" * 40, "edit", {**commits[-1].files, "README.md": File(b"---\n---\nhi", "0", False)}))
    assert main(["publish", "FollowIRSample", "--repo", REPO]) == 0
    assert "note: the card there was another one" in capsys.readouterr().out
    assert hub.files(REPO) == contents(built.folder)


def test_a_moment_of_trouble_is_waited_out(hub: Hub, built: Built) -> None:
    hub.fail(UPLOADS, 429)
    hub.fail("/objects/batch", 0)  # the connection drops in the middle of the request
    hub.fail(COMMITS, 503)
    assert send(built, REPO, private=False, branch=None).changed
    assert hub.files(REPO) == contents(built.folder)
    assert len(hub.commits(REPO)) == 2
    assert all(fault.times == 0 for fault in hub.faults)


def test_a_commit_whose_answer_is_lost_is_not_made_twice(hub: Hub, built: Built) -> None:
    hub.fail(COMMITS, -1)
    found = send(built, REPO, private=False, branch=None)
    assert hub.commits(REPO) == ["initial commit", "Publish with mteb-beyond"]
    assert found.changed and found.revision == hub.repositories[REPO].branches["main"][-1].oid


def test_a_branch_that_moves_meanwhile_is_looked_at_again(hub: Hub, built: Built) -> None:
    hub.fail(COMMITS, 412)
    assert send(built, REPO, private=False, branch=None).changed
    assert hub.count(COMMITS) == 2


def test_after_a_failure_only_the_rest_is_sent(hub: Hub, built: Built) -> None:
    corpus = hashlib.sha256((built.folder / "corpus.parquet").read_bytes()).hexdigest()
    hub.fail(UPLOADS + corpus, 400, times=100)
    with pytest.raises(ConnectionError, match="run the same command again"):
        send(built, REPO, private=False, branch=None)
    assert len(hub.blobs) == n_parquet(built) - 1
    assert hub.commits(REPO) == ["initial commit"]
    hub.faults.clear()
    hub.fail(COMMITS, 503, times=100)
    before = hub.count(UPLOADS)
    with pytest.raises(ConnectionError, match="503"):
        send(built, REPO, private=False, branch=None)
    assert hub.count(UPLOADS) - before == 1
    hub.faults.clear()
    send(built, REPO, private=False, branch=None)
    assert hub.count(UPLOADS) - before == 1
    assert hub.files(REPO) == contents(built.folder)


def test_a_killed_upload_goes_on_where_it_stopped(hub: Hub, built: Built) -> None:
    # A copy of this process, which has imported everything.
    process = multiprocessing.get_context("fork").Process(
        target=send, args=(built, REPO), kwargs={"private": False, "branch": None}, daemon=True
    )
    started = threading.Event()

    def kill(stored: int) -> None:
        hub.fail(UPLOADS, 0, times=100)
        started.wait(10)
        process.kill()

    hub.uploaded = kill
    process.start()
    started.set()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    kept = len(hub.blobs)
    assert kept >= 1
    assert hub.commits(REPO) == ["initial commit"]
    hub.faults.clear()
    hub.uploaded = lambda stored: None
    before = hub.count(UPLOADS)
    send(built, REPO, private=False, branch=None)
    assert hub.count(UPLOADS) - before == n_parquet(built) - kept
    assert hub.files(REPO) == contents(built.folder)


def test_wrong_data_send_nothing(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert FollowIRSample.embedded is not None
    shutil.copytree(FollowIRSample.embedded, tmp_path / "broken")
    (tmp_path / "broken" / "top_ranked.parquet").unlink()
    assert main(["publish", str(tmp_path / "broken"), "--repo", REPO]) == 1
    assert "top_ranked" in capsys.readouterr().err
    assert hub.count("^(PUT|POST)") == 0


def test_tasks_read_what_was_published(hub: Hub, tmp_path: Path) -> None:
    source = write_ifir(tmp_path / "source")
    made = build(str(source), tmp_path / "made", "me/ifir")
    found = send(made, "me/ifir", private=False, branch=None)
    task, local = IFIRNFCorpusInstFol(), IFIRNFCorpusInstFol()
    task.data_path, local.data_path = f"hf://datasets/me/ifir@{found.revision}", source
    task.load_data()
    local.load_data()
    assert task.data is not None and local.data is not None
    assert task.metadata.revision == task.current_revision() == found.revision
    assert task.data.queries.to_dict() == local.data.queries.to_dict()
    assert task.data.relevant_docs == local.data.relevant_docs
    assert task.data.corpus.to_dict() == local.data.corpus.to_dict()


def test_diagnostics_read_what_was_published_too(hub: Hub, tmp_path: Path) -> None:
    found = send(build(str(write_tcr(tmp_path / "source")), tmp_path / "made", REPO), REPO, private=False, branch=None)
    (task,) = mteb.get_tasks(tasks=["TCRDiagnosticFormats"])
    task.data_path = f"hf://datasets/{REPO}@{found.revision}"
    task.hf_subsets = ["markdown-natural"]
    task.load_data()
    assert task.metadata.revision == found.revision
    # One question over three tables, and not the embedded sample.
    assert (len(task.data.queries), len(task.data.corpus)) == (1, 3)


@pytest.mark.parametrize("given", ["hf://datasets/me/x", "hf://datasets/me/x@main", "hf://datasets/x@" + "a" * 40])
def test_a_published_dataset_is_named_with_its_full_revision(given: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(given))):
        choose_source("IFIR", "a/b", "c", given)
    source = choose_source("IFIR", "a/b", "c", "hf://datasets/me/x@" + "a" * 40)
    assert (source.repository, source.revision, source.published) == ("me/x", "a" * 40, True)
