"""Every reply that was paid for, kept in one SQLite file, so that nothing is asked twice."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from evaluators.cache import cache_directory
from evaluators.judge.reply import Reply, read_reply
from evaluators.judge.request import Request
from evaluators.whole import read_json

STORE_VARIABLE = "MTEB_BEYOND_STORE"
_VERSION = 1
# Below SQLite's limit of bound values in every build.
_KEYS_PER_QUERY = 500
# Replies after which what was written ahead is copied into the file, and the pages after which SQLite itself does so.
_REPLIES_PER_CHECKPOINT = 200
_MOST_PAGES_AHEAD = 8000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS reply (
    key TEXT NOT NULL,        -- SHA-256 of model, messages and sampling parameters
    number INTEGER NOT NULL,  -- 1, and higher when the same request was asked again on purpose; the highest counts
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    request TEXT NOT NULL,    -- what was sent
    response TEXT NOT NULL,   -- the server's body
    created TEXT NOT NULL,
    PRIMARY KEY (key, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pending (key TEXT PRIMARY KEY, request TEXT NOT NULL, created TEXT NOT NULL) WITHOUT ROWID;
"""


class Store:
    """Replies by request key, in a SQLite file in write-ahead mode, which several processes may use at once.

    A reply is committed as soon as it is there, so a killed process loses at most the calls that were in flight.

    Args:
        path: the file; default ``$MTEB_BEYOND_STORE``, else ``replies.sqlite`` in the cache directory.

    Raises:
        ValueError: if the file is no such store, or one of a later version of this package.
        OSError: if it cannot be opened or written.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        named = path or os.environ.get(STORE_VARIABLE)
        self.path = Path(named).expanduser() if named else cache_directory() / "replies.sqlite"
        with self._told():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A judge may be asked from a thread of its own, one at a time.
            self._connection = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
            found = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if found > _VERSION:
                raise ValueError(f"{self.path} was written by a later version of mteb-beyond (store version {found})")
            if found < _VERSION:
                self._create(found)
            # Not before it is known to be ours: this changes the file.
            _patient("PRAGMA journal_mode=WAL", self._connection)
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(f"PRAGMA wal_autocheckpoint={_MOST_PAGES_AHEAD}")
        self._since_checkpoint = 0
        self._checkpoint = threading.Thread()

    def _create(self, found: int) -> None:
        other = self._connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone()
        ours = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'reply'").fetchone()
        if found == 0 and other and not ours:
            raise ValueError(f"{self.path} is a database of something else; set {STORE_VARIABLE} to another file")
        self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")

    def endpoints(self, keys: Iterable[str]) -> dict[str, str]:
        """Which of these requests have a reply, and where the latest came from."""
        listed = list(dict.fromkeys(keys))
        out: dict[str, str] = {}
        with self._told():
            for start in range(0, len(listed), _KEYS_PER_QUERY):
                some = listed[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                out |= dict(
                    self._connection.execute(
                        f"SELECT key, endpoint FROM reply WHERE key IN ({marks}) ORDER BY key, number", some
                    )
                )
        return out

    def reply(self, key: str) -> Reply:
        """The latest reply to a request.

        Raises:
            KeyError: if there is none.
        """
        with self._told():
            row = self._connection.execute(
                "SELECT response FROM reply WHERE key = ? ORDER BY number DESC LIMIT 1", (key,)
            ).fetchone()
        if row is None:
            raise KeyError(f"{self.path} holds no reply to the request {key}")
        return read_reply(read_json(row[0]))

    def put(self, request: Request, sent: Mapping[str, Any], response: str, endpoint: str) -> None:
        """Keep a reply; an earlier one of the same request stays beside it.

        Args:
            request: what was wanted, which gives the key.
            sent: the body that was sent, which lacks what the model refused.
            response: the server's body, as JSON text that :func:`read_reply` can read.
            endpoint: where it was sent, without user, password or query.
        """
        with self._told():
            self._insert(request.key, sent, response, endpoint)
        self._since_checkpoint += 1
        if self._since_checkpoint >= _REPLIES_PER_CHECKPOINT and not self._checkpoint.is_alive():
            self._since_checkpoint = 0
            self._checkpoint = threading.Thread(target=_copy_into_file, args=(self.path,), name="store-checkpoint")
            self._checkpoint.start()

    def put_pending(self, requests: Iterable[Request]) -> None:
        """Remember requests that were written to a batch file, so that its results can be read back."""
        rows = [(r.key, _json(r.body()), _now()) for r in requests]
        with self._told(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO pending VALUES (?, ?, ?)", rows)

    def take_pending(self, key: str, response: str, endpoint: str) -> bool | None:
        """Store the reply to a pending request.

        Returns:
            Whether it was stored: ``False`` if the request has a reply already, ``None`` if it is unknown here.
        """
        with self._told(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            row = self._connection.execute("SELECT request FROM pending WHERE key = ?", (key,)).fetchone()
            if row is None:
                known = self._connection.execute("SELECT 1 FROM reply WHERE key = ?", (key,)).fetchone()
                return False if known else None
            self._insert(key, json.loads(row[0]), response, endpoint)
            self._connection.execute("DELETE FROM pending WHERE key = ?", (key,))
            return True

    def _insert(self, key: str, sent: Mapping[str, Any], response: str, endpoint: str) -> None:
        self._connection.execute(
            "INSERT INTO reply SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4, ?5, ?6 FROM reply WHERE key = ?1",
            (key, sent["model"], endpoint, _json(sent), response, _now()),
        )

    def __len__(self) -> int:
        """How many different requests have a reply."""
        with self._told():
            return int(self._connection.execute("SELECT count(DISTINCT key) FROM reply").fetchone()[0])

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        if self._checkpoint.is_alive():
            self._checkpoint.join()
        self._connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            raise OSError(
                f"the store of replies {self.path}: {error}. Set {STORE_VARIABLE} to a file that can be written"
            ) from error
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"the store of replies {self.path} cannot be read: {error}. Move it away, or set {STORE_VARIABLE} to "
                "another file"
            ) from error


def _patient(change: str, connection: sqlite3.Connection) -> None:
    """Change the file's mode: here SQLite does not wait for other processes itself, whatever its timeout."""
    retrying = Retrying(
        retry=retry_if_exception(lambda e: getattr(e, "sqlite_errorname", "").startswith("SQLITE_BUSY")),
        stop=stop_after_delay(60),
        wait=wait_random(0, 0.05),
        reraise=True,
    )
    retrying(connection.execute, change)


def _copy_into_file(path: Path) -> None:
    """Copy what was written ahead into the file proper, beside further writing.

    What was committed is safe before that. SQLite would copy within a commit, and all calls would wait for the disk.
    """
    # If it fails, SQLite itself copies in the end, and tells what is wrong.
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA synchronous=NORMAL")
        # Again for what is written meanwhile: only where nothing is left does writing begin at the start again.
        for _ in range(3):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def _json(value: Mapping[str, Any]) -> str:
    # In ASCII: a message may hold half a character (a lone surrogate), which SQLite would refuse.
    return json.dumps(value, separators=(",", ":"))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
