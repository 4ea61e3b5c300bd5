"""What a user wants of a build, and what will be asked of which tables: everything before the first table is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tcr_tasks.builder.assembly import settle
from tcr_tasks.builder.augment import Taste
from tcr_tasks.builder.generate import RELEASED_SHARES, Planned, Wishes, plan
from tcr_tasks.builder.length import Budget
from tcr_tasks.builder.natural import partitions, plan_natural
from tcr_tasks.builder.sources import MOST_ROWS, Skipped, SourceTable, read_sources
from tcr_tasks.builder.verify import Corpus
from tcr_tasks.queries import QuestionType
from tcr_tasks.serialize import TableFormat

TextForm = Literal["natural", "template", "sentential"]
Layout = Literal["own", "tcr-open", "both"]
# As many as the paper's benchmark has, and four to a table, as its largest groups have.
_MOST_QUESTIONS = 209
_PER_TABLE = 4


@dataclass(frozen=True)
class Options:
    """What the user chose.

    Attributes:
        seed: of everything that is drawn.
        n_queries: questions; ``None``: four for each table, one with ``natural``, 209 at most.
        max_answers, shares, count: see :class:`~tcr_tasks.builder.generate.Wishes`.
        natural: groups of source tables as they are, in place of groups made from one table.
        budget: tokens per table.
        taste: how strongly tables are reworded.
        most_rows: rows of a source that are used.
        text: which form of a question is its text.
        format: of every table; ``None``: one drawn for each.
        layout: what is written.
        top_k: tables per signal in the review sheet; 0: no sheet.
        encoder: a sentence-transformers model for one of the signals.
        review: a filled-in sheet.
        license: of the dataset, a hub licence id.
    """

    seed: int = 0
    n_queries: int | None = None
    max_answers: int = 5
    shares: Mapping[QuestionType, float] = field(default_factory=lambda: dict(RELEASED_SHARES))
    count: bool = False
    natural: bool = False
    budget: Budget = field(default_factory=Budget)
    taste: Taste = field(default_factory=Taste)
    most_rows: int = MOST_ROWS
    text: TextForm = "natural"
    format: TableFormat | None = None
    layout: Layout = "own"
    top_k: int = 5
    encoder: str | None = None
    review: Path | None = None
    license: str = "unknown"

    def wishes(self, n_tables: int) -> Wishes:
        """How many questions, given so many tables."""
        wanted = self.n_queries or min(_MOST_QUESTIONS, (1 if self.natural else _PER_TABLE) * n_tables)
        per_table = max(_PER_TABLE, -(-wanted // max(1, n_tables)))
        return Wishes(wanted, self.max_answers, self.shares, self.count, per_table)


@dataclass(frozen=True)
class Plans:
    """What will be asked, before any table is made."""

    sources: list[SourceTable]
    skipped: list[Skipped]
    planned: list[Planned]
    forbidden: Mapping[str, frozenset[int]]
    natural: Mapping[str, Sequence[SourceTable]]
    left_out: Mapping[str, int]
    n_wished: int


def make_plans(paths: Sequence[Path], options: Options) -> Plans:
    """Read the sources and plan the questions.

    Raises:
        FileNotFoundError: if a source is not there.
        ValueError: if the sources hold no usable table, or give no question.
    """
    sources, skipped = read_sources(paths, seed=options.seed, most_rows=options.most_rows)
    if not sources:
        raise ValueError(f"the sources hold no usable table{_reasons(skipped)}")
    natural: dict[str, Sequence[SourceTable]] = {}
    forbidden: Mapping[str, frozenset[int]] = {}
    if options.natural:
        groups, alone = partitions(sources)
        skipped += alone
        if not groups:
            raise ValueError(
                "no two tables of the sources have the same columns, so there is no natural group"
                f"{_reasons(alone)}; build without --natural to make groups out of single tables"
            )
        members = [member for group in groups for member in group]
        wishes = options.wishes(len(members))
        with Corpus() as corpus:
            for source in sources:
                corpus.add(source.place, source.frame)
            made, left_out = plan_natural(groups, corpus, wishes, options.seed)
        planned = [q.planned for q in made]
        natural = {q.planned.id: q.group for q in made}
    else:
        wishes = options.wishes(len(sources))
        planned, left_out = plan(sources, wishes, options.seed)
        planned, forbidden, clashing = settle(planned, sources)
        if clashing:
            left_out["its answer answers another question, too"] += clashing
    if not planned:
        raise ValueError(
            f"the {len(sources)} usable tables give no question: "
            + "; ".join(f"{reason} ({n} times)" for reason, n in left_out.most_common(5))
        )
    return Plans(sources, skipped, planned, forbidden, natural, left_out, wishes.n_queries)


def _reasons(skipped: Sequence[Skipped]) -> str:
    if not skipped:
        return ""
    more = f"; and {len(skipped) - 5} more" if len(skipped) > 5 else ""
    return ": " + "; ".join(f"{s.place}: {s.reason}" for s in skipped[:5]) + more
