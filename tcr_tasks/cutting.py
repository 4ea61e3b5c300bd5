"""Printed tables that must fit into a prompt, cut by whole rows: the header and the first rows stay."""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tcr_tasks.builder.tokens import Counter

__all__ = ["Cutter", "Printed", "ShownTable", "split_rows"]

_HTML_ROW = re.compile(r"\s*<tr\b.*?</tr>", re.DOTALL)


@dataclass(frozen=True)
class Printed:
    """A printed table in parts: what stands before its rows (name and header), the rows, what stands after them."""

    head: str
    rows: tuple[str, ...]
    tail: str

    def text(self, rows: int | None = None) -> str:
        """The table, or its first rows only."""
        return "".join([self.head, *self.rows[:rows], self.tail])


@dataclass(frozen=True)
class ShownTable:
    """A table as a prompt shows it.

    Attributes:
        id: the table.
        text: its printed form, perhaps with fewer rows.
        rows: the rows that it has.
        kept: the rows that are shown.
    """

    id: str
    text: str
    rows: int
    kept: int

    @property
    def is_cut(self) -> bool:
        """Whether rows are missing."""
        return self.kept < self.rows


class Cutter:
    """Cuts printed tables down to a budget of tokens; what it counted of a text it remembers.

    Args:
        counter: counts tokens.
    """

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._tokens: dict[str, int] = {}
        self._parts: dict[str, Printed] = {}
        self._sizes: dict[str, list[int]] = {}

    def tokens(self, text: str) -> int:
        """How many tokens a text has."""
        if text not in self._tokens:
            self._tokens[text] = self.counter.count(text)
        return self._tokens[text]

    def shown(self, tables: Mapping[str, str], budget: int | None = None) -> list[ShownTable] | None:
        """The tables in the given order, cut so that together they have at most so many tokens.

        The longest are cut first, down to a common length, so that no table suffers from its place.

        Args:
            tables: id -> what it prints as a whole.
            budget: tokens for all of them together; ``None``: nothing is cut.

        Returns:
            ``None`` if their headers alone have more tokens.
        """
        if budget is None or sum(map(self.tokens, tables.values())) <= budget:
            return [self._first_rows(key, text, None) for key, text in tables.items()]
        limit = _common_limit([self._sizes_of(text) for text in tables.values()], budget)
        if limit is None:
            return None
        return [self._first_rows(key, text, _kept(self._sizes_of(text), limit)) for key, text in tables.items()]

    def header_tokens(self, text: str) -> int:
        """How many tokens a table has without any row."""
        return self._sizes_of(text)[0]

    def _first_rows(self, key: str, text: str, kept: int | None) -> ShownTable:
        rows = len(self._parts_of(text).rows)
        if kept is None or kept == rows:
            return ShownTable(key, text, rows, rows)
        return ShownTable(key, self._parts_of(text).text(kept), rows, kept)

    def _parts_of(self, text: str) -> Printed:
        if text not in self._parts:
            self._parts[text] = split_rows(text)
        return self._parts[text]

    def _sizes_of(self, text: str) -> list[int]:
        """Tokens of a table with its first 0, 1, 2, ... rows, counted part by part."""
        if text not in self._sizes:
            parts = self._parts_of(text)
            count = self.counter.count
            self._sizes[text] = list(accumulate(map(count, parts.rows), initial=count(parts.head) + count(parts.tail)))
        return self._sizes[text]


def split_rows(text: str) -> Printed:
    """A table as :mod:`tcr_tasks.serialize` prints it in parts, which joined give the text.

    In Markdown the header has two lines, in CSV one (in which a quoted cell may hold line ends), in HTML it is all
    before ``<tbody>``. Of a table in sentences, which has no header, the first row counts as one.
    """
    name, end, body = text.partition("\n")
    if body.startswith("<table"):
        start = body.find("<tbody>") + len("<tbody>") if "<tbody>" in body else 0
        rows = list(_HTML_ROW.finditer(body, start))
        if not rows:
            return Printed(text, (), "")
        return Printed(name + end + body[: rows[0].start()], tuple(r.group() for r in rows), body[rows[-1].end() :])
    lines = body.splitlines(keepends=True)
    after = next((n for n, line in enumerate(reversed(lines)) if line.strip()), len(lines))
    lines, tail = lines[: len(lines) - after], "".join(lines[len(lines) - after :])
    heads = 2 if body.startswith("|") else 1
    records = lines if heads == 2 else _records(lines)
    return Printed(name + end + "".join(records[:heads]), tuple(records[heads:]), tail)


def _records(lines: Sequence[str]) -> list[str]:
    """The lines, those of one CSV record together."""
    reader = csv.reader(lines)
    ends = [0]
    try:
        for _ in reader:
            ends.append(reader.line_num)
    except csv.Error:  # a cell beyond csv's limit, or a NUL: then lines are all that can be told apart
        return list(lines)
    return ["".join(lines[start:end]) for start, end in pairwise(ends)]


def _kept(sizes: Sequence[int], limit: int) -> int:
    """How many rows a table keeps that may have so many tokens; its header stays in any case."""
    return max(bisect_right(sizes, limit) - 1, 0)


def _common_limit(tables: Sequence[Sequence[int]], budget: int) -> int | None:
    """The highest common length at which all tables fit together; ``None`` if their headers alone do not."""

    def total(limit: int) -> int:
        return sum(sizes[_kept(sizes, limit)] for sizes in tables)

    if total(0) > budget:
        return None
    low, high = 0, max(sizes[-1] for sizes in tables)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total(middle) <= budget else (low, middle - 1)
    return low
