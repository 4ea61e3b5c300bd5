"""The report of a reranking: tables in the shape of the paper's Tables 29, 4, 42 and 43."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluators.markdown import difference, interval, markdown_table, p_value
from evaluators.metrics.bootstrap import RESAMPLES, SEED
from tcr_tasks.asking import MARK
from tcr_tasks.reranking import published
from tcr_tasks.reranking.lines import KEPT_ORDER, Line
from tcr_tasks.reranking.pool import ROWS, ROWS_CUT
from tcr_tasks.tasks import K_VALUES

__all__ = ["in_short", "report"]

_WORDS = frozenset({"method", "model", "first stage", "type", "comparison", "what", "tokens"})


def report(lines: Sequence[Line], task: str, revision: str, notes: Sequence[str], figures: Sequence[str]) -> str:
    """The report in Markdown.

    Args:
        lines: the first stage alone, then its rerankings.
        task, revision: what they were scored on.
        notes: what a reader should know about the data.
        figures: paths of pictures, as seen from the report.
    """
    stage, *reranked = lines
    n = stage.scores["n_queries"]
    parts = [
        f"# Answerability-aware reranking of {stage.stage}",
        f"{task}, data {revision}, {n} questions. All scores on the scale 0-1; these are not the paper's values. "
        "R@k: the table that answers is among the k best; GR@k: share of its group there; DS@1 = R@1 / GR@1: the right "
        f"one within the group (chance: {stage.scores['chance_ds_at_1']:.3f}). Intervals: 95 %, percentile bootstrap "
        f"over questions, {RESAMPLES:,} resamples, seed {SEED}.",
        *(f"Note: {note}." for note in notes),
        "## By budget (shape of Table 29)",
        "Tk: the first stage's k best tables are reranked; T∞: all. `-`: beyond the budget, where the first stage's "
        "order is left.",
        _marked(_table29(lines), lines),
        "Calls, tokens and seconds are means per question; tokens (prompt + completion) as the server counted them; "
        "seconds are wall-clock, by the mean time of the calls made, for AAR-Exec with the queries' own time; `-`: "
        "not measured.",
        "### Published: Table 29",
        _published29(),
        published.ABOUT,
        "## In short (shape of Table 4)",
        in_short(lines),
        "### Published: Table 4",
        _published4(),
        "## Against chance (shape of Table 42)",
        _marked(_table42(lines), lines),
        "p (bootstrap): share of resamples with DS@1 at or below chance; p (exact): probability of so many targets if "
        "one of each found group were drawn at random. Both one-sided.",
        "## Against the first stage (shape of Table 43)",
        _marked(_table43(reranked), reranked),
        "Paired bootstrap on the same questions; p: share of resamples in which the reranking is no better.",
        "## Counted beside the scores",
        _counts(reranked),
        *(f"![{path}]({path})" for path in figures if path.endswith(".png")),
    ]
    return "\n\n".join(parts) + "\n"


def _table29(lines: Sequence[Line]) -> str:
    heads = ["method", "model", *(f"R@{k}" for k in K_VALUES), *(f"GR@{k}" for k in K_VALUES), "DS@1", "95 % CI"]
    heads += ["calls", "tokens", "seconds"]
    rows = []
    for line in lines:
        scores = [_told(line.at(metric, k)) for metric in ("recall", "gr") for k in K_VALUES]
        ds = [_told(line.scores["ds_at_1"]), interval(line.scores["ds_at_1_low"], line.scores["ds_at_1_high"])]
        rows.append([line.name, line.model, *scores, *ds, *_cost(line)])
    return markdown_table(heads, rows, _WORDS)


def _cost(line: Line) -> list[str]:
    cost = line.cost
    if cost is None:
        return ["-"] * 3
    tokens = "-"
    if cost.prompt_tokens is not None and cost.completion_tokens is not None:
        tokens = f"{cost.prompt_tokens:.0f} + {cost.completion_tokens:.0f}"
    return [f"{cost.calls:.4g}", tokens, "-" if cost.seconds is None else f"{cost.seconds:.2g}"]


def _marked(table: str, lines: Sequence[Line]) -> str:
    """A table with what its marks mean directly under it."""
    marked = [line.told_unusable for line in lines if line.is_doubtful]
    if not marked:
        return table
    return f"{table}\n\n{MARK} {'; '.join(marked)}; {KEPT_ORDER}."


def in_short(lines: Sequence[Line]) -> str:
    """The lines in the shape of Table 4."""
    columns: list[tuple[str, Callable[[Line], float | None]]] = [
        ("R@1", lambda line: line.at("recall", 1)),
        ("R@5", lambda line: line.at("recall", 5)),
        ("GR@1", lambda line: line.at("gr", 1)),
        ("DS@1", lambda line: float(line.scores["ds_at_1"])),
    ]
    rows = [[line.name, line.model, *(_told(of(line)) for _, of in columns)] for line in lines]
    return _marked(markdown_table(["method", "model", *(name for name, _ in columns)], rows, _WORDS), lines)


def _published29() -> str:
    heads = ["first stage", "method", *(f"R@{k}" for k in K_VALUES), *(f"GR@{k}" for k in K_VALUES), "DS@1"]
    rows = [
        [f"*{row.stage}*", f"*{row.name}*", *map(_told, row.recall), *map(_told, row.group_recall), _told(row.ds_at_1)]
        for row in published.ROWS
    ]
    return markdown_table(heads, rows, _WORDS)


def _published4() -> str:
    rows = [
        [f"*{row.name}*", *map(_told, (row.recall[0], row.recall[4], row.group_recall[0], row.ds_at_1))]
        for row in published.ROWS
        if (row.stage, row.budget) == published.TABLE_4
    ]
    return markdown_table(["method", "R@1", "R@5", "GR@1", "DS@1"], rows, _WORDS)


def _table42(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        s = line.scores
        between = interval(s["ds_at_1_low"], s["ds_at_1_high"])
        ps = [p_value(s["ds_at_1_p_bootstrap"]), p_value(s["ds_at_1_p_null"])]
        kind = "reranker" if line.method else "first stage"
        rows.append([line.name, kind, _told(s["recall_at_1"]), _told(s["ds_at_1"]), between, *ps])
    return markdown_table(
        ["method", "type", "R@1", "DS@1", "DS@1 (95 % CI)", "p (bootstrap)", "p (exact)"], rows, _WORDS
    )


def _table43(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        assert line.difference is not None
        recall, _, ds = line.difference
        rows.append([f"{line.name} - first stage", *difference(recall), *difference(ds), p_value(ds.p_bootstrap())])
    return markdown_table(["comparison", "ΔR@1", "95 % CI", "ΔDS@1", "95 % CI", "p (DS@1)"], rows, _WORDS)


def _counts(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        counts = line.counts or {}
        for name, n in sorted(counts.items()):
            told = str(n)
            if name == ROWS_CUT:
                told = f"{n} of {counts[ROWS]} ({n / counts[ROWS]:.1%})"
            rows.append([line.name, name, told])
    return markdown_table(["method", "what", "number"], rows, _WORDS) if rows else "Nothing."


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
