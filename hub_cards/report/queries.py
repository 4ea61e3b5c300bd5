"""The drill-down: single queries with their rankings under each condition, and what moved between them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from tqdm import tqdm  # type: ignore[import-untyped]

from evaluators.metrics.ranking import ranks_of, top
from evaluators.plugin.predictions import read_predictions
from evaluators.plugin.results import read_provenance
from hub_cards.report.collect import Collected, Entry, Place, family_of
from hub_cards.report.embedding import script_json
from hub_cards.report.items import (
    RELEVANT,
    UNTIL_CHANGE,
    Condition,
    Item,
    Texts,
    has_items,
    items_of,
    load_texts,
)
from hub_cards.report.measures import number, written
from hub_cards.saved import Saved, saved_for

DEPTH = 10
MOST_TRACED = 12
# Of all drill-downs of a page together; each task gets an even share.
MOST_BYTES = 7_000_000
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


@dataclass(frozen=True)
class Sheet:
    """What the page shows of a place's single queries.

    Attributes:
        place: the task.
        content: plain values for the page.
        n_queries, n_shown: how many there are, and how many are in it.
    """

    place: Place
    content: Json
    n_queries: int
    n_shown: int


def sheets(
    collected: Collected, predictions: Sequence[Path], data: Sequence[Path], most_queries: int
) -> tuple[list[Sheet], list[str]]:
    """The drill-downs of all tasks with saved predictions, and notes on what could not be shown.

    Args:
        collected: the results.
        predictions: folders as ``mteb-beyond run --prediction-folder`` makes them.
        data: directories of data that results were computed on, beside the usual places.
        most_queries: at most so many queries of a task, drawn with a fixed seed.
    """
    notes: list[str] = []
    found: list[tuple[Place, dict[str, Saved]]] = []
    for place in collected.places:
        if not has_items(place):
            continue
        saved = dict(_saved(collected.at(place), place, predictions, notes))
        if saved:
            found.append((place, saved))
    budget = MOST_BYTES // max(len(found), 1)
    # Predictions of a large task take seconds to read; a bar on terminals only.
    with tqdm(total=sum(len(saved) for _, saved in found), desc="reading predictions", disable=None) as bar:
        made = [_sheet(collected, place, saved, data, most_queries, budget, bar) for place, saved in found]
    return made, notes


def _saved(
    entries: Mapping[str, Entry], place: Place, folders: Sequence[Path], notes: list[str]
) -> Iterable[tuple[str, Saved]]:
    """The predictions of each model that belong to its result."""
    for model, entry in entries.items():
        saved = None if entry.result is None else saved_for(entry.result, folders)
        if saved is None:
            continue
        made_with = read_provenance(saved.per_query)
        if not made_with:
            told = "no table of scores per query beside it tells on which data it was made"
            notes.append(f"{saved.path} is left out: {told}")
        elif made_with.get("revision") != place.revision or made_with.get("options") != entry.record.get("options"):
            notes.append(f"{saved.path} is left out: it was made on other data or with other options than the result")
        else:
            yield model, saved


def _sheet(
    collected: Collected,
    place: Place,
    saved: Mapping[str, Saved],
    data: Sequence[Path],
    most_queries: int,
    budget: int,
    bar: Any,
) -> Sheet:
    texts = load_texts(place, data)
    chosen: list[Item] = []
    n_queries = 0
    runs_of: dict[str, list[Json]] = {}
    keys: dict[str, list[float]] = {}
    for model, file in saved.items():
        run = read_predictions(file.path, place.subset, place.split).run
        if not n_queries:
            everything = items_of(place, texts, list(run))
            n_queries = len(everything)
            chosen = _drawn(everything, most_queries)
        rows = _rows(file)
        for item in chosen:
            if all(c.query in run for c in item.conditions):
                shown = _ranking(item, run, rows, family_of(place.task))
                runs_of.setdefault(item.id, []).append({"m": collected.models.index(model), **shown})
                if (key := _main(item, rows, family_of(place.task))) is not None:
                    keys.setdefault(item.id, []).append(key)
        bar.update()
    return _within(budget, place, collected, texts, chosen, runs_of, keys, n_queries)


def _drawn(items: Sequence[Item], most: int) -> list[Item]:
    """Some of the items in random order (fixed seed), so that any beginning of them is a fair sample."""
    return random.Random(0).sample(list(items), min(most, len(items)))


def _within(
    budget: int,
    place: Place,
    collected: Collected,
    texts: Texts,
    chosen: Sequence[Item],
    runs_of: Mapping[str, list[Json]],
    keys: Mapping[str, list[float]],
    n_queries: int,
) -> Sheet:
    """The drawn items, as many as the budget of bytes allows, in the order of the data."""
    wanted = {d for item in chosen for run in runs_of.get(item.id, ()) for d in _documents(run)}
    passages = texts.passages(wanted)
    places: dict[str, int] = {}
    kept: dict[str, Json] = {}
    size = 0
    for item in chosen:
        runs = runs_of.get(item.id, [])
        if not runs:
            continue
        new = {d for run in runs for d in _documents(run)} - places.keys()
        numbered = places | {d: len(places) + i for i, d in enumerate(sorted(new))}
        shown = _item_json(item, runs, numbered, keys.get(item.id))
        size += len(script_json(shown)) + sum(len(script_json([d, passages.get(d, "")])) for d in new)
        if kept and size > budget:
            break
        places, kept[item.id] = numbered, shown
    order = [item.id for item in items_of(place, texts, [c.query for item in chosen for c in item.conditions])]
    content = {
        "place": collected.label(place),
        "about": _about(place, len(kept), n_queries, texts.data is not None),
        "family": family_of(place.task),
        "docs": [[doc, passages.get(doc, "")] for doc in places],
        "queries": [kept[key] for key in order if key in kept],
    }
    return Sheet(place, content, n_queries, len(kept))


def _about(place: Place, n_shown: int, n_queries: int, with_texts: bool) -> str:
    what = {"IFIR": "queries", "FollowIR": "topics", "TCR-Bench": "questions"}[family_of(place.task)]
    if n_shown == n_queries:
        out = f"All {n_queries} {what} are here"
    else:
        out = f"{n_shown} of {n_queries} {what} are here, drawn at random with a fixed seed; {n_queries - n_shown} are "
        out += "left out to keep the file small (option --queries)"
    out += f". Rankings are cut after {DEPTH} documents, texts after a few lines."
    if not with_texts:
        out += (
            " Texts and judgements are missing: the data are not on this machine. Name their directory with --data, or "
            "set MTEB_BEYOND_DATA."
        )
    return out


# ---- one model's rankings --------------------------------------------------------------------------------------


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


def _main(item: Item, rows: Mapping[str, Json], family: str) -> float | None:
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


def _rows(saved: Saved) -> dict[str, Json]:
    return {row["query-id"]: row for row in pq.read_table(saved.per_query).to_pylist()}


# ---- as plain values -------------------------------------------------------------------------------------------


def _documents(run: Json) -> set[str]:
    listed = {d for condition in run["c"] for d in condition["t"]}
    return listed | {row[0] for row in run.get("x", ())}


def _item_json(item: Item, runs: Sequence[Json], places: Mapping[str, int], keys: list[float] | None) -> Json:
    out: Json = {"id": item.id, "q": item.text, "a": item.about, "c": [_condition(c, places) for c in item.conditions]}
    out["k"] = None if not keys else round(fmean(keys), 4)
    out["runs"] = [_numbered(run, places) for run in runs]
    return out


def _condition(condition: Condition, places: Mapping[str, int]) -> Json:
    kinds: dict[str, list[int]] = {}
    for doc, kind in condition.marks.items():
        kinds.setdefault(kind, [])
        if doc in places:
            kinds[kind].append(places[doc])
    n_relevant = sum(kind in (RELEVANT, UNTIL_CHANGE) for kind in condition.marks.values())
    return {"l": condition.label, "i": condition.text, "k": kinds, "n": n_relevant}


def _numbered(run: Json, places: Mapping[str, int]) -> Json:
    out = {**run, "c": [{**c, "t": [places[d] for d in c["t"]]} for c in run["c"]]}
    if "x" in run:
        out["x"] = [[places[row[0]], *row[1:]] for row in run["x"]]
    return out
