"""Models of mteb that read a prompt in front of each query: "[Prompt] [Query] [Instruction]"."""

from __future__ import annotations

from typing import Any

from evaluators.plugin.prompting import PromptFamily, with_prompts
from ifir_tasks.retrieval.prompts import prompt_family


def prompted(model: Any, prompts: str | PromptFamily) -> Any:
    """The model with a prompt in front of each query, and of each document where the family has one for documents.

    As :func:`evaluators.plugin.prompting.with_prompts`. With :func:`sliding_window` put the prompt around the window:
    it is then part of every window.

    Args:
        model: a sentence-transformers model, any model in mteb's form, or a ``ModelMeta``, which is loaded.
        prompts: the name of a family (see :func:`prompt_family`), or one of the caller's own.

    Raises:
        ValueError: for an unknown family, or as ``with_prompts``.
    """
    return with_prompts(model, prompt_family(prompts) if isinstance(prompts, str) else prompts)
