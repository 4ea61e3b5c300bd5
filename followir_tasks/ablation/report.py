"""What the runs with different forms of the instruction show: a table, rows for CSV, and Figure 3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.figures import Figure, Marks, Panel
from evaluators.markdown import markdown_table
from evaluators.metrics.bootstrap import RESAMPLES, SEED
from followir_tasks.ablation.comparison import Estimate, mean_over_topics, paired_difference
from followir_tasks.ablation.running import FormRun
from followir_tasks.forms import N_EQUAL, NONE
from followir_tasks.report.published import DIFFERENCE, ORIGINAL, Column, published_notes, published_table

_ABOUT = (
    "All values times 100. Brackets: 95 % interval, percentiles of "
    f"{RESAMPLES:,} resamples of topics (seed {SEED}); of a difference, both runs on the same resamples. Difference: "
    "the score minus that of the query alone. p-MRR is not defined without an instruction: both queries are then equal."
)
_X_TITLE, _Y_TITLE = "form of the instruction", "difference in score x 100"


@dataclass(frozen=True)
class Compared:
    """A run beside the same model's run without instruction.

    Attributes:
        run: the run.
        score: mean over topics.
        difference: the score minus that without instruction; ``None`` where that is the run itself, or is not there.
        p_mrr: mean over the topics that have one.
    """

    run: FormRun
    score: Estimate
    difference: Estimate | None
    p_mrr: Estimate | None


def compared(runs: Iterable[FormRun]) -> list[Compared]:
    """Each run beside that of the same model without instruction, in the given order.

    Raises:
        ValueError: if a run has no topic, or two runs of a model have different ones.
    """
    listed = list(runs)
    without = {(run.model, run.revision): run.score for run in listed if run.form == NONE}
    out = []
    for run in listed:
        base = None if run.form == NONE else without.get((run.model, run.revision))
        score = mean_over_topics(run.score)
        if score is None:
            raise ValueError(f"{run.model}, {run.task}, {run.form}: no topic was scored")
        difference = None if base is None else paired_difference(run.score, base)
        out.append(Compared(run, score, difference, mean_over_topics(run.p_mrr)))
    return out


def csv_rows(found: Sequence[Compared]) -> list[dict[str, Any]]:
    """A row for each run, values on the scale of result files; a missing one is ``None``."""
    return [
        {
            "model": one.run.model,
            "revision": one.run.revision,
            "task": one.run.task,
            "data": one.run.place,
            "data_revision": one.run.data_revision,
            "form": one.run.form,
            "n_topics": one.score.n,
            **_cells("followir_score", one.score),
            **_cells("difference_to_none", one.difference),
            **_cells("p-MRR", one.p_mrr),
            "n_topics_with_change": None if one.p_mrr is None else one.p_mrr.n,
            N_EQUAL: one.run.n_equal,
        }
        for one in found
    ]


def markdown(found: Sequence[Compared], notes: Sequence[str] = (), subset: str | None = None) -> str:
    """The report.

    Args:
        found: all runs, on one task.
        notes: what to know of them.
        subset: the paper's name of the collection, whose values of Table 4 are to stand beside.
    """
    run = found[0].run
    title = "# FollowIR: forms of the instruction" if subset is None else "# FollowIR: a whole collection (Table 4)"
    heads = ["model", "form", "topics", "score", "95 % interval", "difference", "95 % interval", "p-MRR"]
    heads += ["95 % interval", "same text"]
    rows = [
        [
            one.run.model,
            one.run.form,
            str(one.score.n),
            *_printed(one.score, signed=False),
            *_printed(one.difference),
            *_printed(one.p_mrr),
            "-" if one.run.n_equal is None else str(one.run.n_equal),
        ]
        for one in found
    ]
    parts = [
        title,
        f"{run.on}, data {run.data_revision}. {_ABOUT} Same text: topics whose original and changed instruction are "
        "the same in this form, so that their p-MRR is 0.",
        markdown_table(heads, rows, ("model", "form")),
    ]
    if subset is not None:
        parts += _published(subset)
    return "\n\n".join([*parts, *notes]) + "\n"


def figure_3(found: Sequence[Compared]) -> Figure | None:
    """Difference to the query alone by form, a bar for each model; ``None`` if there is no difference."""
    by_model: dict[str, dict[str, Estimate]] = {}
    for one in found:
        if one.difference is not None:
            by_model.setdefault(one.run.model, {})[one.run.form] = one.difference
    if not by_model:
        return None
    run = found[0].run
    return Figure(
        "figure-3",
        "Score with an instruction minus without (Figure 3)",
        f"{run.on}, data {run.data_revision[:8]}, n = {found[0].score.n} topics; whiskers: 95 % intervals",
        [
            Panel(
                "",
                [_bars(name, forms) for name, forms in by_model.items()],
                _X_TITLE,
                _Y_TITLE,
            )
        ],
    )


def _bars(name: str, forms: Mapping[str, Estimate]) -> Marks:
    heights = [100 * found.value for found in forms.values()]
    intervals = [found.interval for found in forms.values()]
    known = [interval for interval in intervals if interval is not None]
    if len(known) < len(intervals):
        return Marks("bars", name, list(forms), heights)
    low, high = [100 * interval.low for interval in known], [100 * interval.high for interval in known]
    return Marks("bars", name, list(forms), heights, low, high)


def _published(subset: str) -> list[str]:
    table = published_table("4")
    columns = (Column(subset, ORIGINAL), Column(subset, DIFFERENCE))
    rows = [
        [name, f"{table.value(name, columns[0]):.1f}", f"{table.value(name, columns[1]):+.1f}"] for name in table.rows
    ]
    heads = ["published model", "without", "difference with the full instruction"]
    notes = [f"- {note}" for note in published_notes(table.rows)]
    return [f"{table.source}, {subset}:", markdown_table(heads, rows, heads[:1]), "\n".join(notes)]


def _cells(name: str, found: Estimate | None) -> dict[str, float | None]:
    interval = None if found is None else found.interval
    return {
        name: None if found is None else found.value,
        f"{name}_low": None if interval is None else interval.low,
        f"{name}_high": None if interval is None else interval.high,
    }


def _printed(found: Estimate | None, *, signed: bool = True) -> tuple[str, str]:
    """A value times 100 and its interval; '-' for what is missing."""
    if found is None:
        return "-", "-"
    value = f"{100 * found.value:+z.1f}" if signed else f"{100 * found.value:z.1f}"
    if found.interval is None:
        return value, "-"
    return value, f"[{100 * found.interval.low:z.1f}, {100 * found.interval.high:z.1f}]"
