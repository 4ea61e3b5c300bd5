"""What a finished dataset is like: its size as in IFIR's table 1, agreement as in table 2, and what was left out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from evaluators.construction.sheets import Cells
from evaluators.construction.workspace import Row
from ifir_tasks.construction.rating import CRITERIA, EXCLUDED, RELEVANT, means
from ifir_tasks.construction.relevance import Verdict
from ifir_tasks.construction.review import INSTRUCTION_RATINGS, InstructionReview, Settled
from ifir_tasks.ids import parse_query_id

_CRITERION = {
    "naturalness": "Instruction: naturalness",
    "fluency": "Instruction: fluency",
    "expertise": "Instruction: expertise",
    RELEVANT: "Relevant passage: agreement",
    EXCLUDED: "Excluded passage: agreement",
}


def sizes(relevant: Mapping[str, Sequence[str]], corpus_size: int) -> dict[str, Any]:
    """Instructed queries, corpus size and mean number of relevant passages per instructed query, also by level.

    Args:
        relevant: passages by instructed query of the dataset.
        corpus_size: passages in the corpus.
    """
    levels = sorted({parse_query_id(q).level or 0 for q in relevant})
    return {
        **_size(list(relevant.values())),
        "n_base_queries": len({parse_query_id(q).base for q in relevant}),
        "corpus_size": corpus_size,
        "by_level": {
            str(level): _size([ds for q, ds in relevant.items() if parse_query_id(q).level == level])
            for level in levels
        },
    }


def _size(lists: Sequence[Sequence[str]]) -> dict[str, float | int]:
    return {"n_queries": len(lists), "relevant_per_query": sum(map(len, lists)) / len(lists)}


def agreement(reviews: Mapping[str, InstructionReview], passages: Sequence[Cells]) -> dict[str, Any]:
    """The reviewers' mean ratings on table 2's criteria, and how often they let the pipeline's word stand.

    An edited instruction is rated as it was generated. A ``share`` is ``None`` where nobody decided.
    """
    ratings: dict[str, list[int]] = {name: [] for name in CRITERIA}
    for review in reviews.values():
        for name in INSTRUCTION_RATINGS:
            if name in review.ratings:
                ratings[name].append(review.ratings[name])
    of_verdict = {Verdict.KEPT.name.lower(): RELEVANT, Verdict.EXCLUDED.name.lower(): EXCLUDED}
    for row in passages:
        if row["agreement"].strip():
            ratings[of_verdict[row["verdict"]]].append(int(float(row["agreement"].replace(",", "."))))
    decisions = [r.decision for r in reviews.values() if r.decision]
    return {
        "ratings": means(ratings),
        "instructions_accepted": _share([d == "accept" for d in decisions]),
        "kept_confirmed": _share([_stands(r, "keep") for r in passages if r["verdict"] == "kept" and _decided(r)]),
        "excluded_confirmed": _share(
            [_stands(r, "exclude") for r in passages if r["verdict"] == "excluded" and _decided(r)]
        ),
    }


def _decided(row: Cells) -> bool:
    return bool(row["decision"].strip())


def _stands(row: Cells, same: str) -> bool:
    return row["decision"].strip().lower() in ("accept", same)


def _share(values: Sequence[bool]) -> dict[str, float | int | None]:
    return {"share": sum(values) / len(values) if values else None, "n": len(values)}


def left_out(made: Sequence[Row], checked: Sequence[Row], reviews: Mapping[str, InstructionReview]) -> dict[str, int]:
    """Counts of what the stages could not read or the experts excluded."""
    return {
        "n_instructions_unreadable": sum(row["instruction"] is None for row in made),
        "n_instructions_edited": sum(r.edited for r in reviews.values()),
        "n_instructions_excluded": sum(r.decision == "exclude" for r in reviews.values()),
        "n_passages_checked": len(checked),
        "n_verdicts_unreadable": sum(bool(row["problem"]) for row in checked),
        "n_kept_against_label": sum(row["against_label"] and row["verdict"] == "kept" for row in checked),
    }


def settled_counts(settled: Settled) -> dict[str, int]:
    """Counts of what the decisions came to."""
    return {
        "n_passages_excluded": sum(map(len, settled.excluded.values())),
        "n_passages_undecided": len(settled.undecided),
        "n_lowered_by_nesting_after_review": settled.lowered,
    }


def markdown(report: Mapping[str, Any]) -> str:
    """The report as tables."""
    size = report["size"]
    rows = [["all", size["n_queries"], size["corpus_size"], f"{size['relevant_per_query']:.2f}"]]
    rows += [
        [f"level {level}", found["n_queries"], "", f"{found['relevant_per_query']:.2f}"]
        for level, found in size["by_level"].items()
        if level != "0"
    ]
    parts = [
        f"# {report['domain']}, route {report['route']}",
        _table(rows, ["", "instructed queries", "corpus size", "relevant passages per instructed query"]),
        "Mean ratings, 1 to 5 (number of ratings in brackets):",
        _table(
            [[_CRITERION[c], *(_rated(report[who][c]) for who in ("review", "final_check"))] for c in CRITERIA],
            ["criterion", "reviewers", "outside rater"],
        ),
        _table(
            [[name.replace("_", " "), _shared(share)] for name, share in report["decisions"].items()], ["", "share"]
        ),
        _table([[name[2:].replace("_", " "), n] for name, n in report["counts"].items()], ["count of", ""]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    return str(tabulate(rows, headers, tablefmt="github", disable_numparse=True))


def _rated(found: Mapping[str, Any]) -> str:
    return "not rated" if found["mean"] is None else f"{found['mean']:.2f} ({found['n']})"


def _shared(found: Mapping[str, Any]) -> str:
    return "nobody decided" if found["share"] is None else f"{found['share']:.2f} of {found['n']}"


def as_json(report: Mapping[str, Any]) -> str:
    """The report as JSON."""
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"
