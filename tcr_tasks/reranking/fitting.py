"""Cutting tables to what a language model can read: whole rows from the end, the header kept."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tcr_tasks.builder.tokens import Counter

__all__ = ["Fitted", "Printed", "fit", "split_rows"]

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
class Fitted:
    """Tables that fit together.

    Attributes:
        texts: the tables, in the given order.
        rows: how many rows they had together.
        rows_cut: how many of these are left out.
        tables_cut: how many tables lack a row.
    """

    texts: list[str]
    rows: int
    rows_cut: int
    tables_cut: int


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


def fit(texts: Sequence[str], allowed: int, counter: Counter) -> Fitted | None:
    """The tables, cut so that together they have at most so many tokens; ``None`` if their headers alone have more.

    The longest are cut first, down to a common length, so that no table suffers from its place.

    Args:
        texts: printed tables.
        allowed: tokens for all of them together.
        counter: counts tokens; a table has as many as its parts.
    """
    parts = [split_rows(text) for text in texts]
    n_rows = sum(len(part.rows) for part in parts)
    if sum(map(counter.count, texts)) <= allowed:
        return Fitted(list(texts), n_rows, 0, 0)
    # Tokens of each table with its first 0, 1, 2, ... rows.
    sizes = [
        list(accumulate(map(counter.count, part.rows), initial=counter.count(part.head) + counter.count(part.tail)))
        for part in parts
    ]
    if sum(size[0] for size in sizes) > allowed:
        return None

    def kept(limit: int) -> list[int]:
        return [max((n for n, tokens in enumerate(size) if tokens <= limit), default=0) for size in sizes]

    def total(limit: int) -> int:
        return sum(size[n] for size, n in zip(sizes, kept(limit), strict=True))

    low, high = 0, max(size[-1] for size in sizes)
    while low < high:  # the highest common length at which all fit
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total(middle) <= allowed else (low, middle - 1)
    rows = kept(low)
    cut = [len(part.rows) - n for part, n in zip(parts, rows, strict=True)]
    shown = [part.text(n) for part, n in zip(parts, rows, strict=True)]
    return Fitted(shown, n_rows, sum(cut), sum(n > 0 for n in cut))
