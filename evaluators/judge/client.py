"""The one door to language models: a client for any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2
import openai
from pydantic_core import from_json
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from evaluators.judge.endpoint import CallFailedError, Endpoint, EndpointError, GaveUpError
from evaluators.judge.pace import Pace
from evaluators.judge.reply import MalformedReplyError, Reply, read_reply
from evaluators.judge.request import Request

# A shorter key is a placeholder such as "EMPTY", and its letters may well occur in a reply.
_SHORTEST_SECRET = 8
_LONGEST_REASON = 300
# Log-probabilities that every server with the feature can give, for one that refuses a higher number.
_FEW_LOGPROBS = 5
# Statuses of a request that is taken for invalid.
_INVALID = (400, 422)
# Parts of a request that differ from call to call; all others are settings that every call shares.
_OF_ONE_CALL = {"messages", "max_tokens", "max_completion_tokens"}


class _TransientError(Exception):
    """Worth another try, after ``wait`` seconds if the server named a time."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


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
        self._paces: list[tuple[Pace, str]] = []
        if endpoint.requests_per_minute is not None:
            self._paces.append((Pace(endpoint.requests_per_minute), "requests"))
        if endpoint.tokens_per_minute is not None:
            self._paces.append((Pace(endpoint.tokens_per_minute), "tokens"))
        self._backoff = wait_random_exponential(multiplier=endpoint.backoff, max=60)
        # What each model turned out to refuse: log-probabilities beyond a number, and the name `max_tokens`.
        self._most_logprobs: dict[str, int] = {}
        self._renames_max_tokens: set[str] = set()

    async def __aenter__(self) -> Client:
        self._key = self.endpoint.key()
        url = urlsplit(self.endpoint.url)
        if url.query:
            # It logs each address, and some services take their key as a part of it.
            logging.getLogger("httpx2").setLevel(logging.WARNING)
        self._openai = openai.AsyncOpenAI(
            base_url=urlunsplit(url._replace(query="", fragment="")),
            default_query=dict(parse_qsl(url.query)),
            api_key=self._key,
            max_retries=0,
            timeout=self.endpoint.timeout,
            http_client=openai.DefaultAioHttpClient(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._openai.close()

    async def complete(self, request: Request) -> Answer:
        """The model's answer.

        Raises:
            CallFailedError: if this call stays without an answer.
            EndpointError: if no call can succeed.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.endpoint.attempts),
            wait=self._wait,
            retry=retry_if_exception_type(_TransientError),
            reraise=True,
        )
        try:
            return await retrying(self._attempt, request)
        except _TransientError as error:
            raise GaveUpError(f"{error} ({self.endpoint.attempts} attempts)") from None

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        hinted = error.wait if isinstance(error, _TransientError) else None
        # A little later than named, and not all at once.
        return self._backoff(state) if hinted is None else hinted + random.uniform(0, self.endpoint.backoff)

    async def _attempt(self, request: Request) -> Answer:
        tokens = request.estimated_prompt_tokens() + request.sampling.max_tokens
        while True:
            for pace, unit in self._paces:
                await pace.take(1 if unit == "requests" else tokens)
            sent = self._body(request)
            failure: Exception | None = None
            try:
                async with asyncio.timeout(self.endpoint.timeout):
                    # As `chat.completions.create`, less what a third of its time goes to: checking our body against its
                    # types, and building an object of the reply.
                    raw = await self._openai.post("/chat/completions", body=sent, cast_to=httpx2.Response)
                return self._read(raw.content, sent)
            except UnicodeEncodeError:
                failure = CallFailedError("the messages hold half a character (a lone surrogate): remove it")
            except openai.APIStatusError as error:
                if not self._adapt(request.model, sent, error):
                    failure = self._status_error(error, sent)
            except TimeoutError:
                failure = _TransientError(f"no reply within {self.endpoint.timeout:g} seconds")
            except openai.APIConnectionError as error:
                # The transport also calls a refused connection a timeout, hence its own words.
                cause = error.__cause__ or error
                failure = _TransientError(f"connection failed: {self._redacted(str(cause) or type(cause).__name__)}")
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

    def _adapt(self, model: str, sent: Mapping[str, Any], error: openai.APIStatusError) -> bool:
        """Learn from a refusal what to leave out; ``False`` if it is about something else."""
        if error.status_code not in _INVALID:
            return False
        told = f"{error.param or ''} {error.message}".lower()
        if "logprobs" in told and sent.get("top_logprobs"):
            most = _FEW_LOGPROBS if int(sent["top_logprobs"]) > _FEW_LOGPROBS else 0
            # Refusals of calls that were in flight come late; they must not raise the number again.
            self._most_logprobs[model] = min(most, self._most_logprobs.get(model, most))
            return True
        if "max_completion_tokens" in told and "max_tokens" in sent:
            self._renames_max_tokens.add(model)
            return True
        return False

    def _status_error(self, error: openai.APIStatusError, sent: Mapping[str, Any]) -> Exception:
        """What a refusal means: for this call, for another try, or for every call."""
        status, reason = error.status_code, self._reason(error)
        out_of_credit = error.code == "insufficient_quota" or error.type == "insufficient_quota"
        if status in (401, 402, 403, 404) or (status == 429 and out_of_credit):
            return EndpointError(f"{self.endpoint.shown_url} refuses every call: {reason} {self._remedy(status)}")
        if status in _INVALID and error.param in sent.keys() - _OF_ONE_CALL:
            return EndpointError(f"{self.endpoint.shown_url} refuses a setting of every call: {reason}")
        if status in (408, 409, 425, 429) or status >= 500:
            wait = retry_after(error.response.headers)
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

    def _reason(self, error: openai.APIStatusError) -> str:
        body = error.body if isinstance(error.body, dict) else {}
        message = str(body.get("message") or error.message)
        return self._redacted(f"HTTP {error.status_code}: {message}")[:_LONGEST_REASON]

    def _redacted(self, text: str) -> str:
        """The text without the key and the base URL's query, which some servers repeat."""
        query = urlsplit(self.endpoint.url).query
        text = text.replace(query, "[query]") if len(query) >= _SHORTEST_SECRET else text
        return text.replace(self._key, "[key]") if len(self._key) >= _SHORTEST_SECRET else text


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
        return json.loads(text)  # which also takes half a character (a lone surrogate)
