"""Reading result files back, with the variants of a model told apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evaluators.plugin.models import MINILM
from hub_cards.results import read_results

REVISION = "8b3219a92973c328a8e22fadcfa821b5dc75636a"


def test_every_file_is_read_with_its_variant(made_results: Path) -> None:
    found = {(r.name, r.task.task_name): r for r in read_results(made_results)}
    variant = f"{MINILM} (instruction=prepend)"
    assert set(found) == {
        *((MINILM, name) for name in ("FollowIRSample", "IFIRSample", "TCRSample")),
        (variant, "TCRSample"),
    }
    assert all((r.model, r.revision) == (MINILM, REVISION) for r in found.values())
    assert found[variant, "TCRSample"].variant == {"instruction": "prepend"}
    assert found[MINILM, "TCRSample"].variant == {}
    result = found[MINILM, "TCRSample"]
    on_disk = json.loads(result.path.read_text())["scores"]["test"][0]
    assert result.scores()["ds_at_1"] == on_disk["ds_at_1"]
    assert result.meta is not None
    assert result.meta.revision == REVISION


def test_the_results_folder_itself_will_do_and_set_aside_files_are_left_out(results: Path) -> None:
    path = next(results.rglob("IFIRSample.json"))
    path.rename(path.with_suffix(".json.stale-20260101T000000"))
    assert [r.path.name for r in read_results(results / "results")] == [
        "FollowIRSample.json",
        "TCRSample.json",
        "TCRSample.json",
    ]


def test_two_runs_never_share_a_name(results: Path) -> None:
    place = next(results.rglob("FollowIRSample.json")).parent
    other = place.parent / "other"
    shutil.copytree(place, other)
    meta = json.loads((other / "model_meta.json").read_text())
    (other / "model_meta.json").write_text(json.dumps(meta | {"revision": "other"}))
    long = "x" * 100
    for last in "ab":
        variant = other / "experiments" / last
        shutil.copytree(other / "experiments" / "task_instruction_prepend", variant)
        kwargs = {"experiment_kwargs": {"first_stage": long + last}, "revision": "other"}
        (variant / "model_meta.json").write_text(json.dumps(meta | kwargs))
    shutil.rmtree(other / "experiments" / "task_instruction_prepend")
    found = read_results(results)
    names = {r.run: r.name for r in found}
    assert len(set(names.values())) == len(names) == 5
    assert {r.name for r in found if not r.variant} == {f"{MINILM} @{REVISION[:8]}", f"{MINILM} @other"}


def test_without_a_record_the_folders_tell(results: Path) -> None:
    for path in results.rglob("model_meta.json"):
        path.unlink()
    found = {r.name for r in read_results(results)}
    assert found == {MINILM, f"{MINILM} (experiment=task_instruction_prepend)"}


@pytest.mark.parametrize(("name", "content"), [("TCRSample.json", "{"), ("model_meta.json", '{"name": "no-slash"}')])
def test_a_damaged_file_is_named(results: Path, name: str, content: str) -> None:
    path = next(p for p in sorted(results.rglob(name)) if "experiments" not in p.parts)
    path.write_text(content)
    with pytest.raises(ValueError, match=name) as error:
        read_results(results)
    assert str(path) in str(error.value)


def test_a_name_that_no_file_can_hold_is_told(results: Path) -> None:
    path = next(results.rglob("model_meta.json"))
    meta = json.loads(path.read_text())
    path.write_text(json.dumps(meta | {"name": "o/\ud800x"}))
    with pytest.raises(ValueError, match=r"model_meta.json.*half a character"):
        read_results(results)


def test_missing_scores_and_folders_are_told(made_results: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'dev'.*test/default"):
        read_results(made_results)[0].scores(split="dev")
    with pytest.raises(FileNotFoundError, match="no result folder"):
        read_results(tmp_path)
    (tmp_path / "results").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no result"):
        read_results(tmp_path)
