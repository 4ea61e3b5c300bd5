"""FollowIR's three published subsets."""

from __future__ import annotations

from typing import NamedTuple


class Subset(NamedTuple):
    """What distinguishes one subset.

    Attributes:
        name: task name.
        upstream: mteb's task, whose dataset, revision and citation are used.
        measure: trec_eval's measure behind ``followir_score``.
        measure_name: the same as the paper's Table 2 names it.
        n_queries, n_documents: published sizes; original and changed queries count.
    """

    name: str
    upstream: str
    measure: str
    measure_name: str
    n_queries: int
    n_documents: int


SUBSETS = (
    Subset("FollowIRCore17", "Core17InstructionRetrieval", "map_cut.1000", "MAP@1000", 40, 19899),
    Subset("FollowIRNews21", "News21InstructionRetrieval", "ndcg_cut.5", "nDCG@5", 64, 30921),
    Subset("FollowIRRobust04", "Robust04InstructionRetrieval", "map_cut.1000", "MAP@1000", 104, 47492),
)
