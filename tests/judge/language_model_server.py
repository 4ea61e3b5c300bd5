"""A server for tests that speaks OpenAI's chat-completions protocol on 127.0.0.1 and misbehaves on demand.

In a test: ``with LanguageModelServer() as server: ... server.url ... server.counts``; it lives in a thread of its own.
For measurements: ``with server_process("--delay", "0.05") as server: ... server.url ... server.counts()``; a process of
its own, also by hand: ``python language_model_server.py --port 0 --fault server_error=0.3``, which prints its port.

Routes: ``POST /v1/chat/completions`` and ``GET /counts``. What the model says is in `language_model_replies`, how the
server misbehaves in `language_model_faults`, what it counts in `language_model_counts`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from language_model_counts import Counts, Request
from language_model_faults import (
    ERRORS,
    Faults,
    applies,
    at_random,
    checked,
    error_body,
    error_reply,
    no_faults,
    spoken,
    wrap,
)
from language_model_http import Connection, Response
from language_model_replies import (
    Distribution,
    Scorer,
    completion,
    encode,
    hash_score,
    score_distribution,
    within_limit,
)

_PAGE = b"<html><body>Please sign in to this network.</body></html>"


class LanguageModelServer:
    """The server in a thread; every public attribute may be set while it runs.

    `scorer`: messages -> verdict (a dict, sent as JSON) or raw text. `faults`: (number, body) -> name or None.
    `distribution`: digits of a score -> token probabilities. `delay`: seconds before every reply. `slow`: seconds that
    the faults late and trickling take. `retry_after`: seconds in Retry-After. `counts`: what came, see `Counts`.
    Leaving the ``with`` block raises what went wrong inside the server: an unknown fault, a scorer's own error.
    """

    def __init__(
        self,
        *,
        scorer: Scorer = hash_score,
        faults: Faults = no_faults,
        distribution: Distribution = score_distribution,
        delay: float = 0.0,
        slow: float = 1.0,
        retry_after: float = 1.0,
    ) -> None:
        self.scorer = scorer
        self.faults = faults
        self.distribution = distribution
        self.delay = delay
        self.slow = slow
        self.retry_after = retry_after
        self.counts = Counts()
        self.errors: list[Exception] = []
        self.port = 0
        self._connections: set[Connection] = set()

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run()), name="language-model-server", daemon=True
        )
        self._thread.start()
        if not self._ready.wait(timeout=30):
            raise TimeoutError("the test server's thread did not begin to listen within 30 seconds")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if kind is None and self.errors:
            raise self.errors[0]

    async def listen(self, port: int = 0) -> asyncio.Server:
        """Accept connections on the running loop; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(
            lambda: Connection(self._serve, self._connections), "127.0.0.1", port, backlog=1024
        )
        self.port = listener.sockets[0].getsockname()[1]
        return listener

    async def _run(self) -> None:
        """The thread: serve until told to stop, then end every connection, also those never answered."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        listener = await self.listen()
        self._ready.set()
        await self._stop.wait()
        listener.close()
        for connection in self._connections:
            connection.transport.abort()
        await asyncio.sleep(0)  # the loop closes an aborted connection's socket in its next round

    async def _serve(self, connection: Connection, route: str, headers: dict[str, str], data: bytes) -> None:
        if route == "GET /counts":
            connection.send(_json(200, self.counts.as_dict()))
        elif route != "POST /v1/chat/completions":
            connection.send(_json(404, error_body(f"Invalid URL ({route})", "invalid_request_error")))
        else:
            with self.counts.request(headers, data) as request:
                try:
                    await self._deliver(connection, request, await self._response(request))
                except Exception as error:
                    self.errors.append(error)
                    request.fault = None
                    failure = error_body(f"the test server failed: {error!r}", "server_error")
                    await self._deliver(connection, request, _json(500, failure))

    async def _response(self, request: Request) -> Response:
        """The reply to a request, after the delay; notes the fault in the request."""
        wrong = refusal(request.headers, request.body)
        fault = None if wrong else checked(self.faults(request.number, request.body))
        request.fault = fault if fault and applies(fault, request.body) else None
        await asyncio.sleep(request.arrived + self.delay - time.monotonic())
        if wrong:
            return wrong
        if request.fault is not None and request.fault in ERRORS:
            api_key = request.headers["authorization"].removeprefix("Bearer ")
            status, body, headers = error_reply(request.fault, api_key, self.retry_after)
            return _json(status, body, headers)
        text = within_limit(request.body, spoken(request.fault, self.scorer(request.body["messages"])))
        reply = completion(request.body, text, request.number)
        wrap(request.fault, reply)
        return Response(200, encode(reply, request.body, text, self.distribution))

    async def _deliver(self, connection: Connection, request: Request, response: Response) -> None:
        """Send the reply in the way that the fault asks for, and note what was sent."""
        if request.fault == "never_answers":
            await asyncio.Event().wait()
        elif request.fault == "dropped_before":
            connection.close()
            return
        elif request.fault == "connection_reset":
            connection.reset()
            return
        request.status = response.status
        if request.fault == "dropped_in_body":
            connection.break_off(response)
            return
        if request.fault == "trickling":
            await connection.trickle(response, self.slow)
        else:
            if request.fault == "late":
                await asyncio.sleep(self.slow)
            elif request.fault == "truncated_json":
                response = Response(200, response.body[: len(response.body) // 2])
            elif request.fault == "html_page":
                response = Response(200, _PAGE, {"Content-Type": "text/html"})
            connection.send(response)
        request.complete = True


def _json(status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(status, json.dumps(value).encode(), headers or {})


def refusal(headers: dict[str, str], body: Any) -> Response | None:
    """The error for a request that OpenAI would not take, or that this server cannot (n, stream); None if sound."""
    if not headers.get("authorization", "").startswith("Bearer "):
        return _json(401, error_body("You didn't provide an API key.", "invalid_request_error"))
    if not isinstance(body, dict):
        return _json(400, error_body("The body is not valid JSON.", "invalid_request_error"))
    messages = body.get("messages")
    sound = isinstance(messages, list) and messages and all(isinstance(m, dict) and "role" in m for m in messages)
    top = body.get("top_logprobs")
    asks_json = (body.get("response_format") or {}).get("type") == "json_object"
    checks = {
        "model": not body.get("model"),
        # OpenAI gives JSON only to a prompt that names it.
        "messages": not sound or (asks_json and "json" not in json.dumps(messages).lower()),
        "top_logprobs": top is not None and not (body.get("logprobs") and isinstance(top, int) and 0 <= top <= 20),
        "max_tokens": "max_tokens" in body and "max_completion_tokens" in body,
        "temperature": not 0 <= (body.get("temperature") or 0) <= 2,
        "top_p": not 0 <= (body.get("top_p") or 0) <= 1,
        "n": body.get("n") not in (None, 1),
        "stream": bool(body.get("stream")),
    }
    wrong = next((name for name, bad in checks.items() if bad), None)
    return _json(400, error_body(f"Invalid value for '{wrong}'.", "invalid_request_error", wrong)) if wrong else None


@dataclass(frozen=True)
class ServerProcess:
    """A server in a process of its own."""

    port: int
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self.port}/v1"

    def counts(self) -> dict[str, Any]:
        """The server's counts so far, as `Counts.as_dict` gives them."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/counts", timeout=30) as reply:
            return dict(json.load(reply))


@contextmanager
def server_process(*arguments: str) -> Iterator[ServerProcess]:
    """Start this file with the command line's arguments; the process ends with the block."""
    command = [sys.executable, str(Path(__file__)), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise ValueError(f"the server did not start: its standard error names the cause; command {command}")
            yield ServerProcess(int(line), process)
        finally:
            process.terminate()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A chat-completions server for tests, on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the port is printed")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before every reply")
    parser.add_argument("--slow", type=float, default=1.0, help="seconds that the faults late and trickling take")
    parser.add_argument("--retry-after", type=float, default=1.0, help="seconds")
    parser.add_argument("--highest", type=int, default=3, help="scores lie in 0..highest")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=RATE", help="may be given repeatedly")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    return parser.parse_args()


async def _serve_for_ever(arguments: argparse.Namespace) -> None:
    rates = {str(checked(name)): float(rate) for name, _, rate in (f.partition("=") for f in arguments.fault)}
    server = LanguageModelServer(
        scorer=partial(hash_score, highest=arguments.highest),
        faults=at_random(rates, arguments.seed),
        delay=arguments.delay,
        slow=arguments.slow,
        retry_after=arguments.retry_after,
    )
    listener = await server.listen(arguments.port)
    print(server.port, flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve_for_ever(_arguments()))
