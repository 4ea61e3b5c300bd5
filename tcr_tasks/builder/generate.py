"""Questions to source tables: exact match, selective filtering and selective aggregation (sections A.1 and A.2)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from tcr_tasks.builder.drafts import ColumnValues, Draft, draw
from tcr_tasks.builder.sources import SourceTable
from tcr_tasks.queries import Aggregate, Query, QuestionType

# The released questions by type (table 1 of the paper counts the same).
RELEASED_SHARES: Mapping[QuestionType, float] = {"EM": 98, "SF": 55, "SA": 56}
_TRIES = 60
# The rows that answer the questions of a table are kept out of its other tables: they must stay few.
_MOST_ANSWERING = 0.2


@dataclass(frozen=True)
class Planned:
    """A question to a source table.

    Attributes:
        id: ``Q0``, ``Q1``, ...
        source: the table.
        query: in the table's own column names and values.
        answer_rows: numbers of the rows of ``source.frame`` that answer it.
    """

    id: str
    source: SourceTable
    query: Query
    answer_rows: tuple[int, ...]


@dataclass(frozen=True)
class Wishes:
    """What questions to make.

    Attributes:
        n_queries: how many in all.
        max_answers: rows that may answer an EM or SF question; four times as many may enter an aggregate.
        shares: relative numbers of the types.
        count: whether COUNT is among the aggregates.
        per_table: questions about one source table at most.
        apart: whether no row may answer two questions about a table, nor many rows any; needed where tables with other
            rows are made of it.
    """

    n_queries: int
    max_answers: int = 5
    shares: Mapping[QuestionType, float] = field(default_factory=lambda: dict(RELEASED_SHARES))
    count: bool = False
    per_table: int = 4
    apart: bool = True

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates to draw from."""
        return tuple(a for a in get_args(Aggregate) if self.count or a != "COUNT")

    def __post_init__(self) -> None:
        for name in ("n_queries", "max_answers", "per_table"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        unknown = [t for t in self.shares if t not in get_args(QuestionType)]
        if unknown or min(self.shares.values(), default=0) < 0 or sum(self.shares.values()) <= 0:
            raise ValueError(
                f"the shares of the types must be numbers of 0 or more, for {', '.join(get_args(QuestionType))}, not "
                f"all of them 0; got {dict(self.shares)}"
            )


def numbers_by_type(wishes: Wishes) -> dict[QuestionType, int]:
    """How many questions of each type: by the shares, rounded so that they add up (largest remainders)."""
    total = sum(wishes.shares.values())
    exact = {t: wishes.n_queries * wishes.shares.get(t, 0) / total for t in get_args(QuestionType)}
    out = {t: int(value) for t, value in exact.items()}
    for t in sorted(exact, key=lambda t: out[t] - exact[t])[: wishes.n_queries - sum(out.values())]:
        out[t] += 1
    return out


def plan(
    sources: Sequence[SourceTable], wishes: Wishes, seed: int, tell: Callable[[], None] = lambda: None
) -> tuple[list[Planned], Counter[str]]:
    """Questions to the tables, and how many drafts were left out for which reason.

    The types are dealt out to the tables in turn, each table drawing from a generator of its own. Rows that answer one
    question of a table answer no other one of it (unless ``apart`` is false), so that its tables can be kept apart.
    What a table cannot give is asked of the next; if none can, the count ``no table left for ...`` says how many are
    missing.

    Args:
        sources: the tables.
        wishes: what to make.
        seed: decides everything that is drawn.
        tell: called after each question.
    """
    left_out: Counter[str] = Counter()
    makers = [_Maker(source, wishes, random.Random(f"{seed}:questions:{source.place}")) for source in sources]
    types = [t for t, n in numbers_by_type(wishes).items() for _ in range(n)]
    rng = random.Random(f"{seed}:types")
    rng.shuffle(types)
    rng.shuffle(makers)
    out: list[Planned] = []
    turn = 0
    for question_type in types:
        for step in range(len(makers)):
            maker = makers[(turn + step) % len(makers)]
            made = maker.make(question_type, left_out)
            if made is not None:
                query, rows = made
                out.append(Planned(f"Q{len(out)}", maker.source, query, rows))
                turn += step + 1
                break
        else:
            left_out[f"no table left for another {question_type} question"] += 1
        tell()
    return out, left_out


class _Maker:
    """Makes the questions to one table."""

    def __init__(self, source: SourceTable, wishes: Wishes, rng: random.Random) -> None:
        self.source = source
        self._wishes = wishes
        self._rng = rng
        self._values = {name: ColumnValues.of(source.frame[name], kind) for name, kind in source.kinds.items()}
        self._taken: npt.NDArray[np.bool_] = np.zeros(len(source.frame), dtype=bool)
        self._made: set[Query] = set()
        self._gave_up: set[QuestionType] = set()

    def make(self, question_type: QuestionType, left_out: Counter[str]) -> tuple[Query, tuple[int, ...]] | None:
        """A query and the rows that answer it, ``None`` if the table gives no (further) one of the type."""
        if len(self._made) >= self._wishes.per_table or question_type in self._gave_up:
            return None
        for _ in range(_TRIES):
            draft = draw(question_type, self._values, self._wishes.max_answers, self._wishes.aggregates, self._rng)
            fault = "the columns, or the row drawn, allow no such question" if draft is None else self._fault(draft)
            if fault is not None:
                left_out[fault] += 1
                continue
            assert draft is not None
            self._made.add(draft.query)
            self._taken |= draft.matching
            return draft.query, tuple(int(row) for row in np.flatnonzero(draft.matching))
        self._gave_up.add(question_type)
        return None

    def _fault(self, draft: Draft) -> str | None:
        fault = draft.fault(self._wishes.max_answers)
        if fault is not None:
            return fault
        if draft.query in self._made:
            return "the same question again"
        if not self._wishes.apart:
            return None
        if (self._taken & draft.matching).any():
            return "a row answers another question, too"
        if (self._taken | draft.matching).sum() > max(1, _MOST_ANSWERING * len(self._taken)):
            return "too many rows of the table would answer questions"
        return None


def answer(planned: Planned) -> list[Any]:
    """The answer to a planned question, from its source."""
    return planned.query.answer(planned.source.frame)
