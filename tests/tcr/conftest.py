"""Shared by the tests of TCR-Bench's remedies: a server that speaks a language model's protocol, and data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "judge"))

from language_model_server import LanguageModelServer
from small_sample import write_small

from tcr_tasks.diagnostics.base import Base
from tcr_tasks.diagnostics.reading import read_base
from tcr_tasks.loaded import load_tcr
from tcr_tasks.tasks import TCRTask


@pytest.fixture(scope="session")
def running_server() -> Iterator[LanguageModelServer]:
    """One server for all tests of a worker."""
    with LanguageModelServer() as server:
        yield server


@pytest.fixture
def server(
    running_server: LanguageModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LanguageModelServer]:
    """The server without faults, and a store of the test's own."""
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    yield running_server
    running_server.faults = lambda number, body: None


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three questions of the sample as a dataset."""
    return write_small(tmp_path_factory.mktemp("tcr") / "small")


@pytest.fixture(scope="module")
def small_task(small: Path) -> TCRTask:
    """The task on these."""
    return load_tcr(small)


@pytest.fixture(scope="session")
def base() -> Base:
    """The sample as the diagnostics read it."""
    return read_base()


@pytest.fixture(scope="module")
def task() -> TCRTask:
    """The sample's task."""
    return load_tcr()
