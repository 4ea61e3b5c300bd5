"""Files in which people score (instruction, passage) pairs: written for a spreadsheet, and read back."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from evaluators.judge.annotation_draw import Item
from evaluators.judge.judges import Pair
from evaluators.judge.scale import Scale
from evaluators.spreadsheet import escaped, unescaped

COLUMNS = (
    "id",
    "task",
    "level",
    "instruction",
    "passage",
    "scale",
    "score",
    "comment",
    "rubric",
    "query",
    "document",
    "candidates",
)
LONGEST_CELL = 32_767  # UTF-16 units; Excel cuts longer cells off
_ID = re.compile(r"(\d+)of(\d+)-[0-9a-f]{8}")
_SCALE = re.compile(r"(-?\d+) to (-?\d+)")
_SCORE = re.compile(r"(-?\d{1,9})(?:\.0+)?")
# Enough to see what is wrong with a file without burying it.
_SHOWN = 20


@dataclass(frozen=True)
class Annotation:
    """A row of a file that people filled in.

    Attributes:
        id: number of the row in its draw, size of the draw, and a check sum of what is scored.
        number, drawn: the first two of these.
        item: what was scored; its ids are as the spreadsheet left them.
        score: ``None`` where the cell is empty.
        comment: the annotator's.
    """

    id: str
    number: int
    drawn: int
    item: Item
    score: int | None
    comment: str


def write_annotations(items: Sequence[Item], path: Path) -> None:
    """Write a CSV file for annotators: UTF-8 with a byte order mark, one row a pair, ``score`` and ``comment`` empty.

    A cell that a spreadsheet could take for a formula (apostrophes before it ignored) gets an apostrophe in front;
    reading takes it off. The scale is written in words, since ``1-5`` becomes a date. Nothing in the file tells whether
    a passage is relevant or what a judge says.

    Raises:
        FileExistsError: if the file exists: it may hold people's scores.
        ValueError: naming a pair that no spreadsheet can hold.
    """
    rows = [_row(number, len(items), item) for number, item in enumerate(items, 1)]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([escaped(row[name]) for name in COLUMNS] for row in rows)
    try:
        with path.open("xb") as file:
            file.write(text.getvalue().encode("utf-8-sig"))
    except FileExistsError:
        raise FileExistsError(f"{path} exists and may hold people's scores; name another file") from None


def _row(number: int, drawn: int, item: Item) -> dict[str, str]:
    pair = item.pair
    row = {
        "id": f"{number:0{len(str(drawn))}d}of{drawn}-{_check_sum(item)}",
        "task": item.task,
        "level": str(pair.level),
        "instruction": pair.instruction,
        "passage": pair.passage,
        "scale": f"{item.scale[0]} to {item.scale[1]}",
        "score": "",
        "comment": "",
        "rubric": pair.rubric,
        "query": pair.query,
        "document": pair.document,
        "candidates": item.candidates,
    }
    for name, value in row.items():
        fault = _unwritable(value)
        if fault:
            raise ValueError(f"{item.task}, query {pair.query!r}, document {pair.document!r}: the {name} {fault}")
    return row


def _unwritable(value: str) -> str:
    if "\0" in value:
        return "holds a NUL character, which no spreadsheet keeps; mend the data"
    if any("\ud800" <= character <= "\udfff" for character in value):
        return "holds half of a surrogate pair, which is no text; mend the data"
    length = cell_length(value)
    if length > LONGEST_CELL:
        return (
            f"has {length} characters, and a spreadsheet's cell holds {LONGEST_CELL}; leave such texts out of the draw "
            f"with --longest {LONGEST_CELL}"
        )
    return ""


def cell_length(value: str) -> int:
    """The length of a text as a spreadsheet counts it, in UTF-16 units, with the apostrophe that it may get."""
    return len(escaped(value).encode("utf-16-le", "surrogatepass")) // 2


def _check_sum(item: Item) -> str:
    """Of everything that a score is about. Spreadsheets write line ends in their own way."""
    pair = item.pair
    parts = (pair.rubric, str(pair.level), *map(str, item.scale), pair.instruction, pair.passage)
    text = "\0".join(parts).replace("\r\n", "\n").replace("\r", "\n")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def read_annotations(path: Path) -> list[Annotation]:
    """Read a file that :func:`write_annotations` wrote and people filled in, in any order of rows and columns.

    Separated by commas, semicolons or tabs. Rows without any content and further columns are ignored.

    Raises:
        FileNotFoundError: if it does not exist.
        ValueError: listing the rows whose score is no whole number on the scale, whose texts were changed, or that
            occur twice; or if it is no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); save it as 'CSV UTF-8'") from error
    out: list[Annotation] = []
    problems: list[str] = []
    for number, row in _rows(path, text):
        try:
            out.append(_annotation(row))
        except ValueError as error:
            problems.append(f"row {number} ({row['id']}): {error}")
    problems += [f"row {i} occurs {n} times" for i, n in Counter(a.id for a in out).items() if n > 1]
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        listed = "\n".join(f"  - {p}" for p in [*problems[:_SHOWN], *more])
        raise ValueError(f"{path}: {len(problems)} problem(s):\n{listed}")
    if not out:
        raise ValueError(f"{path} holds no pair")
    return out


def _rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and cells of every row with any content, as a spreadsheet numbers them: the first row is the header."""
    try:
        for delimiter in ",;\t":
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
            header = next(rows, [])
            if set(COLUMNS) <= set(header):
                break
        else:
            raise ValueError(f"{path}: expected a first row with the columns {', '.join(COLUMNS)}")
        for number, cells in enumerate(rows, 2):
            row = dict(zip_longest(header, cells[: len(header)], fillvalue=""))
            if any(row[name] for name in COLUMNS):
                yield number, {name: unescaped(row[name]) for name in COLUMNS}
    except csv.Error as error:
        raise ValueError(f"{path} is no proper CSV file: {error}") from error


def _annotation(row: Mapping[str, str]) -> Annotation:
    found, scale = _ID.fullmatch(row["id"].strip()), _SCALE.fullmatch(row["scale"].strip())
    if found is None or scale is None or not row["level"].isdecimal():
        raise ValueError("its id, level or scale was changed; take them from the original file")
    pair = Pair(row["query"], row["document"], row["instruction"], row["passage"], row["rubric"], int(row["level"]))
    item = Item(row["task"], pair, (int(scale[1]), int(scale[2])), row["candidates"])
    if not row["id"].strip().endswith(_check_sum(item)):
        raise ValueError("its texts, level or scale were changed; take them from the original file")
    return Annotation(
        row["id"].strip(), int(found[1]), int(found[2]), item, _score(row["score"], item.scale), row["comment"]
    )


def _score(cell: str, scale: Scale) -> int | None:
    if not cell.strip():
        return None
    found = _SCORE.fullmatch(cell.strip())
    if found is None or not scale[0] <= int(found[1]) <= scale[1]:
        raise ValueError(f"the score {cell!r} is no whole number from {scale[0]} to {scale[1]}")
    return int(found[1])
