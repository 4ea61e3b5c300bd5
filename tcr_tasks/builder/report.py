"""What a build made, dropped and why, as JSON and as Markdown."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from tcr_tasks.builder.assembly import Assembled
from tcr_tasks.builder.generate import Planned
from tcr_tasks.builder.length import Budget
from tcr_tasks.builder.sources import Skipped, SourceTable

_LONGEST_LIST = 200


def sources_part(sources: Sequence[SourceTable], skipped: Sequence[Skipped]) -> dict[str, Any]:
    """Databases, tables, rows, and everything that is not used."""
    return {
        "n_databases": len({s.db_id for s in sources}),
        "n_tables": len(sources),
        "n_rows": sum(s.n_rows for s in sources),
        "n_rows_used": sum(len(s.frame) for s in sources),
        "skipped": [{"place": s.place, "reason": s.reason} for s in skipped],
    }


def by_type(planned: Sequence[Planned]) -> dict[str, int]:
    """How many questions of each type."""
    counts = Counter(p.query.question_type for p in planned)
    return {t: counts[t] for t in ("EM", "SF", "SA") if counts[t]}


def size_part(assembled: Assembled, budget: Budget | None) -> dict[str, Any]:
    """Questions, tables, group sizes, strategies and lengths of what is written."""
    sizes = [len(keys) for keys in assembled.groups.values()]
    tokens = [table.tokens for table in assembled.tables.values()]
    strategies = Counter(table.strategy for table in assembled.tables.values())
    out: dict[str, Any] = {
        "n_questions": len(assembled.planned),
        "by_type": by_type(assembled.planned),
        "aggregates": dict(sorted(Counter(p.query.aggregate for p in assembled.planned if p.query.aggregate).items())),
        "conditions": dict(sorted(Counter(str(len(p.query.conditions)) for p in assembled.planned).items())),
        "n_tables": len(assembled.tables),
        "group_sizes": {str(size): n for size, n in sorted(Counter(sizes).items())},
        "chance_ds_at_1": statistics.fmean(1 / size for size in sizes) if sizes else None,
        "strategies": dict(sorted(strategies.items())),
        "formats": dict(sorted(Counter(str(t.format) for t in assembled.tables.values()).items())),
        "tokens": {"min": min(tokens), "median": statistics.median(tokens), "max": max(tokens)} if tokens else None,
        "n_tables_with_lost_values": sum(bool(table.lost) for table in assembled.tables.values()),
        "n_tables_with_shifted_numbers": sum(bool(table.notes) for table in assembled.tables.values()),
    }
    if budget is not None:
        out["n_tables_outside_budget"] = sum(not budget.holds(n) for n in tokens)
    return out


# What a reader may not guess, by the name of a figure.
_MEANINGS = {
    "n_rows_used": "of longer tables some are drawn",
    "chance_ds_at_1": "DS@1 of a model that guesses within the group, 0 to 1",
    "group_sizes": "size: groups; the target counts",
    "tokens": "of a printed table, by the counter that the record names",
    "n_tables_with_lost_values": "tables in whose format the authors' way of printing rounds or drops some values; no "
    "answer depends on them",
    "n_tables_outside_budget": "their source has too few rows for so many tokens, or rows too long",
    "n_wished": "asked for, or four for each table (with natural groups: one)",
    "n_drafts_left_out": "drawn and thrown away; another draft took their place while the tables gave any",
    "n_dropped_since_ambiguous": "another table turned out to answer them, too",
    "n_rows_kept_out": "rows that answer a question and are in no table of another one",
    "n_pairs_executed": "pairs of question and table with its columns, in SQL",
    "n_pairs_executed_after_writing": "the same on the written files",
    "n_pairs_answered_without_sql": "of them, answered once more without SQL: every target, and others drawn at random",
    "headers": "why a column has no other name",
    "n_decisions_without_question": "on questions, wordings or tables that are not there any more: they count for "
    "nothing",
    "budget": "tokens of a table; measured as: null means in its own format",
    "taste": "probability that a column stays plain, and that its numbers are shifted",
}


def warnings(report: Mapping[str, Any]) -> list[str]:
    """What a user should know without opening the report."""
    written, questions = report["written"], report["questions"]
    out = []
    if written["n_questions"] < questions["n_wished"]:
        out.append(
            f"{written['n_questions']} questions of the {questions['n_wished']} wished for: the report's part "
            "'questions' says why"
        )
    outside = written.get("n_tables_outside_budget", 0)
    if outside:
        out.append(
            f"{outside} of {written['n_tables']} tables lie outside the token budget (median "
            f"{written['tokens']['median']:.0f}): their sources are too small for it, or their rows too long; "
            "--tokens sets another one"
        )
    return out


def markdown(report: Mapping[str, Any]) -> str:
    """The report as tables."""
    parts = [f"# {report['title']}"]
    for name, part in report.items():
        if name == "title":
            continue
        parts.append(f"## {name.replace('_', ' ')}")
        if isinstance(part, Mapping):
            plain = [
                [key.replace("_", " "), _told(value), _MEANINGS.get(key, "")]
                for key, value in part.items()
                if key != "skipped"
            ]
            parts.append(tabulate(plain, ["", "", "meaning"], tablefmt="github", disable_numparse=True))
            if part.get("skipped"):
                rows = [[_cell(s["place"]), _cell(s["reason"])] for s in part["skipped"][:_LONGEST_LIST]]
                parts.append(tabulate(rows, ["not used", "why"], tablefmt="github", disable_numparse=True))
                if len(part["skipped"]) > _LONGEST_LIST:
                    parts.append(f"... and {len(part['skipped']) - _LONGEST_LIST} more, see report.json")
        else:
            parts.append(_told(part))
    return "\n\n".join(parts) + "\n"


def _told(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return _cell("; ".join(f"{key}: {_told(item)}" for key, item in value.items())) or "none"
    if isinstance(value, list):
        return _cell("; ".join(map(str, value))) or "none"
    return _cell(f"{value:.3f}" if isinstance(value, float) else str(value))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
