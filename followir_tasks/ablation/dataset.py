"""Writes a dataset with the forms of its instructions."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml
from huggingface_hub import DatasetCard

from evaluators.files import write_text
from evaluators.plugin.dataset import SPLIT, Card, card_text
from evaluators.plugin.layout import write_config
from followir_tasks.forms import CONFIG, QueryForms
from followir_tasks.layout import write_followir
from followir_tasks.tasks import FollowIRTask

_CARD = "README.md"


def require_place(task: FollowIRTask, out: Path) -> None:
    """Before any work: the forms can be written there.

    Raises:
        FileExistsError: if the directory holds something and is not the dataset itself.
    """
    if not is_in_place(task, out) and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(
            f"--out {out} holds something already; name a new directory, or the dataset's own to add the forms to it"
        )


def is_in_place(task: FollowIRTask, out: Path) -> bool:
    """Whether the directory is the dataset's own."""
    directory = task.source().directory
    return directory is not None and out.resolve() == directory.resolve()


def write_with_forms(task: FollowIRTask, forms: Mapping[str, QueryForms], made_by: str, out: Path) -> None:
    """Write the dataset that a task has loaded, with the config ``instruction_forms``; all of it, or nothing.

    Args:
        task: its data are loaded.
        forms: by query.
        made_by: what the forms depend on, for the card.
        out: a directory that :func:`require_place` let pass.
    """
    if is_in_place(task, out):
        _add(out, forms, made_by)
        return
    part = out.with_name(out.name + ".part")
    if part.exists():
        shutil.rmtree(part)
    directory = task.source().fetched().directory
    if directory is not None:
        shutil.copytree(directory, part)
    else:
        assert task.data is not None
        write_followir(part, task.data)
        write_text(part / _CARD, _card_of_copy(task, [path.stem for path in sorted(part.glob("*.parquet"))]))
    _add(part, forms, made_by)
    if out.is_dir():
        out.rmdir()
    part.rename(out)


def _add(directory: Path, forms: Mapping[str, QueryForms], made_by: str) -> None:
    text = _with_config(directory / _CARD, made_by)
    write_config(directory, CONFIG, ({"query-id": query, **kept._asdict()} for query, kept in forms.items()))
    if text is not None:
        write_text(directory / _CARD, text)


def _with_config(path: Path, made_by: str) -> str | None:
    """The dataset's card with the config and a sentence on it; ``None`` if there is no card.

    Raises:
        ValueError: if its header cannot be read.
    """
    if not path.is_file():
        return None
    try:
        card = DatasetCard(path.read_text(encoding="utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} has no readable YAML header ({' '.join(str(error).split())}); mend it") from None
    others = [config for config in card.data.get("configs") or [] if config["config_name"] != CONFIG]
    card.data["configs"] = [
        *others,
        {"config_name": CONFIG, "data_files": [{"split": SPLIT, "path": f"{CONFIG}.parquet"}]},
    ]
    heading = f"## `{CONFIG}`"
    body = str(card).partition(f"\n{heading}\n")[0].rstrip()
    return f"{body}\n\n{heading}\n\nKeywords and short forms of the instructions, written by {made_by}.\n"


def _card_of_copy(task: FollowIRTask, configs: list[str]) -> str:
    source = task.source()
    body = f"A copy of `{source.repository}` at revision `{source.revision}`, in another layout."
    is_own = source.repository == type(task).metadata.dataset["path"]
    license = (task.metadata.license if is_own else None) or "unknown"
    return card_text(Card(f"{task.metadata.name} with forms of instructions", body, license), configs)
