"""Draws figures: as HTML with plotly, as PNG with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from evaluators.figures import Figure, Marks

# Told apart in print and by colour-blind readers (Okabe and Ito).
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
FAINT, DARK = "#999999", "#000000"
_BAND = 0.18
_LEGEND_WIDTH = 2  # inches that an entry of a legend may take
_TOP = 1.05  # of an axis for shares, so that marks at 1 are seen whole


def draw(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write ``NAME.html`` and ``NAME.png`` for every figure; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        *(_html(figure, folder / f"{figure.name}.html") for figure in figures),
        *(_png(figure, folder / f"{figure.name}.png") for figure in figures),
    ]


def _colours(figure: Figure) -> dict[str, str]:
    """Name of a series -> its colour, the same in all panels."""
    colours, out = cycle(COLOURS), dict[str, str]()
    for one in (one for panel in figure.panels for one in panel.marks):
        if one.name not in out:
            out[one.name] = DARK if one.kind == "levels" else FAINT if one.faint else next(colours)
    return out


def _category_places(marks: Sequence[Marks]) -> dict[str, int]:
    names = dict.fromkeys(x for one in marks if one.kind in ("bars", "line", "levels") for x in one.x)
    return {name: at for at, name in enumerate(names)}


def _bins(values: Sequence[float]) -> tuple[float, float, float]:
    """Start, end and width of the bins of a histogram, one of which begins at 0."""
    edges = np.histogram_bin_edges(values, "auto")
    size = float(edges[1] - edges[0])
    first, last = math.floor(min(values) / size), math.ceil(max(values) / size)
    return first * size, max(last, first + 1) * size, size


# ---- HTML ------------------------------------------------------------------------------------------------------


def _html(figure: Figure, path: Path) -> Path:
    from plotly.subplots import make_subplots

    titles = [panel.title for panel in figure.panels]
    drawn = make_subplots(rows=1, cols=len(figure.panels), subplot_titles=titles)
    colours, seen = _colours(figure), set[str]()
    for column, panel in enumerate(figure.panels, 1):
        for one in panel.marks:
            for trace in _traces(one, colours[one.name]):
                trace.update(legendgroup=one.name, showlegend=bool(one.name) and one.name not in seen)
                seen.add(one.name)
                drawn.add_trace(trace, row=1, col=column)
        kind = "category" if _category_places(panel.marks) else "linear"
        drawn.update_xaxes(title=panel.x_title.replace("\n", "<br>"), type=kind, row=1, col=column)
        drawn.update_yaxes(title=panel.y_title, range=[0, _TOP] if panel.share else None, row=1, col=column)
        if panel.border is not None:
            drawn.add_vline(panel.border, line_dash="dash", row=1, col=column)
    heading = f"{figure.title}<br><sup>{figure.subtitle}</sup>"
    drawn.update_layout(title=heading, barmode="group", template="plotly_white", margin_t=120)
    # plotly's script in a file beside the pages, which so need no network.
    drawn.write_html(path, include_plotlyjs="directory")
    return path


def _traces(one: Marks, colour: str) -> list[Any]:
    import plotly.graph_objects as go

    away = {"type": "data", "array": _above(one), "arrayminus": _below(one)} if one.low else None
    if one.kind == "bars":
        return [go.Bar(x=one.x, y=one.y, name=one.name, marker_color=colour, error_y=away)]
    if one.kind == "histogram":
        start, end, size = _bins(one.x)
        return [
            go.Histogram(x=one.x, name=one.name, marker_color=colour, xbins={"start": start, "end": end, "size": size})
        ]
    if one.kind == "levels":
        mark = {"symbol": "line-ew", "size": 120, "line": {"width": 2, "color": colour}}
        return [go.Scatter(x=one.x, y=one.y, name=one.name, mode="markers", marker=mark)]
    if one.kind == "line":
        return [go.Scatter(x=one.x, y=one.y, name=one.name, mode="lines+markers", marker_color=colour, error_y=away)]
    # Tags in words on hovering: beside near points they would overlap.
    texts = [" ".join(parts) for parts in zip(one.tags, one.texts, strict=True)] if one.tags else one.texts
    return [go.Scatter(x=one.x, y=one.y, text=texts, name=one.name, mode="markers", marker_color=colour)]


def _above(one: Marks) -> list[float]:
    return [high - y for y, high in zip(one.y, one.high, strict=True)]


def _below(one: Marks) -> list[float]:
    return [y - low for y, low in zip(one.y, one.low, strict=True)]


# ---- PNG -------------------------------------------------------------------------------------------------------


def _png(figure: Figure, path: Path) -> Path:
    # Not pyplot: it keeps figures, and chooses a window system, for the whole process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    width = max(4.2 * len(figure.panels), 8.5)
    sheet = Sheet(figsize=(width, 4.8), layout="constrained")
    FigureCanvasAgg(sheet)
    axes = sheet.subplots(1, len(figure.panels), squeeze=False)[0]
    colours = _colours(figure)
    for axis, panel in zip(axes, figure.panels, strict=True):
        axis.set(title=panel.title, xlabel=panel.x_title, ylabel=panel.y_title)
        bars = [one for one in panel.marks if one.kind == "bars"]
        places = _category_places(panel.marks)
        if places:
            axis.set_xticks(range(len(places)), list(places))
        for one in panel.marks:
            _mark(axis, one, colours[one.name], [places.get(x, x) for x in one.x], bars)
        if panel.share:
            axis.set_ylim(0, _TOP)
        if panel.border is not None:
            axis.axvline(panel.border, color=DARK, linestyle="--", linewidth=1)
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if handles:
        columns = min(len(handles), int(width // _LEGEND_WIDTH))
        sheet.legend(handles.values(), handles, loc="outside lower center", ncols=columns, fontsize=8, markerscale=0.7)
    sheet.suptitle(f"{figure.title}\n", fontsize=12)
    sheet.text(0.5, 0.935, figure.subtitle, ha="center", va="center", fontsize=8, color="#444444")
    sheet.savefig(path, dpi=120)
    return path


def _mark(axis: Any, one: Marks, colour: str, x: Sequence[Any], bars: Sequence[Marks]) -> None:
    """Draw one series; ``x``: numbers, those of categories their places."""
    name = one.name or None
    if one.kind == "bars":
        width = 0.8 / len(bars)
        x = [place + (bars.index(one) - (len(bars) - 1) / 2) * width for place in x]
        axis.bar(x, one.y, width, color=colour, label=name)
        if one.low:
            axis.errorbar(x, one.y, [_below(one), _above(one)], fmt="none", ecolor="#444444", capsize=3, linewidth=1)
    elif one.kind == "levels":
        axis.hlines(one.y, [p - 0.45 for p in x], [p + 0.45 for p in x], color=colour, linestyle="--", label=name)
    elif one.kind == "histogram":
        start, end, size = _bins(x)
        axis.hist(x, bins=np.arange(start, end + size / 2, size), color=colour, edgecolor="white", label=name)
        axis.yaxis.get_major_locator().set_params(integer=True)
    elif one.kind == "line":
        axis.plot(
            x, one.y, marker="" if one.faint else "o", linestyle="--" if one.faint else "-", color=colour, label=name
        )
        if one.low:
            axis.fill_between(x, one.low, one.high, color=colour, alpha=_BAND, linewidth=0)
    else:
        axis.scatter(x, one.y, s=240 if one.tags else 16, color=colour, label=name, alpha=0.8 if one.tags else 1)
        for place, y, tag in zip(x, one.y, one.tags, strict=False):
            axis.annotate(tag, (place, y), ha="center", va="center", fontsize=8)
        axis.margins(0.12)
