"""Diagnostics as mteb tasks, so that any mteb model is scored on them unchanged."""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
from datasets import Dataset
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData

from evaluators.metrics.ranking import NotFiniteError, ranks_of
from evaluators.plugin.checks import DatasetError, pointer_problems, retrieval_problems
from evaluators.plugin.data import TaskData
from evaluators.plugin.doubt import SAMPLED_TEXTS
from evaluators.plugin.mteb_internals import is_cross_encoder
from evaluators.plugin.results import SpecialScores
from evaluators.plugin.sources import Source
from evaluators.plugin.task import SPLIT
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.catalogue import CATALOGUE, FAMILIES, Diagnostic
from tcr_tasks.diagnostics.models import characters_read
from tcr_tasks.diagnostics.reading import read_base
from tcr_tasks.diagnostics.score import TRUNCATION, CaseScores, Score, score_case
from tcr_tasks.diagnostics.transforms.pairs import within_limit
from tcr_tasks.tasks import SAMPLE, TCRSample, TCRTask

logger = logging.getLogger(__name__)


class DiagnosticTask(TCRTask):
    """Cases as one mteb task: a subset of mteb for each case.

    A case that is not measurable has NaN for mteb's scores, the main score among them, and so has the mean over subsets
    that ``TaskResult.get_score`` gives; the reason stands in the record's notes. A data frame of mteb shows which
    subsets these are with ``aggregation_level="subset"``: pandas leaves them out of its means.

    Attributes:
        seed: of the bootstrap.
        runs: subset -> ranking, after an evaluation.
        found: subset -> its scores, after an evaluation.
    """

    metric_version = 3
    seed: int = 0
    parts: Mapping[str, TaskData]
    runs: dict[str, dict[str, dict[str, float]]]
    found: dict[str, CaseScores]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.runs, self.found = {}, {}
        self._own_scores: dict[str, frozenset[str]] = {}  # subset -> what is not mteb's

    @abstractmethod
    def cases(self, source: Source) -> Mapping[str, Case]:
        """The cases by subset, made from the data at ``source``."""

    @classmethod
    def recognises(cls, directory: Any) -> bool:
        return False  # any TCR dataset would do; `mteb-beyond check` is about the dataset itself

    def source(self) -> Source:
        if self.data_path is None:
            return Source("TCRSample", SAMPLE, "", TCRSample.metadata.revision, "shipped with the package")
        return super().source()

    def problems(self, data: TaskData) -> list[str]:
        case: Case = data.side["case"]
        out = retrieval_problems(data.corpus, data.queries, data.relevant_docs, data.top_ranked)
        out += pointer_problems("groups", case.groups, set(case.queries), set(case.documents))
        for query in case.queries:
            if not case.targets.get(query):
                out.append(f"query {query!r} has no target")
            elif not set(case.targets[query]) <= set(case.groups.get(query, ())):
                out.append(f"query {query!r}: its targets {case.targets[query]} are not all in its group")
        return out

    def _read_checked(self) -> None:
        source = self.source()
        parts = {name: task_data(case) for name, case in self.cases(source.fetched()).items()}
        for name, data in parts.items():
            problems = self.problems(data)
            if problems:
                raise DatasetError(f"{self.metadata.name}, {name}", problems)
        self.parts = parts
        self.data = next(iter(parts.values()))
        self.dataset = {
            name: {
                SPLIT: RetrievalSplitData(
                    corpus=data.corpus,
                    queries=data.queries,
                    relevant_docs=data.relevant_docs,
                    top_ranked=data.top_ranked,
                )
            }
            for name, data in parts.items()
        }
        self.describe(self._revision_of(source))
        self._loaded_with = self._loading_settings()
        self.data_loaded = True

    def convert_to_reranking(self, top_ranked_path: Any, top_k: int = 10) -> DiagnosticTask:
        raise ValueError(
            f"{self.metadata.name} takes no first stage: its pools are small, and cross-encoders rank all of them"
        )

    def _evaluate_subset(self, model: Any, data_split: RetrievalSplitData, **kwargs: Any) -> Any:
        split = RetrievalSplitData(**data_split)
        part = self.parts[kwargs["hf_subset"]]
        given = part.side.setdefault("given", part.side["case"])  # another model may read more
        part.side["case"] = within_limit(given, characters_read(model, self.metadata))
        if split["top_ranked"] is None and is_cross_encoder(model):
            documents = list(split["corpus"]["id"])
            split["top_ranked"] = dict.fromkeys(split["queries"]["id"], documents)
        top_k = self._top_k
        # Both members of every pair must be in the ranking, wherever they stand.
        self._top_k = max(top_k, len(split["corpus"]))
        try:
            scores = super()._evaluate_subset(model, split, **kwargs)
        except ValueError as error:
            if "NaN values detected" not in str(error):  # as mteb says where it ranks candidates, without more
                raise
            raise NotFiniteError(f"the model's scores of candidates are not finite: {error}") from error
        finally:
            self._top_k = top_k
        return self._without_numbers(scores, kwargs["hf_subset"])

    def _without_numbers(self, scores: dict[str, Any], subset: str) -> dict[str, Any]:
        """The scores; those of mteb are NaN where a case is not measurable: ties and limits would decide them."""
        if self.found[subset].reason is None:
            return scores
        kept = self._own_scores[subset]
        return {name: math.nan if _is_number(name, value, kept) else value for name, value in scores.items()}

    def task_specific_scores(
        self,
        scores: dict[str, dict[str, float]],
        qrels: Any,
        results: dict[str, dict[str, float]],
        hf_split: str,
        hf_subset: str,
    ) -> dict[str, Any]:
        self.data = self.parts[hf_subset]
        self.runs[hf_subset] = results
        out = super().task_specific_scores(scores, qrels, results, hf_split, hf_subset)
        found: CaseScores = self.data.side["scores"]
        self.found[hf_subset] = replace(found, scores=(*found.scores, *self._truncation(out)))
        self._own_scores[hf_subset] = frozenset(out)
        return out

    def _truncation(self, scores: Mapping[str, Any]) -> list[Score]:
        """How much of the documents the model does not read, of :mod:`evaluators.plugin.doubt`; empty if not known."""
        assert self.data is not None
        n = min(len(self.data.corpus), SAMPLED_TEXTS)
        return [Score(name, scores[name], n) for name in TRUNCATION if name in scores]

    def special_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        case: Case = data.side["case"]
        found = data.side["scores"] = score_case(run, case, self.seed)
        scores: dict[str, Any] = {"measurable": float(found.reason is None)}
        for score in found.scores:
            name = f"{score.stratum}_{score.metric}" if score.stratum else score.metric
            scores[name] = score.value
            if score.n != len(case.queries):
                scores[f"{name}_n"] = score.n
            if score.low is not None and score.high is not None:
                scores |= {f"{name}_low": score.low, f"{name}_high": score.high}
        data.notes[:] = [*found.notes, *([f"not measurable: {found.reason}"] if found.reason else [])]
        rows: dict[str, dict[str, Any]] = {}
        for query in case.queries:
            ranks = ranks_of(run[query], case.targets[query], query)
            rows[query] = {"target_rank": min(ranks), "not_measurable": case.not_measurable.get(query)}
            if query in found.per_query and not case.pairwise:  # what `mteb-beyond tcr compare` compares
                outcome = found.per_query[query]
                rows[query] |= {"recall_at_1": float(outcome.target_in[1]), "gr_at_1": float(outcome.group_in[1])}
        return SpecialScores(scores, rows)

    def describe_query(self, query_id: str, data: TaskData) -> dict[str, Any]:
        case: Case = data.side["case"]
        return {"targets": case.targets[query_id], "group": case.groups[query_id], "labels": case.labels.get(query_id)}


def _is_number(name: str, value: Any, kept: frozenset[str]) -> bool:
    return isinstance(value, int | float) and name not in kept


def task_data(case: Case) -> TaskData:
    """A case in the form that mteb scores, with itself as side data ``case``."""
    documents, queries = list(case.documents), list(case.queries)
    titles = [""] * len(documents)
    corpus = pa.table({"id": documents, "title": titles, "text": list(case.documents.values())})
    return TaskData(
        corpus=Dataset(corpus),
        queries=Dataset(pa.table({"id": queries, "text": list(case.queries.values())})),
        relevant_docs={q: dict.fromkeys(case.targets.get(q, ()), 1) for q in queries},
        top_ranked=None if case.candidates is None else {q: list(case.candidates[q]) for q in queries},
        side={"case": case},
        notes=list(case.notes),
    )


class CaseTask(DiagnosticTask):
    """One case, given as it is. All such tasks share a name, and thereby mteb's cache of embeddings."""

    metadata = TCRSample.metadata.model_copy(
        update={"name": "TCRDiagnostic", "description": "One diagnostic of TCR-Bench, on any TCR dataset."}
    )
    # mteb's own measures, which nobody reads here, take longer than everything else: only R@1's are computed.
    k_values = (1,)

    def __init__(self, case: Case, revision: str, seed: int = 0) -> None:
        super().__init__()
        self.case = case
        self.case_revision = revision
        self.seed = seed

    def source(self) -> Source:
        return Source("TCRDiagnostic", None, "", self.case_revision, "given")

    def cases(self, source: Source) -> Mapping[str, Case]:
        return {"default": self.case}


class FamilyTask(DiagnosticTask):
    """A family of the catalogue, each diagnostic a subset; of the embedded sample, or of ``data_path``.

    A diagnostic that the dataset does not allow (the error says why) is an error of the whole family; choose the others
    with ``mteb.get_task(name, hf_subsets=[...])``.
    """

    family: ClassVar[str]

    def cases(self, source: Source) -> Mapping[str, Case]:
        base = read_base(source.directory)
        members = {subset_name(d): d for d in CATALOGUE if d.family == self.family}
        return {name: members[name].make(base) for name in self.hf_subsets}

    def _without_numbers(self, scores: dict[str, Any], subset: str) -> dict[str, Any]:
        if reason := self.found[subset].reason:
            logger.warning("%s, %s is not measurable, so its score is NaN: %s", self.metadata.name, subset, reason)
        return super()._without_numbers(scores, subset)


def subset_name(diagnostic: Diagnostic) -> str:
    """The key without the family, as a name: ``markdown-natural``; ``default`` if nothing is left."""
    return "-".join(diagnostic.key.split("/")[1:]) or "default"


def _family_task(family: str) -> type[FamilyTask]:
    members = [d for d in CATALOGUE if d.family == family]
    places = ", ".join(dict.fromkeys(d.paper for d in members if d.paper))
    name = f"TCRDiagnostic{family.capitalize()}"
    metadata = TCRSample.metadata.model_copy(
        update={
            "name": name,
            "description": f"Diagnostics of TCR-Bench ({places}), by default on the embedded sample.",
            "eval_langs": {subset_name(d): ["eng-Latn"] for d in members},
        }
    )
    return type(name, (FamilyTask,), {"metadata": metadata, "family": family, "__module__": __name__})


FAMILY_TASKS: tuple[type[FamilyTask], ...] = tuple(map(_family_task, FAMILIES))
globals().update({cls.__name__: cls for cls in FAMILY_TASKS})  # so that they can be pickled
