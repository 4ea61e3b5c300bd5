"""FollowIR's retrieval from a whole collection as an mteb task (appendix C and Table 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.metrics.standard import trec_measure
from evaluators.plugin.checks import DatasetError, column
from evaluators.plugin.data import TaskData, read_layout
from evaluators.plugin.results import SpecialScores, TaskOption, bounds
from evaluators.plugin.sources import Source
from evaluators.plugin.task import BeyondTask
from followir_tasks.forms import CONFIG, FORM_OPTION, FULL, problems_of, read_forms, with_form
from followir_tasks.ids import parse_query_id
from followir_tasks.scores import chance_score, without_relevant
from followir_tasks.tasks import SAMPLE, FollowIRSample

# What the option says -> trec_eval's measure.
MEASURES = {"map_at_1000": "map_cut.1000", "ndcg_at_5": "ndcg_cut.5"}
MEASURE_OPTION = TaskOption(
    "collection_measure",
    tuple(MEASURES),
    "FollowIR on a whole collection: the measure of its score (the paper: MAP; nDCG@5 on News21)",
)


class FollowIRCollection(BeyondTask):
    """FollowIR's original queries, searched in a dataset's whole corpus; given candidates are of no account.

    The paper runs it without instructions and with them (option ``instruction_form``) and reports the difference.
    p-MRR is not measured: which changed documents a model finds at all differs from model to model. The score has a 95
    % interval from 1,000 resamples of topics. Published FollowIR sets hold candidates only, so this task reads the
    embedded sample, or with ``data_path`` a set that brings the whole collection along.
    """

    metric_version = 1
    data_name = "FollowIRCollection"
    task_options = (FORM_OPTION, MEASURE_OPTION)
    instruction_form: str = FULL
    collection_measure: str = "map_at_1000"
    metadata = FollowIRSample.metadata.model_copy(
        update={
            "name": "FollowIRCollection",
            "description": "FollowIR's original queries, with or without their instructions, searched in the whole "
            "corpus of a FollowIR-style dataset (by default the embedded sample) in place of given candidates.",
            "type": "InstructionRetrieval",
            "main_score": "followir_score",
        }
    )

    def source(self) -> Source:
        if self.data_path is None:
            return Source(self.data_name, SAMPLE, "", FollowIRSample.metadata.revision, "shipped with the package")
        return super().source()

    def read(self, source: Source) -> TaskData:
        if source.directory is None:
            raise DatasetError(source.repository, ["it must be a directory in this project's layout"])
        return originals(read_collection(source.directory))

    def problems(self, data: TaskData) -> list[str]:
        queries = set(column(data.queries, "id"))
        return super().problems(data) + problems_of(data.side[CONFIG], queries, self.instruction_form)

    def prepare_queries(self, model: Any, queries: Any) -> Any:
        """The queries with their instruction in the form that is asked for."""
        assert self.data is not None
        return with_form(queries, self.instruction_form, self.data.side[CONFIG], self.metadata.name)

    def special_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        measure = MEASURES[self.collection_measure]
        score = trec_measure(run, data.relevant_docs, measure)
        documents = list(column(data.corpus, "id"))
        topics = {query: parse_query_id(query)[0] for query in score}
        scores = {
            "followir_score": sum(score.values()) / len(score),
            **bounds("followir_score", bootstrap_clusters(list(score.values()), list(topics.values()))),
            "chance_followir_score": chance_score(
                measure, data.relevant_docs, dict.fromkeys(data.relevant_docs, documents)
            ),
            "n_topics": len(score),
            "n_topics_without_relevant": without_relevant(data.relevant_docs),
        }
        return SpecialScores(scores, {topics[query]: {"followir_score": value} for query, value in score.items()})


def read_collection(directory: Path) -> TaskData:
    """Read a FollowIR-style set for a search in its whole corpus.

    Raises:
        DatasetError: if a config is missing, or ids are not of FollowIR's form.
    """
    data = read_layout(directory)
    if "instruction" not in data.queries.column_names:
        raise DatasetError(str(directory), ["config 'instruction' is missing"])
    data.side[CONFIG] = read_forms(directory)
    data.top_ranked = None
    return data


def originals(data: TaskData) -> TaskData:
    """The data with the original queries alone.

    Raises:
        DatasetError: if a query id is not of FollowIR's form, or no query is an original one.
    """
    ids, problems, kept = list(column(data.queries, "id")), [], []
    for place, query in enumerate(ids):
        try:
            if not parse_query_id(query)[1]:
                kept.append(place)
        except ValueError as error:
            problems.append(str(error))
    if problems or not kept:
        raise DatasetError("queries", problems or ["none of them carries the original instruction (-og)"])
    data.queries = data.queries.select(kept)
    chosen = {ids[place] for place in kept}
    data.relevant_docs = {query: judged for query, judged in data.relevant_docs.items() if query in chosen}
    forms = data.side[CONFIG]
    data.side[CONFIG] = None if forms is None else {query: kept for query, kept in forms.items() if query in chosen}
    return data
