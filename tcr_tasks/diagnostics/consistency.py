"""Do formats, and forms of the query, lead to the same tables? Tables 18 and 19 (appendices F.2 to F.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evaluators.metrics.consistency import consistency
from tcr_tasks.diagnostics.results import NOT_POSSIBLE, Finding
from tcr_tasks.diagnostics.score import Score


@dataclass(frozen=True)
class Comparison:
    """Two diagnostics whose rankings are compared.

    Attributes:
        base, other: their keys; the first is the base configuration of Partial Consistency.
        paper: where the paper has the comparison.
        settings: what distinguishes it.
    """

    base: str
    other: str
    paper: str
    settings: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The comparison as a diagnostic of its own."""
        return "consistency/" + "-".join(str(value) for value in self.settings.values())


def _formats(first: str, second: str) -> Comparison:
    settings = {"format": first, "compared_with": second}
    return Comparison(f"formats/{first}/natural", f"formats/{second}/natural", "Table 18", settings)


def _forms(second: str) -> Comparison:
    settings = {"query_form": "natural", "compared_with": second}
    return Comparison("formats/mixed/natural", f"formats/mixed/{second}", "Table 19", settings)


COMPARISONS: tuple[Comparison, ...] = (
    *(_formats("mixed", second) for second in ("csv", "html", "markdown", "tsen", "tsens")),
    _formats("tsen", "tsens"),
    *(_forms(second) for second in ("template", "sentential")),
)


def compare(comparison: Comparison, base: Finding, other: Finding) -> Finding:
    """The comparison of two findings of one model on the same data, over the queries that both have."""
    shared = [q for q in base.tops if q in other.tops]
    apart = len(base.tops.keys() ^ other.tops.keys())
    notes = (f"{apart} queries are in one of the two only and are left out",) if apart else ()
    if not shared:
        reason = (NOT_POSSIBLE, "the two have no query in common")
        return Finding(comparison.key, base.origin, reason)
    found = consistency(base.tops, other.tops, {q: base.targets[q] for q in shared})
    values = asdict(found)
    n = int(values.pop("n"))
    scores = tuple(Score(metric, value, n) for metric, value in values.items())
    return Finding(comparison.key, base.origin, notes=notes, scores=scores)
