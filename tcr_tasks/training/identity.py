"""What the models in a folder were trained with, so that no call goes on with something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluators.training.grids import base_contents, require_same
from tcr_tasks.training.collection import Collection, read_texts
from tcr_tasks.training.config import TrainingConfig

__all__ = ["require_same_training"]

# What may change between two calls on one folder: what is scored, not what is trained.
_FREE = {"evaluations", "models", "encode_batch_size", "checkpoint_steps", "name"}


def require_same_training(config: TrainingConfig, collections: Mapping[str, Collection], out: Path) -> None:
    """Refuse a folder with models of another training, whose numbers would stand beside these; else note this one.

    Raises:
        ValueError: naming what differs: settings, data, or what stands under the same name, such as other weights.
    """
    require_same(out, _record(config, collections), _contents(config))


def _record(config: TrainingConfig, collections: Mapping[str, Collection]) -> dict[str, Any]:
    """Settings and revisions of the data, as JSON."""
    fixed: dict[str, Any] = json.loads(config.model_dump_json(exclude=_FREE))
    # Checkpoints are chosen by what they score there, so it must stay the same to the letter.
    fixed["selection"] = {
        e.name: json.loads(e.model_dump_json(exclude={"name", "data", "task"}))
        | {"revision": collections[e.name].revision}
        for e in config.evaluations
        if e.select
    }
    fixed["revisions"] = {source.name: collections[source.name].revision for source in config.sources}
    for source in fixed["sources"]:  # where data lie does not matter, their content does
        source.pop("data"), source.pop("task")
    return fixed


def _contents(config: TrainingConfig) -> dict[str, str]:
    """A revision of each model in a directory, and of the kept texts."""
    first_stage = None if config.cross_encoder is None else config.cross_encoder.first_stage
    out = base_contents({"base": config.base, "cross_encoder.first_stage": first_stage})
    if config.keep is not None and config.keep.texts:
        out["keep.texts"] = _texts_revision(config.keep.texts)
    return out


def _texts_revision(places: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for place in places:
        for text in read_texts(place):
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:40]
