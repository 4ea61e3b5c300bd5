"""Shared by the tests of what leaves the project: a hub on this machine, and results of a model that mteb knows."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mteb
import pytest
from fixed_ranking import FixedRanking
from hub_server import Hub
from made_files import CARD
from many_results import write_many
from publish_files import REPO, stand_in

from evaluators.judge import FacetJudge
from evaluators.plugin import evaluate
from evaluators.plugin.models import MINILM
from evaluators.plugin.registry import load_plugins
from hub_cards.publish_build import Built, build
from hub_cards.report.collect import Collected, collect


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with stand_in(monkeypatch, tmp_path / "hub-cache") as hub:
        yield hub


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The FollowIR sample, ready to be sent."""
    return build("FollowIRSample", tmp_path_factory.mktemp("built"), REPO)


@pytest.fixture(scope="session")
def made_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with results on the three samples, and on TCRSample with the instruction prepended too.

    The rankings are drawn, a little in favour of what is relevant; they are filed under the name of a model that mteb
    can load.
    """
    load_plugins()
    folder = tmp_path_factory.mktemp("made") / "out"
    for name, options in (
        ("TCRSample", {}),
        ("TCRSample", {"instruction": "prepend"}),
        ("FollowIRSample", {}),
        ("IFIRSample", {"judge": FacetJudge()}),
    ):
        task: Any = mteb.get_task(name)
        for option, value in options.items():
            setattr(task, option, value)
        evaluate(
            _drawn(task),
            task,
            output_folder=folder,
            prediction_folder=folder / "predictions",
            show_progress_bar=False,
        )
    return folder


def _drawn(task: Any) -> FixedRanking:
    task.load_data()
    data, draw = task.data, random.Random(0)
    documents = list(data.corpus["id"])
    run = {
        query: {
            document: draw.random() + 0.3 * (data.relevant_docs.get(query, {}).get(document, 0) > 0)
            for document in (data.top_ranked[query] if data.top_ranked else documents)
        }
        for query in data.queries["id"]
    }
    model = FixedRanking(run)
    model.mteb_model_meta = mteb.get_model_meta(MINILM)
    return model


@pytest.fixture
def results(made_results: Path, tmp_path: Path) -> Path:
    """A copy of the output folder, to be spoilt."""
    return Path(shutil.copytree(made_results, tmp_path / "out"))


@pytest.fixture(scope="session")
def made(made_results: Path) -> Collected:
    """The made results as the results page reads them."""
    return collect([made_results])


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    """Three models on twenty tasks."""
    folder = tmp_path_factory.mktemp("many")
    write_many(folder, 3)
    return collect([folder])


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A model's repository with a card."""
    path = tmp_path / "repository" / "README.md"
    path.parent.mkdir()
    path.write_bytes(CARD.encode())
    return path
