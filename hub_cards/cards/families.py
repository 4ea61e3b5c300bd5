"""Which tasks share a card, and what a card says that stands in no metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mteb.abstasks import AbsTask

from evaluators.plugin.dataset import Card
from evaluators.plugin.task import BeyondTask
from followir_tasks import MFOLLOWIR_TASKS, FollowIRCollection, FollowIRSample, InstructIRRobustness
from followir_tasks import SUBSET_TASKS as FOLLOWIR_TASKS
from followir_tasks.sample_build import CARD as FOLLOWIR_CARD
from hub_cards.cards.columns import INSTRUCTIR
from hub_cards.measures import MEASURES
from ifir_tasks import SUBSET_TASKS as IFIR_TASKS
from ifir_tasks import IFIRSample
from ifir_tasks.sample_build import CARD as IFIR_CARD
from tcr_tasks import BENCHMARK_TASKS, FAMILY_TASKS, SAFE_TASK, TCRSample
from tcr_tasks.builder.output import COLUMNS
from tcr_tasks.sample_build import CARD as TCR_CARD

TEXTS = Path(__file__).parent / "texts"

# Parts the two hand-written texts of a file.
_SCORES = "\n## Expected scores\n"
_PARQUET_CONFIGS = ("corpus", "queries", "qrels")


@dataclass(frozen=True)
class Family:
    """Tasks on the same data, which share a card.

    Attributes:
        name: file name of card and text, without suffix.
        title: heading, and the hub's ``pretty_name``.
        tasks: the tasks that the card describes; the first one is the example's.
        license: a licence of the hub's list.
        files: the file of each config, as ``publish`` writes them.
        measured: scores that stand in the card, by key and label.
        tags: of the hub.
        extra: further keys of the YAML header.
        sample: for a sample, what its builder says of it; the card's text holds it.
        columns: Markdown on the columns; ``None``: the table of the known configs.
        others: further tasks on the same data, named but not described.
        languages: of the data, as the hub names them.
    """

    name: str
    title: str
    tasks: tuple[type[BeyondTask], ...]
    license: str
    files: Mapping[str, str]
    measured: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    sample: Card | None = None
    columns: str | None = None
    others: tuple[type[BeyondTask], ...] = ()
    languages: tuple[str, ...] = ("en",)

    def texts(self) -> tuple[str, str]:
        """The hand-written parts: on the data, and on the scores to expect."""
        written = (TEXTS / f"{self.name}.md").read_text(encoding="utf-8")
        about, found, scores = written.partition(_SCORES)
        if not found:
            raise ValueError(f"{TEXTS / self.name}.md has no heading {_SCORES.strip()!r}")
        return about.strip(), scores.strip()


def parquet_files(*more: str, folder: str = "") -> dict[str, str]:
    """The files of the usual configs and of further ones; those of a folder carry its name, as mteb's do."""
    names = (*_PARQUET_CONFIGS, *more)
    return {f"{folder}-{name}": f"{folder}/{name}.parquet" for name in names} if folder else _flat(names)


def _flat(names: tuple[str, ...]) -> dict[str, str]:
    return {name: f"{name}.parquet" for name in names}


def _sample(name: str, task: type[BeyondTask], card: Card, files: dict[str, str], **more: Any) -> Family:
    return Family(name, card.title, (task,), card.license, files, tags=tuple(card.tags), sample=card, **more)


def _named(benchmark: str, *keys: str) -> dict[str, str]:
    return {m.key: m.name for m in MEASURES[benchmark] if m.key in keys}


def _ifir_files() -> dict[str, str]:
    files: dict[str, str] = {}
    for task in IFIR_TASKS:
        assert task.subset is not None
        files |= parquet_files("instruction", folder=task.subset.folder)
    return files


FAMILIES: tuple[Family, ...] = (
    Family(
        "ifir",
        "IFIR",
        IFIR_TASKS,
        "mit",
        _ifir_files(),
        tags=("retrieval", "instruction-following"),
    ),
    _sample(
        "ifir-sample",
        IFIRSample,
        IFIR_CARD,
        parquet_files("instruction", "facets", "base_queries"),
        measured=_named("IFIR", "ndcg_at_20"),
    ),
    Family(
        "followir",
        "FollowIR",
        FOLLOWIR_TASKS,
        "mit",
        parquet_files("instruction", "top_ranked", "qrel_diff"),
        tags=("information-retrieval", "instruction-following"),
    ),
    _sample(
        "followir-sample",
        FollowIRSample,
        FOLLOWIR_CARD,
        parquet_files("instruction", "instruction_forms", "top_ranked", "qrel_diff", "topics"),
        measured=_named("FollowIR", "p-MRR"),
        others=(FollowIRCollection,),
    ),
    Family(
        "mfollowir",
        "mFollowIR",
        MFOLLOWIR_TASKS,
        "odc-by",
        parquet_files("instruction", "top_ranked", "qrel_diff"),
        tags=("information-retrieval", "instruction-following"),
        languages=("fa", "ru", "zh", "en"),
    ),
    Family(
        "instructir",
        "InstructIR (robustness)",
        (InstructIRRobustness,),
        "other",
        {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "qrels": "qrels.jsonl"},
        tags=("retrieval", "instruction-following"),
        columns=INSTRUCTIR,
        extra={"license_name": "mit-with-ms-marco-passages"},
    ),
    Family(
        "tcr-bench",
        "TCR-Bench",
        (*BENCHMARK_TASKS, SAFE_TASK),
        "cc-by-4.0",
        parquet_files("groups", "tables"),
        tags=("table-retrieval", "answerability"),
    ),
    _sample(
        "tcr-sample",
        TCRSample,
        TCR_CARD,
        parquet_files("groups", "tables"),
        measured=_named("TCR-Bench", "recall_at_1", "gr_at_1", "ds_at_1")
        | {"chance_ds_at_1": "DS@1 by chance within the group"},
        columns=COLUMNS,
        others=FAMILY_TASKS,
    ),
)


def family_of(task: AbsTask | type[AbsTask]) -> Family:
    """The family whose card describes a task.

    Raises:
        ValueError: if the task is not one of ours.
    """
    name = task.metadata.name
    for family in FAMILIES:
        if any(cls.metadata.name == name for cls in (*family.tasks, *family.others)):
            return family
    kind = "has no card here" if isinstance(task, BeyondTask) else "is a task of mteb itself; mteb makes its card"
    raise ValueError(f"{name} {kind}")
