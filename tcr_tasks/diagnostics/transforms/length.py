"""Shorter tables: Figure 6 (appendix D.5)."""

from __future__ import annotations

import random
from collections.abc import Collection

from tcr_tasks.diagnostics.base import Base, NotPossibleError
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.transforms.common import asked, group_case, left_out

LENGTHS = (2, 3, 4, 5, 8, 10, 16)


def length(base: Base, n: int, seed: int = 0) -> Case:
    """All questions over all tables, every table with 1/n of its rows, a target with all rows that answer.

    Raises:
        NotPossibleError: if of no question the rows that answer are known.
        ValueError: if n is smaller than 1.
    """
    every = asked(base, base.main, "question")
    kept = [q for q in every if q.answer_rows]
    if not kept:
        raise NotPossibleError(f"{base.name}: of none of its {len(every)} questions the rows that answer are known")
    needed = {q.target: q.answer_rows or () for q in kept}
    documents = {}
    for key, table in base.main.tables.items():
        rows = sampled_rows(len(table.frame), n, needed.get(key, ()), f"{seed}:{key}")
        documents[key] = table.text(frame=table.frame.iloc[rows])
    notes = left_out([q.id for q in every if not q.answer_rows], len(every), "the rows that answer them are not known")
    return group_case(kept, documents, notes=notes)


def sampled_rows(size: int, n: int, needed: Collection[int], seed: str) -> list[int]:
    """About ``size / n`` of the rows 0 .. size - 1 in order: at least one, the needed ones first, the others at random.

    With one seed, the rows for a greater n are among those for a smaller one.

    Raises:
        ValueError: if n is smaller than 1.
    """
    if n < 1:
        raise ValueError(f"a table is cut to 1/n of its rows with n of at least 1, not {n}")
    others = [row for row in range(size) if row not in needed]
    random.Random(seed).shuffle(others)
    wanted = max(1, round(size / n))
    return sorted([*needed, *others[: max(0, wanted - len(needed))]])
