"""Builds the directory that is published: data, card, ``eval.yaml``; and checks it by loading what was written."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from huggingface_hub import DatasetCard

from evaluators.files import write_text
from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import SCHEMAS, config_files, is_dataset_directory
from evaluators.plugin.inspection import tasks_for
from evaluators.plugin.mteb_internals import evaluation_config
from evaluators.plugin.sources import fetch_git_archive
from evaluators.plugin.task import BeyondTask
from followir_tasks import FollowIRTask, InstructIRRobustness
from followir_tasks.data import INSTRUCTIR_FILES, is_instructir, read_instructir
from followir_tasks.layout import write_followir
from hub_cards import publish_layout as layout
from hub_cards.cards.families import family_of
from hub_cards.cards.render import card, hub_configs
from hub_cards.cards.statistics import LOCAL, Statistics, compute
from hub_cards.model_card_measures import eval_ids
from ifir_tasks import IFIRTask
from tcr_tasks import BENCHMARK_TASKS, SAFE_TASK, TCRSample, TCRTask

CARD = "README.md"
EVAL = "eval.yaml"


class Built(NamedTuple):
    """A directory that is ready to be sent.

    Attributes:
        folder: where it is.
        files: what is in it, as paths relative to it, sorted.
        told: lines for the user: what each task loaded from it, and what is to be noted.
    """

    folder: Path
    files: list[str]
    told: list[str]


def build(target: str, folder: Path, repository: str) -> Built:
    """Build what is published of a task or a directory in an empty folder, and check it.

    Data in our layout are taken as they are, with the directory's own card; those of IFIR, FollowIR and TCR-Bench in
    another layout are rewritten in ours. Then each task loads what was written, and it must be what the source says.

    Raises:
        DatasetError: listing everything that is wrong with the data.
        ValueError: if the target is unknown or cannot be published, or a directory has no card that names a licence.
    """
    sources = _sources(target)
    files: dict[str, str] = {}
    for source in sources:
        files |= _write(source, folder)
    readers = _readers(sources, folder)
    try:
        for reader in readers:
            reader.load_data()
    except (ValueError, OSError):
        for source in sources:
            source.load_data()  # fails too, and names the file that is damaged in place of its copy
        raise
    notes = list(dict.fromkeys(note for reader in readers if reader.data for note in reader.data.notes))
    given = Path(target).expanduser()
    if given.is_dir() and is_dataset_directory(given):
        text, title = _own_card(given, files)
        more = sorted(path.name for path in given.glob("*.parquet") if path.stem not in files)
        if DatasetCard(text).data.get("license") == "unknown":
            notes.append(f"the licence is unknown: say which it is in the header of {given / CARD} (`license: ...`)")
        notes += [f"not sent, since it is no config of such a dataset: {name}" for name in more]
    else:
        family = family_of(readers[0])
        found = {reader.metadata.name: _statistics(reader, sources[0]) for reader in readers}
        text, title = card(family, files, found, repository, notes), family.title
    write_text(folder / CARD, text)
    scorers = _scorers(readers)
    write_text(
        folder / EVAL, evaluation_config(scorers, title, [entry for task in scorers for entry in eval_ids(task)])
    )
    name = given.resolve().name if given.is_dir() else ""
    told = [*(_told(reader, name) for reader in readers), *(f"  note: {note}" for note in notes)]
    sent = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return Built(folder, sent, told)


def _sources(target: str) -> list[BeyondTask]:
    """The tasks through which the data are read."""
    tasks = tasks_for(target)
    described = family_of(tasks[0])
    if type(tasks[0]) not in described.tasks:
        raise ValueError(f"{target} reads the data of another task; publish {described.tasks[0].__name__}")
    if isinstance(tasks[0], TCRTask):
        # One copy of the tables serves every way of printing them.
        tasks = [task for task in tasks if isinstance(task, TCRTask) and not task.setting.part]
        if not tasks:
            raise ValueError(f"{target} reads questions that the layout does not hold; publish TCRBenchMixed")
        if not is_dataset_directory(tasks[0].source().directory or Path()):
            mixed = described.tasks[0]()
            mixed.data_path = tasks[0].data_path
            tasks = [mixed]
    return tasks


def _readers(sources: Sequence[BeyondTask], folder: Path) -> list[BeyondTask]:
    """The tasks that read what was written into ``folder``."""
    classes: list[type[BeyondTask]] = [type(source) for source in sources]
    if isinstance(sources[0], TCRTask) and sources[0].embedded is None:
        tasks = family_of(sources[0]).tasks
        classes = [cls for cls in tasks if issubclass(cls, TCRTask) and not cls.setting.part]
    readers = [cls() for cls in classes]
    for reader in readers:
        reader.data_path = folder
    return readers


def _scorers(readers: list[BeyondTask]) -> list[BeyondTask]:
    """The tasks that score what the readers have read."""
    if isinstance(readers[0], TCRSample) and readers[0].current_revision() != TCRSample.metadata.revision:
        # The sample's task reads any TCR directory, since it expects no sizes; such data are scored as TCR-Bench's.
        return [cls() for cls in (*BENCHMARK_TASKS, SAFE_TASK) if not cls.setting.part]
    return readers


def _write(task: BeyondTask, folder: Path) -> dict[str, str]:
    """Write a task's data into the folder, IFIR's subsets into folders of theirs; returns the file of each config."""
    subset = task.subset.folder if isinstance(task, IFIRTask) and task.subset else ""
    source = task.source().fetched()
    directory = source.directory
    if directory is None and isinstance(task, TCRTask):
        directory = fetch_git_archive(source.repository, source.revision)
    elif directory is not None and (directory / subset).is_dir():
        directory = directory / subset
    place = folder / subset
    if directory is not None and (is_dataset_directory(directory) or is_instructir(directory)):
        configs = _copy(directory, place, _configs(task))
    else:
        configs = _convert(task, directory, place, folder)
    prefix = (f"{subset}-", f"{subset}/") if subset else ("", "")
    return {prefix[0] + name: prefix[1] + path for name, path in configs.items()}


def _copy(directory: Path, place: Path, configs: Sequence[str]) -> dict[str, str]:
    """Copy those configs that a directory has as they are, and nothing else that lies in it."""
    place.mkdir(parents=True, exist_ok=True)
    if not is_dataset_directory(directory):
        for name in INSTRUCTIR_FILES:
            shutil.copyfile(directory / name, place / name)
        return _instructir_configs(place)
    found: dict[str, str] = {}
    for name in (name for name in configs if config_files(directory, name)):
        for file in config_files(directory, name):
            copy = place / file.relative_to(directory)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, copy)
        found[name] = f"{name}.parquet" if (place / f"{name}.parquet").is_file() else f"{name}/*.parquet"
    return found


def _configs(task: BeyondTask) -> list[str]:
    """The configs that a dataset of the task's family may have."""
    return list(dict.fromkeys([*SCHEMAS, *sorted(family_of(task).files)]))


def _convert(task: BeyondTask, directory: Path | None, place: Path, folder: Path) -> dict[str, str]:
    """Write data that are in another layout, and make sure that nothing was lost."""
    task.load_data()
    assert task.data is not None
    if isinstance(task, IFIRTask):
        layout.write_ifir(place, task.data)
    elif isinstance(task, TCRTask):
        assert directory is not None
        layout.write_tcr(place, task.data, directory)
    elif isinstance(task, FollowIRTask):
        write_followir(place, task.data)
    else:
        layout.write_instructir(place, task.data)
    reader = type(task)()
    reader.data_path = folder
    reader.load_data()
    assert reader.data is not None
    lost = layout.differences(task.data, reader.data)
    if lost:
        raise DatasetError(f"{task.metadata.name}, written in the layout that is published", lost)
    if isinstance(task, InstructIRRobustness):
        return _instructir_configs(place)
    return {name: f"{name}.parquet" for name in SCHEMAS if (place / f"{name}.parquet").is_file()}


def _instructir_configs(place: Path) -> dict[str, str]:
    """The configs of InstructIR's files, all JSON lines, since `datasets` reads one format a repository."""
    layout.write_instructir_qrels(place, read_instructir(place).relevant_docs)
    return dict(family_of(InstructIRRobustness).files)


def _statistics(reader: BeyondTask, source: BeyondTask) -> Statistics:
    """Statistics of what was written, with the revision of what it was written from."""
    found = compute(reader)._replace(revision=source.current_revision())
    return found._replace(origin=LOCAL) if source.embedded is None and source.source().is_local else found


def _own_card(directory: Path, files: dict[str, str]) -> tuple[str, str]:
    """The directory's card with the configs that are sent, and its title.

    Raises:
        ValueError: if there is no card, its header cannot be read, or it names no licence.
    """
    path = directory / CARD
    remedy = "say there what the data are, where they come from and under which licence (YAML header, `license: ...`)"
    if not path.is_file():
        raise ValueError(f"{directory} has no {CARD}, without which a dataset should not be published: {remedy}")
    try:
        text = path.read_text(encoding="utf-8")
        own = DatasetCard(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); save it as UTF-8") from None
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} has no readable YAML header ({' '.join(str(error).split())}); mend it") from None
    if own.data.get("license") is None:
        raise ValueError(f"{path} names no licence: {remedy}")
    configs = hub_configs(files)
    title = str(own.data.get("pretty_name") or directory.resolve().name)
    if own.data.get("configs") == configs:
        return text, title
    own.data["configs"] = configs
    return f"{str(own).strip()}\n", title


def _told(task: BeyondTask, directory: str) -> str:
    assert task.data is not None
    # The sample's task reads a directory of one's own, whose name is another.
    name = directory if task.embedded is not None else ""
    return f"{name or task.metadata.name}: {len(task.data.queries)} queries, {len(task.data.corpus)} documents"
