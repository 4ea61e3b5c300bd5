"""Prompts of the ablation "[Prompt] [Query] [Instruction]" (IFIR, section 5.2 and Table 9), read from prompts.json.

A prompt names task and domain ("Represent the science question for retrieval."); it is not IFIR's instruction. The
file says which sentences are the paper's and which are ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluators.plugin.prompting import PromptFamily, TaskPrompts

PROMPT_FILE = Path(__file__).with_name("prompts.json")
# Every task gets an empty prompt, which also silences the default that mteb gives to models with instructions: the
# first lines of Table 9.
NO_PROMPT = "none"


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
