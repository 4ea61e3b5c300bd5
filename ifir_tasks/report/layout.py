"""The report on a terminal, as Markdown, and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby

from markdown_it import MarkdownIt
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from tabulate import tabulate

from ifir_tasks.report.content import Block, Line, Place, Section

INTRODUCTION = (
    "Lines that begin with 'published:' are numbers printed in the paper (IFIR, https://arxiv.org/abs/2503.04644); all "
    "others are from the result files. '-' is a missing value, never 0. The published nDCG and MRR fit the variant in "
    "the authors' code, whose ideal ranking holds only the relevant documents that were retrieved: compare them with "
    "paper_ndcg_at_20 and paper_mrr_at_20 only, and published InstFol with paper_instfol_at_20 only."
)
_LABEL_WIDTH = 30
_WIDEST = ("-12.34", "level 1")  # of a column without and with a level
_STYLE = """
body { font-family: system-ui, sans-serif; margin: 2em; } table { border-collapse: collapse; margin-bottom: 1.5em; }
th, td { padding: 0.2em 0.7em; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
"""


def print_report(sections: Iterable[Section], notes: Sequence[str], console: Console) -> None:
    """Print the sections; tables wider than the console are continued below, by whole subsets."""
    console.print(Text(INTRODUCTION))
    for section in sections:
        console.print()
        console.rule(Text(section.title, style="bold"), align="left")
        for block in section.blocks:
            console.print(Text(f"\n{block.title}" if block.title else "", style="bold"))
            for places in _columns_that_fit(block.places, console.width):
                console.print(_rich_table(block, places))
        if section.notes:
            _print_notes(section.notes, console)
    if notes:
        console.print()
        console.rule(Text("Notes on the results", style="bold"), align="left")
        _print_notes(notes, console)


def markdown(sections: Iterable[Section], notes: Sequence[str]) -> str:
    """The report as Markdown."""
    parts = ["# IFIR report", INTRODUCTION]
    for section in sections:
        parts.append(f"## {section.title}")
        for block in section.blocks:
            parts += [f"**{_escaped(block.title)}**"] if block.title else []
            parts.append(_markdown_table(block))
        parts += [_bullets(section.notes)] if section.notes else []
    parts += ["## Notes on the results", _bullets(notes)] if notes else []
    return "\n\n".join(parts) + "\n"


def html_page(body_markdown: str, figures: Sequence[str] = ()) -> str:
    """Markdown and figures (HTML fragments) as one page that needs nothing else."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(body_markdown)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>IFIR report</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}{''.join(figures)}\n</body></html>\n"
    )


def _rich_table(block: Block, places: Sequence[Place]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 0, 0, 1), header_style="italic")
    table.add_column("", overflow="fold", max_width=_LABEL_WIDTH + 15)
    for name in _headers(places):
        table.add_column(name, justify="right", no_wrap=True)
    chosen = [block.places.index(place) for place in places]
    for line in block.lines:
        style = "bold" if not line.values else "dim" if line.published else ""
        cells = [_number(line.values[i], block.decimals) for i in chosen] if line.values else []
        table.add_row(Text(_label(line), style=style), *(Text(cell, style=style) for cell in cells))
    return table


def _columns_that_fit(places: Sequence[Place], width: int) -> list[list[Place]]:
    """The columns in as few even parts as fit the width; the levels of a subset stay together."""
    subsets = [list(of_subset) for _, of_subset in groupby(places, key=lambda place: place.subset)]
    for size in range(len(subsets), 0, -1):
        parts = [list(chain.from_iterable(subsets[i : i + size])) for i in range(0, len(subsets), size)]
        if all(_LABEL_WIDTH + sum(map(_column_width, part)) <= width for part in parts):
            return parts
    return subsets


def _column_width(place: Place) -> int:
    return 1 + max(len(place.subset), len(_WIDEST[place.level is not None]))


def _markdown_table(block: Block) -> str:
    rows = [
        [_escaped(_label(line)), *(_number(v, block.decimals) for v in line.values)]
        if line.values
        else [f"**{_escaped(line.label)}**", *("" for _ in block.places)]
        for line in block.lines
    ]
    headers = ["", *(header.replace("\n", " ") for header in _headers(block.places))]
    align = ("left", *("right" for _ in block.places))
    return tabulate(rows, headers, tablefmt="pipe", disable_numparse=True, colalign=align)


def _headers(places: Sequence[Place]) -> list[str]:
    with_levels = {place.subset for place in places if place.level is not None}
    names = {None: "all", 0: "no levels"}
    return [
        f"{place.subset}\n{names.get(place.level, f'level {place.level}')}"
        if place.subset in with_levels
        else place.subset
        for place in places
    ]


def _label(line: Line) -> str:
    return f"published: {line.label}" if line.published else line.label


def _number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _bullets(notes: Iterable[str]) -> str:
    return "\n".join(f"- {note}" for note in notes)


def _print_notes(notes: Iterable[str], console: Console) -> None:
    console.print()
    for note in notes:
        console.print(Padding(Text(f"* {note}"), (0, 0, 0, 2)))
