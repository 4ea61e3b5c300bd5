"""`mteb-beyond tcr compare`: two runs of the same questions, compared in pairs (the shape of the paper's Table 43)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluators.markdown import difference, interval, markdown_table, p_value
from evaluators.metrics.bootstrap import (
    RESAMPLES,
    SEED,
    Hits,
    SiblingBootstrap,
    bootstrap_difference,
    bootstrap_siblings,
)
from evaluators.plugin.checks import shown
from evaluators.plugin.predictions import read_predictions
from evaluators.plugin.results import PER_QUERY, PREDICTIONS, SAVED_BY, SUBSET, read_provenance
from evaluators.plugin.task import SPLIT
from evaluators.plugin.variants import names_of_run, variant_beside

_QUERY, _TARGET_HIT, _GROUP_HIT = "query-id", "recall_at_1", "gr_at_1"
_NO_OUTCOMES = (
    f"its queries have no {_TARGET_HIT} and {_GROUP_HIT} of 0 or 1; only one target among siblings gives them"
)


@dataclass(frozen=True)
class QueryTable:
    """What a run scored per query on one task.

    Attributes:
        path: the table.
        task: name of the task.
        model: name of the model with its variant in words; "unknown model" where no saved predictions beside the
            table tell.
        revision: revision of the data.
        metric_version: version of the metrics that scored it; ``None`` if the table does not say.
        hits: query id -> (target at rank 1, group at rank 1), each 0 or 1.
        subset: the subset of a task that has several.
    """

    path: Path
    task: str
    model: str
    revision: str
    metric_version: int | None
    hits: Mapping[str, tuple[float, float]]
    subset: str | None = None

    @property
    def name(self) -> str:
        """The task, and the subset if it has several."""
        return self.task if self.subset is None else f"{self.task}, {self.subset}"

    def in_order(self, queries: Sequence[str]) -> Hits:
        """The hits of the named queries."""
        return Hits([self.hits[q][0] for q in queries], [self.hits[q][1] for q in queries])


# ---- reading ---------------------------------------------------------------------------------------------------


def find_tables(place: Path, task: str | None = None) -> dict[str, Path]:
    """The tables per query that one run left behind, by the task's name, whether or not they can be compared.

    Args:
        place: a table, or a folder at or below which one run's tables lie, those of other kinds of task among them.
        task: only this task's table.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if there are several of one task, or the file is no such table.
    """
    if place.is_file():
        name = place.name.removesuffix(PER_QUERY)
        if name == place.name:
            raise ValueError(f"{place} is no table of a task's scores per query (<task>{PER_QUERY}); {SAVED_BY}")
        if task not in (None, name):
            raise ValueError(f"{place} is a table of {name}, not of {task}")
        return {name: place}
    found: dict[str, list[Path]] = {}
    for path in sorted(place.rglob(f"{task or '*'}{PER_QUERY}")):
        found.setdefault(path.name.removesuffix(PER_QUERY), []).append(path)
    if not found:
        raise FileNotFoundError(f"no {task or '<task>'}{PER_QUERY} at or below {place}; {SAVED_BY}")
    for name, paths in found.items():
        if len(paths) > 1 and any(map(_has_outcomes, paths)):
            listed = "\n  ".join(str(path.parent) for path in paths)
            raise ValueError(f"{place} holds several runs' tables {name}{PER_QUERY}; name one of\n  {listed}")
    return {name: paths[0] for name, paths in found.items()}


def _has_outcomes(path: Path) -> bool:
    try:
        return {_QUERY, _TARGET_HIT, _GROUP_HIT} <= set(pq.read_schema(path).names)
    except (OSError, pa.ArrowInvalid) as error:
        raise ValueError(f"{path} cannot be read as parquet: {error}; remove it and run again") from error


def read_tables(path: Path) -> tuple[dict[str, QueryTable], dict[str, str]]:
    """Read a table per query.

    Returns:
        What can be compared, by the name of its task (and subset), and for each other such name why it cannot.

    Raises:
        ValueError: naming the file and the query, if it does not say on which data it was made, holds a query twice, or
            lacks some outcomes.
    """
    task = path.name.removesuffix(PER_QUERY)
    if not _has_outcomes(path):
        return {}, {task: _NO_OUTCOMES}
    provenance = read_provenance(path)
    if not isinstance(provenance.get("revision"), str):
        raise ValueError(f"{path} does not say on which data it was made; run the model again: {SAVED_BY}")
    parts: dict[str | None, list[dict[str, Any]]] = {}
    for row in pq.read_table(path).to_pylist():
        parts.setdefault(row.get(SUBSET), []).append(row)
    if not parts:
        raise ValueError(f"{path} holds no query")
    tables, others = {}, {}
    for subset, rows in parts.items():
        table = QueryTable(
            path,
            task,
            _model_name(path.parent, task, subset),
            provenance["revision"],
            provenance.get("metric_version"),
            {},
            subset,
        )
        if subset is not None and all(row[_TARGET_HIT] is None for row in rows):
            others[table.name] = _NO_OUTCOMES
        else:
            tables[table.name] = replace(table, hits=_hits(path, rows))
    return tables, others


def _hits(path: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    hits: dict[str, tuple[float, float]] = {}
    for row in rows:
        query, target, group = row[_QUERY], row[_TARGET_HIT], row[_GROUP_HIT]
        if query in hits:
            raise ValueError(f"{path}: query {query!r} is in it twice")
        if target not in (0, 1) or group not in (0, 1) or target > group:
            raise ValueError(
                f"{path}: query {query!r} has {_TARGET_HIT} = {target} and {_GROUP_HIT} = {group}; both must be 0 or "
                "1, and a target belongs to its group"
            )
        hits[query] = (target, group)
    return hits


def _model_name(folder: Path, task: str, subset: str | None) -> str:
    predictions = folder / f"{task}{PREDICTIONS}"
    if not predictions.is_file():
        return "unknown model"
    model = read_predictions(predictions, subset or "default", SPLIT).model
    name, revision = str(model["model_name"]), str(model["revision"])
    return names_of_run(name, revision, variant_beside(predictions, name, revision))[0]


# ---- comparing -------------------------------------------------------------------------------------------------


def compare(first: QueryTable, second: QueryTable) -> SiblingBootstrap:
    """The differences ``first`` - ``second`` in R@1, GR@1 and DS@1 on the same questions, by paired bootstrap.

    Raises:
        ValueError: if the runs are of different tasks, data or queries; the message names what differs.
    """
    queries = comparable_queries(first, second)
    return bootstrap_difference(first.in_order(queries), second.in_order(queries))


def comparable_queries(first: QueryTable, second: QueryTable) -> list[str]:
    """The queries of two runs, after making sure that they are the same on the same data.

    Raises:
        ValueError: as :func:`compare`.
    """
    both = f"\n  {first.path}\n  {second.path}"
    if first.name != second.name:
        raise ValueError(f"the runs are of different tasks, {first.name} and {second.name}:{both}")
    if first.revision != second.revision:
        raise ValueError(
            f"{first.name}: the runs were made on different data, revisions {first.revision!r} and "
            f"{second.revision!r}; run both on the same data:{both}"
        )
    alone = [sorted(a.hits.keys() - b.hits.keys()) for a, b in ((first, second), (second, first))]
    if any(alone):
        lacking = [f"only in {name}: {shown(ids)}" for name, ids in zip("AB", alone, strict=True) if ids]
        raise ValueError(
            f"{first.name}: the runs have different queries ({'; '.join(lacking)}); run both on the same data:{both}"
        )
    return sorted(first.hits)


def add_compare_command(steps: Any) -> None:
    """Add ``compare`` to the sub-commands of ``mteb-beyond tcr``."""
    command = steps.add_parser(
        "compare", help="compare two runs on the same questions: differences with intervals and p-values"
    )
    for run in ("A", "B"):
        command.add_argument(
            f"run_{run.lower()}",
            metavar=f"RUN_{run}",
            help=f"run {run}: the --prediction-folder of one model's run, or a table <task>{PER_QUERY} in it",
        )
    command.add_argument(
        "-t", "--task", metavar="TASK", help="compare on this task only (default: every TCR task that both runs have)"
    )
    command.set_defaults(func=_compare)


def _compare(args: argparse.Namespace) -> int:
    places = [Path(args.run_a).expanduser(), Path(args.run_b).expanduser()]
    found = [find_tables(place, args.task) for place in places]
    read = [[read_tables(path) for path in paths.values()] for paths in found]
    tables = [{name: table for part, _ in run for name, table in part.items()} for run in read]
    others = {name: why for run in read for _, part in run for name, why in part.items()}
    common = sorted(tables[0].keys() & tables[1].keys())
    left_out = [f"{name}: {why}: not compared" for name, why in sorted(others.items())]
    if not common:
        theirs = " and ".join(", ".join(run) or "none" for run in tables)
        raise ValueError("\n".join([f"the runs have no task in common: {theirs}", *left_out]))
    print(report([(tables[0][name], tables[1][name]) for name in common]))
    for letter, run in zip("AB", tables, strict=True):
        if alone := sorted(run.keys() - set(common)):
            print(f"only {letter} has {'; '.join(alone)}: not compared")
    for line in left_out:
        print(line)
    return 0


# ---- printing --------------------------------------------------------------------------------------------------

_SCORE_HEADS = ("run", "task", "queries", "R@1 [95 % CI]", "GR@1 [95 % CI]", "DS@1 [95 % CI]")


def report(pairs: Sequence[tuple[QueryTable, QueryTable]]) -> str:
    """Two Markdown tables: each run's scores, and the paired differences, one line a task.

    Raises:
        ValueError: as :func:`compare`.
    """
    differences = [_difference_row(first, second) for first, second in pairs]
    scores = [_score_row(name, table) for pair in pairs for name, table in zip("AB", pair, strict=True)]
    # The columns of Table 43, and GR@1.
    heads = ["A - B", "ΔR@1", "95 % CI", "ΔDS@1", "95 % CI", "p (DS@1)", "ΔGR@1", "95 % CI"]
    return "\n".join(
        [
            *_legend(pairs),
            "",
            markdown_table(_SCORE_HEADS, scores, ("run", "task")),
            "",
            markdown_table(heads, differences, ("A - B",)),
            "",
            f"Scale 0-1. Percentile bootstrap over the queries, {RESAMPLES:,} resamples, seed {SEED}; for A - B both "
            "runs on the same resamples.",
            "p (DS@1): share of resamples in which A's DS@1 is at most B's (one-sided: small speaks for A).",
        ]
    )


def _legend(pairs: Sequence[tuple[QueryTable, QueryTable]]) -> list[str]:
    """What A and B are, and where their metrics are of different versions."""
    runs = [f"{name}: {pair[i].model} ({pair[i].path.parent})" for i, name in enumerate("AB") for pair in pairs]
    versions = [
        f"{a.name}: scored by different versions of the metrics, A by {a.metric_version} and B by {b.metric_version}; "
        "run the older one again if in doubt"
        for a, b in pairs
        if a.metric_version != b.metric_version
    ]
    same = ["A and B are the same run, so that nothing can differ"] if all(_is_same(a, b) for a, b in pairs) else []
    return list(dict.fromkeys(runs)) + same + versions


def _is_same(first: QueryTable, second: QueryTable) -> bool:
    return first.path.resolve() == second.path.resolve()


def _score_row(name: str, table: QueryTable) -> list[str]:
    scores = bootstrap_siblings(table.in_order(sorted(table.hits)))
    shown_scores = [f"{score.value:.3f} {interval(*score.interval())}" for score in scores]
    return [name, table.name, str(len(table.hits)), *shown_scores]


def _difference_row(first: QueryTable, second: QueryTable) -> list[str]:
    recall, group, ds = compare(first, second)
    return [first.name, *difference(recall), *difference(ds), p_value(ds.p_bootstrap()), *difference(group)]
