"""The report as one HTML file that needs no network: plotly, style, script and data are in it."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hub_cards.measures import SCALE
from hub_cards.report.best import BEST, best
from hub_cards.report.charts import format_charts, place_charts
from hub_cards.report.collect import Collected, Place
from hub_cards.report.embedding import script_json
from hub_cards.report.figures import Chart
from hub_cards.report.published import FORMATS
from hub_cards.report.queries import Sheet
from hub_cards.report.tables import Table, by_family, overview, place_table, published_notes

FOLDER = Path(__file__).parent
# One function of the page holds them all, in this order.
SCRIPTS = ("tables.js", "figures.js", "queries.js", "page.js")
TITLE = "Beyond relevance: retrieval results"
_FIELD = re.compile(r"\{\{(\w+)\}\}")
_ABOUT = {
    "IFIR": "Does a retriever do what an instruction in the query asks for? Expert domains, instructions in up to "
    "three levels (IFIR, arXiv 2503.04644).",
    "FollowIR": "Does the ranking change as the instruction does? The same query under an original and a narrower "
    "instruction, over the same candidates (FollowIR, arXiv 2403.15246).",
    "FollowIR, whole collections": "How well are FollowIR's original queries found in a whole corpus, with their "
    "instructions or without (FollowIR, Table 4)?",
    "TCR-Bench": "Does a retriever find the one table that can answer, among sibling tables that look alike "
    "(TCR-Bench, arXiv 2607.17742)?",
    "InstructIR": "How low does retrieval fall under a query's worst instruction (InstructIR, arXiv 2402.14334)?",
    "other": "Tasks without a view of their own here.",
}
_FORMATS = {**FORMATS, "TCRBenchSafeMarkdown": "safe Markdown"}


def page(
    collected: Collected, sheets: Sequence[Sheet], notes: Sequence[str], with_published: bool = True, title: str = TITLE
) -> str:
    """The whole page.

    Args:
        collected: the results.
        sheets: drill-downs to single queries.
        notes: what a reader should know beside them, such as predictions that were left out.
        with_published: whether the papers' values are shown as points of reference.
        title: of the page.
    """
    from plotly.offline import get_plotlyjs

    families = [_family(collected, name, places, with_published) for name, places in by_family(collected)]
    data = {
        "models": collected.models,
        "overview": table_values(overview(collected)),
        "families": families,
        "sheets": [sheet.content["place"] for sheet in sheets],
    }
    fields = {
        "title": html.escape(title),
        "lead": html.escape(_lead(collected)),
        "scale": html.escape(SCALE),
        "bold": html.escape(BEST),
        "version": html.escape(version("mteb-beyond")),
        "navigation": _navigation([(f["id"], f["name"]) for f in families], bool(sheets)),
        "sections": "\n".join([*(_section(f["id"], f["name"]) for f in families), *_queries_section(sheets)]),
        "notes": _list([*published_notes(collected, with_published), *notes]),
        "sources": html.escape(", ".join(folder.resolve().name for folder in collected.folders)),
        "data": script_json(data),
        "sheets": "\n".join(
            f'<script type="application/json" id="sheet-{at}">{script_json(sheet.content)}</script>'
            for at, sheet in enumerate(sheets)
        ),
        "plotly": get_plotlyjs(),
        "css": _part("page.css"),
        "script": "\n".join(_part(name) for name in SCRIPTS),
    }
    return _filled(_part("page.html"), fields)


def table_values(table: Table) -> dict[str, Any]:
    """A table as the page's script reads it."""
    marked = best(table)
    rows = [
        (row, [[c.score.value, c.text, c.interval, row is marked[at]] for at, c in enumerate(row.cells)])
        for row in table.rows
    ]
    return {
        "caption": table.caption,
        "columns": [list(column) for column in table.columns],
        "rows": [[row.label, row.kind, row.source, cells] for row, cells in rows],
        "notes": table.notes,
    }


def formats_of(collected: Collected) -> dict[str, Place]:
    """The places that hold the same questions over differently printed tables; none where data differ."""
    found = {p.task: p for p in collected.places if p.task in _FORMATS}
    several = len([p for p in collected.places if p.task in _FORMATS]) > len(found)
    if several or len({p.revision for p in found.values()}) != 1:
        return {}
    return {text: found[task] for task, text in _FORMATS.items() if task in found}


def _family(collected: Collected, name: str, places: Sequence[Place], with_published: bool) -> dict[str, Any]:
    across = format_charts(collected, formats_of(collected)) if name == "TCR-Bench" else []
    return {
        "id": f"family-{re.sub('[^a-z]', '-', name.lower())}",
        "name": name,
        "charts": [_chart_values(chart) for chart in across],
        "places": [
            {
                "label": collected.label(place),
                "table": table_values(place_table(collected, place, with_published)),
                "charts": [_chart_values(chart) for chart in place_charts(collected, place, with_published)],
            }
            for place in places
        ],
    }


def _chart_values(chart: Chart) -> dict[str, Any]:
    return {
        "title": chart.title,
        "about": chart.about,
        "figure": chart.figure,
        "legend": chart.legend,
        "published": chart.with_published,
        "tall": chart.tall,
    }


def _lead(collected: Collected) -> str:
    places = [place for place in collected.places if not place.is_average]
    n_models, n_tasks = len(collected.models), len({place.task for place in places})
    out = f"{n_models} model{'s' * (n_models != 1)} on {n_tasks} task{'s' * (n_tasks != 1)}: retrieval beyond "
    out += "relevance, with what makes the numbers doubtful beside them."
    if places and all(place.is_sample for place in places):
        out += " All tasks here are embedded samples, which are small and generated."
    return out


def _navigation(families: Sequence[tuple[str, str]], with_queries: bool) -> str:
    links = [("overview", "Overview"), *((key, _title(name)) for key, name in families)]
    links += [("queries", "Single queries")] if with_queries else []
    links.append(("notes", "Notes"))
    return "".join(f'<a href="#{key}">{html.escape(text)}</a>' for key, text in links)


def _section(key: str, name: str) -> str:
    title, about = html.escape(_title(name)), html.escape(_ABOUT[name])
    head = f'<section id="{key}" aria-labelledby="{key}-title">\n<h2 id="{key}-title">{title}</h2>'
    return f"{head}\n<p>{about}</p>\n</section>"


def _queries_section(sheets: Sequence[Sheet]) -> list[str]:
    if not sheets:
        return []
    about = (
        "A query, its instructions or conditions, the ranking under each, and what moved between them. Ranks are "
        "compared with the first ranking of the query."
    )
    title = '<h2 id="queries-title">Single queries</h2>'
    return [f'<section id="queries" aria-labelledby="queries-title">\n{title}\n<p>{about}</p>\n</section>']


def _title(name: str) -> str:
    return "Other tasks" if name == "other" else name


def _list(texts: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    return f'<ul class="notes">{items}</ul>' if items else "<p>None.</p>"


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """The template with its fields filled in, in one pass: what is filled in is not looked through again."""
    return _FIELD.sub(lambda found: fields[found[1]], template)


def _part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
