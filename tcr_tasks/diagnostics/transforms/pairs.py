"""Minimal pairs: a table and one variant of it, for each question; which does a retriever prefer?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from tcr_tasks.diagnostics.base import Base, BaseQuestion, NotPossibleError
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.transforms.common import document_id, left_out, structured
from tcr_tasks.serialize import TableFormat


@dataclass(frozen=True)
class Frames:
    """A pair: the formal target and its variant."""

    first: pd.DataFrame
    second: pd.DataFrame


# A pair, or why there is none.
MakePair = Callable[[BaseQuestion], Frames | str]


def pairs_case(
    base: Base, make: MakePair, key: str, names: tuple[str, str], fmt: TableFormat | None, notes: Sequence[str] = ()
) -> Case:
    """The pairs of all diagnostic questions as one pool, without any sibling.

    A question whose two tables are printed alike is left out.

    Args:
        make: the pair of a question whose structure is known, or the reason why it has none.
        key: the diagnostic, for ids.
        names: what the two are called in the labels.
        fmt: how tables are printed; ``None``: each in its own format.
        notes: further notes.

    Raises:
        NotPossibleError: if no question gives a pair.
    """
    kept, all_notes = structured(base)
    documents: dict[str, str] = {}
    pairs: dict[str, tuple[str, str]] = {}
    missing: dict[str, list[str]] = {}
    for q in kept:
        made = make(q)
        if isinstance(made, str):
            missing.setdefault(made, []).append(q.id)
            continue
        table = base.diagnostic.tables[q.target]
        texts = table.text(fmt, made.first), table.text(fmt, made.second)
        if texts[0] == texts[1]:
            missing.setdefault("their two tables are printed alike", []).append(q.id)
            continue
        ids = [document_id(base.diagnostic, q.target, f"{q.id}#{key}#{name}") for name in names]
        pairs[q.id] = ids[0], ids[1]
        documents |= dict(zip(ids, texts, strict=True))
    reasons = [note for reason, ids in missing.items() for note in left_out(ids, len(kept), reason)]
    if not pairs:
        raise NotPossibleError(f"{base.name}: no question gives a pair; {'; '.join(reasons)}")
    asked = [q for q in kept if q.id in pairs]
    return _case(asked, documents, pairs, names, [*all_notes, *reasons, *notes])


def _case(
    questions: Sequence[BaseQuestion],
    documents: Mapping[str, str],
    pairs: Mapping[str, tuple[str, str]],
    names: tuple[str, str],
    notes: Sequence[str],
) -> Case:
    return Case(
        documents=documents,
        queries={q.id: q.text for q in questions},
        targets={key: (first,) for key, (first, _) in pairs.items()},
        groups=pairs,
        labels={key: dict(zip(pair, names, strict=True)) for key, pair in pairs.items()},
        strata={q.id: q.type for q in questions},
        pairwise=True,
        notes=tuple(notes),
    )


def within_limit(case: Case, reads: Callable[[str, str], int] | None) -> Case:
    """The case, with pairs that differ only beyond what the model reads marked as not measurable."""
    if not case.pairwise or reads is None:
        return case
    unread: dict[str, str] = {}
    for query, text in case.queries.items():
        first, second = (case.documents[document] for document in case.groups[query])
        if not differ_within(first, second, lambda document, text=text: reads(document, text)):  # type: ignore[misc]
            unread[query] = "their two tables differ only beyond the length that the model reads"
    return replace(case, not_measurable={**unread, **case.not_measurable})


def differ_within(first: str, second: str, reads: Callable[[str], int]) -> bool:
    """Whether a model that reads ``reads(text)`` characters of a text sees a difference between two tables."""
    places = first_difference(first, second)
    return places is not None and (places[0] < reads(first) or places[1] < reads(second))


def first_difference(first: str, second: str) -> tuple[int, int] | None:
    """Where two printed tables begin to differ, as a place in each; ``None`` if they do not.

    A change far below also changes how wide the rule under a Markdown header is, and how many zeros HTML prints behind
    a decimal point: both are passed over.
    """
    at, other = 0, 0
    lines, others = first.splitlines(keepends=True), second.splitlines(keepends=True)
    for line, other_line in zip(lines, others, strict=False):
        if not _alike(line, other_line):
            same = next((i for i, (a, b) in enumerate(zip(line, other_line, strict=False)) if a != b), None)
            inside = min(len(line), len(other_line)) if same is None else same
            return at + inside, other + inside
        at, other = at + len(line), other + len(other_line)
    return (at, other) if len(lines) != len(others) else None


def _alike(line: str, other: str) -> bool:
    return line == other or (_is_rule(line) and _is_rule(other)) or _without_zeros(line) == _without_zeros(other)


def _is_rule(line: str) -> bool:
    return re.fullmatch(r"\|[-:| ]+\|\s*", line) is not None


def _without_zeros(line: str) -> str:
    return re.sub(r"(\.\d*?)0+\b", r"\1", line)
