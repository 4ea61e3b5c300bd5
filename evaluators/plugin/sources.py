"""Where a task's data comes from: an explicit path or repository, ``$MTEB_BEYOND_DATA``, or a pinned public source."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tarfile
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import requests
from huggingface_hub import snapshot_download

from evaluators.cache import cache_directory

logger = logging.getLogger(__name__)

DATA_VARIABLE = "MTEB_BEYOND_DATA"
HUB_SCHEME = "hf://datasets/"
_HUB_DATASET = re.compile(re.escape(HUB_SCHEME) + r"([^/@\s]+/[^/@\s]+)@([0-9a-f]{40})")


@dataclass(frozen=True)
class Source:
    """A data source that has been chosen, and why.

    Attributes:
        name: what ``$MTEB_BEYOND_DATA`` calls it: the last part of its public name.
        directory: the local directory, ``None`` if the data are to be fetched from ``repository``.
        repository, revision: the pinned public source.
        reason: how it was chosen, for messages.
        published: whether ``repository`` is one of the hub that holds a directory as a task reads it from disk.
    """

    name: str
    directory: Path | None
    repository: str
    revision: str
    reason: str
    published: bool = False

    @property
    def is_local(self) -> bool:
        return self.directory is not None

    def fetched(self) -> Source:
        """This source with its files on this machine, if it is a published directory; else as it is."""
        if not self.published:
            return self
        fetched = snapshot_download(self.repository, repo_type="dataset", revision=self.revision)
        return replace(self, directory=Path(fetched))


def choose_source(name: str, repository: str, revision: str, explicit: str | Path | None = None) -> Source:
    """Choose where to read a dataset: ``explicit``, else ``$MTEB_BEYOND_DATA/<name>``, else the public source.

    ``explicit`` is a directory, or a directory that was published on the hub: ``hf://datasets/USER/NAME@REVISION``.

    Raises:
        ValueError: if a repository is not given with a full revision.
        FileNotFoundError: if an explicit path is no directory, or if the variable names no directory. A variable
            that names a directory without ``<name>`` is no error: then this dataset comes from its public source.
    """
    if isinstance(explicit, str) and explicit.startswith(HUB_SCHEME):
        named = _HUB_DATASET.fullmatch(explicit)
        if named is None:
            raise ValueError(
                f"{name}: {explicit!r} must have the form {HUB_SCHEME}USER/NAME@REVISION, with the full revision of 40 "
                "hex digits, so that a score tells what it was computed on"
            )
        return Source(name, None, named[1], named[2], f"{explicit} (explicit)", published=True)
    if explicit is not None:
        path = Path(explicit).expanduser().resolve()
        if not path.is_dir():
            raise FileNotFoundError(f"{name}: the data path {path} is not a directory")
        return Source(name, path, repository, revision, "explicit path")
    base = os.environ.get(DATA_VARIABLE)
    if base:
        root = Path(base).expanduser().resolve()
        if not root.is_dir():
            raise FileNotFoundError(f"${DATA_VARIABLE} is set to {base!r}, which is not a directory")
        if (root / name).is_dir():
            return Source(name, root / name, repository, revision, f"${DATA_VARIABLE}")
        logger.info("%s: $%s has no directory %s; using %s", name, DATA_VARIABLE, root / name, repository)
    return Source(name, None, repository, revision, f"public source {repository} at {revision}")


def fetch_git_archive(repository: str, commit: str, host: str = "https://codeload.github.com") -> Path:
    """Download a public git repository at a full commit once, as an archive, and return its directory.

    The archive is unpacked beside its final place and moved there when complete, so an interrupted download leaves
    nothing that looks finished.

    Raises:
        ConnectionError: if the host cannot be reached or does not have the commit; the message says how to provide
            the data by hand.
    """
    target = cache_directory() / "git" / repository.replace("/", "__") / commit
    if target.is_dir():
        return target
    url = f"{host}/{repository}/tar.gz/{commit}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        archive = Path(scratch) / "archive.tar.gz"
        unpacked = Path(scratch) / "unpacked"
        try:
            with requests.get(url, timeout=60, stream=True) as response:
                response.raise_for_status()
                with archive.open("wb") as out:
                    for chunk in response.iter_content(1 << 20):
                        out.write(chunk)
            with tarfile.open(archive) as tar:
                tar.extractall(unpacked, filter="data")
            inside = [p for p in unpacked.iterdir() if p.is_dir()]
            if len(inside) != 1:
                raise tarfile.ReadError(f"expected one folder in the archive, found {[p.name for p in inside]}")
        except (requests.RequestException, tarfile.TarError, EOFError, OSError) as error:
            raise ConnectionError(
                f"cannot fetch {url}: {error}. Get the repository yourself (git clone "
                f"https://github.com/{repository} and check out {commit}) into a folder named "
                f"{repository.split('/')[-1]!r}, and set {DATA_VARIABLE} to the folder that holds it"
            ) from error
        shutil.move(inside[0], target)
    return target
