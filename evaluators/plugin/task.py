"""The base class of all tasks: data with checks, one search, special scores and what makes them doubtful."""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.timing import TimingStack

from evaluators.metrics.ranking import score_array
from evaluators.plugin import doubt
from evaluators.plugin.checks import DatasetError, column, retrieval_problems, shown
from evaluators.plugin.data import TaskData
from evaluators.plugin.dataset import fingerprint
from evaluators.plugin.first_stage import FirstStage, read_first_stage
from evaluators.plugin.mteb_internals import is_cross_encoder, is_sparse_encoder, quick_areas
from evaluators.plugin.predictions import one_prediction_file
from evaluators.plugin.results import (
    PER_QUERY,
    SpecialScores,
    TaskOption,
    read_provenance,
    write_per_query,
)
from evaluators.plugin.sources import DATA_VARIABLE, Source, choose_source
from evaluators.plugin.sparse import PickableEncoder

logger = logging.getLogger(__name__)

# The key under which each result records what its numbers depend on.
RECORD_KEY = "mteb_beyond"
VARIANT_PREFIX = "task_"
SPLIT = "test"


class BeyondTask(AbsTaskRetrieval):
    """A retrieval or reranking task of this project.

    A subclass says where its data are (``data_name``, metadata), how to read them (:meth:`read`), what could be
    wrong with them (:meth:`problems`) and what it measures (:meth:`special_scores`). This class does the rest:
    data are checked before they are scored, every ranking is checked before it is measured, and every result
    carries a record of data, metric version and options, so that a stale result can be recognised.

    Attributes:
        data_path: reads the data from this directory, or from this published one (``hf://datasets/USER/NAME@REVISION``),
            instead of looking for them; class or instance attribute.
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
    first_stage: FirstStage | None = None

    data: TaskData | None = None
    _loaded_with: tuple[Any, ...] = ()
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
        out = retrieval_problems(data.corpus, data.queries, data.relevant_docs, data.top_ranked, data.dropped)
        if not out:
            searched = self.searched_relevant_docs(data)
            unjudged = [q for q in column(data.queries, "id") if not searched.get(q)]
            if unjudged:
                out.append(f"qrels: queries without any judgement, which mteb would skip: {shown(unjudged)}")
        return out

    def searched_relevant_docs(self, data: TaskData) -> dict[str, dict[str, int]]:
        """Judgements as handed to mteb, which searches only for queries that have one."""
        return data.relevant_docs

    @abstractmethod
    def special_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        """The family's own scores of a run (query id -> {document id: score}) that is complete and finite."""

    def all_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        """The special scores, and what further kinds of task add to them."""
        return self.special_scores(run, data)

    def describe_query(self, query_id: str, data: TaskData) -> dict[str, Any]:
        """What `mteb-beyond show` prints about a query beside its text and relevant documents."""
        return {}

    # ---- data -----------------------------------------------------------------------------------------------

    def source(self) -> Source:
        """Where this task's data will be read from."""
        if self.data_path is None and self.embedded is not None:
            revision = type(self).metadata.revision
            return Source(self.data_name, self.embedded, "", revision, "shipped with the package")
        dataset = type(self).metadata.dataset
        return choose_source(self.data_name, dataset["path"], dataset["revision"], self.data_path)

    def current_revision(self) -> str:
        """The revision that a result computed now would carry: a fingerprint for local data."""
        return self._revision_of(self.source())

    def _revision_of(self, source: Source) -> str:
        return source.revision if source.directory is None else self.local_revision(source.directory)

    def local_revision(self, directory: Path) -> str:
        """The fingerprint of local data: everything that :meth:`read` reads from the directory."""
        return fingerprint(directory)

    def load_data(self, num_proc: int | None = None, *, timer: TimingStack | None = None, **kwargs: Any) -> None:
        """Read and check the data, and apply the first stage if one is set.

        Raises:
            DatasetError: listing everything that is wrong with them.
            ValueError, FileNotFoundError: if the first stage's predictions do not fit or are not there.
        """
        if self.data_loaded:
            self._require_loaded_as_set()
            return
        self.option_values()
        with (timer or TimingStack())("Data loading", log_message=f"Loading dataset {self.metadata.name}..."):
            self._read_checked()
        if self.first_stage_predictions is not None:
            try:
                self.convert_to_reranking(self.first_stage_predictions, self.first_stage_top_k)
            except (ValueError, FileNotFoundError):
                self.unload_data()
                raise

    def _loading_settings(self) -> tuple[Any, ...]:
        return self.data_path, self.first_stage_predictions, self.first_stage_top_k

    def _require_loaded_as_set(self) -> None:
        if self._loaded_with != self._loading_settings():
            raise ValueError(
                f"{self.metadata.name}: data_path or the first stage changed after the data were loaded; call "
                "unload_data() first, so that the new setting takes effect"
            )

    def _read_checked(self) -> None:
        source = self.source()
        try:
            data = self.read(source.fetched())
        except DatasetError:
            raise
        except Exception as error:
            if source.is_local:
                raise
            raise ConnectionError(
                f"{self.metadata.name}: put its data into a folder named {source.name!r} and set {DATA_VARIABLE} to "
                f"the folder that holds it, or set data_path: {source.repository} at {source.revision} could not be "
                f"fetched ({type(error).__name__}: {error})"
            ) from error
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
        self.describe(self._revision_of(source))
        self._loaded_with = self._loading_settings()
        self.data_loaded = True

    def describe(self, revision: str) -> None:
        """Give this object metadata of its own that state the data it read and what its options change.

        mteb drops them together with the data.
        """
        dataset = {**type(self).metadata.dataset, "revision": revision}
        self.metadata = type(self).metadata.model_copy(update={"dataset": dataset, **self.metadata_changes()})

    def metadata_changes(self) -> dict[str, Any]:
        """Metadata that this instance's options change, such as the prompt."""
        return {}

    def unload_data(self) -> None:
        super().unload_data()
        self.data = None
        # What convert_to_reranking changed goes with the data that it changed.
        self.first_stage = None
        self._top_k = max(self.k_values)
        self._previous_results_model_meta = None

    def convert_to_reranking(self, top_ranked_path: str | Path, top_k: int = 10) -> BeyondTask:
        """Rerank the ``top_k`` best documents of a saved run instead of searching.

        As mteb's method, but the file is checked before anything changes, candidates are cut by (score, document
        id), so that ties do not depend on storage order, and the result is recorded as an experiment of its own.

        Raises:
            FileNotFoundError: if there are no saved predictions.
            ValueError: if the file or ``top_k`` is unusable, a query has no candidates, a candidate is not in the
                corpus, or the task has candidates of its own.
        """
        first_stage = self._read_first_stage(top_ranked_path, top_k)
        if not self.data_loaded:
            self._read_checked()
        assert self.data is not None
        if self.data.top_ranked is not None:
            raise ValueError(f"{self.metadata.name} has candidates of its own; it takes no first stage")
        parts = self.dataset["default"][SPLIT]
        queries = list(parts["queries"]["id"])
        first_stage.check(queries, set(column(parts["corpus"], "id")))
        parts["top_ranked"] = {q: first_stage.candidates[q] for q in queries}
        self._top_k = first_stage.top_k
        self._previous_results_model_meta = first_stage.model
        self.first_stage = first_stage
        return self

    def _read_first_stage(self, path: str | Path, top_k: int) -> FirstStage:
        return read_first_stage(one_prediction_file(Path(path), self.metadata.name), "default", SPLIT, top_k)

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
        """What differs from the default run, as it must stand in a model's ``experiment_kwargs``.

        The keys begin with ``task_``, so that they do not meet parameters of the model itself.
        """
        defaults = {option.name: option.choices[0] for option in self.task_options}
        changed = {name: value for name, value in self._run_options().items() if value != defaults.get(name)}
        return {f"{VARIANT_PREFIX}{name}": value for name, value in changed.items()}

    def _run_options(self) -> dict[str, str]:
        first_stage = self.first_stage
        if first_stage is None and self.first_stage_predictions is not None and not self.data_loaded:
            first_stage = self._read_first_stage(self.first_stage_predictions, self.first_stage_top_k)
        return self.option_values() | ({"first_stage": first_stage.name} if first_stage else {})

    def record(self) -> dict[str, Any]:
        """What a result of this task depends on beside model and data revision."""
        return {
            "version": version("mteb-beyond"),
            "metric_version": self.metric_version,
            "options": self._run_options(),
        }

    def provenance(self) -> dict[str, Any]:
        """What saved predictions and per-query tables come from: the record and the data's revision."""
        revision = self.metadata.revision if self.data_loaded else self.current_revision()
        return {"revision": revision, **self.record()}

    # ---- evaluation ------------------------------------------------------------------------------------------

    def prepare_queries(self, model: Any, queries: Any) -> Any:
        """The queries as this model is to read them."""
        return queries

    def _evaluate_subset(
        self, model: Any, data_split: RetrievalSplitData, *, prediction_folder: Path | None = None, **kwargs: Any
    ) -> Any:
        self._require_loaded_as_set()
        if is_cross_encoder(model) and data_split["top_ranked"] is None:
            raise ValueError(
                f"{self.metadata.name}: a cross-encoder ranks given candidates (top_ranked) only. Save another model's "
                "predictions first and rerank them: `run --first-stage FOLDER`, or task.convert_to_reranking(FOLDER)"
            )
        self._require_recorded_variant(model)
        self.describe(self.metadata.revision)  # an option may have been set since the data were loaded
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
            if split["top_ranked"] is not None and is_sparse_encoder(model) and self.metadata.type == "Retrieval":
                model = PickableEncoder(model)  # reranking tasks get dense embeddings from mteb
            with quick_areas():
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
        special = self.all_scores(results, self.data)
        figures: dict[str, Any] = {
            "tied_top_share": doubt.tie_share(results),
            "n_documents_in_shortest_ranking": min(map(len, results.values())),
        }
        if parts["top_ranked"] is not None:
            figures["n_missing_candidates"] = sum(doubt.missing_candidates(results, parts["top_ranked"]).values())
        if self._model is not None:
            queries = self.prepare_queries(self._model, parts["queries"])
            figures |= doubt.length_figures(self._model, parts["corpus"], queries, results)
            figures |= doubt.own_figures(self._model)
        if self._prediction_folder is not None:
            subset = None if hf_subset == "default" else hf_subset
            meta = None if self._model is None else self._model.mteb_model_meta
            settings = None if meta is None else dict(meta.experiment_kwargs or {})
            path = self.per_query_file(self._prediction_folder)
            write_per_query(path, special.per_query, self.provenance(), subset, settings)
        record = self.record() | ({"notes": self.data.notes} if self.data.notes else {})
        return figures | special.scores | self.data.counts | {RECORD_KEY: record}

    def per_query_file(self, folder: str | Path) -> Path:
        """Where the table of scores per query lies in a prediction folder."""
        return Path(folder) / f"{self.metadata.name}{PER_QUERY}"

    def _check_run(self, run: Mapping[str, Mapping[str, float]], parts: RetrievalSplitData) -> None:
        """A ranking that lacks a query or holds unusable scores must not become a number."""
        lacking = [q for q in parts["queries"]["id"] if not run.get(q)]
        if lacking:
            # trec_eval leaves a query without documents out, so mteb's averages would run over the other queries.
            raise ValueError(
                f"{self.metadata.name}: the model returned no document for {len(lacking)} queries: {shown(lacking)}; "
                "let it return at least one document for every query, with a low score if nothing fits"
            )
        queries, documents = set(parts["queries"]["id"]), set(column(parts["corpus"], "id"))
        strangers = [q for q in run if q not in queries]
        if strangers:
            raise ValueError(
                f"{self.metadata.name}: the model ranked queries that it was not given: {shown(strangers)}"
            )
        for query, scores in run.items():
            score_array(scores, query)
            unknown = scores.keys() - documents
            if unknown:
                raise ValueError(
                    f"query {query!r}: the model ranked documents that do not exist: {shown(sorted(unknown))}"
                )

    def _require_recorded_variant(self, model: Any) -> None:
        recorded = {
            key: value
            for key, value in (model.mteb_model_meta.experiment_kwargs or {}).items()
            if key.startswith(VARIANT_PREFIX)
        }
        variant = self.variant()
        if recorded != variant:
            raise ValueError(
                f"{self.metadata.name} is run with {variant or 'default options'}, but the model's record says "
                f"{recorded or 'default options'}: its result would be filed as, and mistaken for, another run's. "
                "Evaluate `evaluators.plugin.with_variant(model, task)` instead of `model`"
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
        other = read_provenance(self.per_query_file(folder)).get("options", self._run_options())
        if other != (now := self._run_options()):
            raise ValueError(f"{path} holds predictions made with {other}; those with {now} need a folder of their own")
