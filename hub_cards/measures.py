"""The scores of result files that are shown: on the results page, on model cards, by `check-submission`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from mteb.abstasks import AbsTask

from followir_tasks.collection import FollowIRCollection
from followir_tasks.instructir import InstructIRRobustness
from followir_tasks.tasks import FollowIRTask
from ifir_tasks.tasks import IFIRTask
from tcr_tasks.tasks import TCRTask

Kind = Literal["score", "doubt", "count", "p"]

UNIT, SIGNED, AT_MOST_1, OWN, COUNT = "0..1", "-1..1", "at most 1", "the task's own", "count"
# Lowest and highest value on a scale; the others have none.
LIMITS: Mapping[str, tuple[float, float]] = {UNIT: (0, 1), SIGNED: (-1, 1), AT_MOST_1: (-math.inf, 1)}
SCALE = (
    "Every score is on the scale of the result files: 0 to 1, or -1 to 1 for p-MRR; InstFol is 1 at best, 0 where the "
    "instruction made no difference, and has no fixed lower end. Nothing is shown times 100; values that papers print "
    "times 100 (p-MRR, MAP and nDCG of FollowIR, InstFol of IFIR) were divided by 100."
)
_PATTERNS = (
    (SIGNED, re.compile(r"p-MRR(_low|_high)?")),
    (AT_MOST_1, re.compile(r"(.*_)?instfol_at_\d+(_low|_high)?")),
    (
        UNIT,
        re.compile(
            r"(?!nauc_)(.*_)?(ndcg|map|recall|precision|mrr|hit_rate|group_hit|gr|ds|robustness)_at_\d+"
            r"(_low|_high|_p_null|_p_bootstrap|_expected_under_ties|_without_column_deletion)?"
            r"|(.*_)?(accuracy|neighbourhood_hit_target_miss)|(chance_)?followir_score.*|.*_share"
        ),
    ),
)
LEVELS = (1, 2, 3)
# Instructions without a level, where others have one: they count in the mean over levels.
NO_LEVEL = 0
QUESTION_TYPES = {"EM": "exact match", "SF": "selective filtering", "SA": "selective aggregation"}


class Measure(NamedTuple):
    """A number of a result file, where its 95 % interval is ``<key>_low`` and ``<key>_high``.

    Attributes:
        key: its name there, or one that :func:`hub_cards.values.value_of` derives.
        label: heading of a column.
        about: what it is, in a sentence.
        kind: a score, a share that makes scores doubtful, a count, or a p-value.
        group: heading above several columns; empty: none.
        scale: the range of its values.
        meaning: how to read the scale, on a card.
        name: what people call it where no other heading stands above; only of those on cards.
        judged: whether a judge gave it.
        on_card: whether model cards have it.
        on_page: whether the results page has a column of it.
    """

    key: str
    label: str
    about: str
    kind: Kind = "score"
    group: str = ""
    scale: str = UNIT
    meaning: str = ""
    name: str = ""
    judged: bool = False
    on_card: bool = False
    on_page: bool = True


def scale_of(key: str) -> str | None:
    """The scale of a score, or of a bound of its interval, by its name; ``None`` if that does not tell.

    Args:
        key: as in result files; one of nested scores may have the names above it before it (``og.map_at_5``).
    """
    name = key.rsplit(".", 1)[-1]
    return next((scale for scale, pattern in _PATTERNS if pattern.fullmatch(name)), None)


def _count(key: str, label: str, about: str) -> Measure:
    return Measure(key, label, about, "count", _DOUBT, COUNT)


def _doubt(key: str, label: str, about: str) -> Measure:
    return Measure(key, label, about, "doubt", _DOUBT)


_DOUBT = "how sure"
_DOUBTS = (
    _doubt("tied_top_share", "tied", "share of queries whose best score several documents share"),
    _doubt(
        "truncated_documents_share",
        "docs cut",
        "share of documents (for rerankers: of pairs) not read whole; '-' where its tokenizer or limit is not known",
    ),
    _doubt("truncated_tokens_share", "tokens cut", "share of the documents' tokens that the model does not read"),
    _doubt("truncated_queries_share", "queries cut", "share of queries (for rerankers: of pairs) not read whole"),
)

# ---- IFIR --------------------------------------------------------------------------------------------------------

_PAPER = "paper's way"
_NO_DIFFERENCE = "0: the instruction made no difference"
_IFIR_MAIN = (
    Measure(
        "ndcg_at_20",
        "nDCG@20",
        "standard nDCG@20 over the instructed queries; the main score",
        name="nDCG@20",
        on_card=True,
    ),
    Measure(
        "query_only_ndcg_at_20",
        "nDCG@20 plain",
        "the ranking of the plain query, measured for each instruction",
        name="nDCG@20 of the query without instruction",
        on_card=True,
    ),
    Measure(
        "instfol_at_20",
        "InstFol@20",
        "the judge's verdict on what the instruction changed, each rubric with its maximum; mean of the levels' means",
        scale=AT_MOST_1,
        meaning=_NO_DIFFERENCE,
        name="InstFol@20",
        judged=True,
        on_card=True,
    ),
    Measure(
        "paper_ndcg_at_20",
        "nDCG@20",
        "as the authors' code computes it; compares with the paper",
        group=_PAPER,
        name="nDCG@20 as the authors compute it",
        on_card=True,
    ),
    Measure("paper_mrr_at_20", "MRR@20", "as the authors' code computes it; compares with the paper", group=_PAPER),
    Measure(
        "paper_instfol_at_20",
        "InstFol@20",
        "with the paper's maximum of 3 everywhere; mean of the levels' means; compares with the paper",
        group=_PAPER,
        scale=AT_MOST_1,
        meaning=_NO_DIFFERENCE,
        name="InstFol@20 with the paper's maximum of 3",
        judged=True,
        on_card=True,
    ),
)
# By key: heading above the levels, and what it is.
_BY_LEVEL = {
    "ndcg_at_20": ("nDCG@20 by level", "standard nDCG@20"),
    "query_only_ndcg_at_20": ("nDCG@20 plain by level", "nDCG@20 of the plain query"),
    "paper_ndcg_at_20": ("nDCG@20 by level, paper's way", "nDCG@20 as the authors' code computes it"),
    "instfol_at_20": ("InstFol@20 by level", "InstFol@20"),
    "paper_instfol_at_20": ("InstFol@20 by level, paper's way", "InstFol@20, maximum 3"),
}


def _of_level(measure: Measure, level: int) -> Measure:
    group, about = _BY_LEVEL[measure.key]
    without = level == NO_LEVEL
    return measure._replace(
        key=f"level_{level}_{measure.key}",
        label="none" if without else f"{level}",
        about=f"{about}, instructions {'without a level' if without else f'of level {level}'}",
        group=group,
        name=f"{measure.name}, {'without a level' if without else f'level {level}'}",
        on_card=measure.key != "paper_instfol_at_20",
        on_page=measure.key != "query_only_ndcg_at_20",
    )


_IFIR = (
    *_IFIR_MAIN,
    *(_of_level(m, level) for key in _BY_LEVEL for m in _IFIR_MAIN if m.key == key for level in (NO_LEVEL, *LEVELS)),
    _doubt("unscored_share", "unscored", "pairs of instruction and passage without a judge's score, as a share"),
    _count("n_without_relevant", "no relevant", "instructed queries without a relevant passage"),
    _count("n_queries", "queries", "instructed queries"),
)

# ---- FollowIR and InstructIR -------------------------------------------------------------------------------------

_FOLLOWIR = (
    Measure(
        "p-MRR",
        "p-MRR",
        "positive: documents that the changed instruction excludes moved down; 0: nothing moved; the main score",
        scale=SIGNED,
        meaning="positive: excluded documents move down",
        name="p-MRR",
        on_card=True,
    ),
    Measure(
        "followir_score",
        "retrieval",
        "MAP@1000 (nDCG@5 on News21, nDCG@20 on mFollowIR) of the original queries against the original judgements",
        name="FollowIR score",
        on_card=True,
    ),
    Measure(
        "followir_score_changed_qrels",
        "retrieval, changed judgements",
        "the same rankings against the changed judgements",
        name="FollowIR score against the changed judgements",
        on_card=True,
    ),
    _count("n_missing_candidates", "unranked", "candidates that the model left unranked"),
    _count("n_missing_changed_documents", "changed, unranked", "excluded documents that the model left unranked"),
    _count("n_topics", "topics", "pairs of an original and a changed query"),
)
_COLLECTION = (
    Measure(
        "followir_score",
        "retrieval",
        "MAP@1000 (or nDCG@5, an option) of the original queries, searched in the whole corpus",
        name="FollowIR score on the whole collection",
        on_card=True,
    ),
    _count("n_topics", "topics", "original queries"),
)
_INSTRUCTIR = (
    Measure(
        "robustness_at_10",
        "robustness@10",
        "mean over base queries of the lowest nDCG@10 of their instructions",
        name="Robustness@10",
        on_card=True,
    ),
    Measure("ndcg_at_10", "nDCG@10", "mean over all instructed queries", name="nDCG@10", on_card=True),
    _count("n_base_queries", "queries", "base queries"),
)

# ---- TCR-Bench ---------------------------------------------------------------------------------------------------

_TCR_MAIN = (
    Measure("recall_at_1", "R@1", "the target is ranked first; the main score", name="R@1", on_card=True),
    Measure("gr_at_1", "GR@1", "a table of the target's group is ranked first", name="GR@1", on_card=True),
    Measure(
        "ds_at_1", "DS@1", "R@1 / GR@1: the right table, given that the group was found", name="DS@1", on_card=True
    ),
)


def _of_type(measure: Measure, kind: str) -> Measure:
    return measure._replace(
        key=f"{kind}_{measure.key}",
        label=kind,
        about=f"{measure.label}, questions of type {kind}",
        group=f"{measure.label} by type",
        name=f"{measure.name}, {QUESTION_TYPES[kind]} ({kind})",
    )


_BEYOND_CHANCE = "DS@1 > chance"
_TCR = (
    *_TCR_MAIN,
    Measure("recall_at_3", "R@3", "the target is among the first three"),
    Measure("recall_at_5", "R@5", "the target is among the first five"),
    Measure(
        "ds_at_1_p_null",
        "p, exact",
        "DS@1 against chance within the group, one-sided, exact",
        "p",
        _BEYOND_CHANCE,
    ),
    Measure(
        "ds_at_1_p_bootstrap",
        "p, bootstrap",
        "share of resamples with DS@1 at or below chance",
        "p",
        _BEYOND_CHANCE,
    ),
    *(_of_type(measure, kind) for measure in _TCR_MAIN for kind in QUESTION_TYPES),
    _doubt(
        "ds_at_1_expected_under_ties",
        "DS@1, ties drawn",
        "DS@1 when tied best tables are drawn at random: far from DS@1, ties decide",
    ),
    _count("n_queries", "questions", "questions"),
)

# ---- by benchmark ------------------------------------------------------------------------------------------------

OTHER = "other"
_CLASSES = {
    "IFIR": IFIRTask,
    "FollowIR": FollowIRTask,
    "FollowIR, whole collections": FollowIRCollection,
    "TCR-Bench": TCRTask,
    "InstructIR": InstructIRRobustness,
}
BENCHMARKS = (*_CLASSES, OTHER)
# The main score comes first.
MEASURES: Mapping[str, tuple[Measure, ...]] = {
    "IFIR": (*_IFIR, *_DOUBTS),
    "FollowIR": (*_FOLLOWIR, *_DOUBTS),
    "FollowIR, whole collections": (*_COLLECTION, *_DOUBTS),
    "TCR-Bench": (*_TCR, *_DOUBTS),
    "InstructIR": (*_INSTRUCTIR, *_DOUBTS),
    OTHER: (Measure("main_score", "main score", "the task's own main score", scale=OWN), *_DOUBTS),
}


def benchmark_of(task: type[AbsTask]) -> str:
    """The benchmark that a task belongs to, among those that have measures of their own; else :data:`OTHER`."""
    return next((name for name, base in _CLASSES.items() if issubclass(task, base)), OTHER)
