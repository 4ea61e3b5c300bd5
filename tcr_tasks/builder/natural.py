"""Groups of source tables that share a schema, as they are (the idea of Real-TCR, section 4.1.3).

Partitions by year, region or branch are siblings by nature. Nothing is changed in them: the questions are those that
exactly one of them answers.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tcr_tasks.builder.generate import Planned, Wishes, plan
from tcr_tasks.builder.sources import Skipped, SourceTable
from tcr_tasks.builder.verify import Corpus
from tcr_tasks.queries import QuestionType

# So many drafts are made to each table: partitions share most of their values, and most of all a comparison is met in
# several of them.
_DRAFTS = 30


@dataclass(frozen=True)
class NaturalQuestion:
    """A question that one table of a natural group answers.

    Attributes:
        planned: the question; its source is the target.
        group: the target and its siblings, in the order of the sources.
    """

    planned: Planned
    group: tuple[SourceTable, ...]


def partitions(sources: Sequence[SourceTable]) -> tuple[list[tuple[SourceTable, ...]], list[Skipped]]:
    """Tables with the same columns of comparable kinds, whatever their order, and the tables that have no sibling."""
    by_schema: dict[tuple[tuple[str, bool], ...], list[SourceTable]] = defaultdict(list)
    for source in sources:
        texts = {name: kind in ("text", "date") for name, kind in source.kinds.items()}
        texts |= {name: not _is_numeric(source, name) for name, kind in source.kinds.items() if kind == "identifier"}
        by_schema[tuple(sorted(texts.items()))].append(source)
    alone = [Skipped(g[0].place, "no other table has the same columns") for g in by_schema.values() if len(g) == 1]
    return [tuple(group) for group in by_schema.values() if len(group) > 1], alone


def _is_numeric(source: SourceTable, name: str) -> bool:
    return source.frame[name].dtype != "str"


def plan_natural(
    groups: Sequence[Sequence[SourceTable]],
    corpus: Corpus,
    wishes: Wishes,
    seed: int,
    tell: Callable[[], None] = lambda: None,
) -> tuple[list[NaturalQuestion], Counter[str]]:
    """Questions that exactly one table of the whole corpus answers, at most one for each table.

    (No two questions of a TCR-Bench share a target.)

    Args:
        groups: from :func:`partitions`.
        corpus: every table of the sources, by its place.
        wishes: what to make; ``per_table`` and ``apart`` are of no account.
        seed: decides everything that is drawn.
        tell: called after each question that is kept.
    """
    left_out: Counter[str] = Counter()
    candidates: list[NaturalQuestion] = []
    alike: dict[QuestionType, float] = {t: 1.0 for t, share in wishes.shares.items() if share}
    n_drafts = len(_members(groups)) * _DRAFTS
    drafting = replace(wishes, n_queries=n_drafts, shares=alike, per_table=_DRAFTS, apart=False)
    group_of = {member.place: tuple(group) for group in groups for member in group}
    drafts, reasons = plan(_members(groups), drafting, seed)
    # That a table gives fewer drafts than were asked for is no loss.
    left_out.update({reason: n for reason, n in reasons.items() if not reason.startswith("no table left")})
    for planned in drafts:
        found = corpus.answering(planned.query)
        if found == (planned.source.place,):
            candidates.append(NaturalQuestion(planned, group_of[planned.source.place]))
        else:
            left_out["other tables answer, too"] += 1
    kept = _chosen(candidates, wishes, seed, left_out)
    for _ in kept:
        tell()
    return kept, left_out


def _members(groups: Sequence[Sequence[SourceTable]]) -> list[SourceTable]:
    return [member for group in groups for member in group]


def _chosen(
    candidates: Sequence[NaturalQuestion], wishes: Wishes, seed: int, left_out: Counter[str]
) -> list[NaturalQuestion]:
    """At most one question a table, and of each type as many as its share of the questions that can be had."""
    order = list(candidates)
    random.Random(f"{seed}:natural").shuffle(order)
    # The rarest type first, before the others take the tables that it needs.
    of_type = Counter(c.planned.query.question_type for c in order)
    order.sort(key=lambda c: of_type[c.planned.query.question_type])
    total = min(wishes.n_queries, len({c.planned.source.place for c in order}))
    weight = sum(wishes.shares.values())
    wanted = {t: round(total * share / weight) for t, share in wishes.shares.items()}
    kept: dict[str, NaturalQuestion] = {}
    for may_exceed in (False, True):
        for candidate in order:
            place, question_type = candidate.planned.source.place, candidate.planned.query.question_type
            if place in kept or len(kept) >= total or not (may_exceed or wanted.get(question_type, 0) > 0):
                continue
            kept[place] = candidate
            wanted[question_type] = wanted.get(question_type, 0) - 1
    left_out["another question has the same target, or enough are there"] += len(order) - len(kept)
    numbered = sorted(kept.values(), key=lambda q: int(q.planned.id[1:]))
    return [
        NaturalQuestion(Planned(f"Q{at}", q.planned.source, q.planned.query, q.planned.answer_rows), q.group)
        for at, q in enumerate(numbered)
    ]
