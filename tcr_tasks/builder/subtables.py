"""The tables of one question: a target that answers it and siblings that do not (A.3 and A.4 of the paper)."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd

from tcr_tasks.builder.augment import Look, Taste, Wardrobe, as_csv, plain_look, printed, readings
from tcr_tasks.builder.forms import Cell
from tcr_tasks.builder.generate import Planned
from tcr_tasks.builder.length import Budget, size_for
from tcr_tasks.builder.losses import lost_cells, misprint
from tcr_tasks.builder.sources import SourceTable
from tcr_tasks.builder.tokens import Counter
from tcr_tasks.serialize import TableFormat, read_table, serialize

__all__ = ["STRATEGIES", "Budget", "Member", "NoGroupError", "make_group"]

STRATEGIES = ("column_deletion", "row_deletion", "resampling")
FORMATS = (TableFormat.CSV, TableFormat.HTML, TableFormat.MARKDOWN)

# Siblings per question, 2 to 7, with the numbers of released questions that have so many.
_SIBLINGS = {2: 38, 3: 46, 4: 65, 5: 31, 6: 11, 7: 18}
# The share of the rows without answer that one table of a small source holds at most: others must have other rows.
_SHARE = 0.65
# A cell takes two tokens or more, itself and what parts it from the next: no table holds more than half of these cells.
_POOL_CELLS_PER_TOKEN = 1
_DELETED = (0.3, 0.7)
_FEWEST_ROWS = 4
_TRIES = 6


class NoGroupError(ValueError):
    """No group can be made for a question; the text says why."""


@dataclass(frozen=True)
class Member:
    """A table of a group.

    Attributes:
        strategy: ``target``, one of ``STRATEGIES``, or ``natural``.
        columns: of the source, in printed order.
        rows: numbers of the source frame's rows, in printed order.
        look: how the columns are printed; ``None``: as they are.
        format: in the Mixed setting.
        tokens: of the printed table; it may lie outside the budget where the source has too few rows, or rows so long
            that no number of them fits.
        deleted: the column that ``column_deletion`` took away.
        lost: what a reader finds in place of values that the format does not print in full, by column and printed row,
            see :mod:`tcr_tasks.builder.losses`.
    """

    strategy: str
    columns: tuple[str, ...]
    rows: tuple[int, ...]
    look: Look | None = None
    format: TableFormat = TableFormat.CSV
    tokens: int = 0
    deleted: str | None = None
    lost: Mapping[str, Mapping[int, Cell | None]] = field(default_factory=dict)

    def csv(self, source: SourceTable) -> str:
        """The printed table."""
        if self.look is None:
            return self.canonical_csv(source)
        return as_csv(printed(_part(source.frame, self), self.look))

    def canonical_csv(self, source: SourceTable) -> str:
        """The same cells under the source's names, in their plain form."""
        part = _part(source.frame, self)
        return as_csv(printed(part, plain_look(part, source.kinds)))


def make_group(
    planned: Planned,
    forbidden_rows: Collection[int],
    budget: Budget,
    counter: Counter,
    rng: random.Random,
    taste: Taste | None = None,
) -> list[Member]:
    """The target and its two to seven siblings, the target first. The same ``rng`` gives the same group.

    The target holds every row that answers and others at random. A ``column_deletion`` sibling keeps those rows, since
    without the column nobody can tell that they are the ones; the other strategies leave them out. Each table has a
    look and a format of its own, in which it is measured.

    Args:
        planned: the question and its source.
        forbidden_rows: rows of the source that answer other questions; they enter only as this question's answer.
        budget: tokens per table. A source with too few rows gives shorter tables: see ``Member.tokens``.
        counter: what counts them.
        rng: everything is drawn from it.
        taste: how strongly to reword.

    Raises:
        NoGroupError: if the source has too few rows or columns, its answer alone is longer than the budget, or no
            format prints the answer in full.
    """
    return _Group(planned, forbidden_rows, budget, counter, rng, taste).members()


class _Group:
    """The state while one group is made."""

    def __init__(
        self,
        planned: Planned,
        forbidden_rows: Collection[int],
        budget: Budget,
        counter: Counter,
        rng: random.Random,
        taste: Taste | None,
    ) -> None:
        self._planned, self._budget, self._counter, self._rng = planned, budget, counter, rng
        self._source = planned.source
        self._columns = tuple(self._source.frame.columns)
        self._answers = list(planned.answer_rows)
        self._pool = self._usable_rows(forbidden_rows)
        if not self._answers:
            raise NoGroupError(f"{planned.id}: no row of {self._source.place} answers it")
        if len(self._columns) < 2:
            raise NoGroupError(f"{planned.id}: {self._source.place} has one column only")
        if len(self._pool) < _FEWEST_ROWS:
            raise NoGroupError(
                f"{planned.id}: {self._source.place} has {len(self._pool)} rows that answer no question, and a group "
                f"needs {_FEWEST_ROWS}"
            )
        # Of so few rows a table would hold the most part, were there no limit: two tables would be one.
        self._most = max(_FEWEST_ROWS - 1, math.floor(_SHARE * len(self._pool)))
        rows = self._source.frame.iloc[[*self._answers, *self._pool]]
        self._wardrobe = Wardrobe(rows, self._source.kinds, taste)

    def _usable_rows(self, forbidden: Collection[int]) -> list[int]:
        """Rows that answer no question, no more than the tables of a group can use."""
        blocked = {*forbidden, *self._answers}
        free = [row for row in range(len(self._source.frame)) if row not in blocked]
        most = max(_FEWEST_ROWS, _POOL_CELLS_PER_TOKEN * self._budget.upper // len(self._columns))
        return self._rng.sample(free, most) if len(free) > most else free

    def members(self) -> list[Member]:
        target = self._target()
        out = [target]
        needed = [column for column in self._planned.query.columns if not self._is_told_elsewhere(column)]
        self._rng.shuffle(needed)
        for strategy in self._strategies(len(needed)):
            makers: dict[str, Callable[[bool], Member | None]] = {
                "column_deletion": partial(self._without_column, target, next(reversed(needed), "")),
                "row_deletion": partial(self._with_deleted_rows, target),
                "resampling": self._resampled,
            }
            made = self._nearest(makers[strategy], lambda member: not any(_same_content(member, o) for o in out))
            if made is not None:
                out.append(made)
            if strategy == "column_deletion":
                needed.pop()
        if len(out) < 3:
            raise NoGroupError(f"{self._planned.id}: {self._source.place} gives no two siblings")
        return out

    def _is_told_elsewhere(self, column: str) -> bool:
        """Whether another column holds the column's values in the answering rows, such as a date that holds the year.

        Without the column a reader would still find the answer.
        """
        rows = self._source.frame.iloc[self._answers].astype(object).map(str)
        words = [re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE) for value in rows[column]]
        return any(
            all(word.search(cell) for word, cell in zip(words, rows[other], strict=True))
            for other in self._columns
            if other != column
        )

    def _nearest(self, make: Callable[[bool], Member | None], accepted: Callable[[Member], bool]) -> Member | None:
        """The first accepted table of a few tries that keeps to the budget, else one that comes near to it.

        A source with few rows fills a table only in a wordy look or in HTML. Where none does, the format is drawn, and
        in it the nearest is taken: the nearest of all would always be HTML. ``make`` is told whether this is the last
        try.
        """
        best: dict[TableFormat, Member] = {}
        for attempt in range(_TRIES):
            made = make(attempt == _TRIES - 1)
            if made is None or not accepted(made):
                continue
            if self._budget.holds(made.tokens):
                return self._with_losses(made)
            known = best.get(made.format)
            if known is None or self._budget.distance(made.tokens) < self._budget.distance(known.tokens):
                best[made.format] = made
        return self._with_losses(self._rng.choice(list(best.values()))) if best else None

    def _strategies(self, needed: int) -> list[str]:
        """All three strategies as soon as there is room for them; one column deletion per needed column at most."""
        count = self._rng.choices(list(_SIBLINGS), list(_SIBLINGS.values()))[0]
        out = list(STRATEGIES if needed else STRATEGIES[1:])
        self._rng.shuffle(out)
        while len(out) < count:
            out.append(self._rng.choice(STRATEGIES if out.count("column_deletion") < needed else STRATEGIES[1:]))
        return out[:count]

    def _target(self) -> Member:
        why = f"its {len(self._answers)} answering rows leave no room in {self._budget.upper} tokens"

        def accepted(made: Member) -> bool:
            nonlocal why
            lost = self._with_losses(made).lost
            illegible = misprint(self._planned, _part(self._source.frame, made), made.rows, lost)
            why = illegible or why
            return illegible is None and len(made.rows) > len(self._answers)

        found = self._nearest(
            lambda _: self._filled(self._dressed(Member("target", self._columns, ())), self._answers, self._pool),
            accepted,
        )
        if found is None:
            raise NoGroupError(f"{self._planned.id} on {self._source.place}: {why}")
        return found

    def _without_column(self, target: Member, gone: str, _: bool) -> Member | None:
        """The answer's rows, then as many of the target's as fit, then others: printed anew, they take other room."""
        columns = tuple(column for column in self._columns if column != gone)
        kept = self._innocent(target)
        dressed = self._dressed(Member("column_deletion", columns, (), deleted=gone))
        return self._filled(dressed, self._answers, self._shuffled(kept) + self._others(kept))

    def _with_deleted_rows(self, target: Member, last: bool) -> Member | None:
        """The target without 30 to 70 % of its rows, the answering ones among them, refilled with rows it lacks.

        A wordy look may not hold what is left of the target; in the last try it is the target's own, which does.
        """
        fewest, most = (math.ceil(_DELETED[0] * len(target.rows)), math.floor(_DELETED[1] * len(target.rows)))
        fewest = max(fewest, len(self._answers))
        if fewest > most:
            return None
        innocent = self._innocent(target)
        kept = self._rng.sample(innocent, len(target.rows) - self._rng.randint(fewest, most))
        alike = replace(target, strategy="row_deletion")
        return self._filled(alike if last else self._dressed(alike), kept, self._others(innocent))

    def _resampled(self, _: bool) -> Member | None:
        return self._filled(self._dressed(Member("resampling", self._columns, ())), [], self._pool)

    def _innocent(self, target: Member) -> list[int]:
        return [row for row in target.rows if row not in set(self._answers)]

    def _others(self, rows: Collection[int]) -> list[int]:
        known = set(rows)
        return [row for row in self._pool if row not in known]

    def _shuffled(self, rows: Sequence[int]) -> list[int]:
        return self._rng.sample(rows, len(rows))

    def _dressed(self, member: Member) -> Member:
        look = self._wardrobe.draw(member.columns, self._rng)
        return replace(member, look=look, format=self._rng.choice(FORMATS))

    # --- the length ----------------------------------------------------------------------------------------------

    def _filled(self, member: Member, kept: Sequence[int], others: Sequence[int]) -> Member | None:
        """The member with the rows ``kept`` and as many of ``others`` as the budget asks for, in random order.

        ``others`` are taken from the front for a column deletion (first the target's rows), else at random. ``None`` if
        ``kept`` alone is longer than the budget.
        """
        order = list(others) if member.strategy == "column_deletion" else self._shuffled(others)
        order = order[: max(0, len(self._answers) + self._most - len(kept))]

        def tokens(extra: int) -> int:
            return self._tokens(replace(member, rows=(*kept, *order[:extra])))

        # Not near the ends of the budget, which an estimate could miss.
        fifth = (self._budget.upper - self._budget.lower) / 5
        wanted = self._rng.uniform(self._budget.lower + fifth, self._budget.upper - fifth)
        extra, found = size_for(tokens, len(order), wanted, self._budget)
        if found > self._budget.upper and kept:
            return None
        rows = self._shuffled([*kept, *order[:extra]])
        if len(rows) < 2:
            return None
        return replace(member, rows=tuple(rows), tokens=found)

    def _with_losses(self, made: Member) -> Member:
        assert made.look is not None
        return replace(made, lost=readings(lost_cells(made.csv(self._source), made.format), made.look))

    def _tokens(self, member: Member) -> int:
        read = read_table(io.StringIO(member.csv(self._source)))
        return self._counter.count(serialize(self._source.name, read, self._budget.measured_as or member.format))


def _part(frame: pd.DataFrame, member: Member) -> pd.DataFrame:
    return frame.iloc[list(member.rows)][list(member.columns)]


def _same_content(one: Member, other: Member) -> bool:
    return set(one.columns) == set(other.columns) and sorted(one.rows) == sorted(other.rows)
