"""Findings as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.markdown import told as score_told
from evaluators.markdown import unpadded_table
from tcr_tasks.diagnostics.results import NO_EMBEDDINGS, NOT_MEASURABLE, Finding
from tcr_tasks.diagnostics.score import TRUNCATION, Score

# diagnostic -> one model's finding.
Findings = Mapping[str, Finding]


# Columns that are no metric: queries, those whose group was hit, p-values of DS@1, what is beyond the length limit.
N, N_HIT, P_VALUES, CUT = "n", "n_hit", "p", "cut"
_SMALLEST_P = 0.001


@dataclass(frozen=True)
class Row:
    """A row for each model: what its first cells say, and which finding its numbers are from.

    A ``baseline`` is there for comparison, and not shown alone.
    """

    labels: tuple[str, ...]
    diagnostic: str
    stratum: str = ""
    baseline: bool = False


@dataclass(frozen=True)
class PaperTable:
    """A table in the paper's shape.

    Attributes:
        title: with the table's number in the paper, if it has one.
        labels: headers of the rows' labels.
        columns: header -> metric, or one of :data:`N`, :data:`N_HIT`, :data:`P_VALUES`, :data:`CUT`.
        rows: per model, in order.
        note: what is printed below.
        geometry: whether it is about embeddings, and so not shown of models that give none.
    """

    title: str
    labels: tuple[str, ...]
    columns: Mapping[str, str]
    rows: tuple[Row, ...]
    note: str = ""
    geometry: bool = False


def markdown(table: PaperTable, models: Mapping[str, Findings]) -> str | None:
    """A table with a row per model and entry, or ``None`` if there is no finding for it.

    Numbers are 0..1 unless the column says otherwise, R@1, GR@1 and DS@1 with their 95 % intervals. What is not
    measurable or not possible has its reason below.
    """
    lines, reasons = [], []
    metrics = list(table.columns.values())
    for model, findings in models.items():
        for row in _rows(table, findings):
            finding = findings[row.diagnostic]
            labels = [model, *row.labels]
            if finding.reason is not None:
                metric, why = finding.reason
                word = "not measurable" if metric == NOT_MEASURABLE else "not possible"
                reasons.append(f"{', '.join(labels)}: {word}, since {why}")
                rest = [_cell(finding, CUT, "") if metric == CUT else "" for metric in metrics[1:]]
                lines.append([*labels, word, *rest])
            else:
                lines.append([*labels, *(_cell(finding, metric, row.stratum) for metric in metrics)])
    always = 1 + len(table.labels)
    shown = _used_columns(lines, always)
    if len(shown) <= always:
        return None
    heads = ["Model", *table.labels, *table.columns]
    cells = [[cell for at, cell in enumerate(line) if at in shown] for line in (heads, *lines)]
    out = [f"### {table.title}", "", unpadded_table(cells[0], cells[1:])]
    out += ["", table.note] if table.note else []
    out += ["", *(f"- {reason}" for reason in dict.fromkeys(reasons))] if reasons else []
    return "\n".join(out)


def _rows(table: PaperTable, findings: Findings) -> list[Row]:
    """The rows for which a model has a finding; none if only the baseline was run."""
    rows = [row for row in table.rows if row.diagnostic in findings]
    if table.geometry:
        rows = [row for row in rows if NO_EMBEDDINGS not in findings[row.diagnostic].notes]
    return [] if all(row.baseline for row in rows) else rows


def _used_columns(lines: Sequence[Sequence[str]], always: int) -> set[int]:
    """Columns that say anything: labels of strategies that no sibling has would only be empty."""
    return {at for line in lines for at, cell in enumerate(line) if at < always or cell}


def _cell(finding: Finding, metric: str, stratum: str) -> str:
    if metric == N:
        first = next((s for s in finding.scores if s.stratum == stratum), None)
        return "" if first is None else str(first.n)
    if metric == N_HIT:
        ds = finding.value("ds_at_1", stratum)
        return "" if ds is None else str(ds.n)
    if metric == P_VALUES:
        return " / ".join(p_values(finding, stratum))
    if metric == CUT:
        return " / ".join(f"{s.value:.0%}" for s in cut_off(finding))
    score = finding.value(metric, stratum)
    return "" if score is None else told(score)


def p_values(finding: Finding, stratum: str = "") -> list[str]:
    """Both p-values of DS@1 against chance, by bootstrap and exact; empty if there are none."""
    found = (finding.value(f"ds_at_1_{name}", stratum) for name in ("p_bootstrap", "p_null"))
    return [f"{s.value:.3f}" if s.value >= _SMALLEST_P else f"< {_SMALLEST_P}" for s in found if s is not None]


def cut_off(finding: Finding) -> list[Score]:
    """Share of the documents beyond the model's length limit, and of their tokens; empty if that is not known."""
    found = (finding.value(metric) for metric in TRUNCATION)
    return [score for score in found if score is not None]


def told(score: Score) -> str:
    """A score with its interval, if it has one."""
    return score_told(score.value, score.low, score.high)
