"""How sure a TCR result is: intervals of its scores, and p-values of DS@1 against chance within the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from evaluators.metrics.bootstrap import Hits, bootstrap_siblings, p_null
from evaluators.metrics.siblings import SiblingQuery, summarise
from evaluators.plugin.results import bounds
from tcr_tasks.data import PUBLISHED_SIZES, Question

# Quoted from section 4.1.2 of the paper: chance DS@1 when column-deletion siblings are left out of the groups.
PAPER_CHANCE = 0.298
COLUMN_DELETION = "column_deletion"


def interval_scores(
    per_query: Mapping[str, SiblingQuery], questions: Sequence[Question], n_tables: int
) -> dict[str, float]:
    """What a TCR result says about how sure its scores are (TCR-Bench, appendix M), under flat keys.

    Everything is of all queries together, on the scale 0..1, from 1,000 resamples with a fixed seed; the formulas are
    in :mod:`evaluators.metrics.bootstrap`. All p-values are one-sided, and low where DS@1 is above chance.

    =========================================== ================================================================
    ``recall_at_1_low``, ``..._high``           95 % percentile bootstrap interval of R@1; likewise ``gr_at_1_``
                                                and ``ds_at_1_``
    ``ds_at_1_p_bootstrap``                     share of resamples with DS@1 <= ``chance_ds_at_1``, the chance
                                                level of these data
    ``ds_at_1_p_bootstrap_paper``               the same against 0.298, as in the paper's Table 42. The paper
                                                quotes that level for its groups without column-deletion
                                                siblings, although Table 42 scores whole groups, so it is the
                                                harder test; it belongs to the 209 published questions, so the
                                                key is there only for data of that size
    ``ds_at_1_p_null``                          probability of at least as many target hits when the target is
                                                drawn with probability 1 / group size in each query whose group
                                                was hit (exact); 1 if none was
    ``p_null_n``                                number of queries whose group was hit, which the former rests on
    ``chance_ds_at_1_without_column_deletion``  mean of 1 / (group size without column-deletion siblings): what
                                                0.298 is to the paper's data. Only where every sibling of every
                                                group is labelled with its strategy
    =========================================== ================================================================

    Args:
        per_query: query id -> what :func:`evaluators.metrics.siblings.sibling_queries` found.
        questions: the same queries.
        n_tables: tables in the corpus.
    """
    found = [per_query[q.id] for q in questions]
    hits = Hits([q.target_in[1] for q in found], [q.group_in[1] for q in found])
    bootstrapped = bootstrap_siblings(hits)
    out: dict[str, float] = {}
    for name, score in bootstrapped._asdict().items():
        out |= bounds(name, score)
    ds = bootstrapped.ds_at_1
    out["ds_at_1_p_bootstrap"] = ds.p_bootstrap(summarise(found)["chance_ds_at_1"])
    if (Counter(q.type for q in questions), n_tables) == PUBLISHED_SIZES[""]:
        out["ds_at_1_p_bootstrap_paper"] = ds.p_bootstrap(PAPER_CHANCE)
    out["ds_at_1_p_null"] = p_null(hits, [q.group_size for q in found])
    out["p_null_n"] = sum(q.group_in[1] for q in found)
    if all(q.strategies.keys() | {q.target} >= set(q.group) for q in questions):
        out["chance_ds_at_1_without_column_deletion"] = _chance_without_column_deletion(questions)
    return out


def _chance_without_column_deletion(questions: Sequence[Question]) -> float:
    left = [sum(q.strategies.get(table) != COLUMN_DELETION for table in q.group) for q in questions]
    return sum(1 / n for n in left) / len(left)
