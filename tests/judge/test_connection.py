"""What goes over the wire: redirects, proxies, packed and broken bodies, refusals in other shapes, and the address."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from language_model_http import Connection, Response
from language_model_server import LanguageModelServer

from evaluators.judge import Endpoint, EndpointError, LanguageModel, Request, Store
from evaluators.judge.client import Client

KEY = "sk-test-0123456789"
ASKED = Request("m", ({"role": "user", "content": "text"},))
GOOD = json.dumps({"choices": [{"message": {"content": "yes"}}]}).encode()


@dataclass(frozen=True)
class Chunked(Response):
    """A body in two chunks, without its length."""

    @property
    def head(self) -> bytes:
        return b"HTTP/1.1 200 -\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunks(body: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:], b""))


class Scripted(LanguageModelServer):
    """Gives the same response to whatever comes, and notes the routes and headers."""

    response = Response(200, GOOD)

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str]]] = []

    async def _serve(self, connection: Connection, route: str, headers: dict[str, str], data: bytes) -> None:
        self.seen.append((route, headers))
        connection.send(self.response)


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as running:
        yield running


def ask(url: str, folder: Path, attempts: int = 1) -> str:
    """The reply's text, or why there is none."""
    endpoint = Endpoint(url, api_key=KEY, backoff=0.01, timeout=5, attempts=attempts)
    (outcome,) = LanguageModel(endpoint, Store(folder / "s.sqlite"), progress=False).ask([ASKED])
    return outcome.failure or (outcome.reply.text if outcome.reply else "")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_key_follows_no_redirect(server: Scripted, tmp_path: Path, status: int) -> None:
    with Scripted() as other:
        server.response = Response(status, b"", {"Location": f"{other.url}/chat/completions?token=secret"})
        with pytest.raises(EndpointError, match=rf"elsewhere: HTTP {status}, {other.url}/chat/completions \("):
            ask(server.url, tmp_path)
        assert not other.seen


def test_path_and_query_of_the_base_url(server: Scripted, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{server.port}/deep/er/?api-version=2024-10-21&b=%2F"
    assert ask(url, tmp_path) == "yes"
    ((route, headers),) = server.seen
    assert route.split("?")[0] == "POST /deep/er/chat/completions"
    assert "api-version=2024-10-21" in route and headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_a_proxy_is_taken_from_the_environment(
    server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"http://someone:word@127.0.0.1:{server.port}")
    assert ask("http://model.invalid/v1", tmp_path) == "yes"
    assert server.seen[0][0] == "POST http://model.invalid/v1/chat/completions"
    assert server.seen[0][1]["proxy-authorization"].startswith("Basic ")


def test_no_proxy(server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert ask(server.url, tmp_path) == "yes"


def test_a_proxy_sees_no_key_of_a_secure_call(
    server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")
    server.response = Response(403, b"")
    assert "connection failed" in ask("https://model.invalid/v1", tmp_path)
    assert server.seen[0][0] == "CONNECT model.invalid:443" and KEY not in str(server.seen)


def test_packed_and_chunked_bodies(server: Scripted, tmp_path: Path) -> None:
    server.response = Response(200, gzip.compress(GOOD), {"Content-Encoding": "gzip"})
    assert ask(server.url, tmp_path / "gzip") == "yes"
    server.response = Chunked(200, chunks(GOOD))
    assert ask(server.url, tmp_path / "chunked") == "yes"


@pytest.mark.parametrize(
    "response",
    [
        Response(200, b"no gzip", {"Content-Encoding": "gzip"}),
        Chunked(200, b"zz\r\nno length\r\n"),
        Response(200, GOOD, {"Bad": "a\r\nno header"}),
    ],
)
def test_a_body_that_cannot_be_read_is_tried_again(
    server: Scripted, tmp_path: Path, caplog: pytest.LogCaptureFixture, response: Response
) -> None:
    server.response = response
    with caplog.at_level(logging.DEBUG):
        told = ask(f"{server.url}?key=othersecret", tmp_path, attempts=2)
    assert told.startswith("connection failed: ") and "(2 attempts)" in told and len(server.seen) == 2
    assert "othersecret" not in told + caplog.text and KEY not in told + caplog.text


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"error": {"message": "too long"}}', "HTTP 413: too long"),
        ('{"message": "too long", "code": 413, "param": ["messages"]}', "HTTP 413: too long"),
        ('{"error": "too long"}', "HTTP 413: too long"),
        ('{"detail": "too long"}', 'HTTP 413: {"detail": "too long"}'),
        ("<b>too long</b>", "HTTP 413: <b>too long</b>"),
        ("[" * 100_000, "HTTP 413: [["),
        ("null", "HTTP 413: null"),
    ],
)
def test_refusals_in_any_shape(server: Scripted, tmp_path: Path, body: str, told: str) -> None:
    server.response = Response(413, body.encode())
    assert ask(server.url, tmp_path).startswith(told)


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_refused_setting_ends_all(server: Scripted, tmp_path: Path, wrapped: bool) -> None:
    error = {"message": "no such thing", "param": "top_p"}
    server.response = Response(400, json.dumps({"error": error} if wrapped else error).encode())
    with pytest.raises(EndpointError, match="refuses a setting of every call: HTTP 400: no such thing"):
        ask(server.url, tmp_path)


def test_one_client_in_one_loop_after_the_other(server: Scripted) -> None:
    client = Client(Endpoint(server.url, api_key=KEY))

    async def once() -> str:
        async with client:
            return (await client.complete(ASKED)).reply.text

    assert [asyncio.run(once()) for _ in range(2)] == ["yes", "yes"]
