"""What the paper's Figures 4 to 8 show, of one model's findings: panels of marks, however they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.figures import Figure, Kind, Marks, Panel
from tcr_tasks.diagnostics.catalogue import VOLUME_NAMES
from tcr_tasks.diagnostics.results import Finding, Origin
from tcr_tasks.diagnostics.running import PICTURED
from tcr_tasks.diagnostics.score import TRUNCATION, Score
from tcr_tasks.diagnostics.transforms.intra import CHUNKS
from tcr_tasks.diagnostics.transforms.length import LENGTHS
from tcr_tasks.diagnostics.transforms.volume import VOLUMES

_REST = "other tables"
_CHANCE = "chance"
_TAGS = {"query": "Q", "sibling": "S", "target": "T"}
_COSINES_A_LINE = 5


def figures(findings: Mapping[str, Finding]) -> list[Figure]:
    """All figures for which there are findings."""
    made = (_inside(findings), _length(findings), _margins(findings), *_geometry(findings))
    return [figure for figure in made if figure is not None]


def _about(origin: Origin, n: str, more: str = "") -> str:
    return f"{origin.model}, data {origin.data}, {n}" + (f"; {more}" if more else "")


def _inside(findings: Mapping[str, Finding]) -> Figure | None:
    units = {f"{size} rows" if size > 1 else "row": "row" if size == 1 else f"chunk{size}" for size in CHUNKS}
    marks: list[Marks] = []
    chances: dict[str, Score] = {}
    for kind in VOLUMES:
        keys = {text: f"intra/{unit}/{kind}" for text, unit in units.items()}
        scores = _scores(findings, keys, "recall_at_1")
        marks += _series("bars", VOLUME_NAMES[kind], scores)
        chances |= _scores(findings, keys, "chance_recall_at_1")
    found = _scored(findings, "intra")
    if not found:
        return None
    marks += _series("levels", _CHANCE, {text: chances[text] for text in units if text in chances})
    more = "whiskers: 95% intervals; dashes: chance, which grows with the unit"
    return Figure(
        "figure-4",
        "Inside the target, by unit and sentences (Figure 4)",
        _about(found[0].origin, f"n = {_most(found)} questions", more),
        [Panel("", marks, "what is ranked", "R@1", share=True)],
    )


def _length(findings: Mapping[str, Finding]) -> Figure | None:
    keys = {"all": PICTURED, **{f"1/{n}": f"length/{n}" for n in LENGTHS}}
    found = _scored(findings, "length")
    if not found:
        return None
    panels = []
    for metric, text in (("recall_at_1", "R@1"), ("gr_at_1", "GR@1"), ("ds_at_1", "DS@1")):
        marks = _series("line", text, _scores(findings, keys, metric))
        marks += _series("line", _CHANCE, _scores(findings, keys, f"chance_{metric}"), faint=True)
        panels.append(Panel(text, marks, "share of the rows", text, share=True))
    cut = _series("line", "tokens cut", _scores(findings, keys, TRUNCATION[1]))
    if cut:
        panels.append(Panel("beyond the length limit", cut, "share of the rows", "share of all tokens", share=True))
    more = "bands: 95% intervals; grey: chance"
    about = _about(found[0].origin, f"n = {_most(found)} questions", more)
    return Figure("figure-6", "Shorter tables (Figure 6)", about, panels)


def _margins(findings: Mapping[str, Finding]) -> Figure | None:
    finding = findings.get(PICTURED)
    if finding is None or not finding.extra.get("margins"):
        return None
    margins = list(finding.extra["margins"].values())
    above = sum(margin > 0 for margin in margins)
    marks = [Marks("histogram", "", margins)]
    return Figure(
        "figure-8",
        "Margin between target and nearest sibling, Mixed (Figure 8)",
        _about(finding.origin, f"n = {len(margins)} questions", f"above 0 (target nearer): {above}"),
        [Panel("", marks, "cos(query, target) - largest cos(query, sibling)", "questions", border=0.0)],
    )


def _geometry(findings: Mapping[str, Finding]) -> list[Figure]:
    finding = findings.get(PICTURED)
    picture = {} if finding is None else finding.extra.get("picture", {})
    if finding is None or not picture:
        return []
    points = picture["points"]
    principal = f"principal components ({picture['explained']:.0%} of the variance)"
    clouds = [
        Panel(principal, _clouds(points, 2), "first component", "second component"),
        Panel("t-SNE by cosine distance", _clouds(points, 4), "t-SNE 1", "t-SNE 2"),
    ]
    title = "Embeddings of tables, Mixed (Figures 5 and 7)"
    out = [Figure("figure-7", title, _about(finding.origin, f"n = {len(points)} tables"), clouds)]
    pockets = [_pocket(pocket) for pocket in picture["pockets"]]
    if pockets:
        title = "A query, its target and siblings: smallest and largest margin, Mixed (Figures 5 and 7)"
        n = f"{len(pockets)} of n = {len(finding.extra['margins'])} questions"
        about = _about(finding.origin, n, "distances: 1 - cosine, scaled to a plane")
        out.append(Figure("figure-5", title, about, pockets))
    return out


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
            out.append(Marks("points", name, x, y, texts=[str(p[0]) for p in members], faint=group is None))
    return out


def _pocket(pocket: Mapping[str, Any]) -> Panel:
    kinds: dict[str, list[tuple[str, Sequence[Any]]]] = {name: [] for name in _TAGS}
    for point in sorted(pocket["points"], key=lambda point: -point[1]):
        name = "query" if point[0] == "query" else "target" if point[0] == pocket["target"] else "sibling"
        number = str(len(kinds[name]) + 1) if name == "sibling" else ""
        kinds[name].append((_TAGS[name] + number, point))
    marks = [
        Marks(
            "points",
            name,
            [p[2] for _, p in members],
            [p[3] for _, p in members],
            texts=["" if name == "query" else f"cos {p[1]:.3f}" for _, p in members],
            tags=[tag for tag, _ in members],
        )
        for name, members in kinds.items()
        if members
    ]
    ranked = sorted((-p[1], tag) for name in ("target", "sibling") for tag, p in kinds[name])
    cosines = [f"{tag} {-cosine:.3f}" for cosine, tag in ranked]
    lines = [", ".join(cosines[at : at + _COSINES_A_LINE]) for at in range(0, len(cosines), _COSINES_A_LINE)]
    title = "\n".join(["first dimension", "cosines with the query:", *lines])
    return Panel(f"{pocket['query']}: margin {pocket['margin']:+.3f}", marks, title, "second dimension")


def _database(document: str) -> str:
    """The database in a corpus id ``hash::database::table``; the id itself where it has another form."""
    parts = document.split("::")
    return parts[1] if len(parts) == 3 else document


def _scored(findings: Mapping[str, Finding], family: str) -> list[Finding]:
    return [f for key, f in findings.items() if key.startswith(f"{family}/") and f.value("recall_at_1")]


def _most(findings: Sequence[Finding]) -> int:
    return max(score.n for finding in findings if (score := finding.value("recall_at_1")))


def _scores(findings: Mapping[str, Finding], keys: Mapping[str, str], metric: str) -> dict[str, Score]:
    """Category -> score, of the diagnostics that have it."""
    found = {x: findings[key].value(metric) for x, key in keys.items() if key in findings}
    return {x: score for x, score in found.items() if score is not None}


def _series(kind: Kind, name: str, scores: Mapping[str, Score], faint: bool = False) -> list[Marks]:
    """The scores as one series, with their intervals if all have one; nothing if there is none."""
    if not scores:
        return []
    bounds = [(s.low, s.high) for s in scores.values() if s.low is not None and s.high is not None]
    low, high = ([b[0] for b in bounds], [b[1] for b in bounds]) if len(bounds) == len(scores) else ([], [])
    return [Marks(kind, name, list(scores), [s.value for s in scores.values()], low, high, faint=faint)]
