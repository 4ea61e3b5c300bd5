"""The papers' views of results as plotly figures: plain values, drawn when the page is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hub_cards.measures import LEVELS, NO_LEVEL, QUESTION_TYPES
from hub_cards.report.collect import Collected, Entry, Place, family_of
from hub_cards.report.figures import (
    GREY,
    Chart,
    Looks,
    Trace,
    axis,
    dots,
    first_chance,
    horizontal,
    looks_of,
    marker,
    scatter,
    through_origin,
    trace,
    vertical,
)
from hub_cards.report.published import Reference
from hub_cards.report.tables import references
from hub_cards.values import Score, value_of


def place_charts(collected: Collected, place: Place, with_published: bool = True) -> list[Chart]:
    """The views of one task or subset; those without a point are left out."""
    entries = collected.at(place)
    theirs = references(collected, place) if with_published else ()
    looks = looks_of(collected.models)
    made: dict[str, Callable[[], Iterable[Chart | None]]] = {
        "IFIR": lambda: _ifir(entries, theirs, looks),
        "FollowIR": lambda: [_followir(entries, theirs, looks)],
        "TCR-Bench": lambda: _tcr(entries, theirs, looks),
    }
    views = made.get(family_of(place.task))
    return [] if views is None else [chart for chart in views() if chart is not None]


# ---- IFIR ------------------------------------------------------------------------------------------------------


def _ifir(entries: Mapping[str, Entry], theirs: Sequence[Reference], looks: Looks) -> Iterable[Chart | None]:
    scatters = [("ndcg_at_20", "instfol_at_20", "standard nDCG, each rubric's own maximum")]
    levels = [("ndcg_at_20", "standard nDCG@20", "0..1"), ("instfol_at_20", "InstFol@20", "at most 1")]
    if theirs:  # what compares with the paper is of use beside the paper's values only
        scatters.insert(0, ("paper_ndcg_at_20", "paper_instfol_at_20", "the authors' way, as in the paper"))
        levels.insert(0, ("paper_instfol_at_20", "InstFol@20, the authors' way", "at most 1"))
        levels.insert(0, ("paper_ndcg_at_20", "nDCG@20, the authors' way", "0..1"))
    for key, instfol, way in scatters:
        yield scatter(
            f"Retrieval against instruction following, {way}",
            "To the right: more relevant passages on top. Upwards: the instruction changed the ranking for the better; "
            "on the line at 0 it made no difference.",
            entries,
            theirs,
            looks,
            (key, "nDCG@20 (0..1)"),
            (instfol, "InstFol@20 (at most 1)"),
            lines=[horizontal(0)],
        )
    for key, way, scale in levels:
        yield _levels(key, way, scale, entries, theirs, looks)


def _levels(
    key: str,
    way: str,
    scale: str,
    entries: Mapping[str, Entry],
    theirs: Sequence[Reference],
    looks: Looks,
) -> Chart | None:
    keys = [f"level_{n}_{key}" for n in LEVELS]
    x = [f"level {n}" for n in LEVELS]
    traces: list[Trace] = []
    published = 0
    for reference in theirs:
        if all(k in reference.scores for k in keys):
            y = [reference.scores[k].value for k in keys]
            line = {"color": GREY, "width": 1, "dash": "dot"}
            traces.append(trace(x, y, f"published: {reference.model} ({reference.source})", "lines", line=line))
            published += 1
    legend = []
    for model, entry in entries.items():
        values = [value_of(entry.scores, k).value for k in keys]
        if all(v is not None for v in values):
            colour, symbol = looks[model]
            look = {"line": {"color": colour, "width": 2.5}, "marker": marker(colour, symbol)}
            traces.append(trace(x, values, model, "lines+markers", **look))
            legend.append((model, colour, symbol))
    if not legend:
        return None
    without_level = any(value_of(e.scores, f"level_{NO_LEVEL}_{key}").value is not None for e in entries.values())
    with_intervals = any(value_of(e.scores, k).low is not None for e in entries.values() for k in keys)
    layout = {"xaxis": {"type": "category", "range": [-0.15, 2.15]}, "yaxis": axis(f"{way} ({scale})")}
    return Chart(
        f"{way[0].upper()}{way[1:]} by level of the instruction",
        "Level 1 is the shortest instruction, level 3 the most demanding one."
        + (" Instructions without a level are in the table only." if without_level else "")
        + (" Intervals are in the table only." if with_intervals else ""),
        {"data": traces, "layout": layout | {"height": 380}},
        tuple(legend),
        published,
    )


# ---- FollowIR --------------------------------------------------------------------------------------------------


def _followir(entries: Mapping[str, Entry], theirs: Sequence[Reference], looks: Looks) -> Chart | None:
    chance = first_chance(entries, "followir_score")
    return scatter(
        "Following the changed instruction against retrieval",
        "Upwards: documents that the changed instruction excludes moved down, as they should; at 0 the change made no "
        "difference. To the right: better retrieval for the original instruction. The vertical line is the chance "
        "level of retrieval."
        + (
            " Whether the published retrieval scores are against the original or the changed judgements is not settled "
            "in public."
            if theirs
            else ""
        ),
        entries,
        theirs,
        looks,
        ("followir_score", "retrieval score, original judgements (0..1)"),
        ("p-MRR", "p-MRR (-1..1)"),
        lines=[horizontal(0), *([] if chance is None else [vertical(chance)])],
    )


# ---- TCR-Bench -------------------------------------------------------------------------------------------------


def _tcr(entries: Mapping[str, Entry], theirs: Sequence[Reference], looks: Looks) -> Iterable[Chart | None]:
    chance = first_chance(entries, "ds_at_1")
    lines = [] if chance is None else [through_origin(chance)]
    yield scatter(
        "The right table against the right group",
        "To the right: a table of the target's group is ranked first. Upwards: it is the target itself. On the dashed "
        "line a model draws from the group at random"
        + ("" if chance is None else f" (DS@1 = {chance:.3f})")
        + "; on the dotted line it always takes the target.",
        entries,
        theirs,
        looks,
        ("gr_at_1", "GR@1 (0..1)"),
        ("recall_at_1", "R@1 (0..1)"),
        lines=[*lines, through_origin(1, "dot")],
        shares=True,
    )
    rows = _points(entries, theirs, "ds_at_1")
    yield dots(
        "DS@1 with 95 % intervals",
        "The share of found groups in which the target itself came first; the dashed line is chance within the group.",
        [(name, looks.get(name), {"DS@1": score}) for name, score, _ in rows],
        [(chance, "")],
        "DS@1",
        bars=True,
        published={name for name, _, is_published in rows if is_published},
    )
    keys = {t: f"{t}_ds_at_1" for t in QUESTION_TYPES}
    chances = [(first_chance(entries, key), t) for t, key in keys.items()]
    yield dots(
        "DS@1 by type of question",
        "EM: exact match, SF: selective filtering, SA: selective aggregation. A tick of the same colour on the axis is "
        "chance within the groups of that type. Result files have no intervals for single types.",
        [(m, None, {t: value_of(e.scores, k) for t, k in keys.items()}) for m, e in entries.items()],
        chances,
        "DS@1",
        by={m: value_of(e.scores, "ds_at_1") for m, e in entries.items()},
    )


def format_charts(collected: Collected, formats: Mapping[str, Place]) -> list[Chart]:
    """R@1, GR@1 and DS@1 of each model in each way of printing tables; needs two formats at least.

    Args:
        collected: the results.
        formats: name of a format -> where its scores are.
    """
    if len(formats) < 2:
        return []
    out = []
    for key, text in (("recall_at_1", "R@1"), ("gr_at_1", "GR@1"), ("ds_at_1", "DS@1")):
        rows: dict[str, dict[str, Score]] = {}
        for name, place in formats.items():
            for model, entry in collected.at(place).items():
                rows.setdefault(model, {})[name] = value_of(entry.scores, key)
        chance = next((c for p in formats.values() if (c := first_chance(collected.at(p), key)) is not None), None)
        chart = dots(
            f"{text} by format of the tables",
            f"{text} (0..1) of the same questions over tables printed in different ways; the dashed line is chance.",
            [(model, None, rows[model]) for model in collected.models if model in rows],
            [(chance, "")],
            text,
        )
        out += [] if chart is None else [chart]
    return out


def _points(entries: Mapping[str, Entry], theirs: Sequence[Reference], key: str) -> list[tuple[str, Score, bool]]:
    """Own and published scores: (name, score, whether it is published)."""
    ours = [(model, value_of(e.scores, key), False) for model, e in entries.items()]
    return ours + [(f"{r.model} (published)", r.scores[key], True) for r in theirs if key in r.scores]
