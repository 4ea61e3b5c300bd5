"""mteb's own submission of results, against a repository on this machine, up to the commit that it would make."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mteb.cache import ResultCache

from evaluators.plugin.results import output_folder
from hub_cards.results import META_FILE
from hub_cards.submission_checks import RUN_SETTINGS, plain_paths

RESULTS_REPOSITORY = "https://github.com/embeddings-benchmark/results"
_AUTHOR = ("-c", "user.name=mteb-beyond dry run", "-c", "user.email=dry-run@localhost")


def dry_run(folder: Path, target: Path, repository: Path | None = None) -> str:
    """Let mteb submit a copy of a folder's results, and say which commit it made. Nothing is pushed.

    Args:
        folder: mteb's output folder, or the folder ``results`` in it; left as it is.
        target: a new or empty folder. Its ``remote`` holds the commit afterwards.
        repository: a clone of the results repository; ``None`` for an empty one made in ``target``.

    Raises:
        ValueError: if ``target`` holds anything, or mteb submits other files than these results.
        FileNotFoundError: if git is not installed, or ``repository`` is no git repository.
    """
    if shutil.which("git") is None:
        raise FileNotFoundError("a dry run needs git, which is not installed")
    target = target.expanduser().absolute()
    if target.exists() and any(target.iterdir()):
        raise ValueError(f"{target} is not empty; name a new folder for the dry run")
    source = None if repository is None else repository.expanduser().absolute()
    if source is not None and not ((source / ".git").exists() or (source / "HEAD").is_file()):
        raise FileNotFoundError(f"{source} is no git repository")
    target.mkdir(parents=True, exist_ok=True)
    copied = _copied(folder, target)
    if source is None:
        source = _empty_repository(target / "stand-in")
    with _instead_of(source):
        response = ResultCache(target).submit_results()
    clone = target / "remote"
    if response["status"] == "no_changes":
        return f"mteb would submit nothing: {source} has all of these scores already, or on other data"
    files = _git(clone, "show", "--name-only", "--format=", "HEAD").splitlines()
    sent = {file for file in files if not file.endswith((META_FILE, RUN_SETTINGS))}
    # The repository may have some of them already; none may come from elsewhere.
    if not sent <= set(copied):
        raise ValueError(f"mteb would submit files that are not among the results: {sorted(sent - set(copied))}")
    left = sorted(set(copied) - sent)
    lines = [
        f"the commit that mteb would make, in {clone} on branch {_git(clone, 'branch', '--show-current').strip()}; "
        "nothing was sent",
        _git(clone, "show", "--stat=150", "--format=%B", "HEAD").rstrip(),
    ]
    if left:
        lines.append(f"not in it, since mteb skips them or the repository has them: {', '.join(left)}")
    return "\n".join(lines)


def _copied(folder: Path, target: Path) -> list[str]:
    """Copy what a submission consists of, and return the result files' paths below ``target``."""
    results = output_folder(folder.expanduser()) / "results"
    paths = plain_paths(folder)
    for path in paths:
        for name in (path.name, META_FILE, RUN_SETTINGS):
            source = path.with_name(name)
            copy = target / "results" / source.relative_to(results)
            if source.is_file() and not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)
    return [str(Path("results") / path.relative_to(results)) for path in paths]


def _empty_repository(place: Path) -> Path:
    place.mkdir()
    _git(place, "init", "--quiet", "--initial-branch=main")
    (place / "results").mkdir()
    (place / "results" / ".gitkeep").touch()
    _git(place, "add", "--all")
    _git(place, *_AUTHOR, "commit", "--quiet", "--message=Stand-in for the results repository")
    return place


def _git(place: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"git {' '.join(arguments)} failed in {place}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def _instead_of(repository: Path) -> Iterator[None]:
    """For this process and its children: git reads the local repository at the results repository's address."""
    settings: Sequence[tuple[str, str]] = (
        (f"url.{repository.as_uri()}.insteadOf", RESULTS_REPOSITORY),
        # Whatever tries to push nevertheless finds no such place.
        ("url.file:///nowhere.pushInsteadOf", RESULTS_REPOSITORY),
        ("commit.gpgSign", "false"),
    )
    named = {"GIT_CONFIG_COUNT": str(len(settings)), "GIT_TERMINAL_PROMPT": "0"}
    for i, (key, value) in enumerate(settings):
        named |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
    for role in ("AUTHOR", "COMMITTER"):
        named |= {f"GIT_{role}_NAME": "mteb-beyond dry run", f"GIT_{role}_EMAIL": "dry-run@localhost"}
    before = {key: os.environ.get(key) for key in named}
    os.environ.update(named)
    try:
        yield
    finally:
        for key, former in before.items():
            if former is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = former
