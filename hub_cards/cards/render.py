"""Renders a card: YAML header for the hub, hand-written text, statistics, how to evaluate, citation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from huggingface_hub import DatasetCardData
from mteb.abstasks import AbsTask

from evaluators.plugin.dataset import SPLIT
from hub_cards.cards import columns, scores, statistics
from hub_cards.cards.families import Family, family_of
from hub_cards.cards.statistics import Statistics

_TEMPLATE = Path(__file__).with_name("template.md")
_CATEGORIES = {
    "Retrieval": "text-retrieval",
    "InstructionRetrieval": "text-retrieval",
    "InstructionReranking": "text-ranking",
}
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def dataset_card(task: AbsTask) -> str:
    """The dataset card of one of our tasks as Markdown with YAML header: that of its family.

    Raises:
        ValueError: if the task is not one of ours.
    """
    return card(family_of(task))


def card(
    family: Family,
    files: Mapping[str, str] | None = None,
    found: Mapping[str, Statistics] | None = None,
    repository: str | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The card of a family.

    Args:
        family: what it is about.
        files: the files by config that the dataset has, by default all that the family may have.
        found: statistics by task, by default those of the project's file; tasks that are not among them are left out.
        repository: where the dataset is going to be published, for the line that says how to use it from there.
        notes: what was noted when the data were loaded.
    """
    files = family.files if files is None else files
    known = statistics.kept() if found is None else found
    rows = [(cls.metadata.name, known[cls.metadata.name]) for cls in family.tasks if cls.metadata.name in known]
    about, expected = family.texts()
    first = next(cls for cls in family.tasks if cls.metadata.name == rows[0][0])
    body = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=family.title,
        about=about.replace("$sample", family.sample.body.strip() if family.sample else ""),
        statistics="\n\n".join([statistics.table(rows), *(f"**Note.** {note}." for note in notes)]),
        columns=(family.columns or columns.table(files)).strip(),
        package=first.__module__.split(".")[0],
        example=first.metadata.name,
        tasks=_tasks(family, [name for name, _ in rows], repository),
        scores=_scores(family, expected),
        citation="\n\n".join(dict.fromkeys((cls.metadata.bibtex_citation or "").strip() for cls in family.tasks)),
    )
    data = card_data(family, files, rows)
    return f"---\n{data.to_yaml(line_break=chr(10))}\n---\n\n{body.strip()}\n"


def card_data(family: Family, files: Mapping[str, str], rows: list[tuple[str, Statistics]]) -> DatasetCardData:
    """The YAML header."""
    metadata = family.tasks[0].metadata
    largest = max(entry.values["num_documents"] for _, entry in rows)
    return DatasetCardData(
        language=list(family.languages),
        license=family.license,
        pretty_name=family.title,
        annotations_creators=[str(metadata.annotations_creators)],
        multilinguality="monolingual" if len(family.languages) == 1 else "multilingual",
        task_categories=sorted({_CATEGORIES[cls.metadata.type] for cls in family.tasks}),
        size_categories=[next((text for limit, text in _SIZES if largest < limit), "n>1M")],
        tags=list(dict.fromkeys(["mteb", "text", *family.tags])),
        configs=hub_configs(files),
        **family.extra,
    )


def hub_configs(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """The entry ``configs`` of a header: one config a file, all of split ``test``."""
    return [{"config_name": name, "data_files": [{"split": SPLIT, "path": path}]} for name, path in files.items()]


def _tasks(family: Family, names: list[str], repository: str | None) -> str:
    others = [cls.metadata.name for cls in family.others]
    text = f"Tasks on this dataset: {', '.join(f'`{name}`' for name in [*names, *others])}."
    if repository is not None:
        text += (
            f' To read the data from this repository, set `task.data_path = "hf://datasets/{repository}@REVISION"`, '
            "with a full revision of 40 hex digits, before the task is evaluated."
        )
    return text


def _scores(family: Family, expected: str) -> str:
    if family.measured:
        expected = f"{scores.measured(family)}\n\n{expected}"
    return expected.replace("$published", scores.published_ifir()) if "$published" in expected else expected
