"""What a causal reranker is made of, and the directory in which it is kept."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluators.files import write_text
from evaluators.judge import Prompt, read_prompt
from evaluators.training.config import Checked
from evaluators.training.reading import read_checked

__all__ = [
    "CAUSAL_LM",
    "FIELDS",
    "PROMPT",
    "SETTINGS",
    "Asking",
    "CausalSettings",
    "Length",
    "is_reranker_directory",
    "read_settings",
    "write_settings",
]

FIELDS = ("query", "instruction", "document")
PROMPT = Path(__file__).parent / "prompts" / "relevance.txt"
SETTINGS, OWN_PROMPT = "causal_reranker.json", "prompt.txt"
# Before the name of a language model: rerank with it, by the defaults of the settings.
CAUSAL_LM = "causal-lm:"

Answer = Annotated[str, Field(min_length=1)]
# Tokens of a text: fewer hold no sentence.
Length = Annotated[int, Field(ge=8)]


class Asking(Checked):
    """How a causal language model is asked whether a document is relevant.

    Attributes:
        revision: of a base on the hub; default: the one that mteb or the hub names.
        true, false: the answers; each must be one token where the prompt ends. A leading blank counts. Default: the
            words "true" and "false", after a blank unless there is a chat template.
        chat: whether the prompt goes through the tokenizer's chat template.
    """

    revision: str | None = None
    true: Answer | None = None
    false: Answer | None = None
    chat: bool = False

    @model_validator(mode="after")
    def _two_answers(self) -> Self:
        if self.true == self.false and self.true is not None:
            raise ValueError(f"true and false are the same answer, {self.true!r}")
        return self


class CausalSettings(Asking):
    """How a causal language model reranks.

    Attributes:
        base: the language model: a hub name, or a directory, also relative to the settings.
        base_fingerprint: of a base in a directory, so that other weights under the same path are noticed.
        adapter: a directory with LoRA weights of peft; relative to the settings.
        max_length: tokens of the whole prompt, at most; never more than the model has positions.
        dtype: of the weights; ``auto`` as they were saved. Half precision makes ties among near-equal documents.
    """

    base: str
    base_fingerprint: str | None = None
    adapter: str | None = None
    max_length: Length = 2048
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"

    def digest(self, prompt: Prompt) -> str:
        """A SHA-256 over settings and prompt."""
        text = json.dumps([self.model_dump(), prompt.version], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def is_reranker_directory(directory: Path) -> bool:
    """Whether a directory holds a causal reranker."""
    return (directory / SETTINGS).is_file()


def write_settings(directory: Path, settings: CausalSettings, prompt: Path) -> None:
    """Write settings and prompt into a directory; the settings last, since they make a reranker of it.

    Raises:
        FileNotFoundError, ValueError: if the prompt is not there or has other fields than :data:`FIELDS`.
    """
    read_prompt(prompt, FIELDS)
    write_text(directory / OWN_PROMPT, prompt.read_text(encoding="utf-8-sig"))
    write_text(directory / SETTINGS, settings.model_dump_json(indent=1) + "\n")


def read_settings(directory: Path) -> tuple[CausalSettings, Prompt]:
    """The settings of a reranker's directory, with places in full, and its prompt.

    Raises:
        FileNotFoundError: if it lacks one of them.
        ValueError: naming what is wrong with them.
    """
    path = directory / SETTINGS
    if not path.is_file():
        raise FileNotFoundError(f"{directory} holds no causal reranker: {SETTINGS} is not there")
    settings = read_checked(path, CausalSettings)
    placed = {"base": _placed(settings.base, directory), "adapter": _placed(settings.adapter, directory)}
    return settings.model_copy(update=placed), read_prompt(directory / OWN_PROMPT, FIELDS)


def _placed(name: str | None, directory: Path) -> str | None:
    """A directory below the settings in full; a hub name or a full path as it is."""
    if name is None or os.path.isabs(name):
        return name
    beside = directory / name
    return str(beside.resolve()) if beside.is_dir() else name
