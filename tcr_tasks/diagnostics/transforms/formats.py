"""Formats of the tables by forms of the query: Tables 8, 16 and 17 (sections 4.1.3 and 5.1, appendices D.1 and F)."""

from __future__ import annotations

from typing import Literal, get_args

from tcr_tasks.diagnostics.base import Base, BaseQuestion, NotPossibleError
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.transforms.common import asked, group_case, left_out
from tcr_tasks.serialize import TableFormat

QueryForm = Literal["natural", "template", "sentential"]
QUERY_FORMS: tuple[QueryForm, ...] = get_args(QueryForm)


def whole(base: Base, fmt: TableFormat | None) -> Case:
    """All questions, all types, over all tables, in one format; ``None``: each table in its own (Mixed).

    Raises:
        NotPossibleError: if there is no question.
    """
    return group_case(asked(base, base.main, "question"), base.main.texts(fmt))


def formats(base: Base, fmt: TableFormat | None, form: QueryForm) -> Case:
    """The diagnostic questions in one form, over their tables in one format; ``None``: each in its own (Mixed).

    Raises:
        NotPossibleError: if no exact-match question has this form.
    """
    every = asked(base, base.diagnostic, "exact-match question")
    queries = {q.id: text for q in every if (text := _form(q, form))}
    kept = [q for q in every if q.id in queries]
    if not kept:
        raise NotPossibleError(f"{base.name}: none of its {len(every)} exact-match questions has a {form} form")
    notes = left_out([q.id for q in every if q.id not in queries], len(every), f"they have no {form} form")
    return group_case(kept, base.diagnostic.texts(fmt), queries=queries, notes=notes)


def _form(question: BaseQuestion, form: QueryForm) -> str | None:
    return {"natural": question.text, "template": question.template, "sentential": question.sentence}[form]
