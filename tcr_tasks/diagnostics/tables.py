"""Findings as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcr_tasks.diagnostics.results import NOT_MEASURABLE, Finding
from tcr_tasks.diagnostics.score import Score

# diagnostic -> one model's finding.
Findings = Mapping[str, Finding]


@dataclass(frozen=True)
class Row:
    """A row for each model: what its first cells say, and which finding its numbers are from."""

    labels: tuple[str, ...]
    diagnostic: str
    stratum: str = ""


@dataclass(frozen=True)
class PaperTable:
    """A table in the paper's shape.

    Attributes:
        title: with the table's number in the paper, if it has one.
        labels: headers of the rows' labels.
        columns: header -> metric; ``n`` is the number of queries.
        rows: per model, in order.
        note: what is printed below.
    """

    title: str
    labels: tuple[str, ...]
    columns: Mapping[str, str]
    rows: tuple[Row, ...]
    note: str = ""


def markdown(table: PaperTable, models: Mapping[str, Findings]) -> str | None:
    """A table with a row per model and entry, or ``None`` if there is no finding for it.

    Numbers are 0..1 unless the column says otherwise, R@1, GR@1 and DS@1 with their 95 % intervals. What is not
    measurable or not possible has its reason below.
    """
    lines, reasons = [], []
    for model, findings in models.items():
        for row in table.rows:
            finding = findings.get(row.diagnostic)
            if finding is None:
                continue
            labels = [model, *row.labels]
            if finding.reason is not None:
                metric, why = finding.reason
                word = "not measurable" if metric == NOT_MEASURABLE else "not possible"
                reasons.append(f"{', '.join(labels)}: {word}, since {why}")
                lines.append([*labels, word, *[""] * (len(table.columns) - 1)])
            else:
                lines.append([*labels, *(_cell(finding, metric, row.stratum) for metric in table.columns.values())])
    if not lines:
        return None
    shown = _used_columns(lines, 1 + len(table.labels))
    heads = ["Model", *table.labels, *table.columns]
    cells = [[cell for at, cell in enumerate(line) if at in shown] for line in (heads, *lines)]
    out = [f"### {table.title}", "", *_grid(cells)]
    out += ["", table.note] if table.note else []
    out += ["", *(f"- {reason}" for reason in dict.fromkeys(reasons))] if reasons else []
    return "\n".join(out)


def _used_columns(lines: Sequence[Sequence[str]], always: int) -> set[int]:
    """Columns that say anything: labels of strategies that no sibling has would only be empty."""
    return {at for at in range(len(lines[0])) if at < always or any(line[at] for line in lines)}


def _cell(finding: Finding, metric: str, stratum: str) -> str:
    if metric == "n":
        first = next((s for s in finding.scores if s.stratum == stratum), None)
        return "" if first is None else str(first.n)
    score = finding.value(metric, stratum)
    return "" if score is None else told(score)


def told(score: Score) -> str:
    """A score with its interval, if it has one."""
    value = f"{score.value:.3f}"
    return value if score.low is None or score.high is None else f"{value} [{score.low:.2f}, {score.high:.2f}]"


def _grid(lines: Sequence[Sequence[str]]) -> list[str]:
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return [rows[0], "|" + " --- |" * len(lines[0]), *rows[1:]]
