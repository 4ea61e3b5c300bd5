"""Metrics of IFIR, FollowIR and TCR-Bench as pure functions.

What ties them to mteb (tasks, registration, command line) lives in :mod:`evaluators.plugin` and is not imported
here, so scoring a run that you already have needs nothing but numpy and pytrec_eval.
"""

from evaluators.metrics.bootstrap import (
    Bootstrapped,
    Hits,
    Interval,
    SiblingBootstrap,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_siblings,
    p_null,
)
from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.metrics.ifir import QueryMean, ifir_mrr, ifir_ndcg
from evaluators.metrics.instfol import inst_fol, weighted_score
from evaluators.metrics.pmrr import PMRR, p_mrr
from evaluators.metrics.robustness import Robustness, robustness_at_k
from evaluators.metrics.siblings import SiblingQuery, sibling_queries, sibling_scores

__all__ = [
    "PMRR",
    "Bootstrapped",
    "Hits",
    "Interval",
    "QueryMean",
    "Robustness",
    "SiblingBootstrap",
    "SiblingQuery",
    "bootstrap_clusters",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_siblings",
    "ifir_mrr",
    "ifir_ndcg",
    "inst_fol",
    "p_mrr",
    "p_null",
    "robustness_at_k",
    "sibling_queries",
    "sibling_scores",
    "weighted_score",
]
