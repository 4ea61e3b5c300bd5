"""The rankings of one model as the drill-down to single queries shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from evaluators.metrics.ranking import ranks_of, top
from evaluators.plugin.predictions import read_predictions
from hub_cards.report.collect import Entry
from hub_cards.report.items import Item
from hub_cards.saved import Saved, made_by
from hub_cards.values import number, written

DEPTH = 10
MOST_TRACED = 12
Run = Mapping[str, Mapping[str, float]]
Json = dict[str, Any]


class _Outcome(NamedTuple):
    """A score per query: its key in the per-query table, its name, and whether rows are of topics or of queries."""

    key: str
    label: str


_PER_CONDITION = (
    _Outcome("ndcg_at_20", "nDCG@20"),
    _Outcome("query_only_ndcg_at_20", "of the plain ranking"),
    _Outcome("instfol_at_20", "InstFol@20"),
)
_PER_ITEM = {
    "FollowIR": (_Outcome("p-MRR", "p-MRR"), _Outcome("followir_score", "retrieval score")),
    "TCR-Bench": (_Outcome("target_rank", "rank of the target"),),
}


def own_run(entry: Entry, file: Saved) -> Run:
    """A model's rankings.

    Raises:
        ValueError: if the file cannot be read, or names another model.
    """
    found = read_predictions(file.path, entry.place.subset, entry.place.split)
    assert entry.result is not None
    if not made_by(entry.result, found.model):
        name, revision = found.model["model_name"], found.model["revision"]
        raise ValueError(f"{file.path} holds those of another model, {name} at revision {revision}")
    return found.run


def shown_of(file: Saved, items: Sequence[Item], run: Run, rows: Mapping[str, Json], family: str) -> dict[str, Json]:
    """A model's rankings of the items that it ranked, by id.

    Raises:
        ValueError: if the table of scores per query is of other rankings. The rank of TCR-Bench's target tells; what
            the other tables hold would have to be computed again.
    """
    out = {}
    for item in items:
        if not all(c.query in run for c in item.conditions):
            continue
        out[item.id] = _ranking(item, run, rows, family)
        told = number(rows.get(item.id, {}).get("target_rank"))
        if family == "TCR-Bench" and item.traced and told is not None:
            (rank,) = ranks_of(run[item.id], item.traced[:1], item.id)
            if rank != told:
                raise ValueError(
                    f"{file.path} does not fit the table of scores per query beside it: the target of {item.id} "
                    f"is at rank {rank} here and at {told:.0f} there"
                )
    return out


def _ranking(item: Item, run: Run, rows: Mapping[str, Json], family: str) -> Json:
    """A model's rankings of an item, documents by id: ``c`` per condition, ``x`` the traced documents."""
    base = run[item.conditions[0].query]
    conditions = []
    for number_, condition in enumerate(item.conditions):
        best = top(run[condition.query], DEPTH, condition.query)
        shown: Json = {"t": best}
        if number_:
            shown["r"] = _ranks(base, best, item.conditions[0].query)
        if family == "IFIR" and number_:
            shown["s"] = _told(rows.get(condition.query), _PER_CONDITION)
        conditions.append(shown)
    out: Json = {"c": conditions, "s": _told(rows.get(item.id), _PER_ITEM.get(family, ()))}
    if item.traced:
        ranks = [_ranks(run[c.query], item.traced, c.query) for c in item.conditions]
        listed = sorted(zip(item.traced, *ranks, strict=True), key=lambda row: (row[1] is None, row[1] or 0))
        out["x"] = [list(row) for row in listed[:MOST_TRACED]]
        out["n"] = len(listed)
    return out


def _ranks(scores: Mapping[str, float], documents: Sequence[str], query: str) -> list[int | None]:
    """The rank of each document; ``None`` for one that is not ranked."""
    ranks = ranks_of(scores, documents, query)
    return [rank if doc in scores else None for doc, rank in zip(documents, ranks, strict=True)]


def _told(row: Json | None, outcomes: Iterable[_Outcome]) -> list[list[str]]:
    if row is None:
        return []
    values = [(o, number(row.get(o.key))) for o in outcomes]
    return [[o.label, written(v, "count" if o.key == "target_rank" else "score")] for o, v in values if v is not None]


def main_of(item: Item, rows: Mapping[str, Json], family: str) -> float | None:
    """How well a model did on an item, higher is better: what the page sorts by."""
    if family == "IFIR":
        values = [number((rows.get(c.query) or {}).get("ndcg_at_20")) for c in item.conditions[1:]]
        known = [v for v in values if v is not None]
        return fmean(known) if known else None
    row = rows.get(item.id, {})
    if family == "FollowIR":
        return number(row.get("p-MRR"))
    rank = number(row.get("target_rank"))
    return None if rank is None else 1 / rank
