"""The paper's Figures 3 and 4 from result files, as HTML that works offline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from statistics import fmean

import plotly.graph_objects as go
from plotly.colors import qualitative
from plotly.subplots import make_subplots

from ifir_tasks.report.content import NDCG, PAPER_NDCG, OwnMeasure, Place, value
from ifir_tasks.report.published import LEVELLED, LEVELS, Column, published_tables
from ifir_tasks.report.results import ModelScores
from ifir_tasks.report.tables import BY_SUBSET, prompt_pairs

# By what the bars of a group stand for: entry -> bar -> height.
Bars = dict[str, dict[str, float]]

_PANELS = tuple((m, f"results: {m.key}, {m.text}") for m in (PAPER_NDCG, NDCG))


def figures(models: Sequence[ModelScores], published: bool = True) -> list[go.Figure]:
    """Figures 3 and 4, each with our results and, if ``published``, the paper's own values in a panel of their own."""
    gains = [(name, prompt_gains(models, measure)) for measure, name in _PANELS]
    levels = [(name, level_means(models, measure)) for measure, name in _PANELS]
    if published:
        gains.append(("published: computed from IFIR, Table 9", published_prompt_gains()))
        levels.append(("published: computed from IFIR, Table 10, mean of 15 models", published_level_means()))
    return [
        _grouped_bars(
            "Figure 3: nDCG@20 with a prompt before query and instruction, minus without",
            gains,
            "no result with a prompt has a counterpart without",
        ),
        _grouped_bars(
            "Figure 4: nDCG@20 by level of the instruction, mean over models",
            levels,
            "no result has all three levels of a subset",
        ),
    ]


def as_html(shown: Sequence[go.Figure]) -> list[str]:
    """HTML fragments; the first brings the whole of plotly along, so that a page with them needs no network."""
    return [
        figure.to_html(full_html=False, include_plotlyjs=number == 0, div_id=f"figure-{number + 3}")
        for number, figure in enumerate(shown)
    ]


def prompt_gains(models: Iterable[ModelScores], measure: OwnMeasure = PAPER_NDCG) -> Bars:
    """nDCG@20 with a prompt minus without, by entry with prompt and by subset or average; only where both exist."""
    out: Bars = {}
    for without, prompted in prompt_pairs(models):
        gains: dict[str, float] = {}
        for place in BY_SUBSET:
            before = None if without is None else value(without, measure, place)
            after = value(prompted, measure, place)
            if before is not None and after is not None:
                gains[place.subset] = after - before
        if gains:
            out[prompted.label] = gains
    return out


def published_prompt_gains() -> Bars:
    """The same from Table 9."""
    table = published_tables()[9]
    out: Bars = {}
    for model in dict.fromkeys(row.model for row in table.rows):
        before, after = (table.row(model, setting) for setting in ("without prompt", "with prompt"))
        out[model] = {column.subset: after[column] - before[column] for column in table.columns}
    return out


def level_means(models: Sequence[ModelScores], measure: OwnMeasure = PAPER_NDCG) -> Bars:
    """Mean nDCG@20 over the entries, by subset and level; an entry that lacks a level of a subset stays out of it."""
    out: Bars = {}
    for subset in LEVELLED:
        found = [[value(m, measure, Place(subset, level)) for level in LEVELS] for m in models]
        complete = [[v for v in values if v is not None] for values in found if None not in values]
        if complete:
            out[subset] = _by_level(map(fmean, zip(*complete, strict=True)))
    return out


def published_level_means() -> Bars:
    """The same over the fifteen models of Table 10."""
    rows = published_tables()[10].rows
    return {
        subset: _by_level(fmean(row.values[Column(subset, "ndcg", level)] for row in rows) for level in LEVELS)
        for subset in LEVELLED
    }


def _by_level(values: Iterable[float]) -> dict[str, float]:
    return {f"level {level}": found for level, found in zip(LEVELS, values, strict=True)}


def _grouped_bars(title: str, panels: Iterable[tuple[str, Bars]], nothing: str) -> go.Figure:
    """Panels below one another, each with a group of bars per entry; panels without any are left out."""
    shown = [(name, bars) for name, bars in panels if bars]
    if not shown:
        return go.Figure(layout={"title": f"{title}: {nothing}", "height": 200})
    figure = make_subplots(rows=len(shown), cols=1, subplot_titles=[name for name, _ in shown])
    series = list(dict.fromkeys(one for _, bars in shown for group in bars.values() for one in group))
    for row, (_, bars) in enumerate(shown, 1):
        for one, colour in zip(series, cycle(qualitative.Safe), strict=False):
            heights = [group.get(one) for group in bars.values()]
            look = {"marker_color": colour, "legendgroup": one, "showlegend": row == 1}
            figure.add_trace(go.Bar(name=one, x=list(bars), y=heights, **look), row=row, col=1)
    return figure.update_layout(title=title, barmode="group", height=150 + 300 * len(shown))
