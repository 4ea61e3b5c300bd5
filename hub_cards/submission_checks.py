"""What is wrong with a folder of results that is to go to mteb's results repository."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mteb
from mteb.models import ModelMeta

from evaluators.plugin.results import output_folder
from evaluators.plugin.variants import variant_words
from hub_cards.results import EXPERIMENTS, META_FILE, read_meta, result_paths, variant_of
from hub_cards.submission_scores import Finding, file_findings

RUN_SETTINGS = "run_settings.jsonl"
_NO_REVISION = ("", "no_revision", "no_revision_available", "no_revision_provided", "external")
_RECORD_AGAIN = "run the model again with `mteb-beyond run`, which writes it"
# What mteb's leaderboard shows or filters by.
_WANTED_FIELDS = (
    "release_date",
    "n_parameters",
    "max_tokens",
    "embed_dim",
    "license",
    "open_weights",
    "similarity_fn_name",
    "training_datasets",
)


def submission_findings(folder: Path) -> list[Finding]:
    """Everything about a folder of results that concerns a submission, what must be fixed first.

    Args:
        folder: mteb's output folder, or the folder ``results`` in it.

    Raises:
        FileNotFoundError: if it is no such folder, or holds no result.
    """
    results = output_folder(folder.expanduser()) / "results"
    paths = result_paths(results)
    if not paths:
        raise FileNotFoundError(f"{folder} holds no result (results/<model>/<revision>/<task>.json)")
    found = [*_layout_findings(results, paths), *_duplicate_findings(paths)]
    for place in sorted({path.parent for path in paths}):
        found += _place_findings(place, [path for path in paths if path.parent == place])
    return sorted(dict.fromkeys(found), key=lambda f: not f.must_be_fixed)


def plain_paths(folder: Path) -> list[Path]:
    """The result files that a submission consists of: those of plain models."""
    paths = result_paths(output_folder(folder.expanduser()) / "results")
    return [path for path in paths if path.parent.parent.name != EXPERIMENTS]


def _layout_findings(results: Path, paths: Iterable[Path]) -> Iterator[Finding]:
    known = {*paths}
    places = {path.parent for path in known}
    for path in sorted(results.rglob("*")):
        if path.is_dir() or path in known or (path.parent in places and path.name in (META_FILE, RUN_SETTINGS)):
            continue
        if path.suffix == ".json":
            yield Finding(
                path,
                "lies where no result belongs, or belongs to no result",
                "results are results/<model>/<revision>/<task>.json; move or remove it",
            )
        else:
            yield Finding(path, "no part of a submission, so that it stays here:")


# ---- models ------------------------------------------------------------------------------------------------------


def _place_findings(place: Path, paths: Iterable[Path]) -> Iterator[Finding]:
    listed = list(paths)
    try:
        meta = read_meta(place)
    except ValueError as error:
        yield Finding(place / META_FILE, str(error).removeprefix(f"{place / META_FILE} "), _RECORD_AGAIN)
        meta = None
    else:
        if meta is None:
            yield Finding(place / META_FILE, "is missing", _RECORD_AGAIN)
        else:
            yield from _meta_findings(place, meta)
    variant = variant_of(place, meta)
    if place.parent.name == EXPERIMENTS:
        settings = variant_words(variant)
        yield Finding(place, f"results of a variant ({settings}): mteb does not submit them with the plain model's")
    elif variant:
        yield Finding(
            place / META_FILE,
            f"says that these are results of a variant ({variant_words(variant)})",
            f"they belong to {place.name}/{EXPERIMENTS}/<variant>; run the model again with `mteb-beyond run`",
        )
    yield from _settings_findings(place, listed)
    for path in listed:
        yield from file_findings(path, variant)


def _meta_findings(place: Path, meta: ModelMeta) -> Iterator[Finding]:
    path = place / META_FILE
    folder = place.parent.parent if place.parent.name == EXPERIMENTS else place
    if not meta.name:
        yield Finding(path, "names no model", _RECORD_AGAIN)
        return
    named = meta.model_name_as_path()
    if named != folder.parent.name:
        yield Finding(path, f"is of {meta.name}, but lies in {folder.parent.name}", f"name the folder {named}")
    if meta.revision is None or meta.revision in _NO_REVISION:
        yield Finding(
            path,
            f"its revision is {meta.revision!r}, which tells no checkpoint from another",
            "run again with `mteb-beyond run --model-revision COMMIT`",
        )
    elif meta.revision != folder.name:
        yield Finding(
            path, f"is of revision {meta.revision}, but lies in {folder.name}", f"name the folder {meta.revision}"
        )
    yield from _registry_findings(path, meta)
    lacking = [field for field in _WANTED_FIELDS if getattr(meta, field) is None]
    if lacking:
        yield Finding(path, f"does not say {', '.join(lacking)}")


def _registry_findings(path: Path, meta: ModelMeta) -> Iterator[Finding]:
    assert meta.name is not None
    if meta.name.startswith(("local/", "no_model_name/")):
        yield Finding(
            path,
            f"{meta.name} is a local name",
            "publish the model, put `model_name: organisation/name` into its README, and run again",
        )
        return
    try:
        registered = mteb.get_model_meta(meta.name, fetch_from_hf=False)
    except KeyError:
        yield Finding(
            path,
            f"mteb has no implementation of {meta.name}",
            "the repository takes results of models that mteb can load: add the model to mteb first",
        )
        return
    if meta.revision != registered.revision:
        yield Finding(path, f"is of revision {meta.revision}, while mteb's implementation is {registered.revision}")
    recorded = json.loads(path.read_bytes()).get("loader")
    theirs = getattr(registered.loader, "__name__", None)
    if recorded != theirs:
        yield Finding(path, f"was loaded by {recorded!r}, mteb's implementation by {theirs!r}: say so when submitting")


def _settings_findings(place: Path, paths: Iterable[Path]) -> Iterator[Finding]:
    """Whether the record of settings covers every task, split and subset, as the repository's checks demand."""
    path = place / RUN_SETTINGS
    if not path.is_file():
        yield Finding(path, "is missing", _RECORD_AGAIN)
        return
    covered: set[tuple[str, str, str]] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            covered |= _covered(json.loads(line)) if line.strip() else set()
        except (ValueError, AttributeError, TypeError) as error:
            yield Finding(path, f"line {number} cannot be read: {error}", "correct or remove the line")
    for result in paths:
        lacking = sorted({f"{s}/{sub}" for s, sub in _blocks(result) if (result.stem, s, sub) not in covered})
        if lacking:
            yield Finding(path, f"does not cover {result.stem} {', '.join(lacking)}", _RECORD_AGAIN)


def _covered(entry: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    splits = entry.get("splits") or [entry.get("split")]
    subsets = entry.get("subsets") or [entry.get("subset")]
    return {(str(entry.get("task")), str(split), str(subset)) for split in splits for subset in subsets}


def _blocks(path: Path) -> list[tuple[str, str]]:
    """Split and subset of each set of scores; nothing for a file that cannot be read, which is found elsewhere."""
    try:
        scores = json.loads(path.read_bytes())["scores"]
        found = [(split, block["hf_subset"]) for split, listed in scores.items() for block in listed]
        return [(split, subset) for split, subset in found if isinstance(subset, str)]
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return []


# ---- duplicates --------------------------------------------------------------------------------------------------


def _duplicate_findings(paths: Iterable[Path]) -> Iterator[Finding]:
    plain = [path for path in paths if path.parent.parent.name != EXPERIMENTS]
    of_task: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    of_content: dict[str, list[Path]] = defaultdict(list)
    for path in plain:
        of_task[path.parent.parent, path.stem].append(path)
        try:
            content = json.loads(path.read_bytes())
            of_content[json.dumps([content["task_name"], content["scores"]], sort_keys=True)].append(path)
        except (ValueError, KeyError, TypeError, OSError):
            continue
    for (_, task), same in of_task.items():
        if len(same) > 1:
            revisions = ", ".join(path.parent.name for path in same)
            yield Finding(
                same[0], f"{task} has results of several revisions: {revisions}", "keep the revision that is public"
            )
    for same in of_content.values():
        if len(same) > 1:
            others = ", ".join(str(path) for path in same[1:])
            yield Finding(
                same[0], f"has the very scores of {others}", "find out which model they are of; remove the other"
            )
