"""Does a retriever find the one source that can answer, among its look-alikes? (TCR-Bench, section 4.1.2)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from evaluators.metrics.ranking import Run, check_k, check_query_ids, top_and_tied


@dataclass(frozen=True, slots=True)
class SiblingQuery:
    """What one query contributes to :func:`sibling_scores`.

    Attributes:
        group_size: number of sources in the group (target and siblings).
        target_in: k -> whether the target is among the k best.
        group_in: k -> how many of the k best belong to the group.
        top: the best source, ``None`` if the run is empty.
        tied: whether several sources share the best score in float32.
        target_if_tied, group_if_tied: probability that the best source is the target, or in the group, when
            tied best sources are drawn at random.
    """

    group_size: int
    target_in: dict[int, bool]
    group_in: dict[int, int]
    top: str | None
    tied: bool
    target_if_tied: float
    group_if_tied: float


def sibling_queries(
    run: Run,
    targets: Mapping[str, str],
    groups: Mapping[str, Sequence[str]],
    k_values: Sequence[int] = (1, 2, 3, 4, 5),
) -> dict[str, SiblingQuery]:
    """The per-query values behind :func:`sibling_scores`, with the same arguments and errors."""
    ks = sorted({1, *map(check_k, k_values)})
    check_query_ids(targets, "targets")
    if not targets:
        raise ValueError("sibling scores are undefined without queries: `targets` is empty")
    out: dict[str, SiblingQuery] = {}
    for query_id, target in targets.items():
        group = _check_group(query_id, target, groups)
        if query_id not in run:
            raise ValueError(f"query {query_id!r} has a target but is not among the {len(run)} queries of the run")
        best, tied = top_and_tied(run[query_id], ks[-1], query_id)
        place = best.index(target) if target in best else ks[-1]
        hits = [0, *accumulate(doc in group for doc in best)]
        out[query_id] = SiblingQuery(
            group_size=len(group),
            target_in={k: place < k for k in ks},
            group_in={k: hits[min(k, len(best))] for k in ks},
            top=best[0] if best else None,
            tied=len(tied) > 1,
            target_if_tied=(target in tied) / len(tied) if tied else 0.0,
            group_if_tied=len(group.intersection(tied)) / len(tied) if tied else 0.0,
        )
    return out


def sibling_scores(
    run: Run,
    targets: Mapping[str, str],
    groups: Mapping[str, Sequence[str]],
    k_values: Sequence[int] = (1, 2, 3, 4, 5),
    strata: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """R@k, GR@k and DS@1 of TCR-Bench (section 4.1.2), with what makes them doubtful.

    All values but ``n_queries`` and ``n_without_results`` lie in 0..1; higher is better for the scores. Sources
    are ranked by (score, id) descending. Averages run over the queries in ``targets``.

    =================================== =======================================================================
    ``recall_at_k``                     share of queries with the target among the k best
    ``gr_at_k``                         mean of (members of the group among the k best) / min(group size, k)
    ``group_hit_at_k``                  share of queries with any member of the group among the k best; the
                                        paper's Table 10 prints this under the name GR@k: never compare the two
    ``ds_at_1``                         recall_at_1 / gr_at_1, a ratio of averages; 0 when gr_at_1 is 0
    ``ds_at_1_expected_under_ties``     the same ratio when the best source is drawn at random among those that
                                        share the best score (compared in float32)
    ``chance_ds_at_1``                  mean of 1 / group size: expected DS@1 of a blind draw within the group
    ``tied_top_share``                  share of queries whose best score is shared (in float32)
    ``neighbourhood_hit_target_miss``   share of queries whose best source is a sibling of the target
    ``n_queries``, ``n_without_results`` queries scored; queries for which the run holds no source at all
    =================================== =======================================================================

    Args:
        run: query id -> {source id: score}.
        targets: query id -> the one source that answers.
        groups: query id -> target and siblings, in any order.
        k_values: cut-offs; 1 is always added, since DS@1 needs it.
        strata: query id -> label, such as the question type. Adds every key again per label, as
            ``<label>_recall_at_1`` and so on.

    Raises:
        ValueError: naming the id, for a query without run or group, a target outside its group, an empty group,
            a group with duplicates, a score that is not finite, an id that is not a string, k < 1, no query, a
            query without stratum, or a stratum whose keys would collide with others.
    """
    per_query = sibling_queries(run, targets, groups, k_values)
    out: dict[str, Any] = summarise(list(per_query.values()))
    if strata is not None:
        by_label: dict[str, list[SiblingQuery]] = {}
        for query_id, values in per_query.items():
            if query_id not in strata:
                raise ValueError(f"query {query_id!r} has no stratum; strata name {len(strata)} queries")
            if not isinstance(strata[query_id], str):
                raise ValueError(f"query {query_id!r}: its stratum {strata[query_id]!r} is not a string")
            by_label.setdefault(strata[query_id], []).append(values)
        for label in sorted(by_label):
            for key, value in summarise(by_label[label]).items():
                if f"{label}_{key}" in out:
                    raise ValueError(f"the stratum {label!r} gives the key {label}_{key} a second meaning; rename it")
                out[f"{label}_{key}"] = value
    return out


def summarise(queries: Sequence[SiblingQuery]) -> dict[str, float]:
    """The averages of :func:`sibling_scores` over already scored queries (at least one)."""
    n = len(queries)
    if n == 0:
        raise ValueError("no query to average over")
    ks = list(queries[0].target_in)
    out: dict[str, float] = {}
    for k in ks:
        out[f"recall_at_{k}"] = sum(q.target_in[k] for q in queries) / n
    for k in ks:
        out[f"gr_at_{k}"] = sum(q.group_in[k] / min(q.group_size, k) for q in queries) / n
    for k in ks:
        out[f"group_hit_at_{k}"] = sum(q.group_in[k] > 0 for q in queries) / n
    out["ds_at_1"] = _ratio(out["recall_at_1"], out["gr_at_1"])
    out["ds_at_1_expected_under_ties"] = _ratio(
        sum(q.target_if_tied for q in queries), sum(q.group_if_tied for q in queries)
    )
    out["chance_ds_at_1"] = sum(1 / q.group_size for q in queries) / n
    out["tied_top_share"] = sum(q.tied for q in queries) / n
    out["neighbourhood_hit_target_miss"] = sum(q.group_in[1] == 1 and not q.target_in[1] for q in queries) / n
    out["n_queries"] = n
    out["n_without_results"] = sum(q.top is None for q in queries)
    return out


def _ratio(target: float, group: float) -> float:
    return target / group if group else 0.0


def _check_group(query_id: str, target: str, groups: Mapping[str, Sequence[str]]) -> frozenset[str]:
    if query_id not in groups:
        raise ValueError(f"query {query_id!r} has a target but no group")
    members = groups[query_id]
    if isinstance(members, str):
        raise ValueError(f"query {query_id!r}: its group must be a list of ids, not the string {members!r}")
    if len(members) == 0:
        raise ValueError(f"query {query_id!r}: its group is empty; it must hold at least the target")
    for member in (target, *members):
        if not isinstance(member, str):
            raise ValueError(f"query {query_id!r}: source id {member!r} is not a string")
    group = frozenset(members)
    if len(group) != len(members):
        twice = next(m for m in members if list(members).count(m) > 1)
        raise ValueError(f"query {query_id!r}: source {twice!r} is in its group more than once")
    if target not in group:
        raise ValueError(f"query {query_id!r}: its target {target!r} is not in its group {sorted(group)}")
    return group
