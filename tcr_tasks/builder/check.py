"""The last check: what was written, read back, and every question asked of every table once more."""

from __future__ import annotations

import io
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tcr_tasks.builder.output import BuiltQuestion, BuiltTable
from tcr_tasks.builder.sources import SourceTable
from tcr_tasks.builder.verify import answering

_PAIRS = 300


def check_written(
    tables: Sequence[BuiltTable], questions: Sequence[BuiltQuestion], sources: Mapping[str, SourceTable], seed: int
) -> dict[str, int]:
    """Ask the canonical CSV of every written table, in DuckDB, and a sample of them by :meth:`Query.answer`.

    Returns:
        How many pairs of question and table were executed after writing, and how many of them were answered once more
        without an SQL engine, every target among them.

    Raises:
        RuntimeError: if a question is answered by another table than its target alone, or otherwise than was written.
    """
    frames = {t.key: read_canonical(t.canonical_csv, sources[t.source]) for t in tables}
    found, executed = answering(frames.items(), {q.id: q.query for q in questions})
    faults = [f"{q.id} is answered by {list(found[q.id])}" for q in questions if found[q.id] != (q.target_key,)]
    faults += [
        f"{q.id}: its target answers {got[:3]}, not {list(q.answer)[:3]}"
        for q in questions
        if (got := q.query.answer(frames[q.target_key])) != list(q.answer)
    ]
    others = [
        (q, key)
        for q in questions
        for key, frame in frames.items()
        if key != q.target_key and set(q.query.columns) <= set(frame.columns)
    ]
    sample = random.Random(f"{seed}:check").sample(others, min(_PAIRS, len(others)))
    faults += [f"{q.id} is answered by {key!r}, too" for q, key in sample if q.query.answer(frames[key])]
    if faults:
        raise RuntimeError(f"the benchmark is wrong, and was not written: {'; '.join(faults[:10])}")
    return {
        "n_pairs_executed_after_writing": executed,
        "n_pairs_answered_without_sql": len(questions) + len(sample),
    }


def read_canonical(text: str, source: SourceTable) -> pd.DataFrame:
    """A canonical CSV with the types of its source's columns."""
    cells = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    return pd.DataFrame({name: _typed(cells[name].tolist(), source.frame[name].dtype) for name in cells.columns})


def _typed(cells: list[str], dtype: Any) -> pd.Series[Any]:
    values: list[Any] = [None if cell == "" else cell for cell in cells]
    if dtype == "Int64":
        return pd.Series(pd.array([None if v is None else int(v) for v in values], dtype="Int64"))
    if dtype == "float64":
        return pd.Series([None if v is None else float(v) for v in values], dtype="float64")
    return pd.Series(values, dtype="str")
