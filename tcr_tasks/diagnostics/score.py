"""The scores of a diagnostic's ranking, with intervals, and what makes a comparison not measurable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluators.metrics.bootstrap import Bootstrapped, Hits, bootstrap_mean, bootstrap_siblings, p_null
from evaluators.metrics.ranking import Run, top, top_and_tied
from evaluators.metrics.siblings import SiblingQuery, sibling_queries, summarise
from tcr_tasks.diagnostics.cases import Case

K_VALUES = (1, 2, 3, 4, 5)
# Above these shares a comparison says more about ties and length limits than about the model.
MOST_TIES = 0.1
MOST_NOT_MEASURABLE = 0.5
# Shares of documents longer than the model's limit, and of their tokens beyond it (evaluators.plugin.doubt).
TRUNCATION = ("truncated_documents_share", "truncated_tokens_share")
# Chance in a pair, and what equal scores count.
COIN = 0.5


@dataclass(frozen=True)
class Score:
    """One number.

    Attributes:
        metric: its name.
        value: 0..1 unless the metric says otherwise.
        n: queries it is an average of; of DS@1 and its p-values: those whose group was hit. For what is about
            documents, their number.
        low, high: 95 % percentile bootstrap interval, where there is one.
        stratum: the part of the queries it is about, such as a question type; empty: all of them.
    """

    metric: str
    value: float
    n: int
    low: float | None = None
    high: float | None = None
    stratum: str = ""


@dataclass(frozen=True)
class CaseScores:
    """What a ranking of a :class:`~tcr_tasks.diagnostics.cases.Case` gives.

    Attributes:
        scores: all numbers; none but of the documents if the comparison is not measurable.
        reason: why it is not measurable, or ``None``.
        notes: what a reader of the numbers should know.
        tops: query id -> its five best documents.
        per_query: query id -> outcome by target and group, for cases with one target a query.
    """

    scores: tuple[Score, ...]
    reason: str | None = None
    notes: tuple[str, ...] = ()
    tops: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_query: Mapping[str, SiblingQuery] = field(default_factory=dict)


def score_case(run: Run, case: Case, seed: int = 0) -> CaseScores:
    """Score a ranking of the case's documents.

    Queries that are not measurable are left out and counted in a note. Everything lies in 0..1.

    - One target a query among look-alikes: :func:`evaluators.metrics.siblings.summarise`'s values, and the p-values of
      DS@1 as in :func:`tcr_tasks.statistics.interval_scores`, again by stratum; where siblings are labelled,
      :func:`strategy_scores`.
    - Parts of a table (several are right, or all that is ranked is the group): ``recall_at_k``, the share of queries
      with any right part among the k best, and ``chance_recall_at_k``, the same of a random order.
    - Pairs: :func:`pair_scores`.

    Args:
        run: query id -> {document id: score}, with every candidate of a query.
        case: what was asked.
        seed: of the bootstrap.

    Raises:
        ValueError: naming the query, if the run lacks one or holds scores that are not finite numbers.
    """
    lacking = [q for q in case.queries if not run.get(q)]
    if lacking:
        raise ValueError(f"the run ranks nothing for {len(lacking)} queries, such as {lacking[0]!r}")
    asked = [q for q in case.queries if q not in case.not_measurable]
    left_out = len(case.queries) - len(asked)
    notes = list(case.notes)
    if left_out:
        told = sorted({case.not_measurable[q] for q in case.queries if q in case.not_measurable})
        notes.append(
            f"{left_out} of {len(case.queries)} queries are left out: {'; '.join(told)} (with more than "
            f"{MOST_NOT_MEASURABLE:.0%} left out, a comparison counts as not measurable)"
        )
    if left_out > MOST_NOT_MEASURABLE * len(case.queries) or not asked:
        return CaseScores((), notes[-1] if left_out else "there is no query to ask", tuple(notes))
    tops = {q: tuple(top(run[q], K_VALUES[-1], q)) for q in asked}
    if case.pairwise:
        return _score_pairs(run, case, asked, tops, notes, seed)
    if is_about_parts(case):
        return CaseScores(tuple(_part_scores(case, asked, tops, seed)), None, tuple(notes), tops)
    targets = {q: case.targets[q][0] for q in asked}
    per_query = sibling_queries(run, targets, {q: case.groups[q] for q in asked}, K_VALUES)
    scores = _sibling_scores(per_query, "", seed)
    scores.append(Score("chance_recall_at_1", float(np.mean([1 / _pool_size(case, q) for q in asked])), len(asked)))
    strata = {q: case.strata[q] for q in asked if q in case.strata}
    for label in sorted(set(strata.values())):
        scores += _sibling_scores({q: per_query[q] for q in strata if strata[q] == label}, label, seed)
    scores += strategy_scores(case, per_query, seed)
    return CaseScores(tuple(scores), None, tuple(notes), tops, per_query)


def is_about_parts(case: Case) -> bool:
    """Whether rows or chunks of one table are ranked: several may be right, and the group is all there is to rank."""
    if any(len(targets) != 1 for targets in case.targets.values()):
        return True
    return case.candidates is not None and all(
        set(case.groups[q]) == set(candidates) for q, candidates in case.candidates.items()
    )


def strategy_scores(case: Case, per_query: Mapping[str, SiblingQuery], seed: int = 0) -> list[Score]:
    """Which kind of sibling is mistaken for the target, over the queries whose siblings are all labelled.

    ``top_is_<label>``: share of queries whose best document is a sibling of that label (``top_is_target``,
    ``top_is_other``: the target, a document outside the group).
    """
    labelled = [q for q in per_query if set(case.groups[q]) <= case.labels.get(q, {}).keys() | set(case.targets[q])]
    if not labelled:
        return []
    kinds = [_kind(per_query[q].top, q, case) for q in labelled]
    names = {label for q in labelled for d, label in case.labels[q].items() if d not in case.targets[q]}
    # The resamples of R@1 and GR@1, so that one number has one interval.
    drawn = bootstrap_siblings(Hits([k == "target" for k in kinds], [k != "other" for k in kinds]), seed=seed)
    group = drawn.gr_at_1.interval()
    intervals = {"target": drawn.recall_at_1.interval(), "other": (1 - group.high, 1 - group.low)}
    out = []
    for name in ("target", *sorted(names), "other"):
        is_so = [float(kind == name) for kind in kinds]
        low, high = intervals.get(name) or bootstrap_mean(is_so, seed=seed).interval()
        out.append(Score(f"top_is_{name}", float(np.mean(is_so)), len(labelled), low, high))
    return out


def _kind(best: str | None, query: str, case: Case) -> str:
    if best in case.targets[query]:
        return "target"
    return case.labels[query][best] if best is not None and best in case.groups[query] else "other"


def _sibling_scores(per_query: Mapping[str, SiblingQuery], stratum: str, seed: int) -> list[Score]:
    found = list(per_query.values())
    hits = Hits([q.target_in[1] for q in found], [q.group_in[1] for q in found])
    drawn = bootstrap_siblings(hits, seed=seed)
    intervals: dict[str, tuple[float | None, float | None]] = {
        name: b.interval() for name, b in drawn._asdict().items()
    }
    summary = summarise(found)
    n, n_hit = int(summary.pop("n_queries")), sum(q.group_in[1] for q in found)
    summary.pop("n_without_results")
    summary["ds_at_1_p_bootstrap"] = drawn.ds_at_1.p_bootstrap(summary["chance_ds_at_1"])
    summary["ds_at_1_p_null"] = p_null(hits, [q.group_size for q in found])
    out = []
    for name, value in summary.items():
        low, high = intervals.get(name, (None, None))
        out.append(Score(name, float(value), n_hit if name.startswith("ds_at_1") else n, low, high, stratum))
    return out


# ---- parts of a table ------------------------------------------------------------------------------------------


def _part_scores(case: Case, asked: Sequence[str], tops: Mapping[str, Sequence[str]], seed: int) -> list[Score]:
    out = []
    for k in K_VALUES:
        hits = [float(not set(case.targets[q]).isdisjoint(tops[q][:k])) for q in asked]
        low, high = bootstrap_mean(hits, seed=seed).interval()
        out.append(Score(f"recall_at_{k}", float(np.mean(hits)), len(asked), low, high))
    for k in K_VALUES:
        chances = [chance_of_any(len(case.targets[q]), _pool_size(case, q), k) for q in asked]
        out.append(Score(f"chance_recall_at_{k}", float(np.mean(chances)), len(asked)))
    return out


def chance_of_any(right: int, n: int, k: int) -> float:
    """Probability that a random order of ``n`` documents has any of the ``right`` ones among the k best.

    1 - C(n - right, k) / C(n, k); 1 if k is at least n.
    """
    missed = 1.0
    for place in range(min(k, n)):
        missed *= max(n - right - place, 0) / (n - place)
    return 1 - missed


def _pool_size(case: Case, query: str) -> int:
    return len(case.documents) if case.candidates is None else len(case.candidates[query])


# ---- pairs -----------------------------------------------------------------------------------------------------


def _score_pairs(
    run: Run, case: Case, asked: Sequence[str], tops: Mapping[str, tuple[str, ...]], notes: list[str], seed: int
) -> CaseScores:
    ties = float(np.mean([preference(run, case, q) == COIN for q in asked]))
    if ties > MOST_TIES:
        reason = f"{ties:.0%} of {len(asked)} pairs have equal scores, more than {MOST_TIES:.0%}"
        return CaseScores((), reason, tuple(notes), tops)
    targets = {q: case.targets[q][0] for q in asked}
    per_query = sibling_queries(run, targets, {q: case.groups[q] for q in asked}, K_VALUES)
    return CaseScores(tuple(pair_scores(run, case, per_query, seed)), None, tuple(notes), tops, per_query)


def pair_scores(run: Run, case: Case, per_query: Mapping[str, SiblingQuery], seed: int = 0) -> list[Score]:
    """Scores of pairs, in which equal scores (in float32) count one half.

    ``recall_at_1`` and ``gr_at_1`` are the expectations when the best document is drawn among those that share the
    best score; ``ds_at_1`` is their ratio, by chance 0.5: above it, the first-named table is preferred. ``preference``
    asks the same of all queries, whatever else is ranked above the pair: share of queries that score the target higher
    than its variant. ``pair_tied_share``: share of queries with equal scores for both. ``recall_at_k`` and ``gr_at_k``
    for k above 1 follow the tie rule.
    """
    found = list(per_query.values())
    n, n_hit = len(found), sum(q.group_if_tied > 0 for q in found)
    target, group = [q.target_if_tied for q in found], [q.group_if_tied for q in found]
    preferred = [preference(run, case, q) for q in per_query]
    means = {
        name: bootstrap_mean(values, seed=seed)
        for name, values in (("recall_at_1", target), ("gr_at_1", group), ("preference", preferred))
    }
    ratio = means["recall_at_1"].value / means["gr_at_1"].value if any(group) else 0.0
    out = [_with_interval(name, b, n) for name, b in means.items()]
    if all(value in (0, 1) for value in (*target, *group)):
        out.append(_with_interval("ds_at_1", bootstrap_siblings(Hits(target, group), seed=seed).ds_at_1, n_hit))
    else:  # a ratio of halves has no interval here
        out.append(Score("ds_at_1", ratio, n_hit))
    summary = summarise(found)
    out += [Score(f"{name}_at_{k}", summary[f"{name}_at_{k}"], n) for name in ("recall", "gr") for k in K_VALUES[1:]]
    out.append(Score("chance_ds_at_1", summary["chance_ds_at_1"], n))
    out.append(Score("pair_tied_share", float(np.mean([p == COIN for p in preferred])), n))
    return out


def preference(run: Run, case: Case, query: str) -> float:
    """1 if the query scores its target above the variant, 0 if below, 0.5 if equal in float32.

    Raises:
        ValueError: if the group is not the target and one variant, or the run lacks one of them.
    """
    target = case.targets[query][0]
    others = [d for d in case.groups[query] if d != target]
    if len(others) != 1:
        raise ValueError(f"query {query!r}: a pair is a target and one variant, got the group {case.groups[query]}")
    lacking = [d for d in (target, others[0]) if d not in run[query]]
    if lacking:
        raise ValueError(f"query {query!r}: the ranking lacks {lacking[0]!r} of its pair; rank all documents")
    first, tied = top_and_tied({d: run[query][d] for d in (target, others[0])}, 1, query)
    return COIN if len(tied) > 1 else float(first[0] == target)


def _with_interval(name: str, bootstrapped: Bootstrapped, n: int) -> Score:
    low, high = bootstrapped.interval()
    return Score(name, bootstrapped.value, n, low, high)
