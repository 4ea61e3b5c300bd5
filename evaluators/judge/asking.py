"""How a language model is asked, and what a record has to say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evaluators.judge.language_model import LanguageModel
from evaluators.judge.prompt import Prompt
from evaluators.judge.request import Request, Sampling

__all__ = ["Asking", "PromptedAsking"]


@dataclass(frozen=True)
class Asking:
    """A language model and how it draws its replies.

    Attributes:
        language_model: the endpoint with its store of replies.
        model: its name there.
        sampling: sampling parameters.
    """

    language_model: LanguageModel
    model: str
    sampling: Sampling

    def request(self, prompt: Prompt, /, **values: str) -> Request:
        """The request that a prompt makes.

        Raises:
            ValueError: if a field of the prompt has no value, or a value no field.
        """
        return Request(self.model, prompt.messages(**values), self.sampling)

    def settings(self, prompts: Mapping[str, Prompt]) -> dict[str, Any]:
        """What replies to these prompts depend on beside the data: JSON values only."""
        return {**self.manner(), "prompts": {name: prompt.version for name, prompt in prompts.items()}}

    def manner(self) -> dict[str, Any]:
        """What replies to any prompt depend on: JSON values only."""
        return {"model": self.model, "sampling": _as_json(self.sampling)}

    def changed_sampling(self) -> dict[str, Any]:
        """The sampling parameters that are not the default: JSON values only."""
        default = _as_json(Sampling())
        return {name: value for name, value in _as_json(self.sampling).items() if value != default[name]}


@dataclass(frozen=True)
class PromptedAsking(Asking):
    """An asking with the prompts that it uses.

    Attributes:
        prompts: by name.
    """

    prompts: Mapping[str, Prompt]

    def request_by(self, name: str, /, **values: str) -> Request:
        """The request that the prompt of that name makes."""
        return self.request(self.prompts[name], **values)

    def record_of(self, name: str) -> dict[str, Any]:
        """What a reply to the prompt of that name depends on beside the data: JSON values only."""
        return {**self.manner(), "prompt": f"{name} {self.prompts[name].version}"}


def _as_json(sampling: Sampling) -> dict[str, Any]:
    return {**asdict(sampling), "extra": dict(sampling.extra)}
