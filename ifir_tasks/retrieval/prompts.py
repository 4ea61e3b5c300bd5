"""Prompts of the ablation "[Prompt] [Query] [Instruction]" (IFIR, section 5.2 and Table 9), read from prompts.json.

A prompt names task and domain ("Represent the science question for retrieval."); it is not IFIR's instruction. The
file says which sentences are the paper's and which are ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mteb.types import PromptType

PROMPT_FILE = Path(__file__).with_name("prompts.json")
# Every task gets an empty prompt, which also silences the default that mteb gives to models with instructions: the
# first lines of Table 9.
NO_PROMPT = "none"


@dataclass(frozen=True)
class TaskPrompts:
    """The prompts of one task; an empty document prompt leaves documents as they are."""

    query: str
    document: str = ""


@dataclass(frozen=True)
class PromptFamily:
    """The prompts of a family of models, and how they stand in front of a text.

    Attributes:
        name: part of the record of a model that uses them.
        template: text in front of a query or document, with ``{prompt}`` in it; not used for an empty prompt.
        tasks: task name -> its prompts.
    """

    name: str
    template: str
    tasks: Mapping[str, TaskPrompts]

    def __post_init__(self) -> None:
        if "{prompt}" not in self.template:
            raise ValueError(f"the template of the prompts {self.name!r} lacks {{prompt}}: {self.template!r}")

    @property
    def version(self) -> str:
        """Name and a hash of the content, so that edited prompts make another variant."""
        content = json.dumps([self.template, {t: asdict(p) for t, p in sorted(self.tasks.items())}])
        return f"{self.name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def sentence(self, task: str, kind: PromptType | None) -> str:
        """The bare prompt of a task for queries or documents; may be empty.

        Raises:
            ValueError: for a task without prompts, or a text that is neither query nor document.
        """
        if task not in self.tasks:
            raise ValueError(
                f"the prompts {self.name!r} have none for the task {task}, only for {', '.join(sorted(self.tasks))}; "
                "give a PromptFamily of your own"
            )
        if kind is None:
            raise ValueError(f"{task}: prompts are for queries and documents, and this text is neither")
        prompts = self.tasks[task]
        return prompts.query if kind == PromptType.query else prompts.document

    def rendered(self, sentence: str) -> str:
        """What stands in front of the text."""
        return self.template.format(prompt=sentence) if sentence else ""


def prompt_families() -> list[str]:
    """The names that :func:`prompt_family` takes."""
    return [*_content()["families"], NO_PROMPT]


def prompt_family(name: str) -> PromptFamily:
    """A family from the data file, or ``none``.

    Raises:
        ValueError: for an unknown name; the message lists the names.
    """
    content = _content()
    families, wordings = content["families"], content["wordings"]
    if name == NO_PROMPT:
        return PromptFamily(name, "{prompt}", {task: TaskPrompts("") for w in wordings.values() for task in w})
    if name not in families:
        raise ValueError(f"unknown prompts {name!r}; choose from {', '.join(prompt_families())}")
    wording = wordings[families[name]["wording"]]
    tasks = {task: TaskPrompts(found["query"], found["document"]) for task, found in wording.items()}
    return PromptFamily(name, families[name]["template"], tasks)


def _content() -> dict[str, Any]:
    return dict(json.loads(PROMPT_FILE.read_text(encoding="utf-8")))
