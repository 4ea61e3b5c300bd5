"""A language model's reply, read from the body that the server sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


class MalformedReplyError(ValueError):
    """A body that is no chat completion: as if the server had failed."""


class UnreadableReplyError(ValueError):
    """A reply from which nothing can be taken; the text says why. It is kept and counted, and never a result."""


@dataclass(frozen=True)
class Token:
    """A token of a reply: its text, and the likeliest tokens at its place as (text, natural log-probability)."""

    text: str
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Reply:
    """What a model said.

    Attributes:
        text: the reply; empty if the model gave none.
        finish_reason: ``stop``; ``length`` if the reply was cut off.
        prompt_tokens, completion_tokens: as the server counted them, 0 if it did not say.
        refusal: what the model said instead of a reply.
        logprobs: the log-probabilities as the server sent them.
    """

    text: str
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    refusal: str | None = None
    logprobs: Any = field(default=None, repr=False)

    def said(self) -> str:
        """The text of a reply that has one.

        Raises:
            UnreadableReplyError: if the model refused or said nothing.
        """
        if self.refusal:
            raise UnreadableReplyError(f"the model refused: {self.refusal[:120]!r}")
        if not self.text.strip():
            raise UnreadableReplyError("the reply is empty")
        return self.text

    @cached_property
    def tokens(self) -> tuple[Token, ...] | None:
        """The reply's tokens with log-probabilities, ``None`` if the server sent none in a known form."""
        return _tokens(self.logprobs)


def read_reply(body: Any) -> Reply:
    """The first choice of a chat completion's body.

    Raises:
        MalformedReplyError: if the body has no choice with a message.
    """
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices:
        error = body.get("error") if isinstance(body, dict) else None
        raise MalformedReplyError(f"the reply has no choice{f' but an error: {error}' if error else ''}")
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    if not isinstance(message, dict):
        raise MalformedReplyError("the reply's choice has no message")
    usage = body.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Reply(
        text=_text(message.get("content")) or "",
        finish_reason=_text(choices[0].get("finish_reason")),
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
        refusal=_text(message.get("refusal")),
        logprobs=choices[0].get("logprobs"),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(content, list) or not content:
        return None
    try:
        return tuple(
            Token(str(token["token"]), tuple((str(t["token"]), float(t["logprob"])) for t in token["top_logprobs"]))
            for token in content
        )
    except (KeyError, TypeError, ValueError):
        # Log-probabilities in another form: the reply itself still counts.
        return None
