"""Forms of an instruction, from nothing to the full text (FollowIR, section 4.3 and Figure 3).

The full instruction is the dataset's. Its keywords and its short form stand in the config ``instruction_forms`` of the
same dataset, so that all runs agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from datasets import Dataset

from evaluators.plugin.checks import DatasetError, shown
from evaluators.plugin.dataset import read_config
from evaluators.plugin.results import TaskOption

CONFIG = "instruction_forms"
NONE, KEYWORDS, SHORT, FULL = "none", "keywords", "short", "full"
# By how much is said. Those that a dataset must bring along are in the middle.
FORMS = (NONE, KEYWORDS, SHORT, FULL)
KEPT = (KEYWORDS, SHORT)
FORM_OPTION = TaskOption(
    "instruction_form",
    (FULL, NONE, KEYWORDS, SHORT),
    "FollowIR: the instruction as it is, none, its keywords or its short form; the latter two must be in the dataset "
    "(`mteb-beyond followir forms`)",
)
# The score that says for how many topics a form takes the difference between the two instructions away.
N_EQUAL = "n_topics_with_equal_instructions"
Forms = Mapping[str, "QueryForms"]


class QueryForms(NamedTuple):
    """What is kept of one query's instruction."""

    keywords: str
    short: str


def read_forms(directory: Path) -> dict[str, QueryForms] | None:
    """The forms that a dataset holds, by query, or ``None`` if it holds none.

    Raises:
        DatasetError: if a query is listed twice.
        ValueError: if the config cannot be read.
    """
    table = read_config(directory, CONFIG)
    if table is None:
        return None
    columns = [table.column(name).to_pylist() for name in ("query-id", *KEPT)]
    out = {query: QueryForms(keywords, short) for query, keywords, short in zip(*columns, strict=True)}
    if len(out) != len(table):
        raise DatasetError(str(directory), [f"{CONFIG}: a query has more than one row"])
    return out


def problems_of(forms: Forms | None, queries: set[str], form: str) -> list[str]:
    """What is wrong with the forms of a dataset with these queries, of which a form is asked."""
    if forms is None:
        return [missing_forms(form, "the dataset")] if form in KEPT else []
    out = []
    if strangers := sorted(map(str, forms.keys() - queries)):
        out.append(f"{CONFIG}: unknown queries: {shown(strangers)}")
    if lacking := sorted(queries - forms.keys()):
        out.append(
            f"{CONFIG}: {len(lacking)} queries have no row: {shown(lacking)}; `mteb-beyond followir forms` writes all, "
            "or remove the config"
        )
    for name in KEPT:
        blank = [q for q, found in forms.items() if not (getattr(found, name) or "").strip()]
        if blank:
            out.append(f"{CONFIG}: {len(blank)} queries have an empty {name!r}: {shown(blank)}")
    return out


def missing_forms(form: str, place: str) -> str:
    """What to do about a dataset that lacks the forms."""
    return (
        f"instruction_form={form!r} needs the config {CONFIG!r}, which {place} does not hold; `mteb-beyond followir "
        "forms` makes a copy of a dataset that does"
    )


def equal_instructions(forms: Forms, form: str, pairs: Collection[tuple[str, str]]) -> int:
    """Pairs of queries with the same text in a form, so that nothing but chance can make their rankings differ."""
    return sum(getattr(forms[first], form) == getattr(forms[second], form) for first, second in pairs)


def with_form(queries: Dataset, form: str, forms: Forms | None, place: str) -> Dataset:
    """The queries with their instruction in a form; without the column ``instruction`` for the form ``none``.

    Args:
        queries: columns ``id``, ``text`` and ``instruction``.
        form: one of ``FORMS``.
        forms: by query id; needed for ``keywords`` and ``short``.
        place: names the dataset in messages.

    Raises:
        ValueError: if the dataset lacks the form.
    """
    if form == FULL:
        return queries
    bare = queries.remove_columns(["instruction"])
    if form == NONE:
        return bare
    if forms is None:
        raise ValueError(missing_forms(form, place))
    texts = [getattr(forms[query], form) for query in queries["id"]]
    return bare.add_column("instruction", texts)
