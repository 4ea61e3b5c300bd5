"""Where the paper makes a finding: what was measured here, and whether it is enough to say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evaluators.metrics.bootstrap import Bootstrapped, Hits, bootstrap_difference
from tcr_tasks.diagnostics.results import Finding
from tcr_tasks.diagnostics.score import COIN
from tcr_tasks.diagnostics.tables import Findings, told

_UNDECIDED = "undecided, since the interval includes {border}"
_TOP = ("position/top-original", "position/top-middle", "position/top-bottom")


def statements(findings: Findings) -> list[str]:
    """One Markdown sentence or more per finding of the paper for which one model was measured."""
    return [*_position(findings), *_transposed(findings), *_volume(findings), *_consistent(findings)]


def _position(findings: Findings) -> Iterator[str]:
    for key in _TOP:
        finding = findings.get(key)
        if finding is None:
            continue
        first, second = key.split("/")[1].split("-")
        other = "in its original place" if second == "original" else f"at the {second}"
        begin = f"Answer at the {first} against answer {other}:"
        score = finding.value("preference")
        if score is None:
            yield f"{begin} {_missing(finding)}"
            continue
        verdict = _verdict(score.low, score.high, COIN, f"the {first} is preferred", f"the {first} is avoided")
        yield f"{begin} the {first} scores higher in {told(score)} of the pairs (n = {score.n}): {verdict}."


def _transposed(findings: Findings) -> Iterator[str]:
    yield from _difference(findings, "transposed", "main/mixed", "Transposed tables against plain ones", "transposing")


def _volume(findings: Findings) -> Iterator[str]:
    yield from _difference(
        findings,
        "volume/senss",
        "volume/sen",
        "Only the question's columns (SenSS) against whole rows (Sen)",
        "leaving out the other columns",
    )


def _difference(findings: Findings, changed: str, plain: str, what: str, doing: str) -> Iterator[str]:
    """R@1 and GR@1 of one diagnostic minus those of another, over the queries of both."""
    if changed not in findings or plain not in findings:
        return
    for key in (changed, plain):
        if findings[key].reason is not None:
            yield f"{what}: {_missing(findings[key])}"
            return
    first, second = findings[changed].hits, findings[plain].hits
    shared = [q for q in first if q in second]
    if not shared:
        yield f"{what}: the two have no query in common."
        return
    found = bootstrap_difference(_hits(first, shared), _hits(second, shared), seed=findings[plain].origin.seed)
    parts = [
        f"{name} {_signed(score)}: {_verdict(*score.interval(), 0, f'{doing} helps', f'{doing} hurts')}"
        for name, score in (("R@1", found.recall_at_1), ("GR@1", found.gr_at_1))
    ]
    yield f"{what} (n = {len(shared)}): {'; '.join(parts)}."


def _consistent(findings: Findings) -> Iterator[str]:
    found = [f for key, f in findings.items() if key.startswith("consistency/") and f.reason is None]
    if not found:
        return
    ranges = []
    for metric, name in (("hit", "hit or miss"), ("top_1_identity", "the first table")):
        values = [score.value for f in found if (score := f.value(metric)) is not None]
        ranges.append(f"{name} in {min(values):.3f} to {max(values):.3f}")
    n = max(score.n for f in found for score in f.scores)
    yield f"Formats and forms of the query agree on {' and on '.join(ranges)} of the queries (n = {n})."


def _verdict(low: float | None, high: float | None, border: float, above: str, below: str) -> str:
    if low is None or high is None:
        return "undecided, without an interval"
    if low > border:
        return above
    return below if high < border else _UNDECIDED.format(border=border)


def _signed(score: Bootstrapped) -> str:
    low, high = score.interval()
    return f"changes by {score.value:+.3f} [{low:+.2f}, {high:+.2f}]"


def _hits(hits: Mapping[str, Sequence[int]], queries: Sequence[str]) -> Hits:
    return Hits([hits[q][0] for q in queries], [hits[q][1] for q in queries])


def _missing(finding: Finding) -> str:
    return "no number, since " + (finding.reason[1] if finding.reason else "it was not measured") + "."
