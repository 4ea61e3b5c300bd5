"""The IFIR results below a folder, as one entry per model and variant."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from evaluators.plugin.stored import StoredScores, stored_scores
from ifir_tasks.report.published import SUBSET_TASK_NAMES

SAMPLE_TASK = "IFIRSample"
TASK_NAMES = (*SUBSET_TASK_NAMES.values(), SAMPLE_TASK)


@dataclass(frozen=True)
class ModelScores(StoredScores):
    """What one model, in one variant, scored on IFIR."""

    @property
    def has_prompt(self) -> bool:
        """Whether a prompt was put before the queries (the paper's Table 9)."""
        return any(map(_is_prompt, self.options))

    @property
    def without_prompt(self) -> tuple[str, str, str]:
        """What this entry shares with its counterpart without prompt, as a key."""
        others = {name: value for name, value in self.options.items() if not _is_prompt(name)}
        return self.name, self.revision, json.dumps(others, sort_keys=True, default=str)

    def missing_subsets(self) -> list[str]:
        """The paper's names of the subsets without a result."""
        return [subset for subset, task in SUBSET_TASK_NAMES.items() if task not in self.scores]


@dataclass(frozen=True)
class Loaded:
    """All entries of a folder, and what a reader of their numbers should know."""

    models: tuple[ModelScores, ...]
    notes: tuple[str, ...] = field(default=())


def load_results(folder: str | Path) -> Loaded:
    """Read the IFIR results below mteb's output folder (which holds ``results``) or that ``results`` folder itself.

    Raises:
        FileNotFoundError: if there is no such folder, or no IFIR result in it.
        ValueError: if a result file or a model's record cannot be read; the message names it.
    """
    hint = f"mteb-beyond run -m MODEL -b 'IFIR(InstFol)' --output-folder {folder}"
    found = stored_scores(folder, TASK_NAMES, hint)
    return Loaded(tuple(ModelScores(**vars(entry)) for entry in found.models), found.notes)


def _is_prompt(option: str) -> bool:
    return "prompt" in option.lower()
