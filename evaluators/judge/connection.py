"""HTTP to one endpoint: a body goes out as JSON; status, headers and bytes come back, and nothing is read into them."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
from yarl import URL

from evaluators.whole import read_json

# What OpenAI's service takes from a member of several organisations, by the variables that its own client reads.
_ACCOUNTS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


@dataclass(frozen=True)
class Response:
    """A server's response: its status, its headers (whatever the case of their names) and its unpacked body."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        """The body; what is no UTF-8 in it is replaced."""
        return self.content.decode("utf-8", "replace")

    @property
    def message(self) -> str:
        """What a refusal says: its error's message, else all of its body."""
        error = self._body.get("error") if isinstance(self._body, dict) else None
        return (error if isinstance(error, str) else self.told("message")) or self.text.strip()

    def told(self, name: str) -> str:
        """A part of a refusal's error (``message``, ``param``, ``code``, ``type``); empty if it has none."""
        body = self._body if isinstance(self._body, dict) else {}
        # Some servers leave out the object around it.
        error = body.get("error", body)
        value = error.get(name) if isinstance(error, dict) else None
        return value if isinstance(value, str) else ""

    @cached_property
    def _body(self) -> Any:
        try:
            return read_json(self.text)
        except (ValueError, RecursionError):
            return None


class Connection:
    """Connections to the chat completions of a base URL, kept open between calls; an asynchronous context manager.

    No redirect is followed: the key would go where nobody meant it to. A proxy is taken from the environment
    (``HTTPS_PROXY`` and so on, less ``NO_PROXY``), the authorities to trust from the system or ``SSL_CERT_FILE``.

    Args:
        base_url: without user and password; a query is sent with every call.
        key: sent as a bearer token.
    """

    def __init__(self, base_url: str, key: str) -> None:
        parts = urlsplit(base_url)
        path = f"{parts.path.rstrip('/')}/chat/completions"
        self._url = URL(urlunsplit(parts._replace(path=path, fragment="")))
        accounts = {name: os.environ.get(variable, "").strip() for name, variable in _ACCOUNTS.items()}
        # Sent with each call. Those of a session also go to the proxy, which must not see the key.
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "mteb-beyond",
            **{name: value for name, value in accounts.items() if value},
        }

    @property
    def query(self) -> str:
        """The query as it is sent."""
        return self._url.raw_query_string

    async def __aenter__(self) -> Connection:
        self._session = aiohttp.ClientSession(
            # The caller has its own limits of calls in flight and of time.
            connector=aiohttp.TCPConnector(limit=0, ssl=_trust() if self._url.scheme == "https" else True),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Found once: `trust_env` looks in a thread of its own for every call, and lets a netrc replace the key.
            proxy=_proxy(self._url),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def post(self, body: Mapping[str, Any]) -> Response:
        """Send a body and read the response to its end.

        Raises:
            UnicodeEncodeError: if a text holds half a character, which cannot be sent.
            ValueError: if a number is infinite or none, which JSON does not know.
            aiohttp.ClientError, OSError: if the connection fails; they may hold the key, see :func:`fault`.
        """
        data = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        async with self._session.post(self._url, data=data, headers=self._headers, allow_redirects=False) as response:
            return Response(response.status, response.headers, await response.read())


def fault(error: Exception) -> str:
    """What went wrong with a connection, without the address's query and the headers that some errors hold."""
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error).replace(" ssl:default", "")
    return " ".join(text.split()) or type(error).__name__


def _proxy(url: URL) -> str | None:
    proxies = getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    if not found or proxy_bypass(url.host or ""):
        return None
    return found if "://" in found else f"http://{found}"


def _trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if paths.cafile is None and paths.capath is None:
        # Not every Python finds the system's.
        context.load_verify_locations(certifi.where())
    return context
