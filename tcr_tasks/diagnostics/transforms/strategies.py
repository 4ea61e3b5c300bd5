"""Fewer siblings: none that lack a column (section 4.1.3), or none at all (Table 25)."""

from __future__ import annotations

from tcr_tasks.diagnostics.base import COLUMN_DELETION, Base, BaseQuestion, NotPossibleError
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.transforms.common import asked, group_case, left_out


def without_column_deletion(base: Base) -> Case:
    """All questions, each searched without the siblings of its group that lack one of its columns.

    Questions that have no other sibling are left out. A table that is such a sibling of one question only stays for the
    others that have it in their group; where it is one for all of them, it is in no pool.

    Raises:
        NotPossibleError: if no question has a sibling with all columns.
    """
    every = asked(base, base.main, "question")
    groups = {q.id: tuple(t for t in q.group if q.strategies[t] != COLUMN_DELETION) for q in every}
    kept = [q for q in every if len(groups[q.id]) > 1]
    if not kept:
        raise NotPossibleError(f"{base.name}: no question has a sibling with all columns in question")
    wanted = {table for group in groups.values() for table in group}
    deleted = {table for q in every for table in q.group} - wanted
    documents = {key: text for key, text in base.main.texts(None).items() if key not in deleted}
    # Tables that are left out for some questions only.
    own = {q.id: _deleted(q) & documents.keys() for q in kept}
    candidates = {q.id: tuple(key for key in documents if key not in own[q.id]) for q in kept}
    notes = left_out([q.id for q in every if q not in kept], len(every), "no sibling of theirs has all their columns")
    return group_case(kept, documents, groups=groups, candidates=candidates if any(own.values()) else None, notes=notes)


def without_siblings(base: Base) -> Case:
    """All questions, each searched without the siblings of its group: groups of one.

    GR@1 is R@1 then, DS@1 is 1 wherever anything is found, and there is no margin (Table 25): what other benchmarks of
    table retrieval measure.
    """
    every = asked(base, base.main, "question")
    documents = base.main.texts(None)
    siblings = {q.id: set(q.group) - {q.target} for q in every}
    return group_case(
        every,
        documents,
        groups={q.id: (q.target,) for q in every},
        candidates={q.id: tuple(key for key in documents if key not in siblings[q.id]) for q in every},
    )


def _deleted(question: BaseQuestion) -> set[str]:
    return {table for table, strategy in question.strategies.items() if strategy == COLUMN_DELETION}
