"""Tables that must fit into a prompt, cut by rows where they do not: the header and the first rows stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcr_tasks.builder.tokens import Counter
from tcr_tasks.serialize import TableFormat, serialize
from tcr_tasks.tables import Table

__all__ = ["Cutter", "ShownTable", "shares"]


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
    """Prints tables as long as a budget of tokens allows.

    Args:
        tables: table id -> table.
        texts: table id -> what it prints as a whole.
        fmt: the format of those texts; ``None``: each table's own.
        counter: counts tokens.
    """

    def __init__(
        self, tables: Mapping[str, Table], texts: Mapping[str, str], fmt: TableFormat | None, counter: Counter
    ) -> None:
        self._tables, self._texts, self._fmt = tables, texts, fmt
        self.counter = counter
        self._tokens: dict[str, int] = {}
        self._rows: dict[str, int] = {}

    def tokens(self, table: str) -> int:
        """How many tokens a whole table has."""
        if table not in self._tokens:
            self._tokens[table] = self.counter.count(self._texts[table])
        return self._tokens[table]

    def shown(self, tables: Sequence[str], budget: int | None = None) -> list[ShownTable]:
        """The tables in the given order, within a budget of tokens for all of them; ``None``: whole.

        A budget that is too small is shared evenly: tables that need less than their share stay whole and leave the
        rest of it to the others.

        Raises:
            ValueError: naming a table of which not even the header fits.
        """
        if budget is None or sum(map(self.tokens, tables)) <= budget:
            return [self._whole(table) for table in tables]
        limits = shares([self.tokens(table) for table in tables], budget)
        return [self._within(table, limit) for table, limit in zip(tables, limits, strict=True)]

    def _whole(self, table: str) -> ShownTable:
        if table not in self._rows:
            self._rows[table] = len(self._tables[table].frame(self._fmt))
        return ShownTable(table, self._texts[table], self._rows[table], self._rows[table])

    def _within(self, key: str, limit: int) -> ShownTable:
        if self.tokens(key) <= limit:
            return self._whole(key)
        table = self._tables[key]
        frame = table.frame(self._fmt)
        kept, tokens = len(frame), self.tokens(key)
        while tokens > limit:
            if kept == 0:
                raise ValueError(
                    f"table {table.key!r}: its header alone has {tokens} tokens, and {limit} are left for it; allow a "
                    "longer prompt, or fewer tables in it"
                )
            # By the mean length of a row; header and long first rows may make another step necessary.
            kept = min(kept - 1, kept * limit // tokens)
            text = serialize(table.name, frame.iloc[:kept], self._fmt or table.format)
            tokens = self.counter.count(text)
        return ShownTable(key, text, len(frame), kept)


def shares(lengths: Sequence[int], budget: int) -> list[int]:
    """A budget shared evenly among several, none of which gets more than it needs; in the given order.

    The shares add up to the budget at most, and two that need more than they get differ by 1 at most.
    """
    out = [0] * len(lengths)
    left = max(budget, 0)
    for done, place in enumerate(sorted(range(len(lengths)), key=lambda place: lengths[place])):
        out[place] = min(lengths[place], left // (len(lengths) - done))
        left -= out[place]
    return out
