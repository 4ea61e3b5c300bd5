"""The report of a reranking: tables in the shape of the paper's Tables 29, 4, 42 and 43."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tabulate import tabulate

from evaluators.metrics.bootstrap import RESAMPLES, SEED, Bootstrapped
from tcr_tasks.reranking.lines import Line
from tcr_tasks.reranking.pool import ROWS, ROWS_CUT
from tcr_tasks.tasks import K_VALUES

__all__ = ["report"]

# A share of 0 of the resamples is less than one of them.
_SMALLEST_P = 1 / RESAMPLES


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
        _table29(lines),
        "Calls, tokens and seconds are means per question; tokens (prompt + completion) as the server counted them; "
        "seconds are wall-clock, by the mean time of the calls made, for AAR-Exec with the queries' own time; `-`: "
        "not measured.",
        "## In short (shape of Table 4)",
        _table4(lines),
        "## Against chance (shape of Table 42)",
        _table42(lines),
        "p (bootstrap): share of resamples with DS@1 at or below chance; p (exact): probability of so many targets if "
        "one of each found group were drawn at random. Both one-sided.",
        "## Against the first stage (shape of Table 43)",
        _table43(reranked),
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
        ds = [_told(line.scores["ds_at_1"]), _between(line.scores["ds_at_1_low"], line.scores["ds_at_1_high"])]
        rows.append([line.name, line.model, *scores, *ds, *_cost(line)])
    return _markdown(heads, rows)


def _cost(line: Line) -> list[str]:
    cost = line.cost
    if cost is None:
        return ["-"] * 3
    tokens = "-"
    if cost.prompt_tokens is not None and cost.completion_tokens is not None:
        tokens = f"{cost.prompt_tokens:.0f} + {cost.completion_tokens:.0f}"
    return [f"{cost.calls:.4g}", tokens, "-" if cost.seconds is None else f"{cost.seconds:.2g}"]


def _table4(lines: Sequence[Line]) -> str:
    columns: list[tuple[str, Callable[[Line], float | None]]] = [
        ("R@1", lambda line: line.at("recall", 1)),
        ("R@5", lambda line: line.at("recall", 5)),
        ("GR@1", lambda line: line.at("gr", 1)),
        ("DS@1", lambda line: float(line.scores["ds_at_1"])),
    ]
    rows = [[line.name, line.model, *(_told(of(line)) for _, of in columns)] for line in lines]
    return _markdown(["method", "model", *(name for name, _ in columns)], rows)


def _table42(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        s = line.scores
        interval = _between(s["ds_at_1_low"], s["ds_at_1_high"])
        ps = [_p(s["ds_at_1_p_bootstrap"]), _p(s["ds_at_1_p_null"])]
        kind = "reranker" if line.method else "first stage"
        rows.append([line.name, kind, _told(s["recall_at_1"]), _told(s["ds_at_1"]), interval, *ps])
    return _markdown(["method", "type", "R@1", "DS@1", "DS@1 (95 % CI)", "p (bootstrap)", "p (exact)"], rows)


def _table43(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        assert line.difference is not None
        recall, _, ds = line.difference
        rows.append([f"{line.name} - first stage", *_difference(recall), *_difference(ds), _p(ds.p_bootstrap())])
    return _markdown(["comparison", "ΔR@1", "95 % CI", "ΔDS@1", "95 % CI", "p (DS@1)"], rows)


def _difference(score: Bootstrapped) -> list[str]:
    return [f"{score.value:+z.3f}", _between(*score.interval())]


def _counts(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        counts = line.counts or {}
        for name, n in sorted(counts.items()):
            told = str(n)
            if name == ROWS_CUT:
                told = f"{n} of {counts[ROWS]} ({n / counts[ROWS]:.1%})"
            if name != ROWS:
                rows.append([line.name, name, told])
    return _markdown(["method", "what", "number"], rows) if rows else "Nothing."


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _between(low: float, high: float) -> str:
    return f"[{low:z.3f}, {high:z.3f}]"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= _SMALLEST_P else f"<{_SMALLEST_P:.3f}"


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    words = {"method", "model", "type", "comparison", "what", "tokens"}
    alignment = ["left" if head in words else "right" for head in heads]
    return str(tabulate(rows, headers=heads, tablefmt="github", disable_numparse=True, colalign=alignment))
