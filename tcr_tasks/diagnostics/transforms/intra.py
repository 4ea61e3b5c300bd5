"""Inside the target: which row, or chunk of rows, answers? Tables 20 and 21, Figure 4 (appendix G.1)."""

from __future__ import annotations

from tcr_tasks.diagnostics.base import Base, BaseQuestion
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.transforms.common import document_id, known, structured
from tcr_tasks.diagnostics.transforms.volume import Volume, row_sentences, sufficient

CHUNKS = (1, 10, 20)


def intra_table(base: Base, size: int, kind: Volume) -> Case:
    """Each diagnostic question over its target alone, cut into units; a hit is any unit with a row that answers.

    Args:
        size: rows in a unit: 1, or chunks of 10 or 20 that do not overlap; the last may be shorter.
        kind: what a row's sentence holds, as in :func:`~tcr_tasks.diagnostics.transforms.volume.volume`.

    Raises:
        NotPossibleError: if of no exact-match question columns and answer rows are known.
        ValueError: if the size is smaller than 1.
    """
    if size < 1:
        raise ValueError(f"a unit has at least 1 row, not {size}")
    kept, notes = structured(base)
    documents: dict[str, str] = {}
    targets, groups, labels = {}, {}, {}
    for q in kept:
        units = _units(base, q, size, kind)
        documents |= units
        groups[q.id] = tuple(units)
        hits = {row // size for row in known(q)[1]}
        targets[q.id] = tuple(key for at, key in enumerate(units) if at in hits)
        labels[q.id] = {key: "answer" if at in hits else "other" for at, key in enumerate(units)}
    return Case(
        documents,
        {q.id: q.text for q in kept},
        targets,
        groups,
        groups,
        labels,
        {q.id: q.type for q in kept},
        notes=tuple(notes),
    )


def _units(base: Base, question: BaseQuestion, size: int, kind: Volume) -> dict[str, str]:
    """The target's units in order: id -> text, which begins with the table's name as a whole table's does."""
    questions, target = base.diagnostic, question.target
    table = questions.tables[target]
    frame = sufficient(questions, question, target) if kind == "senss" else table.frame
    sentences = row_sentences(table, frame, shuffled=kind == "sens")
    out = {}
    for at in range(0, len(sentences), size):
        key = document_id(questions, target, f"{question.id}#{kind}#{size}#{at // size}")
        out[key] = f"{table.table.name}:\n" + "\n".join(sentences[at : at + size]) + "\n\n"
    return out
