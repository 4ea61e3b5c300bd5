"""From a retrieval set to an IFIR-style dataset: every stage that can be done now, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.construction.readers import LABEL
from evaluators.construction.workspace import Pause, Row, Workspace
from evaluators.files import write_text
from evaluators.plugin.checks import shown
from evaluators.plugin.dataset import Card, is_dataset_directory
from ifir_tasks.construction import export, statistics
from ifir_tasks.construction.instructions import instruction_of
from ifir_tasks.construction.prompts import DomainAsking
from ifir_tasks.construction.rating import N_EXAMPLES, SHEET, means, rate
from ifir_tasks.construction.relevance import Verdict, check_relevance, nest_rows
from ifir_tasks.construction.review import (
    INSTRUCTIONS,
    PASSAGES,
    InstructionReview,
    Pair,
    review_instructions,
    review_passages,
    settle,
    unreviewed,
)
from ifir_tasks.construction.routes import Route, asks_for_relevance, instructions_by
from ifir_tasks.construction.sources import Source


@dataclass(frozen=True)
class Options:
    """What the user chose.

    Attributes:
        route: how instructions come about.
        seed: of every random choice.
        n_marks: citation marks per judgement, for the route ``fire``.
        accept_unreviewed: whether to write the dataset although somebody's decisions are missing.
        keep_empty: whether to keep instructions that no passage meets.
        n_examples: how many for the final check.
        license: of the dataset, a hub licence id.
    """

    route: Route = "levels"
    seed: int = 0
    n_marks: int = 1
    accept_unreviewed: bool = False
    keep_empty: bool = False
    n_examples: int = N_EXAMPLES
    license: str = "unknown"


def build(workspace: Workspace, source: Source, asking: DomainAsking, options: Options) -> dict[str, Any]:
    """Do every stage that is not done yet, up to the first that waits for somebody; return the report.

    Raises:
        Pause: if decisions of reviewers are missing, or in a dry run.
        ValueError: naming what is wrong with a source, a setting or a sheet.
        ConnectionError: if calls failed.
    """
    made = instructions_by(options.route, workspace, asking, source, options.seed, options.n_marks)
    instructions = [instruction_of(row) for row in made if row["instruction"] is not None]
    if not instructions:
        raise ValueError(f"no reply held an instruction ({len(made)} replies, see `problem` in {workspace.work})")
    checker = asking if asks_for_relevance(options.route) else None
    checked = check_relevance(workspace, checker, source, instructions, "relevance")
    reviews = review_instructions(workspace, instructions)
    checked = _with_edited(workspace, checker, source, reviews, checked)
    if workspace.dry_run:
        raise Pause("dry run: nothing is left to ask")
    verdicts, lowered = _verdicts(reviews, checked)
    labels = {(row["query-id"], row["passage-id"]): row[LABEL] for row in checked}
    passages = review_passages(workspace, source, reviews, verdicts, labels)
    settled = settle(workspace, reviews, passages, checked)
    waiting = unreviewed(reviews, passages)
    if any(waiting.values()) and not options.accept_unreviewed:
        raise Pause(_what_waits(workspace, waiting))
    chosen, counts = export.exported(settled, options.keep_empty)
    relevant = {i.id: settled.relevant[i.id] for i in chosen}
    ratings = rate(workspace, source, settled, list(relevant), options.seed, options.n_examples)
    agreed = statistics.agreement(reviews, passages)
    report = {
        "domain": asking.domain.name,
        "route": options.route,
        "size": statistics.sizes(relevant, len(source.corpus)),
        "review": agreed.pop("ratings"),
        "decisions": agreed,
        "final_check": means(ratings),
        "counts": {
            **source.counts,
            **statistics.left_out(made, checked, reviews),
            "n_lowered_by_nesting": lowered,
            **statistics.settled_counts(settled),
            **{f"n_unreviewed_{what.replace(' ', '_')}": len(ids) for what, ids in waiting.items()},
            **counts,
        },
        "undecided": [list(pair) for pair in settled.undecided],
        "record": {"seed": options.seed, **asking.record()},
    }
    export.write(workspace, source, chosen, settled, asking.domain.name, _card(report, options.license))
    write_text(workspace.work / "report.json", statistics.as_json(report))
    write_text(workspace.work / "report.md", statistics.markdown(report))
    workspace.tell(
        f"report: {workspace.work / 'report.md'}; for the final check give {SHEET.path(workspace)} to an expert who "
        "had no part in the work, and run again"
    )
    return report


def _with_edited(
    workspace: Workspace,
    checker: DomainAsking | None,
    source: Source,
    reviews: Mapping[str, InstructionReview],
    checked: Sequence[Row],
) -> list[Row]:
    """The checks, with those of edited instructions in place of the earlier ones."""
    edited = [r.instruction for r in reviews.values() if r.edited]
    if not edited:
        return list(checked)
    anew = check_relevance(workspace, checker, source, edited, "relevance-edited")
    by_pair = {(row["query-id"], row["passage-id"]): row for row in anew}
    return [by_pair.get((row["query-id"], row["passage-id"]), row) for row in checked]


def _verdicts(
    reviews: Mapping[str, InstructionReview], checked: Sequence[Row]
) -> tuple[dict[Pair, tuple[Verdict, str]], int]:
    """Nested verdicts; an excluded instruction takes no part in the nesting of the others."""
    used = [r.instruction for r in reviews.values() if r.decision != "exclude"]
    verdicts, lowered = nest_rows(checked, used)
    for review in reviews.values():
        if review.decision == "exclude":
            verdicts |= nest_rows(checked, [review.instruction])[0]
    return {(r["query-id"], r["passage-id"]): verdicts[r["query-id"], r["passage-id"]] for r in checked}, lowered


def _what_waits(workspace: Workspace, waiting: Mapping[str, list[str]]) -> str:
    told = "; ".join(f"{what}: {len(ids)} ({shown(ids)})" for what, ids in waiting.items() if ids)
    before = is_dataset_directory(workspace.directory)
    sheets = {
        "instruction": f"{INSTRUCTIONS.path(workspace)} (decision: accept, edit or exclude; ratings 1-5)",
        "passage": f"{PASSAGES.path(workspace)} (decision: accept the verdict, keep or exclude; agreement 1-5)",
    }
    open_ = [place for sheet, place in sheets.items() if any(ids and sheet in what for what, ids in waiting.items())]
    return f"waiting for review: {told}. Fill in {' and '.join(open_)}, and run again; or pass --accept-unreviewed" + (
        f". The dataset in {workspace.directory} is the one written before" if before else ""
    )


def _card(report: Mapping[str, Any], license_id: str) -> Card:
    counts = report["counts"]
    waiting = {k: n for k, n in counts.items() if k.startswith("n_unreviewed_") and n}
    told = ", ".join(f"{n} {k.removeprefix('n_unreviewed_').replace('_', ' ')}" for k, n in waiting.items())
    reviewed = f"Decisions of reviewers are missing: {told}." if told else "Every row was reviewed."
    tables = statistics.markdown(report).partition("\n\n")[2]
    model = report["record"]["model"] or "no language model"
    return Card(
        title=f"IFIR-style dataset: {report['domain']} ({report['route']})",
        body=(
            "Instruction-following retrieval: base queries (`-og`) with instructions (`-v0`, or `-v1` to `-v3` of "
            "rising complexity), built from a retrieval set in the way of IFIR (arXiv 2503.04644): instructions and "
            f"checks of relevance by {model}, then review by experts. {reviewed}\n\n{tables}"
        ),
        license=license_id,
        tags=("retrieval", "instruction-following"),
    )
