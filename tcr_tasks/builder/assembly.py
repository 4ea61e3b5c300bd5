"""From groups to a benchmark: keys of tables, which questions stand, and what is written."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcr_tasks.builder.generate import Planned
from tcr_tasks.builder.groups import Group, GroupTable
from tcr_tasks.builder.output import BuiltQuestion, BuiltTable
from tcr_tasks.builder.sources import SourceTable
from tcr_tasks.builder.verify import Corpus, twin

# What file systems trip over in names.
_UNSAFE = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f]')
_LONGEST = 120


@dataclass(frozen=True)
class Assembled:
    """Questions with their tables.

    Attributes:
        planned: the questions.
        groups: by question the keys of its tables, the target first.
        tables: by key.
        sources: by place.
    """

    planned: tuple[Planned, ...]
    groups: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, GroupTable]
    sources: Mapping[str, SourceTable]

    def without(self, dropped: Iterable[str]) -> Assembled:
        """The rest when questions are dropped: tables of no group go with them."""
        gone = set(dropped)
        groups = {question: keys for question, keys in self.groups.items() if question not in gone}
        used = {key for keys in groups.values() for key in keys}
        return Assembled(
            tuple(p for p in self.planned if p.id not in gone),
            groups,
            {key: table for key, table in self.tables.items() if key in used},
            self.sources,
        )

    def ambiguous(self) -> tuple[dict[str, tuple[str, ...]], int]:
        """The questions that not exactly their target answers, with the tables that do; and the executed pairs.

        Every question runs on every table that has its columns (A.4, A.7), and once more where rounding in print
        changes values.
        """
        with Corpus() as corpus:
            for key, table in self.tables.items():
                corpus.add(key, table.frame(self.sources[table.source]))
                if table.lost:
                    corpus.add(key, table.as_read(self.sources[table.source]))
            found = {p.id: _tables_answering(corpus, p) for p in self.planned}
        wrong = {question: keys for question, keys in found.items() if keys != self.groups[question][:1]}
        return wrong, corpus.n_pairs


def _tables_answering(corpus: Corpus, planned: Planned) -> tuple[str, ...]:
    """The keys of the tables that answer a question, also of those that keep its numbers as texts."""
    other = twin(planned.query)
    return tuple(dict.fromkeys([*corpus.answering(planned.query), *(corpus.answering(other) if other else ())]))


def rows_answering(corpus: Corpus, planned: Planned) -> dict[str, set[int]]:
    """The rows that answer a question by their table's key, also those of tables that keep its numbers as texts."""
    other = twin(planned.query)
    found = corpus.rows(planned.query)
    for key, rows in (corpus.rows(other) if other else {}).items():
        found.setdefault(key, set()).update(rows)
    return found


# --- rows that answer other questions ----------------------------------------------------------------------------


def settle(
    planned: Sequence[Planned], sources: Sequence[SourceTable]
) -> tuple[list[Planned], dict[str, frozenset[int]], int]:
    """Questions whose answers lie apart, and for each the rows of its source that its tables must not hold.

    Another table may have a question's columns, too, such as a copy of its source or last year's. Rows that answer a
    question are kept out of the tables of all others; where the answer to one would be the answer to another, the later
    one is dropped.

    Returns:
        The questions that are left, the forbidden rows by question, and how many questions were dropped.
    """
    with Corpus() as corpus:
        for source in sources:
            corpus.add(source.place, source.frame)
        found = {p.id: rows_answering(corpus, p) for p in planned}
    kept: list[Planned] = []
    for p in planned:
        own = set(p.answer_rows)
        clash = any(
            own & found[k.id].get(p.source.place, set()) or set(k.answer_rows) & found[p.id].get(k.source.place, set())
            for k in kept
        )
        if not clash:
            kept.append(p)
    taken: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for p in kept:
        for place, rows in found[p.id].items():
            for row in rows:
                taken[place][row].add(p.id)
    forbidden = {p.id: frozenset(row for row, ids in taken[p.source.place].items() if ids != {p.id}) for p in kept}
    # Its own answers to the question belong into the target alone, which holds those of `answer_rows`.
    return kept, forbidden, len(planned) - len(kept)


# --- names -------------------------------------------------------------------------------------------------------


def assemble(
    planned: Sequence[Planned], groups: Sequence[Group], sources: Sequence[SourceTable], seed: int
) -> Assembled:
    """Questions and groups under keys ``db_id::table_T3``; the numbers within a group tell nothing of the target."""
    names = _Names()
    numbers: Counter[tuple[str, str]] = Counter()
    by_place = {source.place: source for source in sources}
    keys: dict[str, tuple[str, ...]] = {}
    tables: dict[str, GroupTable] = {}
    for group in groups:
        if not group.tables:
            continue
        db_id, table = names.of(by_place[group.tables[0].source])
        order = [numbers[db_id, table] + at for at in range(len(group.tables))]
        numbers[db_id, table] += len(order)
        random.Random(f"{seed}:numbers:{group.question}").shuffle(order)
        keys[group.question] = tuple(f"{db_id}::{table}_T{number}" for number in order)
        tables |= dict(zip(keys[group.question], group.tables, strict=True))
    left = tuple(p for p in planned if p.id in keys)
    return Assembled(left, keys, dict(sorted(tables.items(), key=lambda item: _natural(item[0]))), by_place)


def assemble_natural(
    groups: Mapping[str, tuple[Planned, Sequence[SourceTable]]], tables: Mapping[str, GroupTable]
) -> Assembled:
    """Questions and groups of source tables, under keys ``db_id::table``."""
    names = _Names()
    sources = {s.place: s for _, members in groups.values() for s in members}
    key_of = {place: "::".join(names.of(source)) for place, source in sorted(sources.items())}
    keys = {
        question: tuple(
            key_of[s.place] for s in sorted(members, key=lambda s: (s.place != planned.source.place, s.place))
        )
        for question, (planned, members) in groups.items()
    }
    planned = tuple(p for p, _ in groups.values())
    return Assembled(planned, keys, {key: tables[place] for place, key in key_of.items()}, sources)


class _Names:
    """Names of databases and tables that make file names, different ones for different tables."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, str]] = {}

    def of(self, source: SourceTable) -> tuple[str, str]:
        if source.place not in self._given:
            db_id, name = (_UNSAFE.sub("_", part)[:_LONGEST].strip(" .") or "_" for part in (source.db_id, source.name))
            taken = {(d.casefold(), t.casefold()) for d, t in self._given.values()}
            free, at = name, 2
            while (db_id.casefold(), free.casefold()) in taken:
                free, at = f"{name}-{at}", at + 1
            self._given[source.place] = db_id, free
        return self._given[source.place]


def _natural(key: str) -> tuple[str, int]:
    name, _, number = key.rpartition("_T")
    return name, int(number)


# --- what is written ---------------------------------------------------------------------------------------------


def built_tables(assembled: Assembled) -> list[BuiltTable]:
    """The tables as they are written."""
    out = []
    for key, table in assembled.tables.items():
        db_id, path = key.split("::", 1)
        out.append(
            BuiltTable(
                db_id=db_id,
                table_path=path,
                table_name=assembled.sources[table.source].name,
                table_format=table.format,
                csv=table.csv,
                canonical_csv=table.canonical_csv,
                canonical_columns=table.headers,
                source=table.source,
                strategy=table.strategy,
                prompt_notes=table.notes,
            )
        )
    return out


def built_questions(assembled: Assembled, texts: Mapping[str, str], seed: int) -> list[BuiltQuestion]:
    """The questions as they are written, each with its ``texts``."""
    out = []
    for p in assembled.planned:
        keys = assembled.groups[p.id]
        target = assembled.tables[keys[0]]
        answers = set(p.answer_rows)
        out.append(
            BuiltQuestion(
                id=p.id,
                text=texts[p.id],
                query=p.query,
                target_key=keys[0],
                group_keys=keys,
                template=template_of(p, seed),
                sentence=p.query.sentential(),
                answer=p.query.answer(target.frame(p.source)),
                answer_rows=[at for at, row in enumerate(target.rows) if row in answers],
            )
        )
    return out


def template_of(planned: Planned, seed: int) -> str:
    """The question in one of the fixed patterns of its type."""
    forms = len(planned.query.templates())
    return planned.query.template(random.Random(f"{seed}:template:{planned.id}").randrange(forms))
