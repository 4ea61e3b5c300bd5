"""Tables outside a question's group that a person should look at, by several signals (A.7 of the paper)."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tcr_tasks.builder.kinds import name_words
from tcr_tasks.builder.output import BuiltQuestion, BuiltTable
from tcr_tasks.serialize import read_text_table

Scores = npt.NDArray[np.float64]
Signal = Callable[[BuiltQuestion], Scores]


@dataclass(frozen=True)
class Candidate:
    """A table that may answer a question of another group.

    Attributes:
        question: its id.
        table: the table's key.
        ranks: by signal, the table's rank among the tables outside the group, from 1.
    """

    question: str
    table: str
    ranks: Mapping[str, int]


def candidates(
    tables: Sequence[BuiltTable], questions: Sequence[BuiltQuestion], top_k: int, encoder: str | None
) -> tuple[list[Candidate], list[str]]:
    """Per question the ``top_k`` tables outside its group by each signal, merged, and notes on signals not used.

    A table with a score of 0 or less is no candidate: it shares nothing with the question.

    Args:
        tables, questions: the benchmark.
        top_k: tables per signal.
        encoder: name or directory of a sentence-transformers model, if that signal is wanted.
    """
    if top_k < 1 or not tables:
        return [], []
    signals, notes = _signals(tables, questions, encoder)
    at = {table.key: number for number, table in enumerate(tables)}
    out: list[Candidate] = []
    for question in questions:
        outside = np.ones(len(tables), dtype=bool)
        outside[[at[key] for key in question.group_keys]] = False
        ranks: dict[int, dict[str, int]] = {}
        for name, signal in signals.items():
            scores = np.where(outside, signal(question), -np.inf)
            for rank, number in enumerate(np.argsort(-scores, kind="stable")[:top_k].tolist(), 1):
                if scores[number] > 0:
                    ranks.setdefault(number, {})[name] = rank
        out += [Candidate(question.id, tables[n].key, found) for n, found in sorted(ranks.items(), key=_best)]
    return out, notes


def _best(item: tuple[int, dict[str, int]]) -> tuple[int, int, int]:
    number, ranks = item
    return min(ranks.values()), -len(ranks), number


def _signals(
    tables: Sequence[BuiltTable], questions: Sequence[BuiltQuestion], encoder: str | None
) -> tuple[dict[str, Signal], list[str]]:
    signals: dict[str, Signal] = {"values": _by_values(tables), "schema": _by_schema(tables)}
    notes = []
    if importlib.util.find_spec("bm25s") is None:
        notes.append("without BM25: bm25s is not installed (pip install bm25s)")
    else:
        signals["bm25"] = _by_bm25(tables)
    if encoder is not None:
        signals["encoder"] = _by_encoder(tables, questions, encoder)
    return signals, notes


def _by_values(tables: Sequence[BuiltTable]) -> Signal:
    """The share of the conditions' values that stand in the table as cells."""
    cells = []
    for table in tables:
        frame = read_text_table(io.StringIO(table.canonical_csv))
        cells.append({cell.casefold() for cell in frame.to_numpy().ravel().tolist()})

    def scores(question: BuiltQuestion) -> Scores:
        values = {str(c.value).casefold() for c in question.query.conditions}
        return np.array([len(values & found) / len(values) for found in cells])

    return scores


def _by_schema(tables: Sequence[BuiltTable]) -> Signal:
    """The share of the words in the question's column names that the table's column names have, either kind."""
    words = [
        {word for name in (*t.canonical_columns, *t.canonical_columns.values()) for word in name_words(name)}
        for t in tables
    ]

    def scores(question: BuiltQuestion) -> Scores:
        wanted = {word for column in question.query.columns for word in name_words(column)}
        return np.array([len(wanted & found) / max(1, len(wanted)) for found in words])

    return scores


def _by_bm25(tables: Sequence[BuiltTable]) -> Signal:
    import bm25s  # type: ignore[import-untyped, unused-ignore]

    index = bm25s.BM25()
    index.index(bm25s.tokenize([t.text() for t in tables], show_progress=False), show_progress=False)

    def scores(question: BuiltQuestion) -> Scores:
        (tokens,) = bm25s.tokenize([question.text], return_ids=False, show_progress=False)
        known = [token for token in tokens if token in index.vocab_dict]
        if not known:
            return np.zeros(len(tables))
        return np.asarray(index.get_scores(known), dtype=np.float64)

    return scores


def _by_encoder(tables: Sequence[BuiltTable], questions: Sequence[BuiltQuestion], name: str) -> Signal:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(name)
    documents = model.encode([t.text() for t in tables], normalize_embeddings=True, show_progress_bar=False)
    asked = model.encode([q.text for q in questions], normalize_embeddings=True, show_progress_bar=False)
    similar = np.asarray(asked, dtype=np.float64) @ np.asarray(documents, dtype=np.float64).T
    rows = {q.id: similar[at] for at, q in enumerate(questions)}
    return lambda question: rows[question.id]
