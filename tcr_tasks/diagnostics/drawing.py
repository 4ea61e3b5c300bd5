"""Draws figures: as HTML with plotly, as PNG with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from tcr_tasks.diagnostics.figures import Figure, Marks

# Told apart in print and by colour-blind readers (Okabe and Ito).
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
FAINT = "#BBBBBB"


def draw(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write ``NAME.html`` and ``NAME.png`` for every figure; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        *(_html(figure, folder / f"{figure.name}.html") for figure in figures),
        *(_png(figure, folder / f"{figure.name}.png") for figure in figures),
    ]


def _coloured(marks: Sequence[Marks]) -> list[tuple[Marks, str]]:
    colours = cycle(COLOURS)
    return [(one, FAINT if one.faint else next(colours)) for one in marks]


def _html(figure: Figure, path: Path) -> Path:
    from plotly.subplots import make_subplots

    drawn = make_subplots(rows=1, cols=len(figure.panels), subplot_titles=[p.title for p in figure.panels])
    seen: set[str] = set()
    for column, panel in enumerate(figure.panels, 1):
        for one, colour in _coloured(panel.marks):
            trace = _trace(one, colour)
            trace.update(legendgroup=one.name, showlegend=bool(one.name) and one.name not in seen)
            seen.add(one.name)
            drawn.add_trace(trace, row=1, col=column)
        drawn.update_xaxes(title=panel.x_title, row=1, col=column)
        drawn.update_yaxes(title=panel.y_title, row=1, col=column)
    drawn.update_layout(title=figure.title, barmode="group", template="plotly_white")
    # plotly's script in a file beside the pages, which so need no network.
    drawn.write_html(path, include_plotlyjs="directory")
    return path


def _trace(one: Marks, colour: str) -> Any:
    import plotly.graph_objects as go

    if one.kind == "bars":
        return go.Bar(x=one.x, y=one.y, name=one.name, marker_color=colour)
    if one.kind == "histogram":
        return go.Histogram(x=one.x, name=one.name, marker_color=colour)
    mode = "lines+markers" if one.kind == "line" else "markers+text" if one.labelled else "markers"
    return go.Scatter(
        x=one.x,
        y=one.y,
        text=one.texts or None,
        name=one.name,
        mode=mode,
        marker_color=colour,
        textposition="top center",
    )


def _png(figure: Figure, path: Path) -> Path:
    # Not pyplot: it keeps figures, and chooses a window system, for the whole process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    sheet = Sheet(figsize=(5.5 * len(figure.panels), 4.8), layout="constrained")
    FigureCanvasAgg(sheet)
    axes = sheet.subplots(1, len(figure.panels), squeeze=False)[0]
    for axis, panel in zip(axes, figure.panels, strict=True):
        axis.set(title=panel.title, xlabel=panel.x_title, ylabel=panel.y_title)
        bars = [one for one in panel.marks if one.kind == "bars"]
        for one, colour in _coloured(panel.marks):
            if one.kind == "bars":
                _bars(axis, one, colour, bars)
            elif one.kind == "histogram":
                axis.hist(one.x, bins="auto", color=colour, label=one.name or None)
            elif one.kind == "line":
                axis.plot(one.x, one.y, marker="o", color=colour, label=one.name or None)
            else:
                axis.scatter(one.x, one.y, s=16, color=colour, label=one.name or None)
                for x, y, text in zip(one.x, one.y, one.texts if one.labelled else (), strict=False):
                    axis.annotate(text, (x, y), xytext=(3, 4), textcoords="offset points", fontsize=7)
        if any(one.name for one in panel.marks):
            axis.legend(fontsize=8)
    sheet.suptitle(figure.title)
    sheet.savefig(path, dpi=120)
    return path


def _bars(axis: Any, one: Marks, colour: str, bars: Sequence[Marks]) -> None:
    """Bars of one series, beside those of the others."""
    categories = list(dict.fromkeys(x for other in bars for x in other.x))
    width = 0.8 / len(bars)
    shift = (bars.index(one) - (len(bars) - 1) / 2) * width
    axis.bar([categories.index(x) + shift for x in one.x], one.y, width, color=colour, label=one.name or None)
    axis.set_xticks(range(len(categories)), categories)
