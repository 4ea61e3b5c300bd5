"""Where a language model is served, and what can go wrong there; what asks it is in `client`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

KEY_VARIABLE = "OPENAI_API_KEY"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
_OPENAI = "https://api.openai.com/v1"
# Servers on a machine of one's own need no key, but the protocol wants some text in its place.
_NO_KEY = "no-key"


class CallFailedError(Exception):
    """A call that stays without a reply; the text says why. Other calls may well succeed."""


class GaveUpError(CallFailedError):
    """A call that failed for a passing reason as often as it may be tried: perhaps the server is down."""


class UnreachableError(GaveUpError):
    """A call that got no answer at all, not even an error, as often as it was tried: no connection, or silence."""


class EndpointError(RuntimeError):
    """The endpoint answers nothing at all: wrong key, unknown model, no credit, server down."""


@dataclass(frozen=True)
class Endpoint:
    """Where a language model is served, and how hard it may be asked.

    Attributes:
        base_url: for instance ``http://127.0.0.1:8000/v1``; default ``$OPENAI_BASE_URL``, else OpenAI's own.
        api_key: default: the environment variable ``key_variable``. It is never written anywhere.
        key_variable: name of that variable.
        concurrency: most calls in flight.
        requests_per_minute, tokens_per_minute: limits, ``None`` for none. Tokens are estimated before a call: four
            characters a token, plus the longest reply.
        timeout: wall-clock limit of one attempt in seconds.
        attempts: how often a call that fails for a passing reason is tried.
        backoff: seconds; the wait before attempt n+1 is drawn from 0..``backoff`` * 2^(n-1), unless the
            server names one.
        longest_wait: a call is given up when the server asks to wait longer than this many seconds.

    Raises:
        ValueError: naming a setting that makes no sense.
    """

    base_url: str | None = None
    api_key: str | None = None
    key_variable: str = KEY_VARIABLE
    concurrency: int = 32
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    attempts: int = 6
    backoff: float = 0.5
    longest_wait: float = 120.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts", "timeout"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)!r}")
        for name in ("backoff", "longest_wait"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)!r}")
        for name in ("requests_per_minute", "tokens_per_minute"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)!r}")
        url = urlsplit(self.url)
        try:
            _ = url.port
        except ValueError as error:
            raise ValueError(f"the base URL {self.url.rpartition('@')[2]!r}: {error}") from None
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"the base URL {self.shown_url!r} is no http or https address")

    def __repr__(self) -> str:
        return f"Endpoint({self.shown_url!r})"

    @property
    def url(self) -> str:
        """The base URL in force."""
        return self.base_url or os.environ.get(BASE_URL_VARIABLE) or _OPENAI

    @property
    def shown_url(self) -> str:
        """The base URL without user, password and query, for records and messages."""
        url = urlsplit(self.url)
        host = url.hostname or ""
        place = f"[{host}]" if ":" in host else host
        return urlunsplit((url.scheme, f"{place}:{url.port}" if url.port else place, url.path.rstrip("/"), "", ""))

    def key(self) -> str:
        """The key to send.

        Raises:
            ValueError: if OpenAI's own service is asked and there is no key, or if the key cannot be sent.
        """
        # A key read from a file often ends in a line break.
        found = (self.api_key or os.environ.get(self.key_variable) or "").strip()
        if not re.fullmatch("[!-~]*", found):
            given = "the API key" if self.api_key else f"the API key in {self.key_variable}"
            raise ValueError(f"{given} has a character that no key has, such as a blank or one with an accent")
        if not found and self.url.startswith(_OPENAI):
            raise ValueError(
                f"no API key: set the environment variable {self.key_variable}, or name another endpoint's base URL"
            )
        return found or _NO_KEY
