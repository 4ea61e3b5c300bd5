"""Everything that reaches into mteb where mteb has no public way, in this one file.

mteb (2.26) has no registry that others may add to, yet result files, model cards, ``get_tasks`` and the command
line look tasks, benchmarks and models up by name. :func:`problems` states what this file relies on; a test calls
it, so that a new mteb which moves one of these things fails with a sentence instead of a wrong lookup.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mteb
import sklearn.metrics
from datasets import Dataset
from mteb._create_dataloaders import _corpus_to_dict, _retrieval_texts, create_dataloader
from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores, make_score_dict
from mteb.abstasks import AbsTask
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.benchmarks.benchmark import Benchmark
from mteb.cli.build_cli import build_cli
from mteb.models import CrossEncoderProtocol, EncoderProtocol, ModelMeta
from mteb.models.abs_encoder import get_prompt_name
from mteb.models.model_implementations import MODEL_REGISTRY
from mteb.types import PromptType
from scipy.integrate import trapezoid

from evaluators.plugin.parsers import sub_commands

# `import mteb.get_tasks` would give the function of that name, which hides the module.
_tasks_module: Any = importlib.import_module("mteb.get_tasks")
_benchmarks_module: Any = importlib.import_module("mteb.benchmarks.benchmarks")
_lookup_module: Any = importlib.import_module("mteb.benchmarks.get_benchmark")
_evaluate_module: Any = importlib.import_module("mteb.evaluate")
_measures_module: Any = importlib.import_module("mteb._evaluators.retrieval_metrics")

__all__ = [
    "document_prompt",
    "document_texts",
    "evaluation_config",
    "is_cross_encoder",
    "is_sparse_encoder",
    "metadata_of",
    "mteb_parser",
    "problems",
    "query_texts",
    "quick_areas",
    "register_benchmark",
    "register_model",
    "register_tasks",
    "resolve_local_loader",
    "standard_scores",
    "text_loader",
    "with_precision",
    "wrapped_model",
]


def problems() -> list[str]:
    """What the installed mteb does not offer as expected; empty if all is well."""
    expected: list[tuple[bool, str]] = [
        (isinstance(getattr(_tasks_module, "_TASKS_REGISTRY", None), dict), "mteb.get_tasks._TASKS_REGISTRY is a dict"),
        (isinstance(getattr(_tasks_module, "TASK_LIST", None), tuple), "mteb.get_tasks.TASK_LIST is a tuple"),
        (isinstance(getattr(_tasks_module, "_SIMILAR_TASKS", None), dict), "mteb.get_tasks._SIMILAR_TASKS is a dict"),
        (isinstance(MODEL_REGISTRY, dict), "mteb.models.model_implementations.MODEL_REGISTRY is a dict"),
        (callable(getattr(ModelMeta, "_resolve_loader", None)), "ModelMeta._resolve_loader exists"),
        (callable(getattr(_evaluate_module, "_sanitize_model", None)), "mteb.evaluate._sanitize_model exists"),
        (
            callable(getattr(_evaluate_module, "_apply_precision_to_meta", None)),
            "mteb.evaluate._apply_precision_to_meta exists",
        ),
    ]
    for name in ("_build_registry", "_build_aliases_registry"):
        function = getattr(_lookup_module, name, None)
        expected.append((hasattr(function, "cache_clear"), f"mteb.benchmarks.get_benchmark.{name} is an lru_cache"))
    commands = set(sub_commands(build_cli()))
    needed = {"run", "available-tasks", "available-benchmarks", "create-model-results"}
    expected.append((needed <= commands, f"mteb's command line has {sorted(needed)} (it has {sorted(commands)})"))
    return [f"mteb {mteb.__version__}: expected that {text}" for holds, text in expected if not holds]


def register_tasks(classes: Sequence[type[AbsTask]]) -> None:
    """Make task classes known to mteb by name: lookups, filters, listings, result objects and cards.

    Registering a class again does nothing.

    Raises:
        ValueError: if mteb already has another task of that name.
    """
    registry: dict[str, type[AbsTask]] = _tasks_module._TASKS_REGISTRY
    for cls in classes:
        name = cls.metadata.name
        known = registry.get(name)
        if known is cls:
            continue
        if known is not None and (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__):
            # The same class of a reloaded module takes its predecessor's place.
            _tasks_module.TASK_LIST = tuple(t for t in _tasks_module.TASK_LIST if t is not known)
        elif known is not None:
            raise ValueError(
                f"cannot register {cls.__module__}.{cls.__qualname__}: mteb {mteb.__version__} already has a task "
                f"named {name!r} ({known.__module__}.{known.__qualname__}); choose another name"
            )
        registry[name] = cls  # in place: other modules of mteb hold the same object
        _tasks_module.TASK_LIST = (*_tasks_module.TASK_LIST, cls)
        for original in cls.metadata.adapted_from or ():
            similar = _tasks_module._SIMILAR_TASKS.setdefault(original, [])
            similar.extend([name] if name not in similar else [])


def evaluation_config(tasks: Sequence[AbsTask], title: str, further: Sequence[tuple[str, str, str]] = ()) -> str:
    """The hub's ``eval.yaml`` of a dataset: which tasks score it. Several tasks are described by the title.

    Args:
        tasks, title: what scores the dataset, and its name.
        further: id, subset and split of measures beside the main scores.
    """
    config: Any = None
    for task in tasks:
        config = task._create_task_hf_config(config)
    measured = [type(config.tasks[0])(id=name, config=subset, split=split) for name, subset, split in further]
    described = {} if len(tasks) == 1 else {"description": f"{title}: {len(tasks)} tasks on the same data"}
    return str(config.model_copy(update={"name": title, "tasks": [*config.tasks, *measured], **described}).to_yaml())


def register_benchmark(benchmark: Benchmark) -> None:
    """Make a benchmark known to mteb by name and aliases. Registering the same object again does nothing.

    Raises:
        ValueError: if mteb already has another benchmark of that name.
    """

    def names(of: Benchmark) -> list[str]:
        return [task.metadata.name for task in of.tasks]

    known = _lookup_module._build_registry().get(benchmark.name)
    attribute = f"mteb_beyond:{benchmark.name}"
    if known is benchmark:
        return
    reloaded = known is getattr(_benchmarks_module, attribute, None)
    if known is not None and not (reloaded and names(known) == names(benchmark)):
        raise ValueError(f"mteb {mteb.__version__} already has a benchmark named {benchmark.name!r}")
    # mteb collects benchmarks from this module's attributes, whatever they are called.
    setattr(_benchmarks_module, attribute, benchmark)
    _lookup_module._build_registry.cache_clear()
    _lookup_module._build_aliases_registry.cache_clear()


def metadata_of(task: str) -> TaskMetadata:
    """The metadata of one of mteb's tasks, without creating the task, which would set random seeds."""
    metadata: TaskMetadata = _tasks_module._TASKS_REGISTRY[task].metadata
    return metadata


def register_model(meta: ModelMeta, key: str | None = None) -> None:
    """Make a model known to mteb under ``key`` (default: its name), replacing an earlier entry of that key."""
    name = key or meta.name
    if not name:
        raise ValueError("a model needs a name to be registered")
    MODEL_REGISTRY[name] = meta


def resolve_local_loader(directory: Path) -> tuple[Callable[..., Any], str]:
    """mteb's wrapper class for a local model directory, and its model type (``dense``, ``cross-encoder``, ...)."""

    def config(name: str) -> Any:
        path = directory / name
        try:
            return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as JSON ({error}); the model is not whole") from error

    loader, model_type, _ = ModelMeta._resolve_loader(
        str(directory),
        config("config_sentence_transformers.json"),
        config("sentence_bert_config.json"),
        config("modules.json"),
        config("config.json"),
    )
    return loader, model_type


def is_cross_encoder(model: Any) -> bool:
    """Whether mteb will run a model as a cross-encoder: by its protocol, whatever its record says."""
    return isinstance(model, CrossEncoderProtocol) and not isinstance(model, EncoderProtocol)


def is_sparse_encoder(model: Any) -> bool:
    """Whether a model, as mteb runs it, gives sparse embeddings."""
    meta = getattr(model, "mteb_model_meta", None)
    return isinstance(model, EncoderProtocol) and "sparse" in (getattr(meta, "model_type", None) or ())


def document_prompt(model: Any, metadata: TaskMetadata) -> str:
    """What a model of sentence-transformers, as mteb runs it, puts before each document; empty for others."""
    prompts: dict[str, str] = getattr(model, "model_prompts", None) or {}
    name = get_prompt_name(prompts, metadata, PromptType.document)
    if name is None:  # the model's own choice
        inner = getattr(model, "model", None)
        prompts = getattr(inner, "prompts", None) or {}
        own = ("document", "passage", "corpus", getattr(inner, "default_prompt_name", None))
        name = next((n for n in own if n in prompts), None)
    return prompts[name] or "" if name is not None else ""


def wrapped_model(model: Any) -> tuple[Any, ModelMeta]:
    """A model as mteb will run it, in mteb's wrapper where it needs one, and its record."""
    wrapped, meta, _, _ = _evaluate_module._sanitize_model(model)
    return wrapped, meta


def with_precision(meta: ModelMeta, encode_kwargs: Mapping[str, Any]) -> ModelMeta:
    """The record under which mteb files a run with these arguments: a precision makes another experiment."""
    recorded: ModelMeta = _evaluate_module._apply_precision_to_meta(meta, dict(encode_kwargs))
    return recorded


def mteb_parser() -> argparse.ArgumentParser:
    """mteb's own command line parser, to which sub-commands can be added with :mod:`evaluators.plugin.parsers`."""
    return build_cli()


def query_texts(queries: Dataset) -> list[str]:
    """The queries as a model reads them: text, blank, instruction."""
    return list(_retrieval_texts(queries, PromptType.query))


def text_loader(texts: Dataset, metadata: TaskMetadata, prompt_type: PromptType, batch_size: int) -> Any:
    """Queries, or documents (``id``, ``title`` and ``text``), in the form in which mteb's encoders take them."""
    return create_dataloader(texts, task_metadata=metadata, prompt_type=prompt_type, batch_size=batch_size)


def document_texts(corpus: Dataset) -> list[str]:
    """The documents as a model reads them: title, blank, text, both ends stripped."""
    return [_corpus_to_dict(row)["text"] for row in corpus]


def standard_scores(
    results: dict[str, dict[str, float]],
    qrels: dict[str, dict[str, int]],
    k_values: Sequence[int],
    previous_results_model_meta: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """mteb's usual scores over exactly these queries; mteb rounds most of them to five decimals."""
    found = calculate_retrieval_scores(results, qrels, list(k_values))
    scores: dict[str, Any] = make_score_dict(
        ndcg=found.ndcg,
        _map=found.map,
        recall=found.recall,
        precision=found.precision,
        mrr=found.mrr,
        naucs=found.naucs,
        naucs_mrr=found.naucs_mrr,
        hit_rate=found.hit_rate,
        task_scores={},
        previous_results_model_meta=previous_results_model_meta,
    )
    return scores


@contextmanager
def quick_areas() -> Iterator[None]:
    """Let mteb measure abstention curves without scikit-learn's checks of what mteb has just drawn itself.

    Each of mteb's 105 abstention scores (``nauc_...``) takes two areas, and these checks are two thirds of its cost: on
    a small task a third of the whole evaluation. Scores stay the same to the last bit. Where mteb takes its areas
    otherwise than with ``sklearn.metrics.auc``, this changes nothing.
    """
    before = getattr(_measures_module, "auc", None)
    if before is not sklearn.metrics.auc:
        yield
        return
    _measures_module.auc = _area
    try:
        yield
    finally:
        _measures_module.auc = before


def _area(x: Any, y: Any) -> float:
    """What ``sklearn.metrics.auc`` gives for arrays of numbers whose ``x`` rise."""
    return float(trapezoid(y, x))
