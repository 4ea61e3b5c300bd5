"""A request to a language model, and the key under which its reply is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Message = Mapping[str, str]

# Rough, and only for limits and price estimates: English text has about four characters a token.
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Sampling:
    """How a model is to draw its reply. ``None`` leaves a parameter out, for models that refuse it.

    Attributes:
        temperature: 0 or more.
        top_p: above 0, at most 1.
        max_tokens: the longest reply.
        top_logprobs: how many log-probabilities to ask for at each token; 0 asks for none.
        seed: for servers that take one; it makes another request of the same messages.
        extra: further parameters of the request's body, such as ``{"response_format": {"type": "json_object"}}``.

    Raises:
        ValueError: naming a parameter outside its range.
    """

    temperature: float | None = 0.0
    top_p: float | None = 0.7
    max_tokens: int = 512
    top_logprobs: int = 0
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise ValueError(f"temperature must lie in 0..2, got {self.temperature!r}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p!r}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens!r}")
        if not 0 <= self.top_logprobs <= 20:
            raise ValueError(f"top_logprobs must lie in 0..20, got {self.top_logprobs!r}")

    def body(self) -> dict[str, Any]:
        """The parameters as the chat completions interface names them."""
        out: dict[str, Any] = {"max_tokens": self.max_tokens}
        for name in ("temperature", "top_p", "seed"):
            value = getattr(self, name)
            if value is not None:
                # 0 and 0.0 are one request and must have one key.
                out[name] = value if name == "seed" else float(value)
        if self.top_logprobs:
            out |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        return out | dict(self.extra)


@dataclass(frozen=True)
class Request:
    """One chat completion: a model, messages (``role`` and ``content``) and sampling parameters."""

    model: str
    messages: tuple[Message, ...]
    sampling: Sampling = field(default_factory=Sampling)

    def body(self) -> dict[str, Any]:
        """The request's JSON body."""
        return {"model": self.model, "messages": [dict(m) for m in self.messages], **self.sampling.body()}

    @cached_property
    def key(self) -> str:
        """A SHA-256 over everything that decides the reply: model, messages and sampling parameters."""
        text = json.dumps(self.body(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def estimated_prompt_tokens(self) -> int:
        """About how many tokens the messages have: a token for every four characters, rounded up."""
        return -(-sum(len(m["content"]) for m in self.messages) // CHARACTERS_PER_TOKEN)
