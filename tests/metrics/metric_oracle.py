"""Slow, literal versions of the metrics, written from their definitions, and random input for the tests.

Nothing here imports the code under test. Sums are exact (`Fraction`) wherever the definition is rational.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

Scores = dict[str, Any]
Run = dict[str, Scores]

# Ids whose order differs between str, length, case and number order, and beyond the basic plane; "" is an id too.
DOC_IDS = [
    *(f"d{i}" for i in range(1, 25)),
    *("D1", "a b", "", "\u00e9", "e\u0301", "ß", "Ω", "日本", "日", "\uffee", "😀", "😀1", "-1", "0"),
    *("doc::T0", "doc::T1", "doc::T10"),
]

# Few values, so most documents are tied. All are exact in float32. Both zeros are there and must tie.
_PLAIN = [-2.5, -1.0, -0.0, 0.0, 0.25, 1.0]
SCORES: st.SearchStrategy[Any] = st.sampled_from(
    [*_PLAIN, *map(np.float32, _PLAIN), *map(np.float64, _PLAIN), -1, 0, 1, np.int64(1)]
)
DISTINCT_IN_DOUBLE_ONLY = [1.0, 1.0 + 1e-9, 1.0 + 2e-9]


def doc_scores(min_size: int = 0, max_size: int = 40) -> st.SearchStrategy[Scores]:
    """The results of one query."""
    return st.dictionaries(st.sampled_from(DOC_IDS), SCORES, min_size=min_size, max_size=max_size)


def ordered(scores: Mapping[str, Any]) -> list[str]:
    """Best first: by (score, id), descending."""
    return [doc for _, doc in sorted(((float(s), d) for d, s in scores.items()), reverse=True)]


def rank(scores: Mapping[str, Any], doc: str) -> int:
    """From 1; one more than the length for an absent document."""
    order = ordered(scores)
    return order.index(doc) + 1 if doc in order else len(order) + 1


def shuffled(mapping: Mapping[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """The same mapping in another storage order; `order` is any list of numbers to sort by."""
    items = list(mapping.items())
    keys = [order[i % len(order)] if order else 0 for i in range(len(items))]
    return dict(item for _, _, item in sorted((k, -i, it) for i, (k, it) in enumerate(zip(keys, items, strict=True))))


def renamed(scores: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {prefix + doc: score for doc, score in scores.items()}


# p-MRR -----------------------------------------------------------------------------------------------------------


def p_mrr_of_doc(old_rank: int, new_rank: int) -> Fraction:
    """FollowIR, equation 1, with MRR = 1 / rank, just as printed."""
    mrr_og, mrr_new = Fraction(1, old_rank), Fraction(1, new_rank)
    return mrr_og / mrr_new - 1 if old_rank > new_rank else 1 - mrr_new / mrr_og


def p_mrr(original: Run, changed: Run, changed_docs: Mapping[str, Sequence[str]]) -> dict[str, Fraction]:
    return {
        q: sum((p_mrr_of_doc(rank(original[q], d), rank(changed[q], d)) for d in docs), Fraction(0)) / len(docs)
        for q, docs in changed_docs.items()
        if docs
    }


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


# IFIR ------------------------------------------------------------------------------------------------------------


def relevant_ranks(scores: Mapping[str, Any], judged: Mapping[str, int], k: int) -> list[int]:
    return [r for r, doc in enumerate(ordered(scores), 1) if r <= k and judged.get(doc, 0) > 0]


def ifir_ndcg(scores: Mapping[str, Any], judged: Mapping[str, int], k: int) -> float:
    found = relevant_ranks(scores, judged, k)
    if not found:
        return 0.0
    dcg = math.fsum(math.log(2) / math.log(r + 1) for r in found)
    return dcg / math.fsum(math.log(2) / math.log(r + 1) for r in range(1, len(found) + 1))


def mrr(scores: Mapping[str, Any], judged: Mapping[str, int], k: int) -> float:
    found = relevant_ranks(scores, judged, k)
    return 1 / min(found) if found else 0.0


# Siblings --------------------------------------------------------------------------------------------------------


def siblings(run: Run, targets: Mapping[str, str], groups: Mapping[str, Sequence[str]], k: int) -> dict[str, Fraction]:
    """The values of `sibling_scores` at one k, plus those that do not depend on k."""
    n = len(targets)
    hit = grouped = any_member = Fraction(0)
    first = first_group = drawn = drawn_group = chance = tied = near_miss = empty = Fraction(0)
    for query, target in targets.items():
        order, group = ordered(run[query]), set(groups[query])
        best = set(order[:k])
        hit += target in best
        grouped += Fraction(len(best & group), min(len(group), k))
        any_member += bool(best & group)
        chance += Fraction(1, len(group))
        if not order:
            empty += 1
            continue
        first += order[0] == target
        first_group += order[0] in group
        near_miss += order[0] in group - {target}
        single = {doc: np.float32(score) for doc, score in run[query].items()}
        tops = {doc for doc in single if all(single[doc] >= other for other in single.values())}
        tied += len(tops) > 1
        drawn += Fraction(len(tops & {target}), len(tops))
        drawn_group += Fraction(len(tops & group), len(tops))
    return {
        f"recall_at_{k}": hit / n,
        f"gr_at_{k}": grouped / n,
        f"group_hit_at_{k}": any_member / n,
        "ds_at_1": (first / n) / (first_group / n) if first_group else Fraction(0),
        "ds_at_1_expected_under_ties": drawn / drawn_group if drawn_group else Fraction(0),
        "chance_ds_at_1": chance / n,
        "tied_top_share": tied / n,
        "neighbourhood_hit_target_miss": near_miss / n,
        "n_queries": Fraction(n),
        "n_without_results": empty,
    }


# Robustness ------------------------------------------------------------------------------------------------------


def graded_ndcg(scores: Mapping[str, Any], judged: Mapping[str, int], k: int) -> float:
    """Standard nDCG: gain = grade, discount log2(rank + 1), ideal over all judged documents, float32 scores."""
    order = ordered({doc: np.float32(score) for doc, score in scores.items()})
    gains = [max(judged.get(doc, 0), 0) for doc in order[:k]]
    ideal = sorted((g for g in judged.values() if g > 0), reverse=True)[:k]
    return _dcg(gains) / _dcg(ideal)


def _dcg(gains: Sequence[int]) -> float:
    return math.fsum(g / math.log2(r + 1) for r, g in enumerate(gains, 1))


def robustness(
    run: Run, qrels: Mapping[str, Mapping[str, int]], k: int, base_of: Callable[[str], str]
) -> dict[str, float]:
    """Base query -> worst nDCG@k, of those with several instructions."""
    out: dict[str, float] = {}
    for base in {base_of(q) for q in qrels}:
        values = [graded_ndcg(run[q], qrels[q], k) for q in qrels if base_of(q) == base]
        if len(values) >= 2:
            out[base] = min(values)
    return out
