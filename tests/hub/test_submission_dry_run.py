"""mteb's own submission of results without a fault, into a git repository that stands in for the real one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from made_files import PLACE

from evaluators.cli import main
from evaluators.plugin.models import MINILM


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True, text=True).stdout


def test_mteb_commits_just_these_results_and_nothing_is_pushed(
    made_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_CONFIG_COUNT", raising=False)
    before = {p: p.read_bytes() for p in made_results.rglob("*") if p.is_file()}
    target = tmp_path / "dry"
    assert main(["check-submission", str(made_results), "--dry-run", str(target)]) == 0
    printed = capsys.readouterr().out
    clone = target / "remote"
    names = ["FollowIRSample.json", "IFIRSample.json", "TCRSample.json", "model_meta.json", "run_settings.jsonl"]
    committed = git(clone, "show", "--name-only", "--format=", "HEAD").split()
    assert sorted(committed) == sorted(f"{PLACE}/{name}" for name in names)
    for name in names:
        assert git(clone, "show", f"HEAD:{PLACE}/{name}") == (made_results / PLACE / name).read_text()
    assert MINILM in git(clone, "show", "--no-patch", "--format=%s", "HEAD")
    assert MINILM in printed
    assert str(clone) in printed
    assert git(clone, "config", "remote.origin.url").strip() == "https://github.com/embeddings-benchmark/results"
    # The stand-in has the one commit that it was made with, and the results are as they were.
    assert git(target / "stand-in", "rev-list", "--all", "--count").strip() == "1"
    assert {p: p.read_bytes() for p in made_results.rglob("*") if p.is_file()} == before
    assert "GIT_CONFIG_COUNT" not in os.environ


def test_what_a_repository_has_already_is_not_committed_again(
    made_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    main(["check-submission", str(made_results), "--dry-run", str(first)])
    clone = first / "remote"
    git(clone, "branch", "--force", "main", "HEAD")
    git(clone, "checkout", "--quiet", "main")
    state = git(clone, "rev-parse", "main")
    capsys.readouterr()
    assert main(["check-submission", str(made_results), "--dry-run", str(second), "--repository", str(clone)]) == 0
    assert "mteb would submit nothing" in capsys.readouterr().out
    git(clone, "rm", "--quiet", f"{PLACE}/TCRSample.json")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=without one")
    assert main(["check-submission", str(made_results), "--dry-run", str(third), "--repository", str(clone)]) == 0
    printed = capsys.readouterr().out
    assert f"{PLACE}/TCRSample.json" in git(third / "remote", "show", "--name-only", "--format=", "HEAD")
    assert "not in it" in printed
    assert "IFIRSample.json" in printed.rpartition("not in it")[2]
    assert git(clone, "rev-parse", "main~1") == state


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--dry-run", "{made}"), "is not empty"),
        (("--dry-run", "{tmp}/new", "--repository", "{tmp}"), "is no git repository"),
        (("--repository", "{tmp}"), "--repository is for --dry-run"),
    ],
)
def test_unusable_folders_are_refused(
    made_results: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    told: str,
) -> None:
    filled = [option.format(made=made_results, tmp=tmp_path) for option in options]
    assert main(["check-submission", str(made_results), *filled]) == 1
    assert told in capsys.readouterr().err
