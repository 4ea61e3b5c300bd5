"""Which column is which: a query's columns in a table that prints other headers, and columns across siblings."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from itertools import combinations

import pandas as pd

# With more ways to place the missing columns than this, only headers are compared.
_MOST_ALIGNMENTS = 5_000


def cell_texts(cells: pd.Series) -> list[str]:
    """The cells of a column as CSV prints them; a missing one is empty."""
    return ["" if missing else str(cell) for cell, missing in zip(cells.tolist(), cells.isna(), strict=True)]


def same_value(value: object, cell: str) -> bool:
    """Whether a stated value is a cell: as a number if both are, otherwise as text."""
    if isinstance(value, bool):
        return str(value).casefold() == cell.casefold()
    try:
        return float(str(value)) == float(cell)
    except ValueError:
        return str(value).strip() == cell.strip()


def find_column(
    name: str, frame: pd.DataFrame, rows: Sequence[int], values: Collection[object], taken: Collection[str]
) -> str | None:
    """The header of the column that a query calls ``name``; ``None`` if that cannot be told.

    The header itself, else one that differs in case, blanks and underscores alone, else the only column whose cell in
    every one of ``rows`` is one of ``values``.

    Args:
        rows: rows that answer the query.
        values: what the column must hold there.
        taken: headers that are other columns of the query.
    """
    headers = [header for header in frame.columns if header not in taken]
    if name in headers:
        return name
    alike = [header for header in headers if _plain(header) == _plain(name)]
    if len(alike) == 1:
        return str(alike[0])
    holding = []
    for header in headers:
        cells = cell_texts(frame[header].iloc[list(rows)])
        if cells and all(any(same_value(value, cell) for value in values) for cell in cells):
            holding.append(str(header))
    return holding[0] if len(holding) == 1 else None


def align(target: pd.DataFrame, other: pd.DataFrame) -> dict[str, str]:
    """Header in ``target`` -> header of the same column in ``other``, a table from the same source, where it has one.

    Columns with the same header (but for case, blanks and underscores) are the same. The rest follows from the order,
    which siblings keep: of all ways to leave columns out, the one in which headers share most words and columns share
    most values. What several equally good ways disagree on stays out, as does everything that the order contradicts.
    """
    names, others = [str(c) for c in target.columns], [str(c) for c in other.columns]
    plain = {_plain(header): at for at, header in enumerate(others)}
    known = {at: plain[_plain(name)] for at, name in enumerate(names) if _plain(name) in plain}
    by_name = {names[a]: others[b] for a, b in known.items()}
    if len(others) > len(names) or math.comb(len(names), len(others)) > _MOST_ALIGNMENTS:
        return by_name
    scores = _likeness(target, other)
    best: list[tuple[int, ...]] = []
    best_score = -1.0
    for kept in combinations(range(len(names)), len(others)):
        if any(a not in kept or kept.index(a) != b for a, b in known.items()):
            continue
        score = sum(scores[a][b] for b, a in enumerate(kept))
        if score > best_score + 1e-9:
            best, best_score = [kept], score
        elif score > best_score - 1e-9:
            best.append(kept)
    if not best:
        return by_name
    agreed = set(enumerate(best[0])).intersection(*(enumerate(kept) for kept in best))
    return {names[a]: others[b] for b, a in sorted(agreed, key=lambda pair: pair[1])}


def _likeness(target: pd.DataFrame, other: pd.DataFrame) -> list[list[float]]:
    """Per pair of columns: share of common words in the headers + share of ``other``'s values that ``target`` has."""
    values, others = _distinct(target), _distinct(other)
    words, other_words = ([_words(str(c)) for c in frame.columns] for frame in (target, other))
    return [
        [
            len(w & v) / max(1, len(w | v)) + len(x & y) / max(1, len(y))
            for v, y in zip(other_words, others, strict=True)
        ]
        for w, x in zip(words, values, strict=True)
    ]


def _distinct(frame: pd.DataFrame) -> list[set[str]]:
    return [set(cell_texts(frame.iloc[:, at])) for at in range(len(frame.columns))]


def _words(header: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"[^\W\d_][^\W\d_A-Z]*|\d+", header)}


def _plain(header: str) -> str:
    return re.sub(r"[\s_]+", "", str(header)).casefold()
