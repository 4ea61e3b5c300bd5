"""What the models in a folder were trained with, so that no call goes on with something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluators.files import write_text
from evaluators.plugin.models import weights_revision
from tcr_tasks.training.collection import Collection, read_texts
from tcr_tasks.training.config import TrainingConfig

__all__ = ["CONFIG", "require_same_training"]

CONFIG = "config.json"
# What may change between two calls on one folder: what is scored, not what is trained.
_FREE = {"evaluations", "models", "encode_batch_size", "checkpoint_steps", "name"}
# More of the grid may be asked for: what is there holds.
_GROWS = ("learning_rates", "seeds")
_CONTENTS = "contents"


def require_same_training(config: TrainingConfig, collections: Mapping[str, Collection], out: Path) -> None:
    """Refuse a folder with models of another training, whose numbers would stand beside these; else note this one.

    Raises:
        ValueError: naming what differs: settings, data, or what stands under the same name, such as other weights.
    """
    now = _record(config, collections)
    path = out / CONFIG
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = [k for k in now if before.get(k) != now[k] and k not in (*_GROWS, _CONTENTS)]
        changed += _other_contents(before.get(_CONTENTS, {}), now[_CONTENTS], changed)
        if changed:
            raise ValueError(
                f"{out} holds models trained with another configuration (differing: {', '.join(changed)}); name "
                "another folder with --out"
            )
    write_text(path, json.dumps(now, indent=1) + "\n")


def _record(config: TrainingConfig, collections: Mapping[str, Collection]) -> dict[str, Any]:
    """Settings, revisions of the data, and the contents of what else lies on the disk, as JSON."""
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
    fixed[_CONTENTS] = dict(_contents(config))
    return fixed


def _contents(config: TrainingConfig) -> Iterator[tuple[str, str]]:
    """A revision of each model in a directory, and of the kept texts."""
    first_stage = None if config.cross_encoder is None else config.cross_encoder.first_stage
    for name, given in (("base", config.base), ("cross_encoder.first_stage", first_stage)):
        place = None if given is None else Path(given).expanduser()
        if place is not None and place.is_dir():
            yield name, weights_revision(place)
    if config.keep is not None and config.keep.texts:
        yield "keep.texts", _texts_revision(config.keep.texts)


def _texts_revision(places: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for place in places:
        for text in read_texts(place):
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:40]


def _other_contents(before: Mapping[str, str], now: Mapping[str, str], known: Sequence[str]) -> list[str]:
    """What has another content under the same name; another name is told already."""
    names = [n for n in {**before, **now} if before.get(n) != now.get(n) and n.split(".")[0] not in known]
    return [f"the content of {name}" + ("" if name in before else " (not recorded there)") for name in names]
