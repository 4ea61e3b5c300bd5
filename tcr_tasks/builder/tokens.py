"""How long a table is in tokens (A.4 of the TCR-Bench paper, which measures with tiktoken).

tiktoken fetches a vocabulary on first use. A build must not depend on a network, and its result not on whether one was
there: tiktoken counts only where its vocabulary already lies in its cache folder; elsewhere an estimate counts that
needs nothing. Both have a name, which a report states.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import tempfile
from pathlib import Path
from typing import Protocol

__all__ = ["Counter", "OfflineCounter", "TiktokenCounter", "default_counter"]

_ENCODING = "cl100k_base"
# Where tiktoken keeps this encoding's vocabulary (its file name is the SHA-1 of the address), and that file's SHA-256:
# tiktoken deletes a file with another content and downloads it again.
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"


class Counter(Protocol):
    """Counts the tokens of a text."""

    @property
    def name(self) -> str:
        """What a report calls this way to count."""

    def count(self, text: str) -> int:
        """The number of tokens, 0 for an empty text."""
        ...


class OfflineCounter:
    """An estimate of cl100k_base's count by one regular expression.

    A token is: up to three digits; up to six ASCII letters; one other letter; a run of 3 to 32 equal signs; one or two
    signs in a row; line ends not right behind a sign; a blank before a digit. On printed tables (CSV, HTML, Markdown)
    the mean is within 3 % of cl100k_base, a single table within about 20 %: long words of a rare kind count too little,
    common long words too much.
    """

    name = "offline estimate of cl100k_base"

    _TOKEN = re.compile(
        r"\d{1,3}|[A-Za-z]{1,6}|[^\W\d_A-Za-z]"
        r"|([^\w\s])\1{2,31}[\r\n]*|(?:[^\w\s]|_){1,2}[\r\n]*"
        r"|[\r\n]+| (?=\d)"
    )

    def count(self, text: str) -> int:
        """The number of tokens, 0 for an empty text."""
        return sum(1 for _ in self._TOKEN.finditer(text))


class TiktokenCounter:
    """The exact count of tiktoken's cl100k_base.

    Raises:
        FileNotFoundError: if tiktoken is not installed, or its vocabulary would have to be downloaded.
    """

    name = f"tiktoken {_ENCODING}"

    def __init__(self) -> None:
        if importlib.util.find_spec("tiktoken") is None:
            raise FileNotFoundError("tiktoken is not installed; pip install tiktoken, or count with OfflineCounter")
        place = _vocabulary()
        if not (place.is_file() and hashlib.sha256(place.read_bytes()).hexdigest() == _SHA256):
            raise FileNotFoundError(
                f"tiktoken's vocabulary {_ENCODING} is not at {place}; let tiktoken download it once where there is a "
                "network and name its folder in TIKTOKEN_CACHE_DIR, or count with OfflineCounter"
            )
        import tiktoken  # type: ignore[import-not-found, unused-ignore]

        self._encoding = tiktoken.get_encoding(_ENCODING)

    def count(self, text: str) -> int:
        """The number of tokens, 0 for an empty text; the names of special tokens count as plain text."""
        return len(self._encoding.encode(text, disallowed_special=()))


def _vocabulary() -> Path:
    """Where tiktoken looks for its vocabulary before it downloads it."""
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if name in os.environ:
            folder = Path(os.environ[name])
            break
    else:
        folder = Path(tempfile.gettempdir()) / "data-gym-cache"
    return folder / hashlib.sha1(_ADDRESS.encode(), usedforsecurity=False).hexdigest()


def default_counter() -> Counter:
    """tiktoken where it and its vocabulary are at hand, otherwise the offline estimate; see its ``name``."""
    try:
        return TiktokenCounter()
    except FileNotFoundError:
        return OfflineCounter()
