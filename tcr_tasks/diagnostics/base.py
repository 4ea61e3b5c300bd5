"""What the diagnostics start from: a TCR dataset with the structure behind its questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from tcr_tasks.diagnostics.columns import align
from tcr_tasks.queries import Query, QuestionType
from tcr_tasks.serialize import TableFormat, serialize
from tcr_tasks.tables import Table

__all__ = ["Base", "BaseQuestion", "BaseTable", "NotPossibleError", "QuestionSet", "Structure", "matching_rows"]

TARGET = "target"
COLUMN_DELETION = "column_deletion"
# A sibling of which it is not known how it was made.
SIBLING = "sibling"


class NotPossibleError(ValueError):
    """A dataset lacks what a diagnostic needs; the message says what."""


@dataclass(frozen=True, eq=False)
class BaseTable:
    """A table as frames.

    Attributes:
        table: where it is, its name and its format in the Mixed setting.
        frame: its cells as the authors read them, which is what is printed.
        canonical: the same rows and columns before rewording, as text, where the dataset keeps them.
        columns: printed header -> canonical column, where there is ``canonical``.
    """

    table: Table
    frame: pd.DataFrame
    canonical: pd.DataFrame | None = None
    columns: Mapping[str, str] | None = None

    def text(self, fmt: TableFormat | None = None, frame: pd.DataFrame | None = None) -> str:
        """The table, or a changed ``frame`` of it, as it is encoded; by default in its own format."""
        return serialize(self.table.name, self.frame if frame is None else frame, fmt or self.table.format)


@dataclass(frozen=True)
class Structure:
    """What a question asks, in the headers that its target prints.

    Attributes:
        conditions: the conditions' columns, once each.
        target: the column that is asked for.
        query: the query in canonical columns, where the dataset keeps it.
    """

    conditions: tuple[str, ...]
    target: str
    query: Query | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that the question needs, once each: the conditions' columns, then the target."""
        return tuple(dict.fromkeys([*self.conditions, self.target]))


@dataclass(frozen=True)
class BaseQuestion:
    """A question.

    Attributes:
        id, text, type: as in the dataset; the type is EM, SF or SA.
        target: id of the table that answers.
        group: ids of the target and its siblings.
        strategies: table id -> ``target``, or how the sibling was made (``sibling`` where that is not known).
        template, sentence: the question in the template and the sentential form, where the dataset has them.
        answer_rows: the target's rows that answer, from 0, as printed; ``None`` where they are not known.
        structure: ``None`` where the columns in question are not known.
        inferred: whether the dataset does not label the strategies: they follow from missing columns.
    """

    id: str
    text: str
    type: str
    target: str
    group: tuple[str, ...]
    strategies: Mapping[str, str]
    template: str | None = None
    sentence: str | None = None
    answer_rows: tuple[int, ...] | None = None
    structure: Structure | None = None
    inferred: bool = False


@dataclass(frozen=True)
class QuestionSet:
    """Questions, and the tables that are searched for them (table id -> table)."""

    questions: tuple[BaseQuestion, ...]
    tables: Mapping[str, BaseTable]
    _printed: dict[TableFormat | None, dict[str, str]] = field(default_factory=dict, init=False, repr=False)

    def texts(self, fmt: TableFormat | None) -> dict[str, str]:
        """Every table under its id, printed in one format or (``None``) each in its own; each is printed once."""
        if fmt not in self._printed:
            self._printed[fmt] = {key: table.text(fmt) for key, table in self.tables.items()}
        return dict(self._printed[fmt])

    def counterparts(self, question: BaseQuestion, table_id: str) -> dict[str, str]:
        """Header in the question's target -> header of the same column in another table, where it has one.

        By canonical column where both tables keep them, otherwise by :func:`~tcr_tasks.diagnostics.columns.align`.
        """
        target, other = self.tables[question.target], self.tables[table_id]
        if target.columns and other.columns:
            headers = {canonical: header for header, canonical in other.columns.items()}
            return {header: headers[c] for header, c in target.columns.items() if c in headers}
        return align(target.frame, other.frame)


@dataclass(frozen=True)
class Base:
    """A dataset as the diagnostics use it; read by :func:`tcr_tasks.diagnostics.reading.read_base`.

    Attributes:
        name: the dataset, for messages.
        main: all questions, and all tables.
        diagnostic: the exact-match questions, and the union of their groups.
        notes: what a reader of any score should know about the dataset.
    """

    name: str
    main: QuestionSet
    diagnostic: QuestionSet
    notes: tuple[str, ...] = ()


def matching_rows(query: Query, canonical: pd.DataFrame) -> tuple[int, ...]:
    """The rows that answer a query, or whose values an SA query aggregates; empty if a column is missing.

    Args:
        canonical: the table's cells as text. Which column holds numbers follows from the query's values: of digits
            alone, codes and numbers look alike.
    """
    if not set(query.columns) <= set(canonical.columns):
        return ()
    cells = canonical.mask(canonical == "")
    frame = pd.DataFrame({c.column: _comparable(cells[c.column], c.value) for c in query.conditions})
    number = "row"
    while number in frame.columns:
        number += "_"
    # The same conditions, asking for the row's number, where the target has a value.
    numbered = frame.assign(**{number: range(len(frame))})[cells[query.target].notna()]
    kind: QuestionType = "EM" if query.question_type == "EM" else "SF"
    rows = replace(query, question_type=kind, aggregate=None, target=number).answer(numbered)
    return tuple(int(row) for row in rows)


def _comparable(cells: pd.Series, value: str | int | float) -> pd.Series:
    return cells if isinstance(value, str) else pd.to_numeric(cells, errors="coerce")
