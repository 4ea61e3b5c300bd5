"""Asking many things of a language model: from the store where it has the reply, from the endpoint otherwise."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from evaluators.judge.endpoint import CallFailedError, Endpoint, EndpointError, GaveUpError, UnreachableError
from evaluators.judge.progress import Bar, Price, Tally, money
from evaluators.judge.reply import Reply
from evaluators.judge.request import Request
from evaluators.judge.store import Store

if TYPE_CHECKING:
    from evaluators.judge.client import Client

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
# The bar is redrawn ten times a second at most; telling it more often only costs time.
_CALLS_PER_UPDATE = 16
# So many calls given up in a row, and none answered between: the server is down.
_HOPELESS = 20
# So many calls to make that it matters who makes which.
_MANY = 100


@dataclass(frozen=True)
class Outcome:
    """What became of a request: a reply, or the reason why there is none.

    Attributes:
        request: what was asked.
        store: where the reply is.
        failure: why there is no reply, ``None`` if there is one.
        cached: whether the reply was stored before.
        unreachable: whether the call failed since nobody answered it.
    """

    request: Request
    store: Store
    failure: str | None = None
    cached: bool = False
    unreachable: bool = False

    @property
    def reply(self) -> Reply | None:
        """The reply, ``None`` if the call failed. Read from the store each time: a million of them fill no memory."""
        return None if self.failure is not None else self.store.reply(self.request.key)


@dataclass(frozen=True)
class Plan:
    """What asking would take.

    Attributes:
        requests: different requests.
        stored: those of them that have a reply in the store.
        prompt_tokens: estimate for the calls to make.
        most_completion_tokens: if every reply were as long as allowed.
        counted: how the prompt tokens were estimated.
    """

    requests: int
    stored: int
    prompt_tokens: int
    most_completion_tokens: int
    counted: str = "four characters a token"

    @classmethod
    def of(cls, missing: Sequence[Request], n_stored: int) -> Plan:
        """The plan for different requests without a reply, beside so many that have one."""
        return cls(
            requests=len(missing) + n_stored,
            stored=n_stored,
            prompt_tokens=sum(r.estimated_prompt_tokens() for r in missing),
            most_completion_tokens=sum(r.sampling.max_tokens for r in missing),
        )

    @property
    def calls(self) -> int:
        """The calls to make."""
        return self.requests - self.stored

    def told(self, price: Price | None) -> str:
        """The plan in a sentence or two."""
        text = (
            f"{self.requests} different requests, {self.stored} already stored, {self.calls} calls to make; about "
            f"{self.prompt_tokens} prompt tokens ({self.counted}), at most {self.most_completion_tokens} "
            "completion tokens"
        )
        if price is None:
            return text
        least, most = price.of(self.prompt_tokens, 0), price.of(self.prompt_tokens, self.most_completion_tokens)
        return f"{text}; cost {money(least)} (prompts alone) to {money(most)} at most"


class LanguageModel:
    """An endpoint with the store of its replies.

    Args:
        endpoint: where to ask.
        store: where replies are kept; default: the user's store (see :class:`Store`), opened when first needed.
        price: for the progress bar.
        progress: whether to show a bar on standard error.
    """

    def __init__(
        self, endpoint: Endpoint, store: Store | None = None, *, price: Price | None = None, progress: bool = True
    ) -> None:
        self.endpoint = endpoint
        self.price = price
        self.progress = progress
        self._store = store
        self._client: Client | None = None

    @property
    def store(self) -> Store:
        """The store of replies."""
        if self._store is None:
            self._store = Store()
        return self._store

    def plan(self, requests: Iterable[Request]) -> Plan:
        """What :meth:`ask` would do; asks nothing."""
        unique = {r.key: r for r in requests}
        stored = self.store.endpoints(unique)
        return Plan.of([r for key, r in unique.items() if key not in stored], len(stored))

    def ask(
        self, requests: Sequence[Request], *, label: str = "asking", again: frozenset[str] = frozenset()
    ) -> list[Outcome]:
        """Every request's outcome, in the given order; a request given several times is asked once.

        Each reply is stored the moment it is there: after an interruption, asking again goes on where it stopped.

        Args:
            requests: what to ask.
            label: for the progress bar.
            again: keys of requests to ask although a reply is stored; the earlier reply is kept beside the new one.

        Raises:
            EndpointError: if the endpoint answers nothing (wrong key, unknown model, server down).
        """
        unique = {r.key: r for r in requests}
        outcomes = self._stored_outcomes({key: r for key, r in unique.items() if key not in again})
        missing = [r for key, r in unique.items() if key not in outcomes]
        if len(missing) > _MANY:
            # Two processes with the same work then meet as seldom as possible at the same request.
            random.shuffle(missing)
        if missing:
            tally = Tally(total=len(unique), cached=len(outcomes))
            if self.progress:
                plan = Plan.of(missing, len(outcomes)).told(self.price)
                print(f"{label} with {missing[0].model} at {self.endpoint.shown_url}: {plan}", file=sys.stderr)
            outcomes |= _run(self._ask_all(missing, label, tally, again))
        return [outcomes[r.key] for r in requests]

    def _stored_outcomes(self, requests: dict[str, Request]) -> dict[str, Outcome]:
        found = self.store.endpoints(requests)
        elsewhere = sorted({*found.values()} - {self.endpoint.shown_url})
        if elsewhere:
            logger.warning(
                "%s: stored replies of %s answer for %s; a model is told by its name, so use another store "
                "(MTEB_BEYOND_STORE) if that is another model",
                next(iter(requests.values())).model,
                ", ".join(elsewhere),
                self.endpoint.shown_url,
            )
        return {key: Outcome(requests[key], self.store, cached=True) for key in found}

    async def _ask_all(
        self, missing: list[Request], label: str, tally: Tally, again: frozenset[str]
    ) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        queue = iter(missing)
        if self._client is None:
            # Imported here, since aiohttp takes a while to load and most runs ask no model.
            from evaluators.judge.client import Client

            # The same for all that is asked here: a limit holds from one time to the next.
            self._client = Client(self.endpoint)
        async with self._client as client:
            with Bar(label, tally, self.price, shown=self.progress) as bar:
                watch = _Watch(self.endpoint)
                workers = [
                    asyncio.create_task(self._work(queue, client, outcomes, tally, bar, watch, again))
                    for _ in range(min(self.endpoint.concurrency, len(missing)))
                ]
                try:
                    await asyncio.gather(*workers)
                except EndpointError as error:
                    raise EndpointError(f"{error}. {tally.done} replies were stored; run again to go on") from None
                finally:
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)
        return outcomes

    async def _work(
        self,
        queue: Iterator[Request],
        client: Client,
        outcomes: dict[str, Outcome],
        tally: Tally,
        bar: Bar,
        watch: _Watch,
        again: frozenset[str],
    ) -> None:
        for request in queue:
            # Another process may have stored the reply since this one looked.
            if request.key not in again and self.store.endpoints([request.key]):
                outcome = Outcome(request, self.store, cached=True)
                tally.cached += 1
            else:
                outcome = await self._call(client, request, tally, watch)
            outcomes[request.key] = outcome
            if len(outcomes) % _CALLS_PER_UPDATE == 0:
                bar.update()

    async def _call(self, client: Client, request: Request, tally: Tally, watch: _Watch) -> Outcome:
        try:
            answer = await client.complete(request)
        except CallFailedError as error:
            tally.failed += 1
            # A refusal of this one prompt is an answer; only silence and errors tell that the server is down.
            watch.saw(str(error) if isinstance(error, GaveUpError) else None)
            return Outcome(request, self.store, str(error), unreachable=isinstance(error, UnreachableError))
        self.store.put(request, answer.sent, answer.response, client.shown_url)
        watch.saw(None)
        tally.done += 1
        tally.prompt_tokens += answer.reply.prompt_tokens
        tally.completion_tokens += answer.reply.completion_tokens
        return Outcome(request, self.store)


class _Watch:
    """Notices that an endpoint has stopped answering, so that not every call has to find out by itself."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._in_a_row = 0

    def saw(self, failure: str | None) -> None:
        """Count a call that was given up, or one that was answered (``None``).

        Raises:
            EndpointError: after too many given up in a row.
        """
        self._in_a_row = 0 if failure is None else self._in_a_row + 1
        if self._in_a_row >= max(_HOPELESS, self._endpoint.concurrency):
            raise EndpointError(
                f"{self._endpoint.shown_url}: {self._in_a_row} calls in a row failed, the last one with: {failure}"
            )


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end, also where an event loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()

    def in_thread() -> _T:
        with runner:
            return runner.run(work)

    with ThreadPoolExecutor(1, "language-model") as pool:
        future = pool.submit(in_thread)
        try:
            return future.result()
        finally:
            # Interrupted while it waits, as by a notebook's stop button: the calls must end, too.
            if not future.done():
                loop.call_soon_threadsafe(_cancel_all, loop)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
