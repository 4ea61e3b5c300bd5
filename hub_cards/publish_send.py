"""Sends a built directory to a dataset repository of the hub, in one commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import yaml
from huggingface_hub import CommitOperationAdd, HfApi, get_session, get_token, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, RepositoryNotFoundError
from huggingface_hub.hf_api import DatasetInfo
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, validate_repo_id  # type: ignore[attr-defined]
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential
from tenacity.wait import wait_base

from hub_cards.publish_build import CARD, EVAL, Built

_KIND = "dataset"
# The hub makes this file itself.
_OF_THE_HUB = {".gitattributes"}
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
# What git does not allow in a branch's name (git-check-ref-format).
_NO_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(^|/)\.|^[-/]|^@$|[./]$|\.lock(/|$)")
# What a token, which travels in a header, may be made of.
_TOKEN = re.compile(r"[\x21-\x7e]+")
_ATTEMPTS = 3
_WAIT: wait_base = wait_exponential(1)
_AGAIN = "Nothing is half published; run the same command again, which goes on where this one stopped"

T = TypeVar("T")


class Published(NamedTuple):
    """Where a dataset is now.

    Attributes:
        url: its page.
        repository, revision: the entry ``dataset`` of a task that reads it.
        changed: whether anything had to be sent.
        card_replaced: whether another card was there.
    """

    url: str
    repository: str
    revision: str
    changed: bool
    card_replaced: bool


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
    if branch is not None and (not branch or _NO_BRANCH.search(branch)):
        raise ValueError(f"--revision {branch!r} cannot be the name of a branch; use letters, digits and -, _ or /")


def check_access(repository: str, *, private: bool) -> None:
    """Check what can be known before anything is built: the token, and that a private dataset will be private.

    Raises:
        PermissionError, ValueError, ConnectionError: as :func:`send`.
    """
    with _in_words(repository):
        _retried(lambda: _there(HfApi(), repository, private))


def send(built: Built, repository: str, *, private: bool, branch: str | None, replace: bool = False) -> Published:
    """Publish a built directory; what is there already is not sent again, and an unchanged dataset makes no commit.

    A repository or branch that does not exist is made. Files are uploaded before the one commit that lists them, and
    the hub keeps them under their content's hash: after an interruption the same call sends only what is missing.

    Raises:
        PermissionError: if there is no token, or it may not do this.
        ValueError: if the repository holds other files, or another dataset and ``replace`` is false, or is public
            although it should be private.
        ConnectionError: if the hub could not be reached or kept failing; nothing is half published.
    """
    api, branch = HfApi(), branch or "main"
    with _in_words(repository):
        before, card_replaced = _retried(lambda: _prepare(api, built, repository, private, branch, replace))
        revision = _retried(lambda: _commit(api, built, repository, branch, replace))
    return Published(f"{api.endpoint}/datasets/{repository}", repository, revision, revision != before, card_replaced)


@contextmanager
def _in_words(repository: str) -> Iterator[None]:
    """Turn the errors of the hub's library into those that :func:`send` names."""
    token = get_token()
    if token is not None and not _TOKEN.fullmatch(token):
        raise PermissionError(
            "the token in HF_TOKEN, or kept by `hf auth login`, holds a character that no token has (a blank, a "
            "quotation mark, a letter outside ASCII); copy it anew"
        )
    try:
        yield
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
        raise ConnectionError(_failed(repository, error)) from error
    except (ValueError, PermissionError):
        raise
    except Exception as error:  # of the HTTP library, which differs between versions of the hub's
        told = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConnectionError(f"publishing to {repository} did not succeed: {told}. {_AGAIN}") from error


def _there(api: HfApi, repository: str, private: bool) -> DatasetInfo | None:
    """The repository, or ``None`` if there is none yet."""
    user = api.whoami()
    try:
        there = api.dataset_info(repository)
    except RepositoryNotFoundError:
        owner, names = repository.split("/")[0], [user["name"], *(org["name"] for org in user.get("orgs") or ())]
        if owner.lower() not in {name.lower() for name in names}:
            raise PermissionError(
                f"there is no {repository}, and the token may only make repositories of {', '.join(names)}; name one "
                "of these with --repo, or run `hf auth login` or set HF_TOKEN"
            ) from None
        return None
    if private and not there.private:
        raise ValueError(
            f"{repository} exists and is public; make it private in its settings, name another one, or leave "
            "--private out"
        )
    return there


def _prepare(
    api: HfApi, built: Built, repository: str, private: bool, branch: str, replace: bool
) -> tuple[str | None, bool]:
    """Make repository and branch if needed; returns the last commit, and whether another card is there."""
    if _there(api, repository, private) is None:
        api.create_repo(repository, repo_type=_KIND, private=private, exist_ok=True)
        _there(api, repository, private)
    refs = api.list_repo_refs(repository, repo_type=_KIND)
    made = branch in {ref.name for ref in refs.branches}
    # A new branch starts from the main one, with its files.
    there = _checked(api, built, repository, branch if made else "main", replace)
    if not made:
        api.create_branch(repository, branch=branch, repo_type=_KIND, exist_ok=True)
    return there.sha, _read(repository, there, CARD) not in (None, (built.folder / CARD).read_text(encoding="utf-8"))


def _checked(api: HfApi, built: Built, repository: str, branch: str, replace: bool) -> DatasetInfo:
    """What is on the branch, which must be this dataset, or nothing."""
    there = api.dataset_info(repository, revision=branch)
    names = {file.rfilename for file in there.siblings or ()} - _OF_THE_HUB
    others = sorted(names - set(built.files))
    if others:
        raise ValueError(
            f"{repository} ({branch}) holds files that are no part of this dataset: {', '.join(others[:10])}"
            f"{f' and {len(others) - 10} more' if len(others) > 10 else ''}; remove them there, or name another "
            "repository or branch"
        )
    theirs, ours = _title(_read(repository, there, EVAL)), _title((built.folder / EVAL).read_text(encoding="utf-8"))
    if names and theirs != ours and not replace:
        held = f"the dataset {theirs!r}" if theirs else f"files that were not published with {EVAL} ({min(names)})"
        raise ValueError(
            f"{repository} ({branch}) holds {held}, and this is {ours!r}; name another repository or branch, or add "
            "--replace to put this one in its place"
        )
    return there


def _read(repository: str, there: DatasetInfo, name: str) -> str | None:
    """The text of a file of that commit, or ``None`` if it has no such file."""
    if name not in {file.rfilename for file in there.siblings or ()}:
        return None
    url = hf_hub_url(repository, name, repo_type=_KIND, revision=there.sha)
    response = get_session().get(url, headers=build_hf_headers())
    hf_raise_for_status(response)
    return response.content.decode("utf-8", errors="replace")


def _title(text: str | None) -> str | None:
    try:
        read = yaml.safe_load(text or "")
    except yaml.YAMLError:
        return None
    return str(read["name"]) if isinstance(read, dict) and "name" in read else None


def _commit(api: HfApi, built: Built, repository: str, branch: str, replace: bool) -> str:
    """Make the commit and return its hash, or that of the last one if nothing has changed.

    The answer to a commit may be lost after it was made: then the next attempt finds everything there.
    """
    there = _checked(api, built, repository, branch, replace)
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
    """Repeat what fails for a moment: the hub's library repeats uploads only."""
    retrying = Retrying(
        retry=retry_if_exception(_may_pass), stop=stop_after_attempt(_ATTEMPTS), wait=_WAIT, reraise=True
    )
    return retrying(call)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in (408, 412, 429) or error.response.status_code >= 500
    return isinstance(error, Exception) and not isinstance(
        error, ValueError | PermissionError | LocalTokenNotFoundError
    )


def _failed(repository: str, error: HfHubHTTPError) -> str:
    status = error.response.status_code
    told = f"publishing to {repository} did not succeed: the hub answered HTTP {status}"
    if status == 404:
        return f"{told}, not found. Nothing is published; check the repository's name, and HF_ENDPOINT if you set it"
    if status == 429:
        return f"{told}, too many requests. Wait some minutes. {_AGAIN}"
    reason = " ".join((error.server_message or "").split()) if status < 500 else "an error of its own"
    return f"{told}{reason and f', {reason}'}. {_AGAIN}"
