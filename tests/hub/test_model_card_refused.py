"""Results that may not stand on a model card, and cards that cannot be written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_files import CARD, entries_of, model_card, spoil


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ({"ds_at_1": float("nan")}, "not finite: ds_at_1"),
        ({"recall_at_1": None}, "recall_at_1 is None"),
        ({"ds_at_1_low": "low"}, "ds_at_1_low is 'low'"),
        ({"chance_ds_at_1": "x"}, "chance_ds_at_1 is 'x'"),
        ({"mteb_beyond": {"metric_version": 1}}, "metric version 1, now"),
        ({"mteb_beyond": None}, "no record of metric version"),
        ({"mteb_beyond": "x"}, "no record of metric version"),
        ({"gr_at_1": 53.3}, "gr_at_1 is 53.3"),
        ({"main_score": 0.001}, "main_score is 0.001, but recall_at_1 is"),
        ({"main_score": float("nan")}, "not finite: main_score"),
        ({"ds_at_1_low": 0.9, "ds_at_1_high": 0.1}, "ds_at_1_low is above ds_at_1_high"),
    ],
)
def test_scores_that_a_submission_may_not_have_are_refused(
    results: Path, card: Path, capsys: pytest.CaptureFixture[str], scores: dict[str, Any], told: str
) -> None:
    spoil(results, "TCRSample", **scores)
    assert model_card(results, "--into", str(card)) == 1
    error = capsys.readouterr().err
    assert told in error
    assert "TCRSample.json" in error
    assert card.read_bytes() == CARD.encode()


@pytest.mark.parametrize(
    ("blocks", "told"),
    [
        (lambda block: {}, "holds no scores"),
        (lambda block: {"test": [block, block]}, "stands in it 2 times"),
        (lambda block: {"test": [block], "dev": [block]}, "no split 'dev'"),
    ],
)
def test_blocks_that_a_submission_may_not_have_are_refused(
    results: Path, card: Path, capsys: pytest.CaptureFixture[str], blocks: Callable[[Any], Any], told: str
) -> None:
    (path,) = [p for p in results.rglob("TCRSample.json") if "experiments" not in p.parts]
    saved = json.loads(path.read_text())
    path.write_text(json.dumps(saved | {"scores": blocks(saved["scores"]["test"][0])}))
    assert model_card(results, "--into", str(card)) == 1
    error = capsys.readouterr().err
    assert told in error
    assert "TCRSample.json" in error
    assert card.read_bytes() == CARD.encode()


def test_results_on_other_data_are_told_so_and_enter_no_leaderboard(
    results: Path, card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = [p for p in results.rglob("TCRSample.json") if "experiments" not in p.parts]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dataset_revision": "0123456789abcdef"}))
    assert model_card(results, "--into", str(card)) == 0
    assert "no .eval_results" in capsys.readouterr().err
    entry = entries_of(card, "TCRSample (default, other data, revision 0123456789ab)")["recall_at_1"]
    assert (entry.dataset_type, entry.dataset_revision) == ("local/TCRSample", "0123456789abcdef")
    assert not (card.parent / ".eval_results" / "TCRSample.yaml").exists()
    # The card's older result, which is of the task's data, stays.
    assert entries_of(card, "TCRSample (default)")["recall_at_1"].metric_value == 0.999


def test_what_is_worth_knowing_about_the_card_is_told(
    made_results: Path, card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card.write_bytes(b"\xef\xbb\xbf" + CARD.replace("all-MiniLM-L6-v2", "another").encode())
    assert model_card(made_results, "--into", str(card)) == 0
    told = capsys.readouterr().err
    assert "byte order mark" in told
    assert "is of another, so the results of sentence-transformers/all-MiniLM-L6-v2 have an entry" in told


def test_links_and_permissions_stay(made_results: Path, card: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(card)
    card.chmod(0o640)
    assert model_card(made_results, "--into", str(link)) == 0
    assert link.is_symlink()
    assert card.read_bytes() != CARD.encode()
    assert card.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("obstacle", ["read-only", "file", "folder"])
def test_all_is_written_or_nothing(
    made_results: Path, card: Path, capsys: pytest.CaptureFixture[str], obstacle: str
) -> None:
    place = card.parent / ".eval_results"
    if obstacle == "read-only":
        card.chmod(0o444)
    elif obstacle == "file":
        place.touch()
    else:
        (place / "TCRSample.yaml").mkdir(parents=True)
    assert model_card(made_results, "--into", str(card)) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert card.read_bytes() == CARD.encode()
    assert not [p for p in card.parent.rglob("*") if p.is_file() and p not in (card, place)]


def test_a_card_that_is_not_there_is_not_made(
    made_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model_card(made_results, "--into", str(tmp_path / "README.md")) == 1
    assert "no model card at" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
