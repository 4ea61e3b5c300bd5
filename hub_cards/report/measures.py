"""Which scores of a result file the page shows, in which words, and how it writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["score", "doubt", "count", "p"]

SCALE = (
    "Every score is on the scale of the result files: 0 to 1, or -1 to 1 for p-MRR; InstFol is 1 at best, 0 where the "
    "instruction made no difference, and has no fixed lower end. Nothing is shown times 100; values that papers print "
    "times 100 (p-MRR, MAP and nDCG of FollowIR, InstFol of IFIR) were divided by 100."
)
_CHANCE = re.compile(r"(?P<part>level_[0-3]_|EM_|SF_|SA_)?(?P<plain>query_only_)?(?P<rest>.+)")
LEVELS = (1, 2, 3)
# Instructions without a level, where others have one: they count in the mean over levels.
NO_LEVEL = 0
QUESTION_TYPES = ("EM", "SF", "SA")


class Measure(NamedTuple):
    """A number of a result file.

    Attributes:
        key: its name there, or one that :func:`value_of` derives.
        label: heading of a column.
        about: what it is, in a sentence.
        kind: a score, a share that makes scores doubtful, a count, or a p-value.
        group: heading above several columns; empty: none.
        scale: the range of its values.
    """

    key: str
    label: str
    about: str
    kind: Kind = "score"
    group: str = ""
    scale: str = "0..1"


_INSTFOL_SCALE = "at most 1"
_DOUBT = "how sure"

DOUBTS = (
    Measure("tied_top_share", "tied", "share of queries whose best score several documents share", "doubt", _DOUBT),
    Measure(
        "truncated_documents_share",
        "docs cut",
        "share of documents longer than the model's length limit; '-' where its tokenizer or limit is not known",
        "doubt",
        _DOUBT,
    ),
    Measure(
        "truncated_tokens_share",
        "tokens cut",
        "share of the documents' tokens beyond the model's length limit",
        "doubt",
        _DOUBT,
    ),
    Measure("truncated_queries_share", "queries cut", "share of queries longer than the length limit", "doubt", _DOUBT),
)

_IFIR = (
    Measure("ndcg_at_20", "nDCG@20", "standard nDCG@20 over the instructed queries; the main score"),
    Measure("query_only_ndcg_at_20", "nDCG@20 plain", "the ranking of the plain query, measured for each instruction"),
    Measure(
        "instfol_at_20",
        "InstFol@20",
        "the judge's verdict on what the instruction changed, with each rubric's own maximum",
        scale=_INSTFOL_SCALE,
    ),
    Measure(
        "paper_ndcg_at_20", "nDCG@20", "as the authors' code computes it; compares with the paper", group="paper's way"
    ),
    Measure(
        "paper_mrr_at_20", "MRR@20", "as the authors' code computes it; compares with the paper", group="paper's way"
    ),
    Measure(
        "paper_instfol_at_20",
        "InstFol@20",
        "with the paper's maximum of 3 everywhere; compares with the paper",
        group="paper's way",
        scale=_INSTFOL_SCALE,
    ),
    *(
        Measure(f"level_{n}_{key}", label, f"{about}, instructions {of}", group=group, scale=scale)
        for key, group, about, scale in (
            ("ndcg_at_20", "nDCG@20 by level", "standard nDCG@20", "0..1"),
            ("paper_ndcg_at_20", "nDCG@20 by level, paper's way", "nDCG@20 as the authors' code computes it", "0..1"),
            ("instfol_at_20", "InstFol@20 by level", "InstFol@20", _INSTFOL_SCALE),
            ("paper_instfol_at_20", "InstFol@20 by level, paper's way", "InstFol@20, maximum 3", _INSTFOL_SCALE),
        )
        for n, label, of in ((NO_LEVEL, "none", "without a level"), *((n, f"{n}", f"of level {n}") for n in LEVELS))
    ),
    Measure(
        "unscored_share",
        "unscored",
        "pairs of instruction and passage without a judge's score, as a share",
        "doubt",
        _DOUBT,
    ),
    Measure(
        "n_without_relevant", "no relevant", "instructed queries without a relevant passage", "count", _DOUBT, "count"
    ),
    Measure("n_queries", "queries", "instructed queries", "count", _DOUBT, "count"),
)
_FOLLOWIR = (
    Measure(
        "p-MRR",
        "p-MRR",
        "positive: documents that the changed instruction excludes moved down; 0: nothing moved; the main score",
        scale="-1..1",
    ),
    Measure(
        "followir_score",
        "retrieval",
        "MAP@1000 (nDCG@5 on News21) of the original queries against the original judgements",
    ),
    Measure(
        "followir_score_changed_qrels",
        "retrieval, changed judgements",
        "the same rankings against the changed judgements",
    ),
    Measure("n_missing_candidates", "unranked", "candidates that the model left unranked", "count", _DOUBT, "count"),
    Measure(
        "n_missing_changed_documents",
        "changed, unranked",
        "excluded documents that the model left unranked",
        "count",
        _DOUBT,
        "count",
    ),
    Measure("n_topics", "topics", "pairs of an original and a changed query", "count", _DOUBT, "count"),
)
_TCR = (
    Measure("recall_at_1", "R@1", "the target is ranked first; the main score"),
    Measure("gr_at_1", "GR@1", "a table of the target's group is ranked first"),
    Measure("ds_at_1", "DS@1", "R@1 / GR@1: the right table, given that the group was found"),
    Measure("recall_at_3", "R@3", "the target is among the first three"),
    Measure("recall_at_5", "R@5", "the target is among the first five"),
    Measure(
        "ds_at_1_p_null", "p, exact", "DS@1 against chance within the group, one-sided, exact", "p", "DS@1 > chance"
    ),
    Measure(
        "ds_at_1_p_bootstrap",
        "p, bootstrap",
        "share of resamples with DS@1 at or below chance",
        "p",
        "DS@1 > chance",
    ),
    *(
        Measure(f"{t}_{key}", t, f"{name}, questions of type {t}", group=f"{name} by type")
        for key, name in (("recall_at_1", "R@1"), ("gr_at_1", "GR@1"), ("ds_at_1", "DS@1"))
        for t in QUESTION_TYPES
    ),
    Measure(
        "ds_at_1_expected_under_ties",
        "DS@1, ties drawn",
        "DS@1 when tied best tables are drawn at random: far from DS@1, ties decide",
        "doubt",
        _DOUBT,
    ),
    Measure("n_queries", "questions", "questions", "count", _DOUBT, "count"),
)
_INSTRUCTIR = (
    Measure("robustness_at_10", "robustness@10", "mean over base queries of the lowest nDCG@10 of their instructions"),
    Measure("ndcg_at_10", "nDCG@10", "mean over all instructed queries"),
    Measure("n_base_queries", "queries", "base queries", "count", _DOUBT, "count"),
)
_OTHER = (Measure("main_score", "main score", "the task's own main score", scale="the task's own"),)

MEASURES: Mapping[str, tuple[Measure, ...]] = {
    "IFIR": (*_IFIR, *DOUBTS),
    "FollowIR": (*_FOLLOWIR, *DOUBTS),
    "TCR-Bench": (*_TCR, *DOUBTS),
    "InstructIR": (*_INSTRUCTIR, *DOUBTS),
    "other": (*_OTHER, *DOUBTS),
}


class Score(NamedTuple):
    """A value with its bounds; ``None`` where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


MISSING = Score(None)


def value_of(scores: Mapping[str, Any], key: str) -> Score:
    """A score of a result file with its 95 % interval where the file has one.

    ``unscored_share`` is derived: pairs without a judge's score / all pairs that a judge was asked about.
    """
    if key == "unscored_share":
        judged, unscored = (number(scores.get(name)) for name in ("n_judged", "n_unscored"))
        known = judged is not None and unscored is not None and judged + unscored > 0
        return Score(unscored / (judged + unscored)) if known else MISSING  # type: ignore[operator]
    value = number(scores.get(key))
    if value is None:
        return MISSING
    return Score(value, number(scores.get(f"{key}_low")), number(scores.get(f"{key}_high")))


def chance_of(scores: Mapping[str, Any], key: str) -> float | None:
    """What a random ranking scores by the same data, where the result file says it.

    0 for p-MRR: exchanging the two rankings of a query turns its sign, so that random ones give 0 on average.
    """
    if key == "p-MRR":
        return 0.0
    found = _CHANCE.fullmatch(key)
    assert found is not None
    return number(scores.get(f"{found['part'] or ''}chance_{found['rest']}"))


def number(value: Any) -> float | None:
    """A finite number, or ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def written(value: float | None, kind: Kind = "score") -> str:
    """A number as tables show it; '-' for a missing one."""
    if value is None:
        return "-"
    if kind == "count":
        return f"{value:.0f}"
    if kind == "p" and value < 0.001:
        return "<0.001"
    return f"{value:z.3f}"


def interval_written(score: Score) -> str:
    """``[low, high]``, empty without an interval."""
    if score.low is None or score.high is None:
        return ""
    return f"[{score.low:z.3f}, {score.high:z.3f}]"
