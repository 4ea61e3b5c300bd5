"""InstructIR's robustness as an mteb task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.metrics.robustness import robustness_at_k
from evaluators.plugin.checks import column, shown
from evaluators.plugin.data import TaskData
from evaluators.plugin.dataset import fingerprint
from evaluators.plugin.mteb_internals import metadata_of
from evaluators.plugin.results import SpecialScores, TaskOption, bounds
from evaluators.plugin.sources import Source
from evaluators.plugin.task import BeyondTask
from followir_tasks.data import SEPARATOR, fetch_instructir, instructir_files, read_instructir
from followir_tasks.ids import base_query

ROBUSTNESS_K = 10
QUERY_FIRST, INSTRUCTION_FIRST = "query-first", "instruction-first"


class InstructIRRobustness(BeyondTask):
    """InstructIR: the same query under many users' instructions; the worst one counts.

    Robustness@10 and mteb's nDCG@10 have 95 % intervals (``<key>_low``, ``<key>_high``): percentiles of 1,000 resamples
    of base queries, each drawn with all its instructions; none where the score rests on a single base query.

    mteb joins query and instruction in that order, with a blank. The authors' files have the instruction first, then
    ``[SEP]``, then the query: the option ``instruction_order`` joins them so.
    """

    metric_version = 2
    data_name = "instructir"
    task_options = (
        TaskOption(
            "instruction_order",
            (QUERY_FIRST, INSTRUCTION_FIRST),
            "InstructIR: how query and instruction are joined: as mteb does, or as its authors do, instruction, [SEP], "
            "query",
        ),
    )
    instruction_order: str = QUERY_FIRST
    metadata = metadata_of("InstructIR").model_copy(
        update={
            "name": "InstructIRRobustness",
            "description": "InstructIR: for each query the lowest nDCG@10 over its instructions, averaged over the "
            "queries that have several. Query and instruction are joined in that order, or as the authors join them.",
            "adapted_from": ["InstructIR"],
        }
    )

    @classmethod
    def recognises(cls, directory: Path) -> bool:
        return instructir_files(directory) is not None

    def read(self, source: Source) -> TaskData:
        if source.directory is None:
            return fetch_instructir(source.repository, source.revision)
        return read_instructir(source.directory)

    def local_revision(self, directory: Path) -> str:
        return fingerprint(directory, instructir_files(directory) or ())

    def problems(self, data: TaskData) -> list[str]:
        out: list[str] = []
        for query in column(data.queries, "id"):
            try:
                base_query(query)
            except ValueError as error:
                out.append(str(error))
        relevant = data.relevant_docs
        without = [q for q in column(data.queries, "id") if not any(g > 0 for g in relevant.get(q, {}).values())]
        if without:
            out.append(f"qrels: queries without a relevant document: {shown(without)}")
        return super().problems(data) + out

    def prepare_queries(self, model: Any, queries: Any) -> Any:
        """The queries; in the authors' order each is one text, so that no model can tell its parts."""
        if self.instruction_order == QUERY_FIRST:
            return queries
        pairs = zip(queries["instruction"], queries["text"], strict=True)
        texts = [f"{instruction} {SEPARATOR} {text}" for instruction, text in pairs]
        return Dataset(pa.table({"id": list(queries["id"]), "text": texts}))

    def special_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        found = robustness_at_k(run, data.relevant_docs, ROBUSTNESS_K, base_query)
        robustness, ndcg = f"robustness_at_{ROBUSTNESS_K}", f"ndcg_at_{ROBUSTNESS_K}"
        bases = [base_query(query) for query in found.per_query]
        scores = {
            robustness: found.score,
            **bounds(robustness, bootstrap_clusters(list(found.per_base.values()), list(found.per_base))),
            **bounds(ndcg, bootstrap_clusters(list(found.per_query.values()), bases)),
            "n_base_queries": len(found.per_base),
            "n_base_queries_with_one_instruction": found.n_single,
            "n_queries": len(found.per_query),
        }
        rows = {
            query: {"base_query": base, ndcg: value}
            for base, (query, value) in zip(bases, found.per_query.items(), strict=True)
        }
        return SpecialScores(scores, rows)

    def describe_query(self, query_id: str, data: TaskData) -> dict[str, Any]:
        base = base_query(query_id)
        return {"base query": base, "its instructions": [q for q in data.queries["id"] if base_query(q) == base]}
