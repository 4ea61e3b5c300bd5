"""What `mteb-beyond publish` refuses and how it tells what failed, against a hub on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hub_server import TOKEN, Hub
from publish_files import REPO

from evaluators.cli import main
from followir_tasks.tasks import SAMPLE
from hub_cards.publish_build import Built
from hub_cards.publish_send import check_names, send


@pytest.mark.parametrize("request_", ["GET /api/whoami", "POST /api/repos/create", "GET /api/datasets/me/sample/refs"])
def test_a_moment_of_trouble_before_the_upload(hub: Hub, built: Built, request_: str) -> None:
    hub.fail(f"^{request_}", 429)
    assert send(built, REPO, private=False, branch=None).changed
    assert hub.faults[0].times == 0


@pytest.mark.parametrize(
    ("status", "told", "again"), [(404, "not found", False), (429, "too many requests", True), (500, "its own", True)]
)
def test_a_lasting_fault_is_told_in_a_line(hub: Hub, built: Built, status: int, told: str, again: bool) -> None:
    hub.fail("/refs$", status, times=100)
    with pytest.raises(ConnectionError, match=f"HTTP {status}, .*{told}") as found:
        send(built, REPO, private=False, branch=None)
    text = str(found.value)
    assert ("run the same command again" in text) == again
    assert "\n" not in text and "http" not in text


@pytest.mark.parametrize("token", ["hf_gehe\u00efm", "hf two", '"hf_quoted\u201d'])
def test_a_token_that_cannot_be_one(
    hub: Hub, built: Built, monkeypatch: pytest.MonkeyPatch, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    assert main(["publish", "FollowIRSample", "--repo", REPO]) == 1
    err = capsys.readouterr().err
    assert "the token in HF_TOKEN" in err and token not in err
    assert hub.requests == []


def test_what_is_refused_is_refused_before_the_data_are_built(
    hub: Hub, built: Built, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    send(built, REPO, private=False, branch=None)
    # Building from a directory that is not there would fail in other words.
    for asked, told in (([REPO, "--private"], "exists and is public"), (["them/sample"], "repositories of me;")):
        assert main(["publish", str(tmp_path / "nowhere"), "--repo", *asked]) == 1
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "branch",
    [
        *("a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "a@{b", "a//b", "/a", "a/", ".a", "a/.b", "-a"),
        *("a.", "a.lock", "a.lock/b", "a\x7f", "v1.0", "a/b-c_d", "a@b", "a.b/c", "ein-ü", "a.locked", "a]"),
    ],
)
def test_a_branch_may_be_called_what_git_allows(branch: str) -> None:
    git = subprocess.run(["git", "check-ref-format", "--branch", branch], capture_output=True, check=False)
    if git.returncode == 0:
        check_names(REPO, branch)
    else:
        with pytest.raises(ValueError, match="--revision"):
            check_names(REPO, branch)


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_may_not_is_told_without_showing_it(
    hub: Hub, built: Built, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    wrong = "hf_aTokenOfSomebodyElse"
    if status == 401:
        monkeypatch.setenv("HF_TOKEN", wrong)
    else:
        hub.fail("/repos/create", 403)
    assert main(["publish", "FollowIRSample", "--repo", REPO]) == 1
    out, err = capsys.readouterr()
    assert f"HTTP {status}" in err and "hf auth login" in err
    assert wrong not in out + err and TOKEN not in out + err
    assert hub.repositories == {}


def test_no_token(hub: Hub, built: Built, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants

    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(PermissionError, match="hf auth login"):
        send(built, REPO, private=False, branch=None)


def test_a_hub_that_is_not_there(built: Built, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ConnectionError, match=f"publishing to {REPO} did not succeed"):
        send(built, REPO, private=False, branch=None)


@pytest.mark.parametrize(
    ("repository", "branch", "told"),
    [
        ("sample", None, "USER/NAME"),
        ("a/b/c", None, "USER/NAME"),
        ("me/a b", None, "a b"),
        (REPO, "a..b", "cannot be the name of a branch"),
        (REPO, "0123456789abcdef0123456789abcdef01234567", "looks like a commit"),
    ],
)
def test_names_that_cannot_be(repository: str, branch: str | None, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_names(repository, branch)


def test_out_without_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish", "IFIRSample", "--repo", REPO, "--out", "x"]) == 1
    assert "add --dry-run" in capsys.readouterr().err


def test_a_dry_run_of_a_directory_named_as_the_repository_does_not_touch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after ``tcr build``, whose card does not know the licence."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLE, "mine")
    card = tmp_path / "mine" / "README.md"
    card.write_text(re.sub(r"^license: .*$", "license: unknown", card.read_text(), flags=re.MULTILINE))
    before = {path: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    assert main(["publish", "mine", "--repo", "me/mine", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "mine: 48 queries, " in said and "FollowIRSample" not in said
    assert "note: the licence is unknown" in said
    assert (tmp_path / "mine-dry-run" / "eval.yaml").is_file()
    assert {path: path.read_bytes() for path in (tmp_path / "mine").iterdir()} == before


def test_a_card_of_no_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["card", "NoSuch"]) == 1
    assert "'NoSuch' is no task that mteb knows; ours are FollowIRCollection, " in capsys.readouterr().err
