"""Sends a built directory to a dataset repository of the hub, in one commit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, RepositoryNotFoundError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential
from tenacity.wait import wait_base

from hub_cards.publish_build import Built

_KIND = "dataset"
# The hub makes this file itself.
_OF_THE_HUB = {".gitattributes"}
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_ATTEMPTS = 3
_WAIT: wait_base = wait_exponential(1)

T = TypeVar("T")


class Published(NamedTuple):
    """Where a dataset is now.

    Attributes:
        url: its page.
        repository, revision: the entry ``dataset`` of a task that reads it.
        changed: whether anything had to be sent.
    """

    url: str
    repository: str
    revision: str
    changed: bool


def check_names(repository: str, branch: str | None) -> None:
    """Check the names of repository and branch.

    Raises:
        ValueError: if one cannot be used.
    """
    if repository.count("/") != 1:
        raise ValueError(f"--repo must be USER/NAME, got {repository!r}")
    validate_repo_id(repository)
    if branch is not None and _COMMIT.fullmatch(branch):
        raise ValueError(f"--revision names the branch to publish on, but {branch!r} looks like a commit")


def send(built: Built, repository: str, *, private: bool, branch: str | None) -> Published:
    """Publish a built directory; what is there already is not sent again, and an unchanged dataset makes no commit.

    A repository or branch that does not exist is made. Files are uploaded before the one commit that lists them, and
    the hub keeps them under their content's hash: after an interruption the same call sends only what is missing.

    Raises:
        PermissionError: if there is no token, or it may not do this.
        ValueError: if the repository holds other files, or is public although it should be private.
        ConnectionError: if the hub could not be reached or kept failing; nothing is half published.
    """
    api = HfApi()
    try:
        api.whoami()
        return _send(api, built, repository, private, branch or "main")
    except LocalTokenNotFoundError:
        raise PermissionError(
            "the hub asks for a token: run `hf auth login`, or set HF_TOKEN, with write access to the repository"
        ) from None
    except HfHubHTTPError as error:
        if error.response.status_code in (401, 403):
            raise PermissionError(
                f"the hub refused (HTTP {error.response.status_code}): the token must be valid and have write access "
                f"to {repository}; run `hf auth login` or set HF_TOKEN"
            ) from None
        raise ConnectionError(_interrupted(repository, error)) from error
    except (ValueError, PermissionError):
        raise
    except Exception as error:  # of the HTTP library, which differs between versions of the hub's
        raise ConnectionError(_interrupted(repository, error)) from error


def _send(api: HfApi, built: Built, repository: str, private: bool, branch: str) -> Published:
    _make_repository(api, repository, private)
    refs = api.list_repo_refs(repository, repo_type=_KIND)
    if branch not in {ref.name for ref in refs.branches}:
        api.create_branch(repository, branch=branch, repo_type=_KIND, exist_ok=True)
    before = api.dataset_info(repository, revision=branch).sha
    revision = _retried(lambda: _commit(api, built, repository, branch))
    return Published(f"{api.endpoint}/datasets/{repository}", repository, revision, revision != before)


def _make_repository(api: HfApi, repository: str, private: bool) -> None:
    try:
        there = api.dataset_info(repository)
    except RepositoryNotFoundError:
        api.create_repo(repository, repo_type=_KIND, private=private, exist_ok=True)
        there = api.dataset_info(repository)
    if private and not there.private:
        raise ValueError(
            f"{repository} exists and is public; make it private in its settings, name another one, or leave "
            "--private out"
        )


def _commit(api: HfApi, built: Built, repository: str, branch: str) -> str:
    """Make the commit and return its hash, or that of the last one if nothing has changed.

    The answer to a commit may be lost after it was made: then the next attempt finds everything there.
    """
    there = api.dataset_info(repository, revision=branch)
    others = sorted({file.rfilename for file in there.siblings or ()} - {*built.files, *_OF_THE_HUB})
    if others:
        raise ValueError(
            f"{repository} ({branch}) holds files that are no part of this dataset: {', '.join(others[:10])}"
            f"{f' and {len(others) - 10} more' if len(others) > 10 else ''}; remove them there, or name another "
            "repository or branch"
        )
    info = api.create_commit(
        repository,
        [CommitOperationAdd(name, built.folder / name) for name in built.files],
        commit_message="Publish with mteb-beyond",
        repo_type=_KIND,
        revision=branch,
        parent_commit=there.sha,
    )
    return str(info.oid)


def _retried(call: Callable[[], T]) -> T:
    """The hub's library repeats requests that fail for a moment, but not the commit itself."""
    retrying = Retrying(
        retry=retry_if_exception(_may_pass), stop=stop_after_attempt(_ATTEMPTS), wait=_WAIT, reraise=True
    )
    return retrying(call)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in (408, 412, 429) or error.response.status_code >= 500
    return isinstance(error, Exception) and not isinstance(error, ValueError)


def _interrupted(repository: str, error: Exception) -> str:
    return (
        f"publishing to {repository} did not succeed: {error}. Nothing is half published; run the same command again, "
        "which goes on where this one stopped"
    )
