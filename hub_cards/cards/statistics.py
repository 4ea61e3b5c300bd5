"""mteb's descriptive statistics of our tasks, kept in ``hub_cards/datasets/statistics.json``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mteb
from mteb.abstasks.task_metadata import TaskMetadata

from evaluators.files import write_text
from evaluators.plugin.dataset import SPLIT
from evaluators.plugin.mteb_internals import metadata_of
from evaluators.plugin.task import BeyondTask
from followir_tasks.mfollowir import MFollowIRTask
from hub_cards.cards.families import FAMILIES
from tcr_tasks.data import PUBLISHED_SIZES
from tcr_tasks.tasks import TCRTask

DATASETS = Path(__file__).parents[1] / "datasets"
FILE = DATASETS / "statistics.json"

# mteb's tasks on copies of IFIR's data, in which the instruction is joined to the query.
_IFIR_COPIES = {
    "IFIRFiQAInstFol": "IFIRFiQA",
    "IFIRScifactOpenInstFol": "IFIRScifact",
    "IFIRNFCorpusInstFol": "IFIRNFCorpus",
    "IFIRAilaInstFol": "IFIRAila",
    "IFIRFireInstFol": "IFIRFire",
    "IFIRPmInstFol": "IFIRPm",
    "IFIRCdsInstFol": "IFIRCds",
}
LOCAL = "computed by mteb from a local copy of the data, whose fingerprint is given for its revision"
_COPIES = "shipped with mteb for its own tasks on copies of the data, which hold the instructed queries only, with the "
_COPIES += "instruction joined to the query; not computed here"
_NO_RANGE = " Of the relevant documents only the mean is given where mteb's range counts other judged documents too."
_RELEVANT = "relevant_docs_per_query"
_SHIPPED = "shipped with mteb for its own tasks on the same data; not computed here"


class Statistics(NamedTuple):
    """Statistics of a task's data.

    Attributes:
        origin: where they come from, in words.
        data, revision: what they are about: a repository, or a sample's, and its revision.
        values: mteb's statistics of the split; fewer keys where only a paper or a repository gives some.
    """

    origin: str
    data: str
    revision: str
    values: dict[str, Any]


def compute(task: BeyondTask) -> Statistics:
    """Compute mteb's statistics of the data that a task reads; nothing is written into the installed mteb."""
    task.load_data()
    with tempfile.TemporaryDirectory() as folder:

        class Elsewhere(TaskMetadata):
            @property
            def descriptive_stat_path(self) -> Path:
                return Path(folder) / f"{self.name}.json"

        kept, task.metadata = task.metadata, Elsewhere.model_construct(**dict(task.metadata))
        try:
            computed: dict[str, Any] = task.calculate_descriptive_statistics(overwrite_results=True)
        finally:
            task.metadata = kept
    # As a file keeps them, so that what is computed compares with what was kept.
    values = json.loads(json.dumps(computed[SPLIT]))
    return Statistics("computed by mteb from the data", task.metadata.dataset["path"], task.metadata.revision, values)


@cache
def kept() -> dict[str, Statistics]:
    """The statistics in the project's file, by task name."""
    read: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: Statistics(**entry) for name, entry in read.items()}


def collect() -> dict[str, Statistics]:
    """The statistics of every task that has a card: computed for the samples, public facts for the collections."""
    found: dict[str, Statistics] = {}
    for task in (cls for family in FAMILIES for cls in family.tasks):
        name = task.metadata.name
        if task.embedded is not None:
            found[name] = compute(task())
        elif issubclass(task, TCRTask):
            found[name] = _counted(task)
        elif issubclass(task, MFollowIRTask):
            found[name] = _of_language(task)
        else:
            copy = _IFIR_COPIES.get(name)
            upstream = copy or next(iter(task.metadata.adapted_from or ()))
            found[name] = _of_mteb(upstream, _COPIES if copy else _SHIPPED)
    return found


def write(found: dict[str, Statistics]) -> None:
    """Write the project's file."""
    text = json.dumps({name: entry._asdict() for name, entry in found.items()}, indent=1, ensure_ascii=False)
    write_text(FILE, f"{text}\n")
    kept.cache_clear()


def table(rows: Iterable[tuple[str, Statistics]]) -> str:
    """A Markdown table of statistics, one row a task; what is not known is empty."""
    lines = [
        "| task | data | queries | documents | relevant per query | characters per query | characters per document |",
        "|---" * 7 + "|",
    ]
    origins: dict[str, list[str]] = {}
    legend = "Mean (smallest to largest)."
    for name, entry in rows:
        v = entry.values
        relevant = v.get("relevant_docs_statistics") or {}
        lengths = [v.get(f"{what}_text_statistics") or {} for what in ("queries", "documents")]
        cells = [
            f"`{entry.data}` at `{entry.revision[:7]}`",
            _whole(v.get("num_queries")),
            _whole(v.get("num_documents")),
            _relevant(relevant, v.get("num_queries")),
            *(_spread(length, "text_length", 0) for length in lengths),
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
        if cells[3] and "(" not in cells[3]:
            legend = f"Mean (smallest to largest).{_NO_RANGE}"
        origins.setdefault(entry.origin, []).append(name)
    notes = [f"{', '.join(f'`{n}`' for n in names)}: {origin}" for origin, names in origins.items()]
    told = origins.popitem()[0] if len(origins) == 1 else "; ".join(notes)
    body = "\n".join(lines)
    return f"{body}\n\n{legend} Figures {told}."


def _whole(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _spread(values: dict[str, Any], what: str, digits: int) -> str:
    mean = values.get(f"average_{what}")
    if mean is None:
        return ""
    low, high = values[f"min_{what}"], values[f"max_{what}"]
    shown = f"{mean:,.{digits}f}"
    return f"{shown} ({low:,} to {high:,})" if low <= mean <= high else shown


def _relevant(values: dict[str, Any], n_queries: int | None) -> str:
    """Relevant documents per query, with the number of queries that the mean is about where that is not all of them."""
    shown = _spread(values, _RELEVANT, 2)
    total = values.get("num_relevant_docs")
    counted = round(total / values[f"average_{_RELEVANT}"]) if total else n_queries
    return shown if counted == n_queries else f"{shown} over {counted:,} queries"


def _of_mteb(upstream: str, origin: str) -> Statistics:
    """What mteb ships about its own task on the same data."""
    metadata = metadata_of(upstream)
    shipped: dict[str, Any] | None = metadata.descriptive_stats
    if shipped is None:
        raise ValueError(f"mteb {mteb.__version__} ships no statistics of {upstream}")
    return Statistics(origin, metadata.dataset["path"], metadata.dataset["revision"], shipped[SPLIT])


def _of_language(task: type[MFollowIRTask]) -> Statistics:
    """What mteb ships about one language of its own task; it leaves out the two sizes, which follow from the rest."""
    (upstream,) = task.metadata.adapted_from or ()
    whole = _of_mteb(upstream, _SHIPPED)
    values = whole.values["hf_subset_descriptive_stats"][task.upstream_subset]
    candidates = values["top_ranked_statistics"]
    n_queries = round(candidates["num_top_ranked"] / candidates["average_top_ranked_per_query"])
    sizes = {"num_queries": n_queries, "num_documents": values["num_samples"] - n_queries}
    return whole._replace(values={**values, **sizes})


def _counted(task: type[TCRTask]) -> Statistics:
    by_type, n_tables = PUBLISHED_SIZES[task.setting.part]
    n = sum(by_type.values())
    one = {f"{of}_relevant_docs_per_query": 1 for of in ("min", "average", "max")}
    return Statistics(
        "counted over the files of the authors' repository; lengths were not computed here",
        task.metadata.dataset["path"],
        task.metadata.revision,
        {"num_queries": n, "num_documents": n_tables, "relevant_docs_statistics": one},
    )
