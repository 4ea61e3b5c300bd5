"""What a caller may hand to the wrappers."""

from __future__ import annotations

from typing import Any

from mteb.models import ModelMeta

from evaluators.plugin.models import identified
from evaluators.plugin.mteb_internals import wrapped_model


def given_model(model: Any) -> Any:
    """A model as mteb runs it, with a name and a revision of its own.

    Args:
        model: a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``, which is loaded.

    Raises:
        ValueError: if nothing can be told by which to name the model.
        TypeError: if it is no model.
    """
    loaded = model.load_model() if isinstance(model, ModelMeta) else model
    if isinstance(wrapped_model(loaded)[0], ModelMeta):  # mteb's answer to an object that it does not know
        raise TypeError(f"{model!r} is no model that mteb can run (sentence-transformers, mteb's protocols, ModelMeta)")
    return identified(loaded)
