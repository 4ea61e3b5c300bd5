"""How alike two configurations rank for the same queries (TCR-Bench, appendix F.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

DEPTH = 5
PERSISTENCE = 0.9


@dataclass(frozen=True, slots=True)
class Consistency:
    """What :func:`consistency` returns; all shares and means over the queries lie in 0..1.

    Attributes:
        hit: share of queries where both configurations find the target at rank 1, or both do not.
        partial: share where the base's best document is among the comparison's five best. Exchanging the two
            configurations changes it.
        top_1_identity: share where both have the same best document.
        rbo_at_5: mean of :func:`rbo_at_5`, at most 0.40951; the paper prints this one.
        rbo_at_5_normalised: ``rbo_at_5`` divided by that maximum.
        n: number of queries.
    """

    hit: float
    partial: float
    top_1_identity: float
    rbo_at_5: float
    rbo_at_5_normalised: float
    n: int


def rbo_at_5(first: Sequence[str], second: Sequence[str]) -> float:
    """Rank-biased overlap of the five best documents, not extrapolated (Webber et al., 2010), p = 0.9.

    ``(1 - p) * sum over d = 1..5 of p^(d - 1) * |A_d and B_d| / d``, where A_d and B_d are the d best. Symmetric; 0
    for disjoint lists, ``1 - p^5`` = 0.40951 for identical ones: only so do the paper's values of 0.20 to 0.34 (Tables
    18 and 19) fit its Top-1 Identity. Of a list with fewer than five documents the missing ranks count as disagreement.

    Args:
        first, second: documents, best first; what follows the fifth is not looked at.

    Raises:
        ValueError: if one of the five best occurs twice in its list.
    """
    tops = [list(ranked[:DEPTH]) for ranked in (first, second)]
    for top in tops:
        if len(set(top)) < len(top):
            raise ValueError(f"a ranking holds a document twice: {top}")
    shared = [len(set(tops[0][:d]) & set(tops[1][:d])) / d for d in range(1, DEPTH + 1)]
    return (1 - PERSISTENCE) * sum(PERSISTENCE**d * overlap for d, overlap in enumerate(shared))


def consistency(
    base: Mapping[str, Sequence[str]], comparison: Mapping[str, Sequence[str]], targets: Mapping[str, str]
) -> Consistency:
    """Compare the rankings of two configurations.

    Args:
        base, comparison: query id -> documents, best first, at least the five best. Documents that stand for the same
            table must have the same id in both, whatever their texts.
        targets: query id -> the one document that answers; names the queries to compare.

    Raises:
        ValueError: if there is no query, if a ranking lacks one of the queries, or is empty or holds a document twice.
    """
    if not targets:
        raise ValueError("consistency is undefined without queries: `targets` is empty")
    for name, rankings in (("base", base), ("comparison", comparison)):
        lacking = [query for query in targets if not rankings.get(query)]
        if lacking:
            raise ValueError(
                f"the {name} configuration ranks nothing for {len(lacking)} of {len(targets)} queries, such as "
                f"{lacking[0]!r}; compare only queries that both have"
            )
    pairs = {query: (base[query], comparison[query]) for query in targets}
    overlap = fmean(rbo_at_5(first, second) for first, second in pairs.values())
    return Consistency(
        hit=fmean((first[0] == targets[q]) == (second[0] == targets[q]) for q, (first, second) in pairs.items()),
        partial=fmean(first[0] in second[:DEPTH] for first, second in pairs.values()),
        top_1_identity=fmean(first[0] == second[0] for first, second in pairs.values()),
        rbo_at_5=overlap,
        rbo_at_5_normalised=overlap / (1 - PERSISTENCE**DEPTH),
        n=len(pairs),
    )
