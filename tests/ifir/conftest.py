"""Shared by the tests of IFIR: data on which a run costs little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import pytest
from construction_sample import sample

from evaluators.plugin.dataset import Card, write_dataset


@pytest.fixture(scope="session")
def little(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first base query of each domain, its relevant passages, and every sixth of the others, some 60 in all."""
    folder = tmp_path_factory.mktemp("little")
    bases = tuple(row["query-id"] for row in sample("base_queries") if row["query-id"].endswith("-01"))
    configs = {
        name: [row for row in sample(name) if row["_id" if name == "queries" else "query-id"].startswith(bases)]
        for name in ("queries", "instruction", "qrels", "base_queries")
    }
    wanted = {row["corpus-id"] for row in configs["qrels"]}
    configs["corpus"] = [row for at, row in enumerate(sample("corpus")) if at % 6 == 0 or row["_id"] in wanted]
    write_dataset(folder, configs, Card("t", "t", "mit"))
    return folder


@pytest.fixture
def little_task(little: Path) -> Callable[[], Any]:
    """Makes the sample's task on that data."""

    def make() -> Any:
        task = mteb.get_task("IFIRSample")
        task.data_path = little
        return task

    return make
