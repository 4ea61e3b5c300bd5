"""The base class of all tasks: data with checks, one search, special scores and what makes them doubtful."""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.timing import TimingStack

from evaluators.metrics.ranking import score_array, top
from evaluators.plugin import doubt
from evaluators.plugin.checks import DatasetError, retrieval_problems, shown
from evaluators.plugin.data import TaskData
from evaluators.plugin.dataset import fingerprint
from evaluators.plugin.sources import Source, choose_source

logger = logging.getLogger(__name__)

# The key under which each result records what its numbers depend on.
RECORD_KEY = "mteb_beyond"
SPLIT = "test"


@dataclass(frozen=True)
class TaskOption:
    """An option of a task family that changes its numbers, for attribute and command line alike.

    Attributes:
        name: attribute of the task, and ``--name`` of ``mteb-beyond run``.
        choices: allowed values; the first one is the default.
        help: one sentence for ``--help``.
    """

    name: str
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class SpecialScores:
    """What a task adds to mteb's scores.

    Attributes:
        scores: flat (or, as upstream does, ``og`` / ``changed`` nested) values, Python floats on the 0-1 scale.
        per_query: query id -> the same values for that query alone, for the per-query table.
    """

    scores: dict[str, Any]
    per_query: dict[str, dict[str, Any]]


class BeyondTask(AbsTaskRetrieval):
    """A retrieval or reranking task of this project.

    A subclass says where its data are (``data_name``, metadata), how to read them (:meth:`read`), what could be
    wrong with them (:meth:`problems`) and what it measures (:meth:`special_scores`). This class does the rest:
    data are checked before they are scored, every ranking is checked before it is measured, and every result
    carries a record of data, metric version and options, so that a stale result can be recognised.

    Attributes:
        data_path: reads the data from this directory instead of looking for them; class or instance attribute.
        metric_version: raised whenever the same run would get other special scores than before.
    """

    data_name: ClassVar[str]
    embedded: ClassVar[Path | None] = None
    metric_version: ClassVar[int] = 1
    task_options: ClassVar[tuple[TaskOption, ...]] = ()

    data_path: str | Path | None = None
    # Saved predictions of a first stage to rerank, for a class or an instance, and how many of its best documents.
    first_stage_predictions: str | Path | None = None
    first_stage_top_k: int = 100
    # Set by `convert_to_reranking`, which makes another experiment of the same task.
    first_stage: str | None = None

    data: TaskData | None = None
    _model: Any = None
    _prediction_folder: Path | None = None

    # ---- what a subclass provides -------------------------------------------------------------------------

    @abstractmethod
    def read(self, source: Source) -> TaskData:
        """Read the data from a source."""

    @classmethod
    def recognises(cls, directory: Path) -> bool:
        """Whether a directory looks like data of this family (for `mteb-beyond check DIR`)."""
        return False

    def problems(self, data: TaskData) -> list[str]:
        """Everything that is wrong with the data; subclasses add to what every retrieval task checks."""
        out = retrieval_problems(data.corpus, data.queries, data.relevant_docs, data.top_ranked)
        if not out:
            searched = self.searched_relevant_docs(data)
            unjudged = [q for q in data.queries["id"] if not searched.get(q)]
            if unjudged:
                out.append(f"qrels: queries without any judgement, which mteb would skip: {shown(unjudged)}")
        return out

    def searched_relevant_docs(self, data: TaskData) -> dict[str, dict[str, int]]:
        """Judgements as handed to mteb, which searches only for queries that have one."""
        return data.relevant_docs

    @abstractmethod
    def special_scores(
        self, run: dict[str, dict[str, float]], measures: dict[str, dict[str, float]], data: TaskData
    ) -> SpecialScores:
        """The family's own scores.

        Args:
            run: query id -> {document id: score}, already checked to be complete and finite.
            measures: query id -> trec_eval's measures (``ndcg_cut_20``, ``map_cut_1000``, ...).
            data: the loaded data.
        """

    def describe_query(self, query_id: str, data: TaskData) -> dict[str, Any]:
        """What `mteb-beyond show` prints about a query beside its text and relevant documents."""
        return {}

    # ---- data -----------------------------------------------------------------------------------------------

    def source(self) -> Source:
        """Where this task's data will be read from."""
        if self.data_path is None and self.embedded is not None:
            return Source(self.data_name, self.embedded, "", self.metadata.revision, "shipped with the package")
        dataset = type(self).metadata.dataset
        return choose_source(self.data_name, dataset["path"], dataset["revision"], self.data_path)

    def current_revision(self) -> str:
        """The revision that a result computed now would carry: a fingerprint for local data."""
        source = self.source()
        return source.revision if source.directory is None else self.local_revision(source.directory)

    def local_revision(self, directory: Path) -> str:
        """The fingerprint of local data: everything that :meth:`read` reads from the directory."""
        return fingerprint(directory)

    def load_data(self, num_proc: int | None = None, *, timer: TimingStack | None = None, **kwargs: Any) -> None:
        """Read and check the data.

        Raises:
            DatasetError: listing everything that is wrong with them.
        """
        if self.data_loaded:
            return
        with (timer or TimingStack())("Data loading", log_message=f"Loading dataset {self.metadata.name}..."):
            source = self.source()
            data = self.read(source)
            problems = self.problems(data)
            if problems:
                raise DatasetError(f"{self.metadata.name} ({source.directory or source.repository})", problems)
        for note in data.notes:
            logger.warning("%s: %s", self.metadata.name, note)
        self.data = data
        self.dataset = {
            "default": {
                SPLIT: RetrievalSplitData(
                    corpus=data.corpus,
                    queries=data.queries,
                    relevant_docs=self.searched_relevant_docs(data),
                    top_ranked=data.top_ranked,
                )
            }
        }
        # An own copy, so that a result states the data that were really read; mteb drops it with the data.
        revision = source.revision if source.directory is None else self.local_revision(source.directory)
        dataset = {**type(self).metadata.dataset, "revision": revision}
        self.metadata = type(self).metadata.model_copy(update={"dataset": dataset, **self.metadata_changes()})
        self.data_loaded = True
        if self.first_stage_predictions is not None:
            self.convert_to_reranking(self.first_stage_predictions, self.first_stage_top_k)

    def metadata_changes(self) -> dict[str, Any]:
        """Metadata that this instance's options change, such as the prompt."""
        return {}

    def unload_data(self) -> None:
        super().unload_data()
        self.data = None
        self.first_stage = None

    def convert_to_reranking(self, top_ranked_path: str | Path, top_k: int = 10) -> BeyondTask:
        """Rerank the ``top_k`` best documents of a saved run instead of searching.

        As mteb's method, but candidates are cut by (score, document id), so that ties do not depend on storage
        order, and a query without candidates is an error.
        """
        path = self._predictions_file(top_ranked_path)
        if not self.data_loaded:
            self.load_data()
        if self.data is not None and self.data.top_ranked is not None:
            raise ValueError(f"{self.metadata.name} has candidates of its own; it takes no first stage")
        super().convert_to_reranking(path, top_k)
        saved = json.loads(path.read_text(encoding="utf-8"))
        for subset, splits in self.dataset.items():
            for split, parts in splits.items():
                run = saved[subset][split]
                lacking = sorted(q for q in parts["relevant_docs"] if not run.get(q))
                if lacking:
                    raise ValueError(f"{path}: no candidates for {len(lacking)} queries: {shown(lacking)}")
                parts["top_ranked"] = {q: top(run[q], top_k, q) for q in parts["relevant_docs"]}
        self.first_stage = _first_stage_name(saved, top_k)
        return self

    def _predictions_file(self, path: str | Path) -> Path:
        given = Path(path)
        file = given / self.prediction_file_name if given.is_dir() else given
        if not file.is_file():
            raise FileNotFoundError(f"{self.metadata.name}: no saved predictions of a first stage at {file}")
        return file

    def _first_stage(self) -> str | None:
        if self.first_stage is None and self.first_stage_predictions is not None:
            saved = json.loads(self._predictions_file(self.first_stage_predictions).read_text(encoding="utf-8"))
            return _first_stage_name(saved, self.first_stage_top_k)
        return self.first_stage

    # ---- options and records ---------------------------------------------------------------------------------

    def option_values(self) -> dict[str, str]:
        """The value of each task option, checked."""
        values: dict[str, str] = {}
        for option in self.task_options:
            value = getattr(self, option.name)
            if value not in option.choices:
                raise ValueError(f"{self.metadata.name}.{option.name} must be one of {option.choices}, got {value!r}")
            values[option.name] = value
        return values

    def variant(self) -> dict[str, str]:
        """The options that differ from their defaults: what a model's ``experiment_kwargs`` must record."""
        defaults = {option.name: option.choices[0] for option in self.task_options}
        changed = {name: value for name, value in self.option_values().items() if value != defaults[name]}
        return changed | self._first_stage_option()

    def _first_stage_option(self) -> dict[str, str]:
        first_stage = self._first_stage()
        return {} if first_stage is None else {"first_stage": first_stage}

    def record(self) -> dict[str, Any]:
        """What a result of this task depends on beside model and data revision."""
        return {
            "version": version("mteb-beyond"),
            "metric_version": self.metric_version,
            "options": self.option_values() | self._first_stage_option(),
        }

    # ---- evaluation ------------------------------------------------------------------------------------------

    def prepare_queries(self, model: Any, queries: Any) -> Any:
        """The queries as this model is to read them."""
        return queries

    def _evaluate_subset(
        self, model: Any, data_split: RetrievalSplitData, *, prediction_folder: Path | None = None, **kwargs: Any
    ) -> Any:
        self._require_recorded_variant(model)
        if prediction_folder is not None:
            self._require_own_folder(model, Path(prediction_folder))
        split = RetrievalSplitData(**data_split)
        split["queries"] = self.prepare_queries(model, data_split["queries"])
        top_k = self._top_k
        if split["top_ranked"] is not None:
            # Lexical models search their top_k in the whole corpus and only then keep the candidates.
            self._top_k = max(top_k, len(split["corpus"]))
        self._model, self._prediction_folder = model, prediction_folder
        try:
            return super()._evaluate_subset(model, split, prediction_folder=prediction_folder, **kwargs)
        finally:
            self._top_k = top_k
            self._model = self._prediction_folder = None

    def task_specific_scores(
        self,
        scores: dict[str, dict[str, float]],
        qrels: Any,
        results: dict[str, dict[str, float]],
        hf_split: str,
        hf_subset: str,
    ) -> dict[str, Any]:
        """The special scores, the doubt figures and the record."""
        assert self.data is not None and self.dataset is not None
        parts = self.dataset[hf_subset][hf_split]
        self._check_run(results, parts)
        special = self.special_scores(results, scores, self.data)
        figures: dict[str, Any] = {"tied_top_share": doubt.tie_share(results)}
        if parts["top_ranked"] is not None:
            figures["n_missing_candidates"] = sum(doubt.missing_candidates(results, parts["top_ranked"]).values())
        if self._model is not None:
            queries = self.prepare_queries(self._model, parts["queries"])
            figures |= doubt.length_figures(self._model, parts["corpus"], queries)
        if self._prediction_folder is not None:
            write_per_query(per_query_path(Path(self._prediction_folder), self.metadata.name), special.per_query)
        return figures | special.scores | self.data.counts | {RECORD_KEY: self.record()}

    def _check_run(self, run: Mapping[str, Mapping[str, float]], parts: RetrievalSplitData) -> None:
        """A ranking that lacks a query or holds unusable scores must not become a number."""
        lacking = [q for q in parts["queries"]["id"] if q not in run]
        if lacking:
            raise ValueError(f"{self.metadata.name}: the model returned no ranking for {shown(lacking)}")
        for query, scores in run.items():
            score_array(scores, query)

    def _require_recorded_variant(self, model: Any) -> None:
        recorded = dict(model.mteb_model_meta.experiment_kwargs or {})
        lacking = {k: v for k, v in self.variant().items() if recorded.get(k) != v}
        if lacking:
            raise ValueError(
                f"{self.metadata.name} is run with {lacking}, which the model's record does not state, so its result "
                "would be filed as (and later be mistaken for) the default one. Evaluate "
                "`evaluators.plugin.with_variant(model, task)` instead of `model`"
            )

    def _require_own_folder(self, model: Any, folder: Path) -> None:
        path = folder / self.prediction_file_name
        if not path.exists():
            return
        owner = json.loads(path.read_text(encoding="utf-8")).get("mteb_model_meta", {})
        meta = model.mteb_model_meta
        if (owner.get("model_name"), owner.get("revision")) != (meta.name, meta.revision):
            raise ValueError(
                f"{path} holds the predictions of {owner.get('model_name')!r} at {owner.get('revision')!r}; those of "
                f"{meta.name!r} at {meta.revision!r} need a folder of their own"
            )


def _first_stage_name(saved: Mapping[str, Any], top_k: int) -> str:
    made_by = saved["mteb_model_meta"]
    return f"{made_by['model_name']}@{made_by['revision']}:{top_k}"


def per_query_path(folder: Path, task_name: str) -> Path:
    """Where the per-query table of a task lies beside its predictions."""
    return folder / f"{task_name}_per_query.parquet"


def write_per_query(path: Path, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Write one row per query: ``query-id`` and the special scores; a value that a query lacks is null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns: list[str] = list(dict.fromkeys(name for row in rows.values() for name in row))
    table: dict[str, Sequence[Any]] = {"query-id": list(rows)}
    for name in columns:
        table[name] = [row.get(name) for row in rows.values()]
    pq.write_table(pa.table(table), path)
