"""The report's tables as plain values: the overview, and one table for each task or subset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple

from hub_cards.measures import BENCHMARKS, MEASURES, OTHER, Kind, Measure
from hub_cards.report.collect import Collected, Entry, Place, family_of
from hub_cards.report.published import Reference, published
from hub_cards.values import MISSING, Score, chance_of, interval_written, number, value_of, written

NOT_RUN = "not run"
PUBLISHED_NOTE = (
    "Lines and points marked as published are numbers printed in the papers, with their tables; all others are from "
    "the result files. The published nDCG and MRR of IFIR fit the variant in the authors' code: compare them with the "
    "columns of the paper's way only."
)
CHANCE = "chance level"
NOT_COMPARABLE = "not comparable with the published ones"


class Column(NamedTuple):
    """A column of numbers.

    Attributes:
        about: what its numbers are, with their range.
        group: heading above several columns; empty: none.
        comparable: whether the numbers of all models compare, so that one of them may be called the highest.
    """

    label: str
    about: str
    group: str = ""
    kind: Kind = "score"
    comparable: bool = True


class Cell(NamedTuple):
    """A number as it is sorted, with its interval, and as it is shown; a missing one is always last."""

    score: Score
    text: str

    @property
    def interval(self) -> str:
        """The interval as it is shown; empty without one."""
        return interval_written(self.score)


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes:
        kind: a model's own results, a paper's, or the chance level.
        source: the paper's tables.
    """

    label: str
    cells: tuple[Cell, ...]
    kind: Literal["own", "published", "chance"] = "own"
    source: str = ""


@dataclass(frozen=True)
class Table:
    """A table with what to know about it."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


# ---- the overview ----------------------------------------------------------------------------------------------


def overview(collected: Collected) -> Table:
    """Main scores of all models on all tasks; a task on two revisions of its data has two columns."""
    tasks = list(dict.fromkeys((p.task, p.revision) for p in collected.places if not p.is_average))
    columns, by_column = [], []
    for task, revision in tasks:
        places = [p for p in collected.places if (p.task, p.revision) == (task, revision)]
        family = family_of(task)
        measure = _main_measure(family)
        label = collected.label(places[0]) if len(places) == 1 else collected.label_of_all(places[0])
        about = f"{measure.about}; {measure.scale}"
        if len(places) > 1:
            about += f"; mean over {len(places)} subsets"
        versions = {e.metric_version for p in places for e in collected.at(p).values()}
        title = _family_title(family)
        columns.append(Column(label, f"{measure.label}: {about}", title, comparable=len(versions) < 2))
        by_column.append((places, measure))
    rows = [
        Row(model, tuple(_overview_cell(collected, model, places, measure) for places, measure in by_column))
        for model in collected.models
    ]
    chances = [_chance(collected, places, measure) for places, measure in by_column]
    if any(c is not None for c in chances):
        rows.insert(0, _chance_row(chances))
    notes = [
        "Main scores: IFIR nDCG@20, FollowIR p-MRR, TCR-Bench R@1, InstructIR robustness@10; other tasks their own. "
        "In brackets: 95 % interval, where the result has one. Chance level: what a random ranking of the same data "
        "scores, where the result says it."
    ]
    if any(place.is_sample for place in collected.places):
        notes.append("The embedded samples are small and generated: their scores compare with nothing published.")
    return Table("Main scores of all models on all tasks", tuple(columns), tuple(rows), tuple(notes))


def _overview_cell(collected: Collected, model: str, places: Sequence[Place], measure: Measure) -> Cell:
    entries = [e for p in places if (e := collected.at(p).get(model)) is not None]
    if not entries:
        return Cell(MISSING, NOT_RUN)
    if len(places) == 1:
        return cell(_main_score(entries[0], measure), undefined="undefined")
    values = [_main_score(e, measure).value for e in entries]
    known = [v for v in values if v is not None]
    if len(known) < len(places):  # a mean over other subsets would not compare
        return Cell(MISSING, f"{len(known)} of {len(places)} subsets")
    return cell(Score(fmean(known)))


def _main_score(entry: Entry, measure: Measure) -> Score:
    found = value_of(entry.scores, measure.key)
    return found if found.value is not None else Score(number(entry.scores.get("main_score")))


def _main_measure(family: str) -> Measure:
    return MEASURES[family][0]


def _chance(collected: Collected, places: Sequence[Place], measure: Measure) -> float | None:
    if len(places) != 1:
        return None
    return next(
        (c for e in collected.at(places[0]).values() if (c := chance_of(e.scores, measure.key)) is not None), None
    )


def _chance_row(chances: Iterable[float | None]) -> Row:
    return Row(CHANCE, tuple(cell(Score(c), undefined="") for c in chances), "chance")


def _family_title(family: str) -> str:
    return "other tasks" if family == OTHER else family


# ---- a task ----------------------------------------------------------------------------------------------------


def place_table(collected: Collected, place: Place, with_published: bool = True) -> Table:
    """Everything about a place: scores, intervals, what makes them doubtful; the paper's values below."""
    entries = collected.at(place)
    theirs = references(collected, place) if with_published else ()
    shown = [
        m
        for m in MEASURES[family_of(place.task)]
        if m.on_page
        and (
            any(value_of(e.scores, m.key).value is not None for e in entries.values())
            or any(m.key in reference.scores for reference in theirs)
        )
    ]
    rows = [Row(model, tuple(cell(value_of(e.scores, m.key), m.kind) for m in shown)) for model, e in entries.items()]
    chances = [
        next((c for e in entries.values() if (c := chance_of(e.scores, m.key)) is not None), None) for m in shown
    ]
    if any(c is not None for c in chances):
        rows.insert(0, _chance_row(chances))
    rows += [
        Row(r.model, tuple(cell(r.scores.get(m.key, MISSING), m.kind) for m in shown), "published", r.source)
        for r in theirs
    ]
    one_judge, one_version = len(_judges(entries)) < 2, len({e.metric_version for e in entries.values()}) < 2
    columns = tuple(
        Column(m.label, f"{m.about}; {m.scale}", m.group, m.kind, one_version and (one_judge or not m.judged))
        for m in shown
    )
    return Table(f"{collected.label(place)}: scores of all models", columns, tuple(rows), tuple(_notes(entries, place)))


def references(collected: Collected, place: Place) -> tuple[Reference, ...]:
    """The paper's values for a place, unless its data are known to be others than the paper's."""
    notes = [note for e in collected.at(place).values() for note in e.notes]
    return () if any(NOT_COMPARABLE in note for note in notes) else published(place.task)


def published_notes(collected: Collected, with_published: bool) -> list[str]:
    """What to know about published values, if any are shown."""
    shown = with_published and any(references(collected, place) for place in collected.places)
    return [PUBLISHED_NOTE] if shown else []


def cell(score: Score, kind: Kind = "score", undefined: str = "-") -> Cell:
    """A score as a cell."""
    return Cell(score, undefined if score.value is None else written(score.value, kind))


def _notes(entries: Mapping[str, Entry], place: Place) -> Iterable[str]:
    if place.is_sample:
        yield "An embedded sample: small and generated. Its scores compare with nothing published."
    yield f"Data revision{'s' if place.is_average else ''}: {place.revision}"
    yield from _version_notes(entries)
    if family_of(place.task) == "IFIR":
        unjudged = [model for model, e in entries.items() if "instfol_at_20" not in e.scores]
        if unjudged:
            yield (
                f"{len(unjudged)} of {len(entries)} results have no InstFol: it needs a judge (`mteb-beyond judge`), "
                "and a score for nearly every pair."
            )
        judges = _judges(entries)
        if len(judges) > 1:
            listed = "; ".join(f"{judge}: {', '.join(models)}" for judge, models in judges.items())
            yield f"InstFol comes from different judges, and compares only where they are the same. {listed}."
        elif judges:
            yield f"InstFol judged by {next(iter(judges))}."
    yield from dict.fromkeys(note for e in entries.values() for note in e.notes)


def _version_notes(entries: Mapping[str, Entry]) -> Iterable[str]:
    """Results that versions of our metrics other than the newest here have scored."""
    newest = max((e.metric_version for e in entries.values() if e.metric_version is not None), default=None)
    older = {model: e.metric_version for model, e in entries.items() if e.metric_version != newest}
    if older:
        listed = ", ".join(f"{model} ({'not said' if v is None else v})" for model, v in older.items())
        yield (
            f"Scored by other versions of the metrics than version {newest}, so that scores may differ for that reason "
            f"alone: {listed}. Run them again (`mteb-beyond run` sets such results aside)."
        )


def _judges(entries: Mapping[str, Entry]) -> dict[str, list[str]]:
    """Who judged the InstFol of which models."""
    out: dict[str, list[str]] = {}
    for model, entry in entries.items():
        if any(m.judged and m.key in entry.scores for m in MEASURES[family_of(entry.place.task)]):
            out.setdefault(entry.judge or "a judge without a record", []).append(model)
    return out


def by_family(collected: Collected) -> list[tuple[str, list[Place]]]:
    """Families of tasks that have results, with their places."""
    found = [(family, collected.of_family(family)) for family in BENCHMARKS]
    return [(family, places) for family, places in found if places]
