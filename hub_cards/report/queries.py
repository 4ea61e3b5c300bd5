"""The drill-down: single queries with their rankings under each condition, and what moved between them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]

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
from hub_cards.report.rankings import DEPTH, Json, main_of, own_run, shown_of
from hub_cards.results import META_FILE
from hub_cards.saved import Saved, saved_for

# Of all drill-downs of a page together; each task gets an even share.
MOST_BYTES = 7_000_000


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
    found: list[tuple[Place, dict[str, Saved], str]] = []
    for place in collected.places if predictions else ():
        if not has_items(place):
            continue
        saved, missing = _saved(collected.at(place), place, predictions, notes)
        if missing:
            notes.append(f"{collected.label(place)}: {missing}")
        if saved:
            found.append((place, saved, missing))
    budget = MOST_BYTES // max(len(found), 1)
    # Predictions of a large task take seconds to read; a bar on terminals only.
    with tqdm(total=sum(len(saved) for _, saved, _ in found), desc="reading predictions", disable=None) as bar:
        made = [_sheet(collected, place, saved, data, most_queries, budget, bar, notes) for place, saved, _ in found]
    for sheet, (_, _, missing) in zip(made, found, strict=True):
        if sheet is not None and missing:
            sheet.content["about"] += f" {missing[0].upper()}{missing[1:]}."
    return [sheet for sheet in made if sheet is not None], notes


def _saved(
    entries: Mapping[str, Entry], place: Place, folders: Sequence[Path], notes: list[str]
) -> tuple[dict[str, Saved], str]:
    """The predictions of each model that belong to its result, and in words whose were not found."""
    found: dict[str, Saved] = {}
    missing: list[str] = []
    for model, entry in entries.items():
        assert entry.result is not None  # a place with single queries is no average
        unfit: list[str] = []
        try:
            for saved in saved_for(entry.result, folders):
                why = _unfit(saved, place, entry)
                if why is None:
                    found[model] = saved
                    break
                unfit.append(why)
        except ValueError as error:
            unfit.append(str(error))
        if model in found:
            continue
        notes += [_left_out(place, model, why) for why in unfit]
        if not unfit:
            unknown = entry.result.meta is None
            missing.append(f"{model} (its folder is not known without {META_FILE})" if unknown else model)
    return found, f"no predictions of: {', '.join(missing)}" if missing else ""


def _unfit(saved: Saved, place: Place, entry: Entry) -> str | None:
    """Why predictions do not belong to a result; ``None`` if they do."""
    try:
        made_with = saved.provenance()
    except ValueError as error:
        return str(error)
    if not made_with:
        return f"{saved.path}: no table of scores per query beside it tells on which data it was made"
    if made_with.get("revision") != place.revision or made_with.get("options") != entry.record.get("options"):
        return f"{saved.path}: it was made on other data or with other options than this result"
    return None


def _sheet(
    collected: Collected,
    place: Place,
    saved: Mapping[str, Saved],
    data: Sequence[Path],
    most_queries: int,
    budget: int,
    bar: Any,
    notes: list[str],
) -> Sheet | None:
    """The drill-down of a place; ``None``, and a note for each, if no file of predictions can be shown."""
    texts = load_texts(place, data)
    chosen: list[Item] = []
    n_queries = 0
    runs_of: dict[str, list[Json]] = {}
    keys: dict[str, list[float]] = {}
    for model, file in saved.items():
        bar.update()
        try:
            run = own_run(collected.at(place)[model], file)
            everything = [] if n_queries else items_of(place, texts, list(run))
            rows = file.rows()
            drawn = chosen if n_queries else _drawn(everything, most_queries)
            shown = shown_of(file, drawn, run, rows, family_of(place.task))
        except (ValueError, OSError) as error:
            notes.append(_left_out(place, model, error))
            continue
        chosen, n_queries = drawn, n_queries or len(everything)
        for item in (item for item in chosen if item.id in shown):
            runs_of.setdefault(item.id, []).append({"m": collected.models.index(model), **shown[item.id]})
            if (key := main_of(item, rows, family_of(place.task))) is not None:
                keys.setdefault(item.id, []).append(key)
    return _within(budget, place, collected, texts, chosen, runs_of, keys, n_queries) if n_queries else None


def _left_out(place: Place, model: str, error: Exception | str) -> str:
    return f"{place.task}: predictions of {model} are left out: {error}"


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
