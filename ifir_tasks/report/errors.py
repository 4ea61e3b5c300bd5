"""Error analysis (IFIR, section 5.3): instructions that are low in nDCG and in InstFol, and what may be the reason.

The paper sorted such instructions into three types by hand (Table 7). Here the signs of each type are counted and a
type is suggested where a sign is strong; a person is to confirm it. The rules are ours, not the paper's.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from datasets import Dataset
from rich.console import Console
from rich.progress import track

from evaluators.plugin.checks import shown
from evaluators.plugin.mteb_internals import document_texts
from evaluators.plugin.results import SAVED_BY, read_provenance
from evaluators.spreadsheet import escaped
from ifir_tasks.ids import parse_query_id
from ifir_tasks.report.signs import (
    LengthRule,
    RareTerms,
    common_wording,
    count_conditions,
    document_frequencies,
    rare_terms,
    terms,
)
from ifir_tasks.tasks import IFIRTask

NDCG, INSTFOL = "ndcg_at_20", "instfol_at_20"
LONG_FROM = 1024  # tokens, beyond which the paper calls an instruction long
LONG = "long instruction"
SPECIALISED = "dense with specialised knowledge"
CUSTOMISED = "highly customised instruction"
_BATCH = 2000


@dataclass(frozen=True)
class Thresholds:
    """What counts as low, and as a strong sign.

    Attributes:
        low_quantile: an instruction is low in a measure if its value is at most this quantile (0..1) of the task's.
        ndcg, instfol: absolute values to use instead.
        rare: a term is rare if it occurs in less than this share (0..1) of the passages.
        wording: a term in the texts of more than this share of the base queries is common wording, and never rare.
        strong_quantile: rare terms or conditions are a strong sign if the task's instructions have this quantile of
            them or more.
        least_rare_share, least_conditions: and if they are no fewer than this.
    """

    low_quantile: float = 0.25
    ndcg: float | None = None
    instfol: float | None = None
    rare: float = 0.001
    wording: float = 0.1
    strong_quantile: float = 0.75
    least_rare_share: float = 0.05
    least_conditions: int = 5

    def __post_init__(self) -> None:
        for name in ("low_quantile", "rare", "wording", "strong_quantile"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        for name in ("ndcg", "instfol"):
            if getattr(self, name) is not None and not math.isfinite(getattr(self, name)):
                raise ValueError(f"the {name} that counts as low must be a finite number, got {getattr(self, name)}")


@dataclass(frozen=True)
class LowInstruction:
    """One instruction that is low in both measures. The fields are the columns of the table, in order."""

    query_id: str
    level: int
    ndcg_at_20: float
    instfol_at_20: float
    length: int
    length_unit: str
    over_model_limit: bool | None
    over_1024: bool
    rare_term_share: float
    n_conditions: int
    suggested_type: str
    confirmed_type: str
    rare_terms: str
    query: str
    instruction: str


@dataclass(frozen=True)
class ErrorAnalysis:
    """The low instructions, worst first, and where the lines were drawn.

    Attributes:
        low: instructions low in both measures.
        n_scored: instructions that have both values; only these are looked at.
        n_unscored: instructions that lack one: no relevant passage, or no judge's score.
        ndcg_at_most, instfol_at_most: what counts as low.
        n_passages: size of the corpus in which rare terms were counted.
    """

    low: tuple[LowInstruction, ...]
    n_scored: int
    n_unscored: int
    ndcg_at_most: float
    instfol_at_most: float
    n_passages: int


def analyse(
    task: IFIRTask,
    rows: Sequence[Mapping[str, Any]],
    length: LengthRule = LengthRule(),  # noqa: B008
    thresholds: Thresholds | None = None,
) -> ErrorAnalysis:
    """The instructions of a task that a run handles worst in both measures, with the signs of Table 7's types.

    Args:
        task: the task, with its data loaded.
        rows: the run's table per query (:func:`read_rows`).
        length: how to measure texts.
        thresholds: what is low and what is strong.

    Raises:
        ValueError: if no instruction has both values.
    """
    limits = thresholds or Thresholds()
    scored = [row for row in rows if row[NDCG] is not None and row[INSTFOL] is not None]
    if not scored:
        raise ValueError(f"{task.metadata.name}: no instruction has both {NDCG} and {INSTFOL}")
    ndcg, instfol = (
        _at_most([row[name] for row in scored], limits.low_quantile, given)
        for name, given in ((NDCG, limits.ndcg), (INSTFOL, limits.instfol))
    )
    low = [row for row in scored if row[NDCG] <= ndcg and row[INSTFOL] <= instfol]
    signs = _Signs(task, [row["query-id"] for row in scored], length, limits)
    found = [signs.of(row) for row in sorted(low, key=lambda row: (row[NDCG], row[INSTFOL], row["query-id"]))]
    return ErrorAnalysis(tuple(found), len(scored), len(rows) - len(scored), ndcg, instfol, signs.n_passages)


def can_tell_rare_terms(n_passages: int, limits: Thresholds) -> bool:
    """Whether a corpus is large enough to tell terms that are rare from ordinary ones that just do not occur in it."""
    return limits.rare * n_passages > 1


def _at_most(values: Sequence[float], quantile: float, given: float | None) -> float:
    """The highest value that counts as low; where all values are equal none is low."""
    if given is not None:
        return given
    return float(np.quantile(values, quantile)) if min(values) < max(values) else float("-inf")


class _Signs:
    """The signs of every scored instruction of a task, so that one can be compared with the others."""

    def __init__(self, task: IFIRTask, queries: Sequence[str], length: LengthRule, limits: Thresholds) -> None:
        assert task.data is not None
        self.limits = limits
        self.length = length
        self.texts: dict[str, str] = dict(zip(task.data.queries["id"], task.data.queries["text"], strict=True))
        by_base: dict[str, list[str]] = {}
        for query in queries:
            by_base.setdefault(parse_query_id(query).base, []).append(self.texts[query])
        wording = common_wording(by_base, limits.wording)
        wanted = {term for query in queries for term in terms(self.texts[query])} - wording
        self.n_passages = len(task.data.corpus)
        frequencies = document_frequencies(_passages(task.data.corpus), wanted)
        self.rare: dict[str, RareTerms] = {
            q: rare_terms(self.texts[q], frequencies, self.n_passages, limits.rare, wording) for q in queries
        }
        self.conditions = {q: count_conditions(self.instruction(q)) for q in queries}
        self.lengths = dict(zip(queries, length.lengths([self.texts[q] for q in queries]), strict=True))

    def instruction(self, query: str) -> str:
        """The query's text without the plain query, which it begins with."""
        return self.texts[query].removeprefix(self.texts[parse_query_id(query).plain]).strip()

    def of(self, row: Mapping[str, Any]) -> LowInstruction:
        query = row["query-id"]
        length, limit = self.lengths[query], self.length.limit
        return LowInstruction(
            query_id=query,
            level=parse_query_id(query).level or 0,
            ndcg_at_20=row[NDCG],
            instfol_at_20=row[INSTFOL],
            length=length,
            length_unit=self.length.unit,
            over_model_limit=None if limit is None else length > limit,
            over_1024=length > LONG_FROM,
            rare_term_share=self.rare[query].share,
            n_conditions=self.conditions[query],
            suggested_type=self._type(query),
            confirmed_type="",
            rare_terms=" ".join(self.rare[query].terms),
            query=self.texts[parse_query_id(query).plain],
            instruction=self.instruction(query),
        )

    def _type(self, query: str) -> str:
        """Long before all else; of two strong signs, the one in which more of the task's instructions stay below."""
        if self.lengths[query] > min(LONG_FROM, self.length.limit or LONG_FROM):
            return LONG
        shares = {q: rare.share for q, rare in self.rare.items()}
        conditions = {q: float(n) for q, n in self.conditions.items()}
        ranks = {CUSTOMISED: self._strength(conditions, query, self.limits.least_conditions)}
        if can_tell_rare_terms(self.n_passages, self.limits):
            ranks[SPECIALISED] = self._strength(shares, query, self.limits.least_rare_share)
        strong = {name: rank for name, rank in ranks.items() if rank is not None}
        return max(strong, key=lambda name: strong[name]) if strong else ""

    def _strength(self, values: Mapping[str, float], query: str, least: float) -> float | None:
        """The share (0..1) of instructions with a lower value, or ``None`` if the sign is not strong."""
        own, others = values[query], list(values.values())
        if own < max(least, float(np.quantile(others, self.limits.strong_quantile))):
            return None
        return sum(value < own for value in others) / len(others)


def _passages(corpus: Dataset) -> Iterable[str]:
    """The passages as a model reads them, a batch at a time, with a progress bar for long corpora."""
    starts = range(0, len(corpus), _BATCH)
    console = Console(stderr=True)
    for start in track(starts, "counting terms in passages", console=console, transient=True):
        yield from document_texts(corpus.select(range(start, min(start + _BATCH, len(corpus)))))


# ---- files -----------------------------------------------------------------------------------------------------


def read_rows(task: IFIRTask, predictions: Path) -> list[dict[str, Any]]:
    """The table per query of one run, at or below a prediction folder.

    Args:
        task: the task, with its data loaded.
        predictions: the table itself, or a folder that holds one such table.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if there are several, if it has no InstFol, or if it was made on other data.
    """
    path = _table(task, predictions)
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    lacking = [name for name in ("query-id", NDCG, INSTFOL) if rows and name not in rows[0]]
    if lacking:
        raise ValueError(
            f"{path} has no {' and no '.join(lacking)}; InstFol comes from a judge: `mteb-beyond judge --task "
            f"{task.metadata.name} --predictions {path.parent} --results DIR --judge MODEL --judge-base-url URL`"
        )
    made_on = read_provenance(path).get("revision")
    if made_on != task.metadata.revision:
        raise ValueError(f"{path} was made on the data revision {made_on!r}; the task has {task.metadata.revision!r}")
    assert task.data is not None
    strangers = [row["query-id"] for row in rows if row["query-id"] not in set(task.data.queries["id"])]
    if strangers:
        raise ValueError(f"{path}: queries that {task.metadata.name} does not have: {shown(strangers)}")
    return rows


def _table(task: IFIRTask, place: Path) -> Path:
    if place.is_file():
        return place
    name = task.per_query_file("").name
    found = sorted(place.rglob(name))
    if not found:
        raise FileNotFoundError(f"no {name} at or below {place}; {SAVED_BY}")
    if len(found) > 1:
        listed = "\n  ".join(str(path.parent) for path in found)
        raise ValueError(f"{place} holds several models' tables {name}; name one of\n  {listed}")
    return found[0]


def write_csv(low: Iterable[LowInstruction], path: Path) -> None:
    """Write the table for a person to complete ``confirmed_type``; what is not known is an empty cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, [field.name for field in fields(LowInstruction)])
        writer.writeheader()
        for entry in low:
            writer.writerow({name: _cell(value) for name, value in asdict(entry).items()})


def _cell(value: Any) -> Any:
    return escaped(value) if isinstance(value, str) else "" if value is None else value


def type_counts(low: Iterable[LowInstruction]) -> dict[str, int]:
    """How many instructions each type is suggested for; ``""`` for none."""
    counts = Counter(entry.suggested_type for entry in low)
    return {name: counts[name] for name in (LONG, SPECIALISED, CUSTOMISED, "")}
