"""Scores of (question, table) pairs, kept in a file: no pair is scored twice, and a run that is killed goes on."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

# Pairs scored between two commits: a run that is killed loses at most that many.
_PAIRS_PER_COMMIT = 256


class Pair(NamedTuple):
    """A question and a table, both as the model reads them."""

    question: str
    table: str


class PairScores:
    """The scores of one model.

    Args:
        path: a SQLite file; ``None``: in memory only.
        model: name and revision of the model, and whatever else its scores depend on.

    What is asked of it raises a ``ValueError`` if the file holds scores of another model, or is no such file.
    """

    def __init__(self, path: Path | None, model: str) -> None:
        self.path = path
        self._model = model
        self._digests: dict[str, bytes] = {}

    @cached_property
    def _file(self) -> sqlite3.Connection:
        """The file, made when it is first needed: a run that is refused before leaves nothing behind."""
        path, model = self.path, self._model
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = sqlite3.connect(path or ":memory:", isolation_level=None)
            file.execute("CREATE TABLE IF NOT EXISTS model (name TEXT)")
            file.execute("CREATE TABLE IF NOT EXISTS score (pair BLOB PRIMARY KEY, score REAL) WITHOUT ROWID")
            found = file.execute("SELECT name FROM model").fetchone()
            if found is None:
                file.execute("INSERT INTO model VALUES (?)", (model,))
            elif found[0] != model:
                raise ValueError(f"{path} holds scores of {found[0]}, not of {model}; name another folder with --out")
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{path} holds no scores of pairs ({error}); move it away") from error
        return file

    @cached_property
    def _known(self) -> dict[bytes, float]:
        return dict(self._file.execute("SELECT pair, score FROM score"))

    def scores(
        self, pairs: Iterable[Pair], score: Callable[[Sequence[Pair]], Sequence[float]]
    ) -> tuple[Mapping[Pair, float], int]:
        """The score of every pair, and how many had to be computed.

        Args:
            pairs: in any order, also repeated.
            score: computes the scores of different pairs, in their order.

        Raises:
            ValueError: if the model gave a score that is not finite; the scores before it are kept.
        """
        keys = self._keys(pairs)
        missing = [pair for pair, key in keys.items() if key not in self._known]
        for start in _shown(range(0, len(missing), _PAIRS_PER_COMMIT)):
            some = missing[start : start + _PAIRS_PER_COMMIT]
            values = np.asarray(score(some), dtype=np.float64).reshape(-1)
            if len(values) != len(some):
                raise ValueError(f"{len(values)} scores for {len(some)} pairs; a cross-encoder gives one for each")
            if not np.isfinite(values).all():
                question = some[int(np.flatnonzero(~np.isfinite(values))[0])].question
                raise ValueError(f"the cross-encoder's score is not finite for a table and the question {question!r}")
            rows = [(keys[pair], float(value)) for pair, value in zip(some, values, strict=True)]
            self._file.execute("BEGIN")
            self._file.executemany("INSERT OR REPLACE INTO score VALUES (?, ?)", rows)
            self._file.execute("COMMIT")
            self._known.update(rows)
        return {pair: self._known[key] for pair, key in keys.items()}, len(missing)

    def n_unknown(self, pairs: Iterable[Pair]) -> int:
        """How many different ones of the pairs have no score yet."""
        return sum(key not in self._known for key in self._keys(pairs).values())

    def _keys(self, pairs: Iterable[Pair]) -> dict[Pair, bytes]:
        return {pair: hashlib.sha256(self._digest(pair[0]) + self._digest(pair[1])).digest() for pair in pairs}

    def _digest(self, text: str) -> bytes:
        """A text's hash, computed once: a table is part of many pairs."""
        if text not in self._digests:
            self._digests[text] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return self._digests[text]


def _shown(starts: range) -> Iterable[int]:
    """The steps, with a bar on a terminal."""
    console = Console(stderr=True)
    return track(starts, "pairs in steps of 256", console=console, disable=not console.is_terminal or len(starts) < 2)
