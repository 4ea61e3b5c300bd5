"""Target and siblings of a question as text, made once and kept: what a build that goes on need not make again."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from evaluators.files import write_text
from tcr_tasks.builder.augment import Taste, as_csv, plain_look, printed, readings
from tcr_tasks.builder.forms import Cell
from tcr_tasks.builder.generate import Planned
from tcr_tasks.builder.losses import as_read, lost_cells, misprint
from tcr_tasks.builder.sources import SourceTable
from tcr_tasks.builder.subtables import FORMATS, Budget, Member, NoGroupError, make_group
from tcr_tasks.builder.tokens import Counter
from tcr_tasks.serialize import TableFormat, read_table, serialize

_TRIES = 3


@dataclass(frozen=True)
class GroupTable:
    """A table of a group.

    Attributes:
        source: the place of the source table.
        strategy: ``target``, a sibling's strategy, or ``natural``.
        columns, rows: of the source frame, in printed order.
        headers: the columns' own names by header.
        csv, canonical_csv: as printed, and under the source's names in plain form.
        format: in the Mixed setting.
        tokens: of the printed table.
        deleted: the column that was taken away.
        lost: what a reader finds in place of values that the format does not print in full, by column and printed row.
        notes: what a reader must be told of shifted numbers.
    """

    source: str
    strategy: str
    columns: tuple[str, ...]
    rows: tuple[int, ...]
    headers: Mapping[str, str]
    csv: str
    canonical_csv: str
    format: TableFormat
    tokens: int
    deleted: str | None = None
    lost: Mapping[str, Mapping[int, Cell | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def frame(self, source: SourceTable) -> pd.DataFrame:
        """The canonical table with typed cells."""
        return source.frame.iloc[list(self.rows)][list(self.columns)].reset_index(drop=True)

    def as_read(self, source: SourceTable) -> pd.DataFrame:
        """The canonical table as a reader of the printed one takes it."""
        return as_read(self.frame(source), self.lost)


@dataclass(frozen=True)
class Group:
    """A question's tables, the target first; none if no group could be made, with the reason."""

    question: str
    tables: tuple[GroupTable, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class Making:
    """How groups are made.

    Attributes:
        budget: tokens per table.
        counter: what counts them.
        seed: of everything that is drawn.
        taste: how strongly tables are reworded, by source table; see :class:`Taste`.
        format: of every table; ``None``: one drawn for each.
    """

    budget: Budget
    counter: Counter
    seed: int
    taste: Mapping[str, Taste]
    format: TableFormat | None = None

    def group(self, planned: Planned, forbidden: frozenset[int]) -> Group:
        """Target and siblings by the paper's strategies."""
        source, taste = planned.source, self.taste.get(planned.source.place)
        failure = ""
        for attempt in range(_TRIES):
            rng = random.Random(f"{self.seed}:group:{planned.id}:{attempt}")
            try:
                members = make_group(planned, forbidden, self.budget, self.counter, rng, taste)
            except NoGroupError as error:
                return Group(planned.id, failure=str(error))
            tables = tuple(_made(source, member, self.format) for member in members)
            why = misprinted(planned, tables[0])
            if why is None:
                return Group(planned.id, tables)
            failure = f"{source.place}: {why} as {tables[0].format}"
        return Group(planned.id, failure=failure)

    def as_it_is(self, source: SourceTable) -> GroupTable:
        """A source table of a natural group."""
        columns = tuple(str(column) for column in source.frame.columns)
        rows = tuple(range(len(source.frame)))
        look = plain_look(source.frame, source.kinds)
        csv = as_csv(printed(source.frame, look))
        fmt, lost = self._format(source.place, csv)
        tokens = self.counter.count(serialize(source.name, read_table(io.StringIO(csv)), fmt))
        return GroupTable(
            source.place,
            "natural",
            columns,
            rows,
            look.canonical,
            csv,
            csv,
            fmt,
            tokens,
            lost=readings(lost, look),
        )

    def _format(self, place: str, csv: str) -> tuple[TableFormat, dict[str, dict[int, str]]]:
        """A format drawn for a table, if it can be one that prints every value in full, and the cells it does not."""
        order = list(FORMATS) if self.format is None else [self.format]
        random.Random(f"{self.seed}:format:{place}").shuffle(order)
        lost = {fmt: lost_cells(csv, fmt) for fmt in order}
        chosen = next((fmt for fmt in order if not lost[fmt]), order[0])
        return chosen, lost[chosen]


def _made(source: SourceTable, member: Member, fmt: TableFormat | None) -> GroupTable:
    assert member.look is not None
    csv = member.csv(source)
    return GroupTable(
        source=source.place,
        strategy=member.strategy,
        columns=member.columns,
        rows=member.rows,
        headers=member.look.canonical,
        csv=csv,
        canonical_csv=member.canonical_csv(source),
        format=fmt or member.format,
        tokens=member.tokens,
        deleted=member.deleted,
        lost=member.lost if fmt is None else readings(lost_cells(csv, fmt), member.look),
        notes=member.look.notes,
    )


def misprinted(planned: Planned, target: GroupTable) -> str | None:
    """Why the printed target does not give the question's answer, ``None`` if it does."""
    return misprint(planned, target.frame(planned.source), target.rows, target.lost)


# --- kept groups -------------------------------------------------------------------------------------------------


def keep_group(folder: Path, group: Group, key: str) -> None:
    """Write a group into the folder, with a key that tells from what it was made."""
    write_text(folder / f"{group.question}.json", json.dumps({"key": key, **asdict(group)}, ensure_ascii=False))


def kept_group(folder: Path, question: str, key: str) -> Group | None:
    """The group in the folder, ``None`` if there is none that was made from the same."""
    path = folder / f"{question}.json"
    if not path.is_file():
        return None
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if kept.pop("key") != key:
            return None
        tables = tuple(GroupTable(**_tupled(table)) for table in kept["tables"])
        return replace(Group(**kept), tables=tables)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} was damaged ({error}); delete it, and it is made again") from error


def _tupled(table: dict[str, Any]) -> dict[str, Any]:
    listed = {name: tuple(table[name]) for name in ("columns", "rows", "notes")}
    lost = {column: {int(row): value for row, value in cells.items()} for column, cells in table["lost"].items()}
    return {**table, **listed, "lost": lost, "format": TableFormat(table["format"])}
