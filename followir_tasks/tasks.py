"""FollowIR's subsets and its sample as mteb tasks."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from mteb.abstasks.task_metadata import TaskMetadata

from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.metrics.pmrr import p_mrr
from evaluators.metrics.standard import trec_measure
from evaluators.plugin import doubt
from evaluators.plugin.checks import column, pointer_problems, shown, size_note
from evaluators.plugin.data import TaskData
from evaluators.plugin.dataset import config_files, embedded_revision, is_dataset_directory
from evaluators.plugin.mteb_internals import metadata_of, standard_scores
from evaluators.plugin.results import SpecialScores, TaskOption, bounds
from evaluators.plugin.sources import Source
from evaluators.plugin.task import BeyondTask
from followir_tasks.data import fetch_followir, read_followir
from followir_tasks.forms import (
    CONFIG,
    FORM_OPTION,
    FULL,
    KEPT,
    N_EQUAL,
    NONE,
    equal_instructions,
    problems_of,
    with_form,
)
from followir_tasks.ids import parse_query_id
from followir_tasks.scores import chance_score, without_relevant
from followir_tasks.subsets import SUBSETS, Subset

logger = logging.getLogger(__name__)

SAMPLE = Path(__file__).parent / "sample"


class FollowIRTask(BeyondTask):
    """FollowIR: the same query under an original and a narrower instruction, ranking the same candidates.

    Main score p-MRR, -1..1: positive when documents that the changed instruction excludes move down. It, and
    ``followir_score`` against either judgements, have 95 % intervals (``<key>_low``, ``<key>_high``): percentiles of
    1,000 resamples of topics, for p-MRR of those that have a changed document; none where there is only one such topic.

    With the option ``instruction_form`` models read another form of the instruction. Without any, both queries of a
    topic are the same text, so that p-MRR says nothing: it is NaN, and mteb's data frames leave it out of their means.
    """

    metric_version = 2
    measure: ClassVar[str] = "map_cut.1000"
    published_size: ClassVar[tuple[int, int] | None] = None
    task_options = (
        TaskOption(
            "missing_candidates",
            ("error", "warn"),
            "FollowIR: what to do when a model leaves candidates unranked, which falsifies p-MRR",
        ),
        FORM_OPTION,
    )
    missing_candidates: str = "error"
    instruction_form: str = FULL

    @classmethod
    def recognises(cls, directory: Path) -> bool:
        return is_dataset_directory(directory) and bool(config_files(directory, "qrel_diff"))

    def read(self, source: Source) -> TaskData:
        data = self.fetch(source) if source.directory is None else read_followir(source.directory)
        found = (len(data.queries), len(data.corpus))
        if self.published_size is not None and found != self.published_size:
            data.notes.append(size_note("queries", "documents", found, self.published_size))
        return data

    def fetch(self, source: Source) -> TaskData:
        """Read the data from their public source."""
        return fetch_followir(source.repository, source.revision)

    def problems(self, data: TaskData) -> list[str]:
        out: list[str] = []
        topics: dict[str, set[bool]] = {}
        for query in column(data.queries, "id"):
            try:
                topic, changed = parse_query_id(query)
            except ValueError as error:
                out.append(str(error))
                continue
            topics.setdefault(topic, set()).add(changed)
        single = sorted(topic for topic, variants in topics.items() if len(variants) < 2)
        if single:
            out.append(f"queries: topics without both -og and -changed: {shown(single)}")
        changed_docs = data.side["qrel_diff"]
        out += pointer_problems("qrel_diff", changed_docs, set(), set(column(data.corpus, "id")), topics.__contains__)
        if not any(changed_docs.get(topic) for topic in topics):
            out.append("qrel_diff: no topic has a changed document, so p-MRR is undefined")
        self._note_odd_changes(data, topics)
        forms = problems_of(data.side.get(CONFIG), set(column(data.queries, "id")), self.instruction_form)
        return super().problems(data) + out + forms

    def prepare_queries(self, model: Any, queries: Any) -> Any:
        """The queries with their instruction in the form that is asked for."""
        assert self.data is not None
        return with_form(queries, self.instruction_form, self.data.side.get(CONFIG), self.metadata.name)

    def _note_odd_changes(self, data: TaskData, topics: Mapping[str, set[bool]]) -> None:
        """Changed documents that p-MRR can still score but that do not mean what they should."""
        candidates = {q: set(docs) for q, docs in (data.top_ranked or {}).items()}
        outside, unchanged = [], []
        for topic, docs in data.side["qrel_diff"].items():
            for doc in docs:
                if any(doc not in candidates.get(topic + suffix, {doc}) for suffix in ("-og", "-changed")):
                    outside.append((topic, doc))
                before, after = (data.relevant_docs.get(topic + s, {}).get(doc, 0) for s in ("-og", "-changed"))
                if not (before > 0 >= after) and topic in topics:
                    unchanged.append((topic, doc))
        data.counts["n_changed_documents_outside_candidates"] = len(outside)
        unequal = [t for t in topics if candidates.get(f"{t}-og") != candidates.get(f"{t}-changed")]
        if unequal:
            data.notes.append(
                f"topics whose candidates differ between the original and the changed query, so that p-MRR compares "
                f"ranks in different lists: {shown(unequal)}"
            )
        if outside:
            data.notes.append(f"changed documents that are no candidates, as (topic, document): {shown(outside)}")
        if unchanged:
            data.notes.append(
                f"{len(unchanged)} changed documents do not go from relevant to non-relevant in the judgements, "
                f"as (topic, document): {shown(unchanged)}"
            )

    def special_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        self._require_candidates(run, data.top_ranked or {})
        by_variant: dict[bool, dict[str, str]] = {False: {}, True: {}}
        for query in run:
            topic, changed = parse_query_id(query)
            by_variant[changed][topic] = query
        changed_docs = {t: docs for t, docs in data.side["qrel_diff"].items() if t in by_variant[False]}
        paired = p_mrr(
            {t: run[q] for t, q in by_variant[False].items()},
            {t: run[q] for t, q in by_variant[True].items()},
            changed_docs,
        )
        original = {q: data.relevant_docs[q] for q in by_variant[False].values()}
        # The ranking for the original instruction, measured against the changed judgements.
        swapped = {q: data.relevant_docs[by_variant[True][t]] for t, q in by_variant[False].items()}
        score, score_changed = (trec_measure(run, qrels, self.measure) for qrels in (original, swapped))
        nested = {
            name: standard_scores(
                {q: run[q] for q in queries.values()},
                {q: data.relevant_docs[q] for q in queries.values()},
                self.k_values,
            )
            for name, queries in (("og", by_variant[False]), ("changed", by_variant[True]))
        }
        moved = {} if self.instruction_form == NONE else paired.per_query
        scores: dict[str, Any] = {
            "p-MRR": paired.score if moved else math.nan,
            "followir_score": sum(score.values()) / len(score),
            "followir_score_changed_qrels": sum(score_changed.values()) / len(score_changed),
            "chance_followir_score": chance_score(self.measure, original, data.top_ranked or {}),
            "n_changed_documents": sum(map(len, changed_docs.values())),
            "n_missing_changed_documents": paired.n_missing_docs,
            "n_topics": len(by_variant[False]),
            "n_topics_without_change": len(by_variant[False]) - len(paired.per_query),
            "n_topics_without_relevant": without_relevant(original),
            "n_topics_without_relevant_changed_qrels": without_relevant(swapped),
            **nested,
        }
        if self.instruction_form in KEPT:
            pairs = [(query, by_variant[True][topic]) for topic, query in by_variant[False].items()]
            scores[N_EQUAL] = equal_instructions(data.side[CONFIG], self.instruction_form, pairs)
        per_topic = {"p-MRR": moved, "followir_score": score, "followir_score_changed_qrels": score_changed}
        for name, values in per_topic.items():
            if values:
                scores |= bounds(name, bootstrap_clusters(list(values.values()), list(values)))
        rows = {
            topic: {
                "p-MRR": moved.get(topic),
                "followir_score": score[query],
                "followir_score_changed_qrels": score_changed[query],
                "n_changed_documents": len(changed_docs.get(topic, [])),
            }
            for topic, query in by_variant[False].items()
        }
        return SpecialScores(scores, rows)

    def _require_candidates(self, run: dict[str, dict[str, float]], top_ranked: Mapping[str, list[str]]) -> None:
        """p-MRR compares ranks, so it is false when candidates are missing or other documents stand among them."""
        strangers = {q: n for q, docs in top_ranked.items() if (n := len(run[q].keys() - set(docs)))}
        lacking = doubt.missing_candidates(run, top_ranked)
        if not (strangers or lacking):
            return
        text = (
            f"{self.metadata.name}: the model left {sum(lacking.values())} candidates of {len(lacking)} queries "
            f"unranked and ranked {sum(strangers.values())} documents that are no candidates (for instance query "
            f"{next(iter(lacking or strangers))!r}); p-MRR compares ranks and is false then"
        )
        if self.missing_candidates == "warn":
            logger.warning("%s; going on, as missing_candidates='warn' asks", text)
        else:
            raise ValueError(
                f"{text}. Let the model score every document in `top_ranked`, or set missing_candidates='warn' "
                "to get the number all the same, with the count beside it"
            )

    def describe_query(self, query_id: str, data: TaskData) -> dict[str, Any]:
        topic, changed = parse_query_id(query_id)
        return {
            "topic": topic,
            "instruction is": "changed" if changed else "original",
            "changed documents": data.side["qrel_diff"].get(topic, []),
            "candidates": len((data.top_ranked or {}).get(query_id, [])),
        }


def _metadata(name: str, **more: Any) -> TaskMetadata:
    return TaskMetadata(
        name=name,
        type="InstructionReranking",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="p-MRR",
        domains=["News", "Written"],
        task_subtypes=["Article retrieval"],
        dialect=[],
        **more,
    )


def _subset_task(subset: Subset) -> type[FollowIRTask]:
    upstream = metadata_of(subset.upstream)
    metadata = _metadata(
        subset.name,
        description=f"FollowIR on the data of {subset.upstream}: TREC queries under an original and a changed "
        f"narrative over the same candidates; p-MRR with missing candidates checked, {subset.measure_name} of the "
        "original queries against the original and against the changed judgements.",
        reference="https://arxiv.org/abs/2403.15246",
        dataset=upstream.dataset,
        date=upstream.date,
        license=upstream.license,
        annotations_creators=upstream.annotations_creators,
        sample_creation=upstream.sample_creation,
        bibtex_citation=upstream.bibtex_citation,
        adapted_from=[subset.upstream],
    )
    body = {
        "metadata": metadata,
        "measure": subset.measure,
        "published_size": (subset.n_queries, subset.n_documents),
        "data_name": upstream.dataset["path"].split("/")[-1],
        "__module__": __name__,
    }
    return type(subset.name, (FollowIRTask,), body)


SUBSET_TASKS: tuple[type[FollowIRTask], ...] = tuple(_subset_task(subset) for subset in SUBSETS)

globals().update({cls.__name__: cls for cls in SUBSET_TASKS})  # so that they can be pickled


class FollowIRSample(FollowIRTask):
    """The embedded sample: generated topics and passages in the manner of FollowIR."""

    data_name = "FollowIRSample"
    embedded = SAMPLE
    metadata = _metadata(
        "FollowIRSample",
        description="A small generated set in the manner of FollowIR: topics with an original and a narrower "
        "narrative over the same candidates. It works offline and is no substitute for FollowIR.",
        reference="https://arxiv.org/abs/2403.15246",
        dataset={"path": "mteb-beyond/followir-sample", "revision": embedded_revision(SAMPLE)},
        date=("2026-11-01", "2026-11-30"),
        license="mit",
        annotations_creators="algorithmic",
        sample_creation="created",
        bibtex_citation=SUBSET_TASKS[0].metadata.bibtex_citation,
    )
