"""How a table looks: headers and forms of values, drawn for each table on its own (A.5 of the TCR-Bench paper).

A look changes no value: what :func:`printed` writes, :func:`normalised` reads back exactly. A form is used for a column
only if that holds for every value of it.
"""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from tcr_tasks.builder.forms import Cell, Form, forms_of, plain_form, shifts_of
from tcr_tasks.builder.kinds import Kind, name_words

__all__ = [
    "Dress",
    "Look",
    "Taste",
    "Wardrobe",
    "as_csv",
    "draw_look",
    "normalised",
    "plain_look",
    "printed",
    "readings",
]

_RESTYLED = re.compile(r"[A-Za-z0-9 _-]+")


def _title(words: Sequence[str]) -> str:
    return " ".join(word.capitalize() for word in words)


def _camel(words: Sequence[str]) -> str:
    return words[0] + "".join(word.capitalize() for word in words[1:])


_STYLES: dict[str, Callable[[Sequence[str]], str]] = {
    "snake": "_".join,
    "title": _title,
    "camel": _camel,
    "pascal": lambda words: "".join(word.capitalize() for word in words),
    "words": " ".join,
}


@dataclass(frozen=True)
class Taste:
    """How strongly tables are reworded.

    Attributes:
        plain: the probability, 0 to 1, that a column's values stay as they are.
        shift: the probability that numbers are multiplied, divided or increased; the paper does so "relatively
            infrequently".
        headers: other names for a column, by its own name; a table draws one of them or the name itself.
    """

    plain: float = 0.5
    shift: float = 0.03
    headers: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.plain, self.shift) < 0 or self.plain + self.shift > 1:
            raise ValueError(f"plain {self.plain} and shift {self.shift} must be probabilities with a sum of 1 at most")


@dataclass(frozen=True)
class Dress:
    """How one column is printed: under which header, in which form."""

    header: str
    form: Form


@dataclass(frozen=True)
class Look:
    """How each column of a table is printed, by its own name, in printed order."""

    columns: Mapping[str, Dress]

    @property
    def canonical(self) -> dict[str, str]:
        """The columns' own names by header."""
        return {dress.header: column for column, dress in self.columns.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a prompt that shows the table must say: one sentence for each shifted column."""
        return tuple(
            f"The values of column {dress.header!r} were {dress.form.prompt_note}."
            for dress in self.columns.values()
            if dress.form.prompt_note
        )


class Wardrobe:
    """Draws looks for tables whose rows come from one frame; what suits a column is found out once.

    Args:
        frame: columns of ``str``, ``int`` or ``float`` cells or missing ones.
        kinds: what each column holds.
        taste: how strongly to reword.

    Raises:
        ValueError: naming the column, if its cells are of several types or cannot be printed without loss.
    """

    def __init__(self, frame: pd.DataFrame, kinds: Mapping[str, Kind], taste: Taste | None = None) -> None:
        self._taste = taste or Taste()
        self._kinds = kinds
        self._cells = {column: _distinct(column, frame[column]) for column in frame.columns}
        self._types = {column: type(next(iter(cells), "")) for column, cells in self._cells.items()}
        self._plain = {column: plain_form(kind) for column, kind in self._types.items()}
        self._keeps: dict[tuple[str, str], bool] = {}
        for column, form in self._plain.items():
            if not form.keeps(self._cells[column]):
                raise ValueError(f"column {column!r} holds an empty text or a value that is lost when it is printed")

    def plain(self, columns: Sequence[str]) -> Look:
        """The columns as they are."""
        return Look({column: Dress(column, self._plain[column]) for column in columns})

    def draw(self, columns: Sequence[str], rng: random.Random) -> Look:
        """A style of headers for the whole table, and a header and a form for each column.

        Headers differ in more than case, as the tables' own names do: should two become alike, all keep their names.
        """
        style = rng.choice([*_STYLES, None])
        forms = {column: self._form(column, rng) for column in columns}
        named = {column: rng.choice([column, *self._taste.headers.get(column, ())]) for column in columns}
        headers = {column: _noted(_styled(name, style), forms[column]) for column, name in named.items()}
        if len({header.casefold() for header in headers.values()}) < len(headers):
            headers = {column: _noted(column, forms[column]) for column in columns}
        if len(set(headers.values())) < len(headers):
            return self.plain(columns)
        return Look({column: Dress(headers[column], forms[column]) for column in columns})

    def _form(self, column: str, rng: random.Random) -> Form:
        kind, cell_type = self._kinds[column], self._types[column]
        drawn = rng.random()
        if drawn < self._taste.shift:
            offered = list(shifts_of(kind, cell_type))
        elif drawn < self._taste.shift + self._taste.plain:
            offered = []
        else:
            offered = list(forms_of(kind, cell_type))
        rng.shuffle(offered)
        return next((form for form in offered if self._suits(column, form)), self._plain[column])

    def _suits(self, column: str, form: Form) -> bool:
        key = (column, form.name)
        if key not in self._keeps:
            self._keeps[key] = form.keeps(self._cells[column])
        return self._keeps[key]


def draw_look(frame: pd.DataFrame, kinds: Mapping[str, Kind], rng: random.Random, taste: Taste | None = None) -> Look:
    """A look for a table with all columns of ``frame``; see :class:`Wardrobe`."""
    return Wardrobe(frame, kinds, taste).draw(list(frame.columns), rng)


def plain_look(frame: pd.DataFrame, kinds: Mapping[str, Kind]) -> Look:
    """The look of a table that is printed as it is."""
    return Wardrobe(frame, kinds).plain(list(frame.columns))


def printed(frame: pd.DataFrame, look: Look) -> pd.DataFrame:
    """The look's columns as text under their headers; a missing cell is an empty text."""
    return pd.DataFrame(
        {
            dress.header: pd.Series(
                ["" if pd.isna(cell) else dress.form.show(cell) for cell in frame[column].tolist()], dtype=object
            )
            for column, dress in look.columns.items()
        },
    )


def normalised(table: pd.DataFrame, look: Look) -> pd.DataFrame:
    """What :func:`printed` printed: the columns' own names, cells of their type, ``None`` where one is missing.

    Raises:
        KeyError: if a header of the look is not in the table.
        ValueError: if a cell is not in its column's form.
    """
    return pd.DataFrame(
        {
            column: pd.Series(
                [dress.form.parse(text) if text else None for text in table[dress.header].tolist()], dtype=object
            )
            for column, dress in look.columns.items()
        },
    )


def readings(lost: Mapping[str, Mapping[int, str]], look: Look) -> dict[str, dict[int, Cell | None]]:
    """What a reader takes printed cells for, by the column's own name; ``None`` for a cell that says nothing.

    Args:
        lost: by header and row, see :func:`tcr_tasks.builder.losses.lost_cells`.
        look: how the table is printed.
    """
    names = look.canonical
    return {
        names[header]: {row: _reading(look.columns[names[header]].form, text) for row, text in cells.items()}
        for header, cells in lost.items()
    }


def _reading(form: Form, text: str) -> Cell | None:
    try:
        return form.parse(text) if text else None
    except (ValueError, ArithmeticError):
        return None


def as_csv(table: pd.DataFrame) -> str:
    """A table of text as CSV with line feeds, the header first."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([list(table.columns), *table.to_numpy().tolist()])
    return out.getvalue()


def _distinct(column: str, cells: pd.Series[Any]) -> dict[Cell, None]:
    present = dict.fromkeys(cell for cell in cells.tolist() if not pd.isna(cell))
    types = {type(cell) for cell in present}
    if len(types) > 1:
        raise ValueError(f"column {column!r} holds cells of several types: {sorted(t.__name__ for t in types)}")
    return present


def _styled(name: str, style: str | None) -> str:
    """A name in a style; one with other signs than letters, digits, blanks, ``_`` and ``-`` stays."""
    words = name_words(name)
    return name if style is None or not words or not _RESTYLED.fullmatch(name) else _STYLES[style](words)


def _noted(header: str, form: Form) -> str:
    return f"{header} ({form.header_note})" if form.header_note else header
