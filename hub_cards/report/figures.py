"""Kinds of figures as plain values for plotly: points with intervals, and a line for each model."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hub_cards.report.collect import Entry
from hub_cards.report.published import Reference
from hub_cards.values import MISSING, Score, chance_of, value_of

# Okabe and Ito's, which colour-blind readers tell apart; without yellow and black, which a light or dark page swallows.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down", "hexagon")
GREY = "#8a8f98"
_HOVER = "%{text}<br>%{x:.3f}<extra></extra>"
_ROW = 26  # pixels that a model takes in a chart with a line for each
_LABEL = 26  # letters of a model's name beside an axis
# Settings, which follow a blank, may hold slashes, too.
_OWNER = re.compile(r"^[^ ]*/")

Figure = dict[str, Any]
Trace = dict[str, Any]
Looks = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Chart:
    """A figure with what a reader needs beside it.

    Attributes:
        about: caption, which says what is seen and on which scale.
        figure: plotly's ``data`` and ``layout``; colours that depend on light or dark are the page's.
        legend: (name, colour, plotly's symbol) of each series, in order.
        with_published: how many points of papers are in it.
        tall: whether it may stand beside two others.
    """

    title: str
    about: str
    figure: Figure
    legend: tuple[tuple[str, str, str], ...]
    with_published: int = 0
    tall: bool = False


def looks_of(models: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and symbol of each model, the same in all charts; 54 models all differ in one of the two."""
    n, m = len(COLOURS), len(SYMBOLS)
    return {model: (COLOURS[i % n], SYMBOLS[(i + i // n) % m]) for i, model in enumerate(models)}


# ---- kinds of charts -------------------------------------------------------------------------------------------


def scatter(
    title: str,
    about: str,
    entries: Mapping[str, Entry],
    theirs: Sequence[Reference],
    looks: Looks,
    x: tuple[str, str],
    y: tuple[str, str],
    lines: Sequence[Figure] = (),
    shares: bool = False,
) -> Chart | None:
    """A point for each model that has both scores, with its intervals.

    Args:
        x, y: key and title.
        lines: shapes behind the points.
        shares: whether both axes begin at 0.
    """
    known = [r for r in theirs if x[0] in r.scores and y[0] in r.scores]
    traces: list[Trace] = []
    if known:
        hollow = {"color": GREY, "symbol": "circle-open", "size": 9, "line": {"width": 1.5, "color": GREY}}
        traces.append(
            trace(
                [r.scores[x[0]].value for r in known],
                [r.scores[y[0]].value for r in known],
                [f"published: {r.model} ({r.source})" for r in known],
                "markers",
                marker=hollow,
            )
        )
    legend = []
    for model, entry in entries.items():
        horizontal, vertical = value_of(entry.scores, x[0]), value_of(entry.scores, y[0])
        if horizontal.value is None or vertical.value is None:
            continue
        colour, symbol = looks[model]
        errors = {"error_x": _error(horizontal, colour), "error_y": _error(vertical, colour)}
        shown = {name: error for name, error in errors.items() if error}
        look = marker(colour, symbol)
        traces.append(trace([horizontal.value], [vertical.value], model, "markers", marker=look, **shown))
        legend.append((model, colour, symbol))
    if not legend:
        return None
    axes = {"xaxis": axis(x[1]), "yaxis": axis(y[1])}
    if shares:
        for name, key in (("xaxis", x[0]), ("yaxis", y[0])):
            axes[name]["range"] = [0, _end(entries, known, key)]
    else:  # plotly would put a line that lies beside all points on the very edge
        for name, key, fixed in (("xaxis", x[0], "x0"), ("yaxis", y[0], "y0")):
            free = "xref" if fixed == "y0" else "yref"
            at = [line[fixed] for line in lines if line.get(free) == "paper"]
            axes[name]["range"] = _padded([*_drawn(entries, known, key), *at])
    layout = {**axes, "height": 420, "shapes": list(lines)}
    if any("error_x" in one or "error_y" in one for one in traces):
        about += " The thin lines at a point are its 95 % intervals."
    return Chart(title, about, {"data": traces, "layout": layout}, tuple(legend), len(known), tall=shares)


def dots(
    title: str,
    about: str,
    rows: Sequence[tuple[str, tuple[str, str] | None, Mapping[str, Score]]],
    chances: Sequence[tuple[float | None, str]],
    measure: str,
    bars: bool = False,
    published: Iterable[str] = (),
    by: Mapping[str, Score] | None = None,
) -> Chart | None:
    """A line for each model with a mark for each series: (model, its look or none, series -> score).

    With ``bars`` a bar from 0 stands for the one series, in the colour of its model. The lines are in the order of the
    scores in ``by``, if given, or else of each model's best one.
    """
    theirs = set(published)
    series = list(dict.fromkeys(name for _, _, scores in rows for name in scores))
    chosen = [(n, look, s) for n, look, s in rows if any(score.value is not None for score in s.values())]
    if not any(name not in theirs for name, _, _ in chosen):
        return None
    best = by or {n: max(s.values(), key=lambda score: score.value or 0) for n, _, s in chosen}
    order = sorted(chosen, key=lambda row: best.get(row[0], MISSING).value or 0)
    places = {name: at for at, (name, _, _) in enumerate(order)}
    traces: list[Trace] = []
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(series)}
    symbols = {name: SYMBOLS[i % len(SYMBOLS)] for i, name in enumerate(series)}
    for name in series:
        found = [(m, look, s[name]) for m, look, s in order if name in s and s[name].value is not None]
        told = {m: m if not series[1:] else f"{m}, {name}" for m, _, _ in found}
        # Plotly draws an interval of no length where a trace has intervals and a bar has none.
        for part in (
            [row for row in found if _has_interval(row[2])],
            [row for row in found if not _has_interval(row[2])],
        ):
            x, y, texts = [s.value for _, _, s in part], [places[m] for m, _, _ in part], [told[m] for m, _, _ in part]
            if not part:
                continue
            if bars:
                fills = [GREY if m in theirs else look[0] if look else colours[name] for m, look, _ in part]
                traces.append(_bars(x, y, texts, fills, _errors([s for _, _, s in part])))
            else:
                traces.append(trace(x, y, texts, "markers", marker=marker(colours[name], symbols[name])))
                traces[-1]["hovertemplate"] = _HOVER
    shapes = [
        vertical(c, "dash") | ({"layer": "above"} if bars else {}) if not name else _tick(c, colours[name], len(order))
        for c, name in chances
        if c is not None and (not name or name in colours)
    ]
    layout = {
        "xaxis": axis(f"{measure} (0..1)") | {"rangemode": "tozero"},
        "yaxis": {
            "tickvals": list(range(len(order))),
            "ticktext": _plain(_short([name for name, _, _ in order])),
            "range": [-0.7, len(order) - 0.3],
            "fixedrange": True,
            "zeroline": False,
        },
        "height": 110 + _ROW * len(order),
        "shapes": shapes,
        "bargap": 0.35,
    }
    legend = () if bars else tuple((name, colours[name], symbols[name]) for name in series)
    return Chart(title, about, {"data": traces, "layout": layout}, legend, len(theirs & places.keys()))


def _bars(x: Sequence[Any], y: Sequence[int], texts: Sequence[str], fills: Sequence[str], error: Figure) -> Trace:
    bar = {"type": "bar", "orientation": "h", "x": x, "y": y, "text": _plain(texts), "marker": {"color": fills}}
    return bar | {"hovertemplate": _HOVER, "textposition": "none"} | ({"error_x": error} if error else {})


# ---- parts of figures ------------------------------------------------------------------------------------------


def trace(x: Sequence[Any], y: Sequence[Any], told: str | Sequence[str], mode: str, **look: Any) -> Trace:
    text = _plain([told] * len(x) if isinstance(told, str) else told)
    hover = (
        "%{text}<br>%{x}, %{y:.3f}<extra></extra>"
        if "lines" in mode
        else "%{text}<br>%{x:.3f}, %{y:.3f}<extra></extra>"
    )
    return {"type": "scatter", "mode": mode, "x": list(x), "y": list(y), "text": text, "hovertemplate": hover, **look}


def _plain(texts: Sequence[str]) -> list[str]:
    """Texts as plotly must get them: it reads some HTML."""
    return [html.escape(text, quote=False) for text in texts]


def marker(colour: str, symbol: str) -> Figure:
    return {"color": colour, "symbol": symbol, "size": 12}


def axis(title: str) -> Figure:
    return {"title": {"text": title}, "zeroline": False}


def _error(score: Score, colour: str) -> Figure:
    """Without ends, so that intervals of many points hide none of them."""
    error = _errors([score])
    return error | {"color": colour, "thickness": 1, "width": 0} if error else {}


def _errors(scores: Sequence[Score]) -> Figure:
    """Plotly's asymmetric bars; empty if a score has no interval."""
    above = [s.high - s.value for s in scores if s.high is not None and s.value is not None]
    below = [s.value - s.low for s in scores if s.low is not None and s.value is not None]
    if len(above) < len(scores) or len(below) < len(scores):
        return {}
    return {"type": "data", "array": above, "arrayminus": below, "thickness": 1.3}


def _has_interval(score: Score) -> bool:
    return score.low is not None and score.high is not None


def _line(x0: Any, x1: Any, y0: Any, y1: Any, dash: str = "dash", **more: Any) -> Figure:
    look = {"color": GREY, "width": 1.5, "dash": dash}
    return {"type": "line", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": look, "layer": "between", **more}


def horizontal(y: float) -> Figure:
    return _line(0, 1, y, y, xref="paper")


def vertical(x: float, dash: str = "dash") -> Figure:
    return _line(x, x, 0, 1, dash, yref="paper")


def through_origin(slope: float, dash: str = "dash") -> Figure:
    return _line(0, 1, 0, slope, dash)


def _tick(x: float, colour: str, n: int) -> Figure:
    mark = _line(x, x, -0.7, min(n * 0.1, 0.4) - 0.7, "solid")
    return mark | {"line": {"color": colour, "width": 3}}


def _end(entries: Mapping[str, Entry], theirs: Sequence[Reference], key: str) -> float:
    """Where an axis ends so that all points and intervals are seen."""
    scores = [value_of(e.scores, key) for e in entries.values()] + [r.scores[key] for r in theirs]
    highest = max((s.high if s.high is not None else s.value) or 0.0 for s in scores)
    return min(1.05, max(0.1, highest * 1.12))


def _drawn(entries: Mapping[str, Entry], theirs: Sequence[Reference], key: str) -> list[float]:
    """Everything that points and intervals reach."""
    scores = [value_of(e.scores, key) for e in entries.values()] + [r.scores[key] for r in theirs]
    return [bound for score in scores for bound in score if bound is not None]


def _padded(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    room = 0.07 * (high - low) or 0.05
    return [low - room, high + room]


def first_chance(entries: Mapping[str, Entry], key: str) -> float | None:
    return next((c for e in entries.values() if (c := chance_of(e.scores, key)) is not None), None)


def _short(labels: Sequence[str]) -> list[str]:
    """Labels that fit beside an axis: without owners, cut in the middle; those that would then be alike stay whole."""
    bare = [_OWNER.sub("", label) for label in labels]
    chosen = bare if len(set(bare)) == len(labels) else list(labels)
    half = _LABEL // 2
    cut = [label if len(label) <= _LABEL else f"{label[:half]}…{label[1 - half :]}" for label in chosen]
    return [short if cut.count(short) == 1 else whole for short, whole in zip(cut, chosen, strict=True)]
