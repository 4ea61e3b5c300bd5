"""InstFol of an IFIR run: which passages a judge is asked about, and what its scores come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from evaluators.judge.judges import Judge, Judgement, Pair, check_judgements
from evaluators.metrics.bootstrap import Bootstrapped
from evaluators.metrics.cluster_bootstrap import bootstrap_clusters
from evaluators.metrics.instfol import inst_fol_of_lists, mean_of_known, paper_inst_fol_of_lists
from evaluators.metrics.ranking import Run, top
from evaluators.plugin.data import TaskData, passage_texts
from evaluators.plugin.results import bounds
from ifir_tasks.ids import parse_query_id
from ifir_tasks.scores import K

RUBRICS = Path(__file__).parent / "rubrics"
INSTFOL, PAPER_INSTFOL = f"instfol_at_{K}", f"paper_instfol_at_{K}"
# Which rubric serves a domain that is no subset of the paper, with and without levels.
_LEVELLED = {"finance": "fiqa", "science": "scifact_open", "law": "aila", "health": "pm"}
_SINGLE = {"law": "fire", "health": "cds", "nutrition": "nfcorpus"}
GENERAL = "general"
_SUBSETS_WITH_LEVELS, _SUBSETS_WITHOUT = frozenset(_LEVELLED.values()), frozenset(_SINGLE.values())


def rubric_name(domain: str | None, level: int) -> str:
    """The rubric for a domain or a subset of the paper: ``general`` where there is none of its own."""
    known = _LEVELLED if level else _SINGLE
    subsets = _SUBSETS_WITH_LEVELS if level else _SUBSETS_WITHOUT
    return domain if domain in subsets else known.get(domain or "", GENERAL)


@dataclass(frozen=True)
class JudgedLists:
    """The best passages of an instructed query, with its instruction and without, best first.

    Attributes:
        query: id of the instructed query.
        instructed, plain: document ids, at most 20 each.
    """

    query: str
    instructed: tuple[str, ...]
    plain: tuple[str, ...]


def judged_lists(run: Run, queries: Iterable[str]) -> list[JudgedLists]:
    """The 20 best passages of each instructed query and of its plain query, by (score, document id).

    Raises:
        ValueError: if a query or its plain query is not in the run.
    """
    out = []
    for query in queries:
        plain = parse_query_id(query).plain
        lacking = [q for q in (query, plain) if q not in run]
        if lacking:
            raise ValueError(f"InstFol of query {query!r} needs a ranking for {' and '.join(map(repr, lacking))}")
        out.append(JudgedLists(query, tuple(top(run[query], K, query)), tuple(top(run[plain], K, plain))))
    return out


def pairs_of(lists: Sequence[JudgedLists], data: TaskData, subset: str | None) -> list[Pair]:
    """Every different (instructed query, passage) of the lists, with what a judge needs to know.

    Args:
        lists: of :func:`judged_lists`.
        data: the task's data; ``base_queries`` among its side data tells the domain of each query.
        subset: the paper's name of the subset, where the data are one.
    """
    wanted = list(dict.fromkeys((e.query, d) for e in lists for d in (*e.instructed, *e.plain)))
    passages = passage_texts(data.corpus, {d for _, d in wanted})
    texts = dict(zip(data.queries["id"], data.queries["text"], strict=True))
    domains = _column_by_query(data, "base_queries", "domain")
    facets = _facets(data)
    out = []
    for query, document in wanted:
        parts = parse_query_id(query)
        level = parts.level or 0
        out.append(
            Pair(
                query=query,
                document=document,
                instruction=texts[query],
                passage=passages[document],
                rubric=rubric_name(subset or domains.get(parts.base), level),
                level=level,
                facet=facets.get((parts.base, document)),
            )
        )
    return out


def _column_by_query(data: TaskData, config: str, name: str) -> dict[str, str]:
    if config not in data.side:
        return {}
    table = data.side[config]
    return dict(zip(table.column("query-id").to_pylist(), table.column(name).to_pylist(), strict=True))


def _facets(data: TaskData) -> dict[tuple[str, str], int]:
    if "facets" not in data.side:
        return {}
    columns = (data.side["facets"].column(c).to_pylist() for c in ("query-id", "corpus-id", "score"))
    return {(query, document): score for query, document, score in zip(*columns, strict=True)}


@dataclass(frozen=True)
class JudgedRun:
    """A run with a judge's word on the best passages of every instructed query.

    Attributes:
        lists: the ranked lists that were judged.
        pairs: the different pairs.
        judgements: one for each pair.
    """

    lists: list[JudgedLists]
    pairs: list[Pair]
    judgements: list[Judgement]

    def per_query(self) -> dict[str, dict[str, float | None]]:
        """For every instructed query its two InstFol values (``None`` where scores are missing) and mean scores."""
        found = {(p.query, p.document): j for p, j in zip(self.pairs, self.judgements, strict=True)}
        highest = {p.query: p.highest for p in self.pairs}
        rows: dict[str, dict[str, float | None]] = {}
        for entry in self.lists:
            instructed, plain = ([found[entry.query, d] for d in docs] for docs in (entry.instructed, entry.plain))
            rows[entry.query] = {
                INSTFOL: inst_fol_of_lists(_scores(instructed), _scores(plain), highest[entry.query]),
                PAPER_INSTFOL: paper_inst_fol_of_lists(_paper_scores(instructed), _paper_scores(plain)),
                "judge_score_instructed": mean_of_known(_scores(instructed)),
                "judge_score_plain": mean_of_known(_scores(plain)),
            }
        return rows


def judge_run(judge: Judge, run: Run, queries: Iterable[str], data: TaskData, subset: str | None) -> JudgedRun:
    """Let a judge score the best passages of every instructed query; each different pair once.

    Raises:
        ValueError: if the run lacks a query, or the judge returns what :func:`check_judgements` refuses.
    """
    lists = judged_lists(run, queries)
    pairs = pairs_of(lists, data, subset)
    judgements = list(judge.judge(pairs))
    check_judgements(pairs, judgements)
    return JudgedRun(lists, pairs, judgements)


def inst_fol_means(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """InstFol of each level and, as the mean of the levels' means, over all (IFIR, tables 3 and 11), with intervals.

    A query without InstFol is left out; a level of such queries alone has no mean, and then there is no overall one.
    Level 0 (no levels) is a level of its own where there are others too.

    The 95 % intervals (``<key>_low``, ``<key>_high``) are percentiles of 1,000 resamples of base queries, each drawn
    with its instructions of all levels. There is none where the values of a level belong to a single base query.

    Args:
        rows: instructed query id -> row with the two InstFol values.
    """
    out: dict[str, float] = {}
    parts = {q: parse_query_id(q) for q in rows}
    levels = sorted({part.level or 0 for part in parts.values()})
    for name in (INSTFOL, PAPER_INSTFOL):
        known = [
            _Value(parts[q].base, parts[q].level or 0, row[name]) for q, row in rows.items() if row[name] is not None
        ]
        by_level = {level: [v for v in known if v.level == level] for level in levels}
        means = {level: fmean(v.value for v in of_level) for level, of_level in by_level.items() if of_level}
        if levels != [0]:
            for level, mean in means.items():
                key = f"level_{level}_{name}"
                out |= {key: mean} | bounds(key, _resampled(by_level[level]))
        if len(means) == len(levels):
            out |= {name: fmean(means.values())} | bounds(name, _resampled(known))
    return out


class _Value(NamedTuple):
    """InstFol of one query."""

    base: str
    level: int
    value: float


def _resampled(values: Sequence[_Value]) -> Bootstrapped | None:
    """The mean of the levels' means in resamples of the base queries."""
    bases, levels, known = zip(*values, strict=True)
    return bootstrap_clusters(known, bases, levels)


def _scores(judgements: Iterable[Judgement]) -> list[float | None]:
    return [j.score for j in judgements]


def _paper_scores(judgements: Iterable[Judgement]) -> list[float | None]:
    return [j.paper_score if j.paper_score is not None else j.score for j in judgements]
