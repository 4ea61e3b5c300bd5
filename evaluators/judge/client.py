"""The one door to language models: a client for any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from pydantic_core import from_json

from evaluators.judge.connection import Connection, Response, fault
from evaluators.judge.endpoint import CallFailedError, Endpoint, EndpointError, GaveUpError, UnreachableError
from evaluators.judge.pace import Pace
from evaluators.judge.reply import MalformedReplyError, Reply, read_reply
from evaluators.judge.request import Request
from evaluators.whole import read_json

# A shorter key is a placeholder such as "EMPTY", and its letters may well occur in a reply.
_SHORTEST_SECRET = 8
_LONGEST_REASON = 300
# Seconds; the random waits grow no further.
_LONGEST_BACKOFF = 60.0
# Log-probabilities that every server with the feature can give, for one that refuses a higher number.
_FEW_LOGPROBS = 5
# Statuses of a request that is taken for invalid.
_INVALID = (400, 422)
# Parts of a request that differ from call to call; all others are settings that every call shares.
_OF_ONE_CALL = {"messages", "max_tokens", "max_completion_tokens"}


class _TransientError(Exception):
    """Worth another try, after ``wait`` seconds if the server named a time."""

    gives_up: type[GaveUpError] = GaveUpError

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _NoAnswerError(_TransientError):
    """Nobody answered."""

    gives_up = UnreachableError


@dataclass(frozen=True)
class Answer:
    """A reply, the body it was read from as JSON text, and the body that was sent (without what the model refuses)."""

    reply: Reply
    response: str
    sent: dict[str, Any]


class Client:
    """Calls to one endpoint; an asynchronous context manager, which may be entered again after it was left.

    What it knows of the endpoint, its limits and refusals, stays from one time to the next.

    Passing faults (rate limits, server errors, timeouts, dropped connections, bodies that are no chat completion) are
    tried again with growing random waits; a wait that the server names is kept. A model that refuses log-probabilities
    is asked without them, one that refuses ``max_tokens`` with ``max_completion_tokens``.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        if "@" in urlsplit(endpoint.url).netloc:
            raise ValueError(
                f"the base URL {endpoint.shown_url!r} is given with a user or password, which cannot be sent beside "
                "the API key: leave them out"
            )
        self._key = ""
        self._queries: set[str] = set()
        self._paces: list[tuple[Pace, str]] = []
        if endpoint.requests_per_minute is not None:
            self._paces.append((Pace(endpoint.requests_per_minute), "requests"))
        if endpoint.tokens_per_minute is not None:
            self._paces.append((Pace(endpoint.tokens_per_minute), "tokens"))
        # What each model turned out to refuse: log-probabilities beyond a number, and the name `max_tokens`.
        self._most_logprobs: dict[str, int] = {}
        self._renames_max_tokens: set[str] = set()

    async def __aenter__(self) -> Client:
        self._key = self.endpoint.key()
        self.shown_url = self.endpoint.shown_url
        self._connection = Connection(self.endpoint.url, self._key)
        # As it was given and as it is sent: some services take their key as a part of the address.
        self._queries = {urlsplit(self.endpoint.url).query, self._connection.query}
        await self._connection.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.__aexit__(kind, error, trace)

    async def complete(self, request: Request) -> Answer:
        """The model's answer.

        Raises:
            CallFailedError: if this call stays without an answer.
            EndpointError: if no call can succeed.
        """
        for number in range(1, self.endpoint.attempts + 1):
            try:
                return await self._attempt(request)
            except _TransientError as error:
                reason, wait, gives_up = str(error), error.wait, error.gives_up
            if number < self.endpoint.attempts:
                await asyncio.sleep(self._wait(number, wait))
        raise gives_up(f"{reason} ({self.endpoint.attempts} attempts)")

    def _wait(self, number: int, named: float | None) -> float:
        """The seconds to wait after so many attempts; ``named``: as the server asks."""
        backoff = self.endpoint.backoff
        if named is not None:
            # A little later than named, and not all at once.
            return named + random.uniform(0, backoff)
        # Beyond 2^60 the number would grow too large in the end.
        return random.uniform(0, min(_LONGEST_BACKOFF, backoff * 2 ** min(number - 1, 60)))

    async def _attempt(self, request: Request) -> Answer:
        tokens = request.estimated_prompt_tokens() + request.sampling.max_tokens
        while True:
            for pace, unit in self._paces:
                await pace.take(1 if unit == "requests" else tokens)
            sent = self._body(request)
            failure: Exception | None = None
            try:
                async with asyncio.timeout(self.endpoint.timeout):
                    response = await self._connection.post(sent)
                if 200 <= response.status < 300:
                    return self._read(response.content, sent)
                if not self._adapt(request.model, sent, response):
                    failure = self._refusal(response, sent)
            except UnicodeEncodeError:
                failure = CallFailedError("the messages hold half a character (a lone surrogate): remove it")
            except TimeoutError:
                failure = _NoAnswerError(f"no reply within {self.endpoint.timeout:g} seconds")
            except (aiohttp.ClientError, OSError) as error:
                failure = _NoAnswerError(f"connection failed: {self._redacted(fault(error))[:_LONGEST_REASON]}")
            except MalformedReplyError as error:
                failure = _TransientError(self._redacted(str(error)))
            if failure is not None:
                # Raised out here so that the original, which may hold the key, is not kept as its context.
                raise failure

    def _body(self, request: Request) -> dict[str, Any]:
        body = request.body()
        most = self._most_logprobs.get(request.model)
        if most is not None and body.get("top_logprobs", 0) > most:
            if most:
                body["top_logprobs"] = most
            else:
                del body["logprobs"], body["top_logprobs"]
        if request.model in self._renames_max_tokens and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return body

    def _read(self, content: bytes, sent: dict[str, Any]) -> Answer:
        text = content.decode("utf-8", "replace")
        try:
            response = _from_json(text)
        except (ValueError, RecursionError):
            raise MalformedReplyError(f"the body is no JSON: {self._redacted(text)[:80]!r}") from None
        reply = read_reply(response)
        told = text + reply.text
        if self._redacted(told) == told:
            return Answer(reply, text, sent)
        # The key may be written with escapes, and the tokens' texts spell it piece by piece.
        response["choices"] = [{**response["choices"][0], "logprobs": None}]
        text = self._redacted(json.dumps(response, ensure_ascii=False))
        return Answer(read_reply(_from_json(text)), text, sent)

    def _adapt(self, model: str, sent: Mapping[str, Any], refused: Response) -> bool:
        """Learn from a refusal what to leave out; ``False`` if it is about something else."""
        if refused.status not in _INVALID:
            return False
        told = f"{refused.told('param')} {refused.message}".lower()
        if "logprobs" in told and sent.get("top_logprobs"):
            most = _FEW_LOGPROBS if int(sent["top_logprobs"]) > _FEW_LOGPROBS else 0
            # Refusals of calls that were in flight come late; they must not raise the number again.
            self._most_logprobs[model] = min(most, self._most_logprobs.get(model, most))
            return True
        if "max_completion_tokens" in told and "max_tokens" in sent:
            self._renames_max_tokens.add(model)
            return True
        return False

    def _refusal(self, refused: Response, sent: Mapping[str, Any]) -> Exception:
        """What a refusal means: for this call, for another try, or for every call."""
        status, url = refused.status, self.shown_url
        reason = self._redacted(f"HTTP {status}: {refused.message}")[:_LONGEST_REASON]
        out_of_credit = "insufficient_quota" in (refused.told("code"), refused.told("type"))
        if 300 <= status < 400:
            place = self._redacted(refused.headers.get("Location", "").partition("?")[0])
            return EndpointError(f"{url} sends every call elsewhere: HTTP {status}, {place} (is the base URL right?)")
        if status in (401, 402, 403, 404) or (status == 429 and out_of_credit):
            return EndpointError(f"{url} refuses every call: {reason} {self._remedy(status)}")
        if status in _INVALID and refused.told("param") in sent.keys() - _OF_ONE_CALL:
            return EndpointError(f"{url} refuses a setting of every call: {reason}")
        if status in (408, 409, 425, 429) or status >= 500:
            wait = retry_after(refused.headers)
            if wait is not None and wait > self.endpoint.longest_wait:
                return CallFailedError(f"{reason}; the server asks to wait {wait:.0f} seconds")
            return _TransientError(reason, wait)
        return CallFailedError(reason)

    def _remedy(self, status: int) -> str:
        if status in (402, 429):
            return "(is there credit left on the account?)"
        if status == 404:
            return "(are the base URL and the model's name right?)"
        return f"(is the key in {'api_key' if self.endpoint.api_key else self.endpoint.key_variable} right?)"

    def _redacted(self, text: str) -> str:
        """The text without the key and the base URL's query, which some servers repeat."""
        for secret, name in (*((query, "[query]") for query in self._queries), (self._key, "[key]")):
            text = text.replace(secret, name) if len(secret) >= _SHORTEST_SECRET else text
        return text


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait (``Retry-After`` in seconds or as a date), ``None`` if it does not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is not None and re.fullmatch(r"[ \t]*[0-9]{1,9}(\.[0-9]{0,9})?[ \t]*", value):
            return float(value) / unit
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    # A date in "-0000" is in UTC, too, but comes without a zone.
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - time.time())


def _from_json(text: str) -> Any:
    try:
        # Several times faster than the standard library's, which counts: log-probabilities make long bodies.
        return from_json(text)
    except ValueError:
        return read_json(text)  # which also takes half a character (a lone surrogate)
