"""The test server's HTTP/1.1: one keep-alive connection, and the ways in which a reply can go over it."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

_PIECES = 20


@dataclass(frozen=True)
class Response:
    """A reply; the content type is JSON unless the headers say otherwise."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> bytes:
        """The status line and the headers."""
        headers = {"Content-Type": "application/json", "Content-Length": str(len(self.body)), **self.headers}
        lines = [f"HTTP/1.1 {self.status} -", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode()


class Connection(asyncio.Protocol):
    """Reads requests and hands each to `serve` (connection, "METHOD /path", headers, body), one after the other."""

    transport: asyncio.Transport

    def __init__(
        self,
        serve: Callable[[Connection, str, dict[str, str], bytes], Awaitable[None]],
        connections: set[Connection],
    ) -> None:
        self._serve = serve
        self._connections = connections
        self._buffer = b""
        self._task: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def _next(self) -> None:
        """Begin with the next request, if all of it is here and none is being served."""
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if self._task is not None or not separator:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        method, path, _ = first.split(" ")
        self._task = asyncio.ensure_future(self._serve(self, f"{method} {path}", headers, rest[:length]))
        self._task.add_done_callback(self._served)

    def _served(self, task: asyncio.Future[None]) -> None:
        self._task = None
        if not self.transport.is_closing():
            self._next()

    def send(self, response: Response) -> None:
        """The whole reply at once."""
        self.transport.write(response.head + response.body)

    async def trickle(self, response: Response, seconds: float) -> None:
        """The head at once, then the body in small pieces over so many seconds."""
        self.transport.write(response.head)
        size = len(response.body) // _PIECES + 1
        for start in range(0, len(response.body), size):
            await asyncio.sleep(seconds / _PIECES)
            self.transport.write(response.body[start : start + size])

    def break_off(self, response: Response) -> None:
        """The head and half of the body, then the end of the connection."""
        self.transport.write(response.head + response.body[: len(response.body) // 2])
        self.transport.close()

    def close(self) -> None:
        """End the connection without a word."""
        self.transport.close()

    def reset(self) -> None:
        """End the connection with a TCP reset, which the other side sees as an error."""
        own = cast(socket.socket, self.transport.get_extra_info("socket"))
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
