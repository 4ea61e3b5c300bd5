"""The report of the diagnostics: findings, tables, notes, figures, words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tcr_tasks.diagnostics.findings import statements
from tcr_tasks.diagnostics.glossary import glossary
from tcr_tasks.diagnostics.paper_tables import PAPER_TABLES
from tcr_tasks.diagnostics.results import NO_EMBEDDINGS, Origin
from tcr_tasks.diagnostics.tables import Findings, markdown

_ABOUT = (
    "All numbers were measured here, with these models on these data; none is the paper's. Tables name the table of "
    "the paper (Tian et al., 2026, arXiv:2607.17742) whose shape they have. Numbers lie in 0..1 unless said otherwise; "
    "in square brackets stand 95 % percentile bootstrap intervals over queries (1,000 resamples). Where all queries "
    "agree, a percentile bootstrap cannot show an interval: [0.00, 0.00] and [1.00, 1.00] mean that none of these n "
    "queries differs, not that the score is certain; of other queries up to about 3 / n may differ."
)


def report(
    models: Mapping[str, Findings], origin: Origin, notes: Sequence[str], figures: Mapping[str, Sequence[str]]
) -> str:
    """The report as Markdown.

    Args:
        models: model -> its findings on the same data.
        origin: of any of them: data and seed.
        notes: about the dataset.
        figures: model -> files, relative to the report.
    """
    out = ["# TCR-Bench diagnostics", "", _ABOUT, "", f"- data: {origin.data}, revision {origin.data_revision}"]
    out += [f"- {note}" for note in notes]
    out += [f"- model: {model}, revision {_revision(found)}" for model, found in models.items()]
    out += [f"- seed: {origin.seed}", "", "## Findings", ""]
    for model, found in models.items():
        said = statements(found) or ["None of the diagnostics behind them was run."]
        out += [f"- {_named(model, models)}{text}" for text in said]
    tables = [text for table in PAPER_TABLES if (text := markdown(table, models))]
    out += ["", "## Tables", "", *(line for text in tables for line in (text, ""))]
    lacking = [m for m, found in models.items() if any(NO_EMBEDDINGS in f.notes for f in found.values())]
    if lacking:
        out += [f"Tables 23 and 24 are left out of {', '.join(lacking)}: {NO_EMBEDDINGS}.", ""]
    out += ["## Notes", ""]
    for model, found in models.items():
        for note, diagnostics in _by_note(found).items():
            out.append(f"- {_named(model, models)}{', '.join(diagnostics)}: {note}")
    if any(figures.values()):
        out += ["", "## Figures", "", "The HTML pages need the file `plotly.min.js` beside them."]
        for model, files in figures.items():
            pages = [f"[{Path(file).name}]({file})" for file in files if file.endswith(".html")]
            out += ["", f"{_named(model, models)}{', '.join(pages)}", ""] if pages else []
            out += [f"![{model}, {Path(file).stem}]({file})" for file in files if file.endswith(".png")]
    words = glossary(tables)
    out += ["", "## Words", "", *(f"- {line}" for line in words)] if words else []
    return "\n".join(out).rstrip() + "\n"


def _named(model: str, models: Mapping[str, Findings]) -> str:
    """The model at the beginning of a line; one model need not be named."""
    return f"{model}: " if len(models) > 1 else ""


def _revision(findings: Findings) -> str:
    return next(iter(findings.values())).origin.revision


def _by_note(findings: Findings) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for key, finding in findings.items():
        for note in finding.notes:
            out.setdefault(note, []).append(key)
    return out
