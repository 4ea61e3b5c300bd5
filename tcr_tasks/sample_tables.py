"""The tables of one question: a target that answers it and siblings that do not, after section A.3 of the paper."""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tcr_tasks.queries import Condition, Query
from tcr_tasks.sample_questions import Question
from tcr_tasks.sample_sources import SOURCES, Column, Row
from tcr_tasks.sample_surface import NUMBER_KINDS, TEN_TIMES, forms
from tcr_tasks.serialize import read_table, serialize

TABLE_FORMATS = ("csv", "html", "markdown")
STRATEGIES = ("column_deletion", "row_deletion", "resampling")

_MAX_ANSWER_ROWS = 6
# Estimated tokens of a table; an encoder of 256 tokens sees about its first third.
_TOKENS = (640, 940)
# The share of the source that one table may hold at most, so that its siblings can have other rows.
_SHARE = 0.65
_MAX_ROWS = 120
_TRIES = 12
# Near misses at the top of a table; a row in HTML takes three times the tokens.
_NEAR_ROWS = {"csv": 4, "html": 2, "markdown": 4}


@dataclass(frozen=True)
class Look:
    """How a table is printed: the format, and per canonical column a header and a way to show a value."""

    fmt: str
    columns: dict[str, tuple[str, Callable[[str], str]]]


@dataclass(frozen=True)
class Table:
    """A table of the sample: rows of canonical text in order, and how they are printed."""

    strategy: str
    look: Look
    rows: list[Row]

    @property
    def csv(self) -> str:
        """The printed table."""
        header = [header for header, _ in self.look.columns.values()]
        return _csv(header, [[show(row[c]) for c, (_, show) in self.look.columns.items()] for row in self.rows])

    @property
    def canonical_csv(self) -> str:
        """The same cells as they are in the source."""
        return _csv(list(self.look.columns), [[row[c] for c in self.look.columns] for row in self.rows])

    @property
    def prompt_notes(self) -> list[str]:
        """What a prompt that shows the table must say of shifted numbers."""
        shifted = [header for header, _ in self.look.columns.values() if header.endswith(f"({TEN_TIMES})")]
        return [
            f"The values of column {header!r} were multiplied by 10; divide by 10 to get the true value."
            for header in shifted
        ]

    def text(self, table_name: str) -> str:
        """What is encoded."""
        return serialize(table_name, read_table(io.StringIO(self.csv)), self.look.fmt)


def group(question: Question, rows: list[Row], rng: random.Random) -> list[Table]:
    """The target and its siblings, the target first."""
    pool = _distinct([{c: row[c] for c in question.columns} for row in rows])
    matching = [row for row in pool if matches(question.query, row, question)]
    if not 1 <= len(matching) <= _MAX_ANSWER_ROWS:
        raise ValueError(f"{question.id}: {len(matching)} rows answer it, not 1 to {_MAX_ANSWER_ROWS}")
    pool = [row for row in pool if row not in matching]

    look, size = _look_and_size(question, question.columns, pool, rng)
    chosen = rng.sample(pool, size - len(matching))
    target = Table("target", look, _ordered(chosen, matching, question, look, rng))
    tables = [target]
    needed = list(question.query.columns)
    rng.shuffle(needed)
    for strategy in _strategies(len(needed), rng):
        if strategy == "column_deletion":
            # The answer's rows stay: without the column nobody can tell that they are the ones.
            gone = needed.pop()
            look, size = _look_and_size(question, [c for c in question.columns if c != gone], pool, rng)
            # Printed in another way the same length takes more rows than the target's, or fewer.
            kept = rng.sample(chosen, min(len(chosen), size - len(matching)))
            kept += rng.sample([row for row in pool if row not in chosen], size - len(matching) - len(kept))
            tables.append(Table(strategy, look, _ordered(kept, matching, question, look, rng)))
            continue
        look, size = _look_and_size(question, question.columns, pool, rng)
        if strategy == "row_deletion":
            kept = _after_deletion(target.rows, matching, size, rng)
            rest = [row for row in pool if row not in chosen]
            kept += rng.sample(rest, max(0, min(len(rest), size - len(kept))))
        else:
            kept = rng.sample(pool, size)
        tables.append(Table(strategy, look, _ordered(kept, [], question, look, rng)))
    return tables


def _strategies(needed: int, rng: random.Random) -> list[str]:
    """Two to seven strategies, all three as soon as there is room; one column deletion per needed column at most."""
    count = rng.choice((2, 3, 3, 4, 4, 5, 6, 7))
    out = list(STRATEGIES)
    rng.shuffle(out)
    while len(out) < count:
        out.append(rng.choice(STRATEGIES if out.count("column_deletion") < needed else STRATEGIES[1:]))
    return out[:count]


def _after_deletion(target: list[Row], matching: list[Row], size: int, rng: random.Random) -> list[Row]:
    """The target's rows without 30 to 70 % of them, the matching ones among them; at most ``size`` if that allows."""
    fewest, most = math.ceil(0.3 * len(target)), math.floor(0.7 * len(target))
    deleted = max(rng.randint(fewest, most), len(matching))
    if len(target) - deleted > size:
        deleted = most
    others = [row for row in target if row not in matching]
    return rng.sample(others, len(target) - deleted)


def _look_and_size(question: Question, columns: Sequence[str], pool: list[Row], rng: random.Random) -> tuple[Look, int]:
    """A look, and how many rows make a table of the wanted length with it.

    A source with few rows fills a table only in a wordy look, so looks are drawn until one comes near.
    """
    few = pool[:20]
    most = min(_MAX_ROWS, int(_SHARE * len(pool)))
    wanted = rng.uniform(*_TOKENS)
    best: tuple[Look, int] | None = None
    for _ in range(_TRIES):
        look = _look(question, columns, rng)
        header = _tokens(Table("", look, few[:1]).text("t"))
        per_row = (_tokens(Table("", look, few).text("t")) - header) / (len(few) - 1)
        size = round((wanted - header) / per_row)
        if best is None or size < best[1]:
            best = look, size
        if size <= most:
            return look, size
    assert best is not None
    return best[0], most


def _tokens(text: str) -> int:
    """About how many word pieces a BERT tokenizer makes: signs, up to three digits, up to six letters."""
    return len(re.findall(r"\d{1,3}|[^\W\d_]{1,6}|[^\w\s]|_", text))


def _ordered(rows: list[Row], matching: list[Row], question: Question, look: Look, rng: random.Random) -> list[Row]:
    """All rows in random order, but matching rows and a few that nearly match first.

    An encoder of 256 tokens sees a few rows only. Near misses stand there in every table, so that words alone do not
    tell target and sibling apart.
    """
    near = [row for row in rows if _nearly(question, row)]
    near = rng.sample(near, min(len(near), _NEAR_ROWS[look.fmt]))
    head = matching + near
    rest = [row for row in rows if row not in near]
    rng.shuffle(head)
    rng.shuffle(rest)
    return head + rest


def _distinct(rows: list[Row]) -> list[Row]:
    """Complete rows, each once."""
    return list({tuple(row.items()): row for row in rows if all(row.values())}.values())


# --- conditions on canonical text --------------------------------------------------------------------------------


def _column(question: Question, name: str) -> Column:
    return SOURCES[question.source].columns[name]


def _value(text: str, column: Column) -> str | int | float:
    if column.kind not in NUMBER_KINDS:
        return text
    return float(text) if "." in text else int(text)


def _holds(condition: Condition, row: Row, question: Question) -> bool:
    text = row[condition.column]
    return text != "" and condition.holds(_value(text, _column(question, condition.column)))


def matches(query: Query, row: Row, question: Question) -> bool:
    return row[query.target] != "" and all(_holds(c, row, question) for c in query.conditions)


def _nearly(question: Question, row: Row) -> bool:
    """Whether a row meets a condition, or lies in the month that a condition names."""
    for condition in question.query.conditions:
        if _holds(condition, row, question):
            return True
        if _column(question, condition.column).kind in ("date", "hour"):
            return row[condition.column][:7] == str(condition.value)[:7]
    return False


# --- rewording ---------------------------------------------------------------------------------------------------


def _look(question: Question, columns: Sequence[str], rng: random.Random) -> Look:
    """A format, headers and forms drawn at random."""
    style = rng.choice(("snake", "title", "camel", "plain"))
    drawn: dict[str, tuple[str, Callable[[str], str]]] = {}
    for name in columns:
        column = _column(question, name)
        form = rng.choice(forms(column.kind, column.unit))
        header = _styled(rng.choice(column.headers), style)
        if column.choices:
            pick = rng.randrange(max(len(words) for words in column.choices.values()))
            show: Callable[[str], str] = partial(_chosen, column.choices, pick)
        else:
            show = form.show
        drawn[name] = (f"{header} ({form.note})" if form.note else header, show)
    return Look(rng.choice(TABLE_FORMATS), drawn)


def _chosen(choices: Mapping[str, tuple[str, ...]], pick: int, text: str) -> str:
    words = choices.get(text, (text,))
    return words[pick % len(words)]


def _styled(header: str, style: str) -> str:
    words = header.split()
    if style == "snake":
        return "_".join(words)
    if style == "title":
        return " ".join(word[0].upper() + word[1:] for word in words)
    if style == "camel":
        return words[0] + "".join(word[0].upper() + word[1:] for word in words[1:])
    return header


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()
