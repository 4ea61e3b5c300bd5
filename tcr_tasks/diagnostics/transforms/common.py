"""What the transformations share: ids, texts, who takes part, and the usual case of one target and its group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluators.plugin.checks import shown
from tcr_tasks.diagnostics.base import Base, BaseQuestion, NotPossibleError, QuestionSet, Structure
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.tables import corpus_id


def document_id(questions: QuestionSet, table_id: str, variant: str) -> str:
    """An id for a text made from a table. The hash in front keeps the tie rule from favouring a variant."""
    return corpus_id(f"{questions.tables[table_id].table.key}#{variant}")


def group_case(
    questions: Sequence[BaseQuestion],
    documents: Mapping[str, str],
    *,
    queries: Mapping[str, str] | None = None,
    groups: Mapping[str, tuple[str, ...]] | None = None,
    candidates: Mapping[str, tuple[str, ...]] | None = None,
    notes: Sequence[str] = (),
) -> Case:
    """The usual problem: find the target among all documents, its siblings being the look-alikes.

    Args:
        questions: those that are asked.
        documents: table id -> text.
        queries: question id -> text, by default in natural language.
        groups: question id -> members, by default the question's own.
        candidates, notes: as in :class:`~tcr_tasks.diagnostics.cases.Case`.
    """
    members = groups or {q.id: q.group for q in questions}
    return Case(
        documents=documents,
        queries=queries or {q.id: q.text for q in questions},
        targets={q.id: (q.target,) for q in questions},
        groups={q.id: members[q.id] for q in questions},
        candidates=candidates,
        labels={q.id: {t: q.strategies[t] for t in members[q.id]} for q in questions},
        strata={q.id: q.type for q in questions},
        notes=(*notes, *inferred_note(questions)),
    )


def structured(base: Base) -> tuple[list[BaseQuestion], list[str]]:
    """The diagnostic questions whose columns and answer rows are known, and notes on the others.

    Raises:
        NotPossibleError: if there is none.
    """
    every = asked(base, base.diagnostic, "exact-match question")
    kept = [q for q in every if q.structure is not None and q.answer_rows]
    if not kept:
        raise NotPossibleError(
            f"{base.name}: of none of its {len(every)} exact-match questions the columns in question and the rows that "
            "answer are known (config `groups`, column `query`; or `construct_information` and `answer_index`)"
        )
    left = [q.id for q in every if q not in kept]
    return kept, left_out(left, len(every), "their condition and target columns or answer rows are not known")


def known(question: BaseQuestion) -> tuple[Structure, tuple[int, ...]]:
    """Structure and answer rows of one of the questions of :func:`structured`."""
    if question.structure is None or not question.answer_rows:
        raise ValueError(f"question {question.id!r}: its columns and answer rows are not known")
    return question.structure, question.answer_rows


def inferred_note(questions: Sequence[BaseQuestion]) -> list[str]:
    """A note where the labels of siblings are inferred, or nothing."""
    count = sum(q.inferred for q in questions)
    if not count:
        return []
    what = "how their siblings were made is not labelled; those that lack a column count as column deletion"
    return [f"{count} of {len(questions)} questions: {what}"]


def left_out(ids: Sequence[str], total: int, reason: str) -> list[str]:
    """A note on questions that take no part, or nothing if there are none."""
    return [f"{len(ids)} of {total} questions left out, since {reason}: {shown(list(ids))}"] if ids else []


def asked(base: Base, questions: QuestionSet, what: str) -> tuple[BaseQuestion, ...]:
    """All questions of a set.

    Raises:
        NotPossibleError: if there is none.
    """
    if not questions.questions:
        raise NotPossibleError(f"{base.name} has no {what}")
    return questions.questions
