"""The README of a trained model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from evaluators.files import write_text
from evaluators.training.config import Schedule
from evaluators.training.running import GridRun
from evaluators.training.selection import Epoch

__all__ = ["write_card"]


def write_card(
    folder: Path,
    schedule: Schedule,
    name: str,
    run: GridRun,
    epoch: Epoch,
    chosen_on: str,
    tags: Sequence[str],
    how: str,
) -> None:
    """Write what a model is, and a name for mteb that no other checkpoint has.

    Args:
        folder: the model's.
        schedule: how it was optimised.
        name: of the training.
        run, epoch, chosen_on: which checkpoint it is.
        tags: for the hub.
        how: what was done with the base, as the middle of a sentence.
    """
    slug = re.sub(r"[^\w.-]+", "-", f"{name}-{run.label}-best-on-{chosen_on}").strip("-")
    base = schedule.base if not Path(schedule.base).is_dir() else Path(schedule.base).name
    header = {"model_name": f"local/{slug}", "base_model": base, "tags": list(tags)}
    scores = ", ".join(f"{metric} {value:.4f}" for metric, value in epoch.scores[chosen_on].items())
    text = (
        f"# {slug}\n\n{base} {how}; {run.told}, epoch {epoch.number} of "
        f"{schedule.epochs}; the best epoch on {chosen_on}: {scores}.\n"
    )
    write_text(folder / "README.md", f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n{text}")
