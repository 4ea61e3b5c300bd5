"""What people's files and a judge's scores of the same pairs come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from tabulate import tabulate

from evaluators.judge.agreement import CONFIDENCE, RESAMPLES, Agreement, Correlation, Scored, compared
from evaluators.judge.annotation import Annotation
from evaluators.judge.annotation_draw import Item
from evaluators.judge.judges import Judge, frequent, weighted_share
from evaluators.judge.scale import LIKERT, Scale

# A level with fewer pairs gets no coefficient of its own: its interval would say nothing.
FEWEST_OF_LEVEL = 20
_PAPER = (
    "IFIR's authors report a Pearson coefficient of 0.704 on 400 pairs (section 6), with people and GPT-4o both "
    "scoring 1 to 5, not on the scales of the levels' rubrics."
)
_SAME_SCALES = "Here both sides score 1 to 5 too; pairs, rubric, judge and its weighting may still differ from theirs."
_OTHER_SCALES = "Here the scales are others, so the figures are not comparable with it."


@dataclass(frozen=True)
class AgreementReport:
    """The agreement of people with a judge, and with each other.

    Attributes:
        judge: the judge's record.
        n_drawn: pairs in the draw.
        n_absent: those of them that are in no file.
        n_unfilled: those that are in a file, but without any person's score.
        unscored: pairs with a person's score but none of the judge, by id with the reason.
        weighted: share of the judge's scores that are weighted by log-probabilities, ``None`` without scores.
        overall: people (where several scored a pair: their mean) and judge, all pairs that both scored.
        by_scale: the same for each combination of the two sides' scales.
        by_level: the same for each level; without coefficient below 20 pairs.
        annotators: each file's scores and the judge's.
        unfilled: file -> its rows without a score.
        between: two files' scores of the pairs that both scored.
        note: how this compares with the paper's figure.
    """

    judge: dict[str, Any]
    n_drawn: int
    n_absent: int
    n_unfilled: int
    unscored: dict[str, str]
    weighted: float | None
    overall: Agreement
    by_scale: dict[str, Agreement]
    by_level: dict[int, Agreement]
    annotators: dict[str, Agreement]
    unfilled: dict[str, int]
    between: dict[str, Agreement]
    note: str

    def as_json(self) -> dict[str, Any]:
        """All of it, with how the intervals were made, as JSON values."""
        made = {"confidence": CONFIDENCE, "bootstrap": {"method": "percentile", "resamples": RESAMPLES}}
        return asdict(self) | {"by_level": {str(k): asdict(v) for k, v in self.by_level.items()}, "intervals": made}


@dataclass(frozen=True)
class _Pairs:
    """The pairs of one draw: id -> item, and file -> id -> score."""

    drawn: int
    items: dict[str, Item]
    scores: dict[str, dict[str, int]]

    def mean(self, key: str) -> float:
        found = [scores[key] for scores in self.scores.values() if key in scores]
        return sum(found) / len(found)


def agreement_report(
    files: Mapping[str, Sequence[Annotation]], judge: Judge, judge_scale: Scale | None, *, seed: int = 0
) -> AgreementReport:
    """Let a judge score the pairs that people scored, and compare.

    Args:
        files: the rows of each file by its name. A file stands for a person; files may hold the same pairs or different
            parts of one draw.
        judge: asked about nothing but pairs with a person's score.
        judge_scale: of all its scores; ``None`` for 0 to the highest score of each pair's level.
        seed: of the bootstrap.

    Raises:
        ValueError: if the files come from different draws, no row has a score, or a judge's score is off its scale.
    """
    pairs = _one_draw(files)
    keys = [key for key in pairs.items if any(key in scores for scores in pairs.scores.values())]
    if not keys:
        raise ValueError(f"no row of {', '.join(files)} has a score")
    judgements = judge.judge([pairs.items[key].pair for key in keys])
    made = dict(zip(keys, judgements, strict=True))
    judged = {key: j.score for key, j in made.items() if j.score is not None}

    def scales(key: str) -> tuple[Scale, Scale]:
        item = pairs.items[key]
        return item.scale, judge_scale or (0, item.pair.highest)

    def scored(wanted: Sequence[str], people: Mapping[str, float]) -> list[Scored]:
        return [Scored(people[k], judged[k], scales(k)) for k in wanted if k in people and k in judged]

    people = {key: pairs.mean(key) for key in keys}
    by_scale: dict[str, list[str]] = {}
    by_level: dict[int, list[str]] = {}
    for key in keys:
        by_scale.setdefault(f"{_told_scale(scales(key)[0])} / {_told_scale(scales(key)[1])}", []).append(key)
        by_level.setdefault(pairs.items[key].pair.level, []).append(key)
    return AgreementReport(
        judge=judge.record(),
        n_drawn=pairs.drawn,
        n_absent=pairs.drawn - len(pairs.items),
        n_unfilled=len(pairs.items) - len(keys),
        unscored={key: j.reason for key, j in made.items() if j.score is None},
        weighted=weighted_share(judgements),
        overall=compared(scored(keys, people), seed=seed),
        by_scale={name: compared(scored(by_scale[name], people), seed=seed) for name in sorted(by_scale)},
        by_level={
            level: compared(scored(by_level[level], people), fewest=FEWEST_OF_LEVEL, seed=seed)
            for level in sorted(by_level)
        },
        annotators={
            name: compared(scored(keys, scores), names=(name, "judge"), seed=seed)
            for name, scores in pairs.scores.items()
        },
        unfilled={name: sum(a.score is None for a in rows) for name, rows in files.items()},
        between=_between(pairs, seed),
        note=f"{_PAPER} {_SAME_SCALES if {scales(k) for k in keys} == {(LIKERT, LIKERT)} else _OTHER_SCALES}",
    )


def _one_draw(files: Mapping[str, Sequence[Annotation]]) -> _Pairs:
    ids: dict[int, str] = {}
    sizes: set[int] = set()
    items: dict[str, Item] = {}
    for name, rows in files.items():
        for row in rows:
            sizes.add(row.drawn)
            if len(sizes) > 1 or ids.setdefault(row.number, row.id) != row.id:
                raise ValueError(f"{name}, row {row.id}: the files come from different draws; score them separately")
            items[row.id] = row.item
    ordered = {ids[number]: items[ids[number]] for number in sorted(ids)}
    scores = {name: {r.id: r.score for r in rows if r.score is not None} for name, rows in files.items()}
    return _Pairs(sizes.pop(), ordered, scores)


def _between(pairs: _Pairs, seed: int) -> dict[str, Agreement]:
    out = {}
    for one, other in combinations(pairs.scores, 2):
        first, second = pairs.scores[one], pairs.scores[other]
        common = [key for key in pairs.items if key in first and key in second]
        scored = [Scored(first[k], second[k], (pairs.items[k].scale, pairs.items[k].scale)) for k in common]
        out[f"{one} / {other}"] = compared(scored, names=(one, other), seed=seed)
    return out


def _told_scale(scale: Scale) -> str:
    return f"{scale[0]} to {scale[1]}"


# ---- in words ---------------------------------------------------------------------------------------------------


def told(report: AgreementReport) -> str:
    """The report as a table and sentences."""
    rows = [("people / judge", report.overall)]
    if len(report.by_scale) > 1:
        rows += [(f"scales {name}", found) for name, found in report.by_scale.items()]
    rows += [(f"level {level}", found) for level, found in report.by_level.items()]
    if len(report.annotators) > 1:
        rows += [(f"{name} / judge", found) for name, found in report.annotators.items()]
    rows += list(report.between.items())
    table = tabulate(
        [_told_row(name, found) for name, found in rows],
        headers=[
            "",
            "pairs",
            "scales",
            "means",
            "Pearson",
            "Fisher 95 %",
            "bootstrap 95 %",
            "Spearman",
            "bootstrap 95 %",
        ],
        disable_numparse=True,
    )
    return "\n".join([*_told_counts(report), "", table, *_remarks(rows), "", report.note])


def _told_counts(report: AgreementReport) -> list[str]:
    listed = frequent(report.unscored.values())
    weighted = "" if report.weighted is None else f"; {report.weighted:.0%} of its scores are weighted by probabilities"
    return [
        f"{report.n_drawn} pairs drawn; left out: {report.n_unfilled} without a person's score, {report.n_absent} in "
        f"no file, {len(report.unscored)} without a judge's score{f' ({listed})' if listed else ''}",
        f"judge: {report.judge.get('model', report.judge.get('judge'))}{weighted}",
        *(f"{name}: {n} rows without a score" for name, n in report.unfilled.items() if n),
    ]


def _told_row(name: str, found: Agreement) -> list[str]:
    scales = "shares of ranges" if found.of_range else " / ".join(map(_told_scale, found.scales))
    means = "" if found.means is None else " / ".join(f"{mean:.2f}" for mean in found.means)
    linear, ranked = found.pearson, found.spearman
    if linear is None or ranked is None:
        return [name, str(found.n), scales, means, "none", "", "", "none", ""]
    return [
        name,
        str(found.n),
        scales,
        means,
        f"{linear.value:.3f}",
        _told_interval(linear.fisher),
        _told_interval(linear.bootstrap),
        f"{ranked.value:.3f}",
        _told_interval(ranked.bootstrap),
    ]


def _told_interval(interval: tuple[float, float] | None) -> str:
    return "none" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _remarks(rows: Sequence[tuple[str, Agreement]]) -> list[str]:
    out = [f"{name}: {found.note}" for name, found in rows if found.note]
    for name, found in rows:
        undefined = max((_undefined(c) for c in (found.pearson, found.spearman)), default=0)
        if undefined:
            out.append(f"{name}: {undefined} of {RESAMPLES} resamples have a constant side and are left out")
    if any(found.of_range for _, found in rows):
        out.append("shares of ranges: pairs of several scales, each score as a share of its scale's range (0 to 1)")
    return out


def _undefined(correlation: Correlation | None) -> int:
    return 0 if correlation is None else correlation.n_undefined
