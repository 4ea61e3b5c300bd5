"""The sheet for a person: every question's wording, and the tables of other groups that may answer it, too (A.7)."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluators.files import write_text
from evaluators.plugin import sheets
from evaluators.plugin.checks import DatasetError
from evaluators.spreadsheet import escaped
from tcr_tasks.builder.output import BuiltQuestion, BuiltTable
from tcr_tasks.builder.paraphrase import unnamed_columns
from tcr_tasks.builder.signals import Candidate

WRITTEN = ("question", "row", "table", "signals", "text", "meaning", "answer")
FILLED = ("decision", "rewrite", "comment")
WORDING, TABLE = "wording", "table"
DECISIONS = {WORDING: ("keep", "drop", "rewrite"), TABLE: ("keep", "drop")}
_QUOTES = str.maketrans("“”„‘’", '"""\'\'')
_LINES = 4
_LONGEST = 600


@dataclass(frozen=True)
class Decisions:
    """What a person decided.

    Attributes:
        rewritten: new wording by question.
        rejected: questions whose wording is wrong.
        ambiguous: questions that a table of another group answers, too.
        kept: rows that were looked at and found right.
        open: rows without a decision.
        unknown: rows of questions or tables that are not there any more.
    """

    rewritten: Mapping[str, str] = field(default_factory=dict)
    rejected: frozenset[str] = frozenset()
    ambiguous: frozenset[str] = frozenset()
    kept: int = 0
    open: int = 0
    unknown: int = 0


def write_review(
    path: Path,
    questions: Sequence[BuiltQuestion],
    tables: Sequence[BuiltTable],
    found: Sequence[Candidate],
    said: Mapping[tuple[str, str, str, str], Mapping[str, str]],
) -> None:
    """Write the sheet, with what was said before about rows that are still the same.

    Args:
        path: of the CSV file; UTF-8 with a byte order mark, as spreadsheets like it.
        questions, tables, found: what is to be looked at.
        said: from :func:`read_sheet`.
    """
    excerpts = {table.key: _Excerpts(table) for table in tables}
    asked = meanings(questions, tables)
    of_question: dict[str, list[Candidate]] = {}
    for candidate in found:
        of_question.setdefault(candidate.question, []).append(candidate)
    rows = []
    for question in questions:
        meaning = asked[question.id]
        unnamed = unnamed_columns(question.text, question.query)
        hint = f"names no column {', '.join(unnamed)}" if unnamed else ""
        answer = "; ".join(map(str, question.answer))
        rows.append([question.id, WORDING, question.target_key, hint, question.text, meaning, answer])
        for candidate in of_question.get(question.id, []):
            told = ", ".join(f"{name} {rank}" for name, rank in candidate.ranks.items())
            rows.append(
                [question.id, TABLE, candidate.table, told, excerpts[candidate.table].of(question), meaning, ""]
            )
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([*WRITTEN, *FILLED])
    for row in rows:
        before = said.get((row[0], row[1], row[2], _folded(row[4])), {})
        writer.writerow([escaped(cell) for cell in (*row, *(before.get(column, "") for column in FILLED))])
    write_text(path, out.getvalue(), encoding="utf-8-sig")


def read_sheet(path: Path) -> list[dict[str, str]]:
    """The rows of a sheet as a person left them.

    Raises:
        FileNotFoundError: if there is none.
        DatasetError: if it is no such sheet.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no review file {path}")
    return sheets.read_sheet(path, (*WRITTEN, *FILLED))


def checked_sheet(path: Path) -> list[dict[str, str]]:
    """The rows of a sheet that can be followed.

    Raises:
        FileNotFoundError: if there is none.
        DatasetError: if it is no such sheet, or naming row and column of every fault.
    """
    rows = read_sheet(path)
    faults: list[str] = []
    seen: dict[tuple[str, ...], tuple[int, tuple[str, str]]] = {}
    for number, row in enumerate(rows, 2):
        if _is_blank(row):
            continue
        allowed = DECISIONS.get(row["row"])
        decision, text = _said(row)
        if allowed is None:
            faults.append(f"row {number}, column row: {row['row']!r} is neither {WORDING} nor {TABLE}")
        elif decision and decision not in allowed:
            faults.append(f"row {number}, column decision: {row['decision']!r} is none of {', '.join(allowed)}")
        elif decision == "rewrite" and not text:
            faults.append(f"row {number}, column rewrite: it is empty, and the decision is to rewrite")
        elif decision != "rewrite" and text:
            faults.append(f"row {number}, column decision: it must be rewrite, since there is a text in column rewrite")
        elif decision and (first := seen.setdefault(_about(row), (number, _said(row))))[1] != _said(row):
            faults.append(f"row {number}, column decision: row {first[0]} decides otherwise on the same {row['row']}")
    if faults:
        raise DatasetError(str(path), faults)
    return rows


def said_by(rows: Sequence[Mapping[str, str]]) -> dict[tuple[str, str, str, str], Mapping[str, str]]:
    """What was said, by question, kind of row, table and text: it holds for as long as these are the same."""
    return {(row["question"], row["row"], row["table"], _folded(row["text"])): row for row in rows}


def meanings(questions: Sequence[BuiltQuestion], tables: Sequence[BuiltTable]) -> dict[str, str]:
    """What every question asks for, in SQL, by its id: a sheet's rows on another question of that id are void."""
    names = {table.key: table.table_name for table in tables}
    return {question.id: question.query.sql(names[question.target_key]) for question in questions}


def decide(
    rows: Sequence[Mapping[str, str]], questions: Mapping[str, str], asked: Mapping[str, str], tables: Collection[str]
) -> Decisions:
    """What the rows of a sheet come to.

    Args:
        rows: from :func:`checked_sheet`.
        questions: the text of every question that there is now, by id. What was said about another text is void, and
            counted as unknown.
        asked: from :func:`meanings`.
        tables: the keys of all tables.
    """
    counts: Counter[str] = Counter()
    rewritten: dict[str, str] = {}
    rejected: set[str] = set()
    ambiguous: set[str] = set()
    for row in rows:
        decision, text = _said(row)
        if _is_blank(row):
            continue
        if not decision:
            counts["open"] += 1
        elif row["meaning"] != asked.get(row["question"]) or (
            _folded(row["text"]) != _folded(questions.get(row["question"], ""))
            if row["row"] == WORDING
            else row["table"] not in tables
        ):
            counts["unknown"] += 1
        elif decision == "rewrite":
            rewritten[row["question"]] = text
        elif decision == "drop":
            (rejected if row["row"] == WORDING else ambiguous).add(row["question"])
        else:
            counts["kept"] += 1
    return Decisions(
        rewritten, frozenset(rejected), frozenset(ambiguous), counts["kept"], counts["open"], counts["unknown"]
    )


def _is_blank(row: Mapping[str, str]) -> bool:
    """Whether it is one of the empty rows that spreadsheets add."""
    return not any(map(str.strip, row.values()))


def _about(row: Mapping[str, str]) -> tuple[str, ...]:
    """What a row is about."""
    return row["question"], row["row"], row["table"], row["meaning"], _folded(row["text"])


def _said(row: Mapping[str, str]) -> tuple[str, str]:
    return row["decision"].strip().lower(), " ".join(row["rewrite"].split())


def _folded(text: str) -> str:
    """The text with straight quotes and single blanks: spreadsheets change both."""
    return " ".join(text.translate(_QUOTES).split())


class _Excerpts:
    """Shows of a table the rows that share most with a question."""

    def __init__(self, table: BuiltTable) -> None:
        self._header, *self._rows = csv.reader(io.StringIO(table.csv))
        own = csv.reader(io.StringIO(table.canonical_csv))
        next(own)
        self._cells = [{cell.casefold() for cell in row} for row in own]

    def of(self, question: BuiltQuestion) -> str:
        """How many rows there are, the header, and some rows, as CSV."""
        values = {str(c.value).casefold() for c in question.query.conditions}
        best = sorted(range(len(self._rows)), key=lambda at: -len(values & self._cells[at]))[:_LINES]
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerows([self._header, *(self._rows[at] for at in sorted(best))])
        return f"{len(self._rows)} rows, such as\n{out.getvalue().rstrip()}"[:_LONGEST]
