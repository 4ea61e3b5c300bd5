"""The report's sections as Markdown: the shape of Table 2, Figure 4's values, and how sure each score is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from evaluators.markdown import markdown_table
from evaluators.plugin.results import BOUNDS
from evaluators.plugin.stored import StoredScores
from followir_tasks.report.published import (
    AVERAGE,
    Column,
    Which,
    published_notes,
    published_table,
    shown_models,
)

# The paper's names and order of the subsets, our tasks, and what the score is there.
SUBSETS = {
    "Robust04": ("FollowIRRobust04", "MAP"),
    "News21": ("FollowIRNews21", "nDCG@5"),
    "Core17": ("FollowIRCore17", "MAP"),
}
SCORE, CHANGED_SCORE, P_MRR, ROBUSTNESS = (
    "followir_score",
    "followir_score_changed_qrels",
    "p-MRR",
    "robustness_at_10",
)
INSTRUCTIR = "InstructIRRobustness"
# What we measure with the shape of Table 2.
TABLE_2_TASKS = tuple(task for task, _ in SUBSETS.values())
TIMES_100 = "Scores and p-MRR times 100, as in the paper."
_PUBLISHED = "published: "
_UNSETTLED = (
    "Whether the paper's scores are against the original judgements (what its author says) or the changed ones (what a "
    "reader found its result files to contain) is not settled in public: the first table is against the original ones."
)


def report(models: Sequence[StoredScores], notes: Sequence[str], which: Which) -> str:
    """The whole report.

    Args:
        models: what was found in a folder.
        notes: on the results.
        which: whose published rows stand beside.
    """
    ordered = sorted(models, key=_by_average)
    in_paper = [m for m in ordered if m.scores.keys() & set(TABLE_2_TASKS)]
    parts = [
        "# FollowIR report",
        f"Lines that begin with '{_PUBLISHED.strip()}' are numbers printed in the paper (FollowIR, "
        "https://arxiv.org/abs/2403.15246); all others are from the result files. '-' is a missing value, never 0. "
        f"{TIMES_100} Positive p-MRR: documents that the changed instruction excludes moved down.",
    ]
    if in_paper or which == "all":
        parts += _table_2(in_paper, which)
    else:
        parts.append(
            f"There is no Table 2: no model here has a result on {', '.join(TABLE_2_TASKS[:-1])} or "
            f"{TABLE_2_TASKS[-1]}. Results on other data, such as the samples, are not comparable with the paper's."
        )
    instructir = [m for m in models if INSTRUCTIR in m.scores]
    if instructir or which == "all":
        parts += _figure_4(instructir, which)
    if detail := _detail(ordered):
        parts += ["## How sure each score is", detail]
    if notes:
        parts += ["## Notes on the results", _bullets(notes)]
    return "\n\n".join(parts) + "\n"


# ---- the paper's tables ----------------------------------------------------------------------------------------


def _table_2(models: Sequence[StoredScores], which: Which) -> list[str]:
    table = published_table("2")
    chosen = shown_models(table, _names(models), which)
    heads = ["", *(head for name, (_, score) in SUBSETS.items() for head in (f"{name} {score}", "p-MRR"))]
    heads += ["Average score", "p-MRR"]
    published = [
        [_PUBLISHED + name, *(printed(v, c.score) for v, c in zip(table.rows[name], table.columns, strict=True))]
        for name in chosen
    ]
    ours = [[m.label, *table_2_cells(m, SCORE)] for m in models]
    against_changed = [[m.label, *table_2_cells(m, CHANGED_SCORE)] for m in models]
    out = ["## Table 2: score and p-MRR by subset", markdown_table(heads, [*ours, *published], ("",))]
    if models:
        out += ["Scores against the changed judgements:", markdown_table(heads, against_changed, ("",))]
    notes = [_UNSETTLED, *_lacking(models), *published_notes(chosen)]
    return [*out, _bullets(notes)]


def table_2_cells(model: StoredScores, score: str) -> list[str]:
    """A model's eight cells: score and p-MRR of each subset, and their plain means, which need all three."""
    columns: dict[str, list[float | None]] = {
        key: [value(model, task, key) for task in TABLE_2_TASKS] for key in (score, P_MRR)
    }
    cells = [
        printed(found, P_MRR if key == P_MRR else SCORE)
        for pair in zip(*columns.values(), strict=True)
        for found, key in zip(pair, columns, strict=True)
    ]
    return [*cells, *(printed(mean(values), P_MRR if key == P_MRR else SCORE) for key, values in columns.items())]


def _figure_4(models: Sequence[StoredScores], which: Which) -> list[str]:
    table = published_table("instructir")
    chosen = shown_models(table, _names(models), which)
    rows = [[m.label, printed(value(m, INSTRUCTIR, ROBUSTNESS), SCORE)] for m in models]
    column = Column(INSTRUCTIR, ROBUSTNESS)
    rows += [[_PUBLISHED + name, printed(table.value(name, column), SCORE)] for name in chosen]
    return ["## Figure 4: InstructIR", markdown_table(["", "Robustness@10"], rows, ("",))]


# ---- what the paper has no table for ---------------------------------------------------------------------------


def _detail(models: Sequence[StoredScores]) -> str:
    """A line for each result of a FollowIR task: scores with intervals, chance, and counts."""
    heads = ["model", "task", "topics", "score", "95 % interval", "by chance", "p-MRR", "95 % interval", "unranked"]
    heads.append("queries cut, %")  # whose instructions a model does not read to their end
    rows = []
    for model in models:
        for task, scores in sorted(model.scores.items()):
            if task == INSTRUCTIR:
                continue
            unranked = scores.get("n_missing_candidates")
            rows.append(
                [
                    model.label,
                    task,
                    str(scores.get("n_topics", "-")),
                    printed(value(model, task, SCORE), SCORE),
                    _interval(model, task, SCORE),
                    printed(value(model, task, f"chance_{SCORE}"), SCORE),
                    printed(value(model, task, P_MRR), P_MRR),
                    _interval(model, task, P_MRR),
                    "-" if unranked is None else str(unranked),
                    printed(value(model, task, "truncated_queries_share"), SCORE),
                ]
            )
    return markdown_table(heads, rows, ("model", "task")) if rows else ""


# ---- parts -----------------------------------------------------------------------------------------------------


def value(model: StoredScores, task: str, key: str) -> float | None:
    """A score times 100, ``None`` if the model has none or it is not a finite number."""
    found = model.scores.get(task, {}).get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        return None
    return 100 * found


def mean(values: Iterable[float | None]) -> float | None:
    """The mean, ``None`` if a value is missing."""
    listed = list(values)
    known = [v for v in listed if v is not None]
    return fmean(known) if known and len(known) == len(listed) else None


def printed(number: float | None, score: str) -> str:
    """A value as Table 2 prints it: one decimal, p-MRR and differences with a sign."""
    if number is None:
        return "-"
    return f"{number:.1f}" if score == SCORE else f"{number:+.1f}"


def _interval(model: StoredScores, task: str, key: str) -> str:
    low, high = (value(model, task, key + end) for end in BOUNDS)
    return "-" if low is None or high is None else f"[{low:z.1f}, {high:z.1f}]"


def _names(models: Iterable[StoredScores]) -> set[str]:
    return {name for model in models for name in model.model_names}


def _by_average(model: StoredScores) -> tuple[float, str]:
    average = mean(value(model, task, P_MRR) for task in TABLE_2_TASKS)
    return (math.inf if average is None else -average, model.label)


def _lacking(models: Iterable[StoredScores]) -> list[str]:
    out = []
    for model in models:
        absent = [name for name, (task, _) in SUBSETS.items() if task not in model.scores]
        if absent:
            out.append(f"{model.label}: no {AVERAGE.lower()}, since there is no result of {', '.join(absent)}.")
    return out


def _bullets(notes: Iterable[str]) -> str:
    return "\n".join(f"- {note}" for note in notes)
