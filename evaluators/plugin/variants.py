"""Runs of one model with different settings: how their settings are found again, and how they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from evaluators.plugin.results import PER_QUERY, PREDICTIONS, read_settings
from evaluators.plugin.task import VARIANT_PREFIX

__all__ = [
    "UNRECORDED",
    "distinct_names",
    "folders_of_variant",
    "names_of_run",
    "variant_beside",
    "variant_from",
    "variant_words",
]

# The variant of a run in a folder of its own without a record of its settings.
UNRECORDED = "experiment"
_LONGEST_SETTING = 60
_Key = TypeVar("_Key", bound=Hashable)


def variant_from(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """What tells a run from one of the plain model: mteb's ``experiment_kwargs``, without the prefix of task options.

    Empty for the plain model.
    """
    return {key.removeprefix(VARIANT_PREFIX): value for key, value in (settings or {}).items()}


def variant_beside(predictions: Path, model: str, revision: str) -> dict[str, Any]:
    """The variant of the run that a file of predictions is of; empty for the plain model.

    As the table of scores per query beside it says; where that says nothing, by the folder in which
    :func:`evaluators.plugin.running.prediction_folder_of` puts a variant.
    """
    recorded = read_settings(predictions.with_name(predictions.name.removesuffix(PREDICTIONS) + PER_QUERY))
    if recorded is not None:
        return variant_from(recorded)
    folders = folders_of_variant(predictions, model, revision)
    return {UNRECORDED: "/".join(folders)} if folders else {}


def folders_of_variant(predictions: Path, model: str, revision: str) -> tuple[str, ...]:
    """The folders below ``<model>/<revision>`` in which a file lies; none for the plain model."""
    folders = predictions.resolve().parent.parts
    own = (model.replace("/", "__").replace(" ", "_"), revision)
    found = [at for at in range(2, len(folders) + 1) if folders[at - 2 : at] == own]
    return folders[found[-1] :] if found else ()


def variant_words(variant: Mapping[str, Any], longest: int | None = None) -> str:
    """Settings in words (``instruction=prepend, first_stage=...``), each cut to ``longest`` characters."""
    texts = [f"{key}={value}" for key, value in sorted(variant.items())]
    return ", ".join(t if longest is None or len(t) <= longest else f"{t[: longest - 1]}…" for t in texts)


def names_of_run(model: str, revision: str, variant: Mapping[str, Any]) -> tuple[str, str, str]:
    """Names for a run from the shortest to the one that tells all."""
    short, whole = variant_words(variant, _LONGEST_SETTING), variant_words(variant)
    short, whole = (f" ({text})" if text else "" for text in (short, whole))
    return f"{model}{short}", f"{model}{short} @{revision[:8]}", f"{model}{whole} @{revision}"


def distinct_names(choices: Mapping[_Key, Sequence[str]]) -> dict[_Key, str]:
    """For each run its first name that no other run has at that place, or else its last.

    Args:
        choices: names from the shortest to the longest, as many for each run.
    """
    counts = [Counter(names) for names in zip(*choices.values(), strict=True)]
    return {
        key: next((name for name, count in zip(found, counts, strict=True) if count[name] == 1), found[-1])
        for key, found in choices.items()
    }
