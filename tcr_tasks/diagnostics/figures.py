"""What the paper's Figures 4 to 8 show, of one model's findings: panels of marks, however they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tcr_tasks.diagnostics.results import Finding
from tcr_tasks.diagnostics.running import PICTURED
from tcr_tasks.diagnostics.transforms.intra import CHUNKS
from tcr_tasks.diagnostics.transforms.length import LENGTHS
from tcr_tasks.diagnostics.transforms.volume import VOLUMES

Kind = Literal["bars", "line", "points", "histogram"]
_VOLUME_NAMES = {"sen": "Sen", "sens": "SenS", "senss": "SenSS"}
_REST = "other tables"


@dataclass(frozen=True)
class Marks:
    """One series.

    Attributes:
        kind: bars and lines have ``x`` as categories; a histogram has its values in ``x`` and no ``y``.
        name: in the legend; empty: not there.
        texts: one per point, on hovering.
        labelled: texts stand beside the points.
        faint: drawn in grey, behind the others.
    """

    kind: Kind
    name: str
    x: Sequence[Any]
    y: Sequence[float] = ()
    texts: Sequence[str] = ()
    labelled: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Panel:
    """Axes with their series."""

    title: str
    marks: Sequence[Marks]
    x_title: str = ""
    y_title: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        name: of its files.
        title: with its number in the paper.
        panels: beside one another.
    """

    name: str
    title: str
    panels: Sequence[Panel]


def figures(findings: Mapping[str, Finding]) -> list[Figure]:
    """All figures for which there are findings."""
    made = (_inside(findings), _length(findings), _margins(findings), *_geometry(findings))
    return [figure for figure in made if figure is not None]


def _inside(findings: Mapping[str, Finding]) -> Figure | None:
    names = {1: "row", **{size: f"{size} rows" for size in CHUNKS if size > 1}}
    marks = []
    for kind in VOLUMES:
        x, y = [], []
        for size, text in names.items():
            score = _value(findings, f"intra/{'row' if size == 1 else f'chunk{size}'}/{kind}", "recall_at_1")
            if score is not None:
                x.append(text)
                y.append(score)
        marks += [Marks("bars", _VOLUME_NAMES[kind], x, y)] if x else []
    if not marks:
        return None
    return Figure("figure-4", "Inside the target, by unit and sentences (Figure 4)", [Panel("", marks, "unit", "R@1")])


def _length(findings: Mapping[str, Finding]) -> Figure | None:
    places = {"1": PICTURED, **{f"1/{n}": f"length/{n}" for n in LENGTHS}}
    if not any(f"length/{n}" in findings for n in LENGTHS):
        return None
    marks = []
    for metric, text in (("recall_at_1", "R@1"), ("gr_at_1", "GR@1"), ("ds_at_1", "DS@1")):
        found = {x: value for x, key in places.items() if (value := _value(findings, key, metric)) is not None}
        marks += [Marks("line", text, list(found), list(found.values()))] if found else []
    if not marks:
        return None
    return Figure("figure-6", "Shorter tables (Figure 6)", [Panel("", marks, "share of the rows", "score")])


def _margins(findings: Mapping[str, Finding]) -> Figure | None:
    margins = _extra(findings).get("margins")
    if not margins:
        return None
    marks = [Marks("histogram", "", list(margins.values()))]
    title = "Margin between target and nearest sibling (Figure 8)"
    return Figure("figure-8", title, [Panel("", marks, "cos(q, target) - max cos(q, sibling)", "queries")])


def _geometry(findings: Mapping[str, Finding]) -> list[Figure]:
    picture = _extra(findings).get("picture")
    if not picture:
        return []
    principal = Panel(
        f"two principal components ({picture['explained']:.0%} of the variance)", _clouds(picture["points"], 2)
    )
    near = Panel("t-SNE by cosine distance", _clouds(picture["points"], 4))
    pockets = [_pocket(pocket) for pocket in picture["pockets"]]
    return [Figure("figure-5-7", "Embeddings of tables, Mixed (Figures 5 and 7)", [principal, near, *pockets])]


def _clouds(points: Sequence[Sequence[Any]], at: int) -> list[Marks]:
    """A series for the tables outside the marked groups and one for each of these, named by its database."""
    series: dict[int | None, list[Sequence[Any]]] = {None: []}
    for point in points:
        series.setdefault(point[1], []).append(point)
    out = []
    for group, members in sorted(series.items(), key=lambda item: -1 if item[0] is None else item[0]):
        if members:
            name = _REST if group is None else f"{group + 1}: {_database(members[0][0])}"
            x, y = ([float(p[place]) for p in members] for place in (at, at + 1))
            out.append(Marks("points", name, x, y, [str(p[0]) for p in members], faint=group is None))
    return out


def _pocket(pocket: Mapping[str, Any]) -> Panel:
    kinds: dict[str, list[Sequence[Any]]] = {"query": [], "target": [], "sibling": []}
    for point in pocket["points"]:
        name = "query" if point[0] == "query" else "target" if point[0] == pocket["target"] else "sibling"
        kinds[name].append(point)
    marks = [
        Marks(
            "points",
            name,
            [p[2] for p in members],
            [p[3] for p in members],
            ["" if name == "query" else f"cos {p[1]:.3f}" for p in members],
            labelled=True,
        )
        for name, members in kinds.items()
        if members
    ]
    return Panel(f"{pocket['query']}: margin {pocket['margin']:+.3f}", marks)


def _database(document: str) -> str:
    """The database in a corpus id ``hash::database::table``; the id itself where it has another form."""
    parts = document.split("::")
    return parts[1] if len(parts) == 3 else document


def _extra(findings: Mapping[str, Finding]) -> Mapping[str, Any]:
    finding = findings.get(PICTURED)
    return {} if finding is None else finding.extra


def _value(findings: Mapping[str, Finding], diagnostic: str, metric: str) -> float | None:
    finding = findings.get(diagnostic)
    score = None if finding is None else finding.value(metric)
    return None if score is None else score.value
