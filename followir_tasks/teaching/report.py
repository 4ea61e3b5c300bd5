"""What a training to follow instructions gave, in files: every model on every evaluation set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from evaluators.construction.counts import counted
from evaluators.files import write_text
from evaluators.training.doubts import Size, not_above, too_few, trained_on
from evaluators.training.running import GridRun
from evaluators.training.selection import Scores
from followir_tasks.teaching.config import Data, TeachingConfig
from followir_tasks.teaching.instances import Instances

__all__ = ["INSTANCES", "METRIC", "SCORES", "Row", "cut_texts", "doubts", "write_instances", "write_report"]

METRIC = "p-MRR"
SCORES = (METRIC, "followir_score", "followir_score_changed_qrels")
REPORT, TABLE, INSTANCES = "report.md", "scores.csv", "instances.json"
# Above this share of instances that are cut, the report and the log say so.
MOST_CUT = 0.05


@dataclass(frozen=True)
class Row:
    """A model and its scores.

    Attributes:
        model: how the report calls it.
        run: learning rate and seed; ``None`` for the base.
        folder: where it is; ``None`` for the base.
        scores: by evaluation set.
    """

    model: str
    run: GridRun | None
    folder: Path | None
    scores: Mapping[str, Scores]


def doubts(rows: Sequence[Row], sizes: Mapping[str, Size]) -> list[str]:
    """Sentences on models that are no better than the base, on small sets, and on those that were trained on.

    Args:
        rows: the base, then the chosen checkpoints.
        sizes: the topics that p-MRR is the mean of, by evaluation set.
    """
    base, *others = rows
    named = [f"The model {row.model} ({row.run.told})" if row.run else row.model for row in others]
    out = [
        not_above(name, METRIC, METRIC, row.scores, "the base", base.scores)
        for name, row in zip(named, others, strict=True)
    ]
    return [text for text in (*out, too_few(sizes, "topics"), trained_on(sizes, "topics")) if text]


def cut_texts(instances: Mapping[int, Instances]) -> str | None:
    """A sentence on instances that are cut, if they are more than a few.

    Args:
        instances: what is trained on, by seed.
    """
    shares = {seed: found.counts["n_cut_to_fit"] / max(len(found.rows), 1) for seed, found in instances.items()}
    worst = max(shares, key=lambda seed: shares[seed])
    if shares[worst] <= MOST_CUT:
        return None
    return (
        f"{instances[worst].counts['n_cut_to_fit']} of {len(instances[worst].rows)} training instances (seed {worst}) "
        "are longer than the model reads, and are cut: what makes a document relevant, and in a pair the end of the "
        "instruction, may be gone; raise max_length if the model allows it"
    )


def write_instances(out: Path, instances: Mapping[int, Instances]) -> None:
    """Write the counts of what is trained on, by seed."""
    write_text(out / INSTANCES, json.dumps({s: i.counts for s, i in instances.items()}, indent=1) + "\n")


def write_report(
    config: TeachingConfig,
    out: Path,
    rows: Sequence[Row],
    sizes: Mapping[str, Size],
    instances: Mapping[int, Instances],
    doubtful: Sequence[str],
) -> list[Path]:
    """Write report (Markdown) and table (CSV) of all scores; returns both paths.

    Args:
        config: the training, as it was given.
        out: the folder.
        rows, sizes: as for :func:`doubts`.
        instances: what was trained on, by seed.
        doubtful: sentences on what makes the numbers doubtful.
    """
    tidy = [
        {
            "model": row.model,
            "learning rate": None if row.run is None else row.run.rate,
            "seed": None if row.run is None else row.run.seed,
            "folder": "" if row.folder is None else row.folder.relative_to(out).as_posix(),
            "evaluation": name,
            "n": sizes[name].n,
            "n trained on": sizes[name].n_trained_on,
            **scores,
        }
        for row in rows
        for name, scores in row.scores.items()
    ]
    table = pd.DataFrame(tidy).astype({"seed": "Int64"})  # else a missing seed makes floats of all of them
    write_text(out / TABLE, table.to_csv(index=False))
    plain = table.drop(columns="folder").astype(object)
    formats = ("", "g", "", "", "", "", *[".4f"] * len(SCORES))
    shown = plain.where(plain.notna(), "—").to_markdown(index=False, floatfmt=formats)
    counts = "\n".join(f"- seed {seed}: {counted(found.counts, zeros=True)}" for seed, found in instances.items())
    places = ", ".join(_place(data) for data in config.train)
    scored_on = "; ".join(f"{evaluation.name}: {_place(evaluation)}" for evaluation in config.evaluations)
    minded = "\n**Mind:**\n\n" + "".join(f"- {text}.\n" for text in doubtful) if doubtful else ""
    text = (
        f"# {config.name}\n\n{config.base} as {config.kind}, on {places}:\n\n{counts}\n{minded}\n{shown}\n\n"
        f"Scored on {scored_on}. All models here, the base too, read {config.max_length} tokens at most; `mteb-beyond "
        "run` gives the base other scores where it reads more.\n\nn: topics that "
        "p-MRR is the mean of; n trained on: how many of them have a query, or an instruction of their own, that is "
        "in the training data. Scores on a set that checkpoints are chosen on are too high by that choice, and scores "
        "on topics that were trained on say nothing about others; a held-out number comes from another set.\n"
    )
    write_text(out / REPORT, text)
    return [out / REPORT, out / TABLE]


def _place(data: Data) -> str:
    """What a set is called: its task or directory, and the part of it."""
    place = data.task or str(data.data)
    return place if data.part == "all" else f"{place} (part {data.part})"
