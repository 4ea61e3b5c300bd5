"""What result folders hold, sorted by model, by task and by the data that were scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from evaluators.plugin.registry import load_plugins, registered_tasks
from evaluators.plugin.results import bounded
from evaluators.plugin.task import RECORD_KEY
from hub_cards.measures import BENCHMARKS, OTHER, benchmark_of
from hub_cards.report.published import AVERAGES
from hub_cards.results import Result, read_results
from hub_cards.values import number

# Between the tasks of an average's data.
JOINED = "; "


class Place(NamedTuple):
    """Where a score belongs: scores of one place compare.

    Attributes:
        task: name of the task, or of an average.
        split, subset: of the result file.
        revision: of the data; for an average, each of its tasks with the revision of its data.
    """

    task: str
    split: str
    subset: str
    revision: str

    @property
    def is_average(self) -> bool:
        """Whether this is a mean over tasks."""
        return any(self.task == average.name for average in AVERAGES)

    @property
    def is_sample(self) -> bool:
        """Whether these are the embedded data of a sample, which compare with nothing published."""
        classes = (c for c in registered_tasks() if c.metadata.name == self.task)
        return any(c.embedded is not None and c.metadata.revision == self.revision for c in classes)


@dataclass(frozen=True)
class Entry:
    """The scores of one model at one place.

    Attributes:
        model: unique within a report.
        scores: as in the result file.
        result: the file; ``None`` for an average of several.
    """

    model: str
    place: Place
    scores: Mapping[str, Any]
    result: Result | None

    @property
    def record(self) -> Mapping[str, Any]:
        """What the result says it depends on; empty for tasks of mteb itself."""
        found = self.scores.get(RECORD_KEY)
        return found if isinstance(found, Mapping) else {}

    @property
    def metric_version(self) -> int | None:
        """The version of our metrics that scored it; ``None`` for tasks of mteb itself, and where it is not said."""
        found = self.record.get("metric_version")
        return found if isinstance(found, int) else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the task noted about its data."""
        return tuple(self.record.get("notes") or ())

    @property
    def judge(self) -> str:
        """Who judged for InstFol, with the settings on which verdicts depend; empty if the result does not say."""
        record = dict(self.record.get("judge") or {})
        name = str(record.pop("judge", ""))
        told = [f"{key} {value}" for key, value in record.items() if key != "endpoint" and value is not None]
        return f"{name} ({', '.join(told)})" if told else name


@dataclass(frozen=True)
class Collected:
    """Everything that a report is about.

    Attributes:
        models: in order of appearance.
        entries: of all models and places, averages among them.
        folders: the result folders, as given.
    """

    models: tuple[str, ...]
    entries: tuple[Entry, ...]
    folders: tuple[Path, ...]

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All places: families together, averages first and samples last in each."""
        return tuple(sorted(self._by_place, key=_place_order))

    @cached_property
    def _by_place(self) -> dict[Place, dict[str, Entry]]:
        order = {model: at for at, model in enumerate(self.models)}
        out: dict[Place, dict[str, Entry]] = {}
        for entry in sorted(self.entries, key=lambda e: order[e.model]):
            out.setdefault(entry.place, {})[entry.model] = entry
        return out

    def at(self, place: Place) -> dict[str, Entry]:
        """The entries of a place by model, in the order of the models."""
        return self._by_place[place]

    def of_family(self, family: str) -> list[Place]:
        """The places of a family of tasks, averages first, samples last."""
        return [place for place in self.places if family_of(place.task) == family]

    def label(self, place: Place) -> str:
        """A place in words; the revision of the data only where several were scored."""
        parts = {(p.split, p.subset) for p in self.places if p.task == place.task}
        out = place.task
        if len({split for split, _ in parts}) > 1:
            out += f", {place.split}"
        if len({subset for _, subset in parts}) > 1:
            out += f", {place.subset}"
        return self._with_revision(out, place)

    def label_of_all(self, place: Place) -> str:
        """The place's task, with all its splits and subsets on the same data, in words."""
        return self._with_revision(place.task, place)

    def _with_revision(self, out: str, place: Place) -> str:
        revisions = {p.revision for p in self.places if p.task == place.task}
        if len(revisions) < 2:
            return out
        if not place.is_average:
            return f"{out} @{place.revision[:8]}"
        sets = {revision: revision.split(JOINED) for revision in revisions}
        differing = [
            part.split(" ", 1) for part in sets[place.revision] if not all(part in other for other in sets.values())
        ]
        return f"{out}, {', '.join(f'{task} @{revision[:8]}' for task, revision in differing)}"


def collect(folders: Sequence[Path]) -> Collected:
    """Read every result below mteb's output folders.

    Raises:
        FileNotFoundError: if a folder is no such folder, or holds no result.
        ValueError: if a file cannot be read, or a model has two results of a task on the same data.
    """
    load_plugins()
    by_file = {r.path.resolve(): r for folder in folders for r in read_results(folder)}
    results = _distinct(by_file.values())
    entries = [e for result in results for e in _entries(result)]
    seen: dict[tuple[str, Place], Entry] = {}
    for entry in entries:
        other = seen.setdefault((entry.model, entry.place), entry)
        if other is not entry:
            assert entry.result is not None and other.result is not None
            raise ValueError(
                f"{entry.model} has two results of {entry.place.task}; report them apart, or move one away:\n"
                f"  {other.result.path}\n  {entry.result.path}"
            )
    models = tuple(dict.fromkeys(e.model for e in entries))
    return Collected(models, (*_averages(models, entries), *entries), tuple(folders))


def family_of(task: str) -> str:
    """The benchmark family that a task, or an average over tasks, belongs to."""
    for average in AVERAGES:
        if task == average.name:
            return average.family
    cls = {c.metadata.name: c for c in registered_tasks()}.get(task)
    return OTHER if cls is None else benchmark_of(cls)


def _distinct(results: Iterable[Result]) -> list[Result]:
    """The results with names that tell runs of different folders apart, too."""
    listed = list(results)
    owners: dict[str, set[tuple[str, str, str]]] = {}
    for result in listed:
        owners.setdefault(result.name, set()).add(result.run)
    named = [replace(r, name=f"{r.name} @{r.revision}") if len(owners[r.name]) > 1 else r for r in listed]
    return sorted(named, key=lambda r: (r.name.lower(), r.path))


def _entries(result: Result) -> Iterable[Entry]:
    for split, listed in result.task.scores.items():
        for scores in listed:
            place = Place(result.task.task_name, split, scores["hf_subset"], str(result.task.dataset_revision))
            yield Entry(result.name, place, scores, result)


def _averages(models: Sequence[str], entries: Sequence[Entry]) -> Iterable[Entry]:
    """Plain means over the tasks of a benchmark, for models that have them all on one revision each.

    Means compare where all their data are the same: each set of data is a place of its own.
    """
    for average in AVERAGES:
        for model in models:
            parts = [e for e in entries if e.model == model and e.place.task in average.tasks]
            if len(parts) != len(average.tasks) or {e.place.task for e in parts} != set(average.tasks):
                continue
            means: dict[str, Any] = {}
            for key in parts[0].scores:
                values = [v for e in parts if (v := number(e.scores.get(key))) is not None]
                # Neither the mean of bounds nor of p-values is that of the mean.
                told = key.startswith("n_") or "_n_" in key or "_p_" in key or bounded(key) != key
                if len(values) == len(parts) and not told:
                    means[key] = fmean(values)
            versions = {e.metric_version for e in parts}
            record: dict[str, Any] = {"metric_version": versions.pop() if len(versions) == 1 else None}
            record |= {"notes": list(dict.fromkeys(note for e in parts for note in e.notes))}
            if judges := dict.fromkeys(e.judge for e in parts if e.judge):
                record["judge"] = {"judge": " and ".join(judges)}
            data = JOINED.join(f"{e.place.task} {e.place.revision}" for e in sorted(parts, key=lambda e: e.place))
            yield Entry(model, Place(average.name, "test", "default", data), means | {RECORD_KEY: record}, None)


def _place_order(place: Place) -> tuple[Any, ...]:
    """Families, in each averages first and samples last, tasks in the order in which their packages list them."""
    names = [c.metadata.name for c in registered_tasks()]
    at = names.index(place.task) if place.task in names else len(names)
    return BENCHMARKS.index(family_of(place.task)), not place.is_average, place.is_sample, at, *place
