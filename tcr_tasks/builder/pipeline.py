"""From anyone's tables to a benchmark in the manner of TCR-Bench, step by step."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from evaluators.construction.counts import counted
from evaluators.files import only_run
from evaluators.judge import PromptedAsking
from tcr_tasks.builder import report as told
from tcr_tasks.builder.assembly import (
    Assembled,
    assemble,
    assemble_natural,
    built_questions,
    built_tables,
    template_of,
)
from tcr_tasks.builder.augment import Taste
from tcr_tasks.builder.check import check_written
from tcr_tasks.builder.files import Record, digest
from tcr_tasks.builder.generate import Planned
from tcr_tasks.builder.groups import Group, Making, keep_group, kept_group, misprinted
from tcr_tasks.builder.output import BuiltQuestion, BuiltTable
from tcr_tasks.builder.paraphrase import doubtful_rewrites, paraphrase_headers, paraphrase_questions
from tcr_tasks.builder.plans import Options, Plans, make_plans
from tcr_tasks.builder.review import Decisions, checked_sheet, decide, meanings, read_sheet, said_by, write_review
from tcr_tasks.builder.signals import candidates
from tcr_tasks.builder.sources import databases
from tcr_tasks.builder.tokens import Counter as TokenCounter
from tcr_tasks.builder.wording import natural_question
from tcr_tasks.builder.writing import write_benchmark


def build(
    paths: Sequence[Path],
    out: Path,
    options: Options,
    counter: TokenCounter,
    asking: PromptedAsking | None = None,
    *,
    redo: bool = False,
    tell: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Build a benchmark into ``out``; with the same arguments again, go on where it stopped. Returns the report.

    Args:
        paths: see :func:`~tcr_tasks.builder.sources.read_sources`.
        out: the dataset (own layout), ``out/tcr-open`` (the authors'), ``out/work`` (review sheet, finished groups),
            and the report.
        options: what the user chose.
        counter: counts tokens.
        asking: a language model that rewords questions and headers.
        redo: build again although something else was built there.
        tell: for what happens.

    Raises:
        FileNotFoundError, ValueError: what is wrong with a source, a setting or the review sheet.
        BlockingIOError: if another build writes there.
        RuntimeError: if the last check fails; nothing is written then.
    """
    record = Record(out)
    with only_run(out / "work"):
        return _build(record, paths, out, options, counter, asking, redo=redo, tell=tell)


def _build(
    record: Record,
    paths: Sequence[Path],
    out: Path,
    options: Options,
    counter: TokenCounter,
    asking: PromptedAsking | None,
    *,
    redo: bool,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    # What a person wrote is looked at before anything is made.
    said = [] if options.review is None else checked_sheet(options.review)
    plans = make_plans(paths, options)
    settings = _settings(paths, options, counter, asking)
    record.begin(settings, redo=redo)
    problems: Counter[str] = Counter()
    tastes = {s.place: options.taste for s in plans.sources}
    if asking is not None and not options.natural:
        headers, problems = paraphrase_headers(asking, plans.sources)
        tastes = {place: _with_headers(options.taste, headers.get(place, {})) for place in tastes}
    making = Making(options.budget, counter, options.seed, tastes, options.format)
    assembled, failures = _assembled(plans, making, out / "work" / "groups", digest(settings))
    ambiguous, n_executed = assembled.ambiguous()
    assembled = assembled.without(ambiguous)
    if not assembled.planned:
        why = failures + Counter({"another table answers it, too": len(ambiguous)})
        raise ValueError(
            f"no question is left of {len(plans.planned)}: "
            + "; ".join(f"{reason} ({n} times)" for reason, n in why.most_common(3))
        )
    texts, plain, rewording = _texts(assembled, options, asking)
    tables, questions = built_tables(assembled), built_questions(assembled, texts, options.seed)
    decisions = decide(said, texts, meanings(questions, tables), {t.key for t in tables})
    notes = _review_sheet(out / "work" / "review.csv", tables, questions, options, said)
    notes += doubtful_rewrites(decisions.rewritten, {p.id: p.query for p in assembled.planned})
    reviewed = _counts(decisions, plain, texts)
    if options.review is not None:
        tell(f"{options.review}: {counted(reviewed, zeros=True)}")
        for note in notes:
            tell(note)
    texts, dropped = _decided(texts, plain, decisions)
    assembled = assembled.without(dropped)
    if not assembled.planned:
        raise ValueError(f"the review {options.review} leaves no question")
    tables = [table for table in tables if table.key in assembled.tables]
    questions = [replace(q, text=texts[q.id]) for q in questions if q.id not in dropped]
    checked = check_written(tables, questions, assembled.sources, options.seed)
    report = {
        "title": "TCR-Bench style benchmark" + (", natural groups" if options.natural else ""),
        "sources": told.sources_part(plans.sources, plans.skipped),
        "written": told.size_part(assembled, None if options.natural else options.budget),
        "questions": {
            "n_wished": plans.n_wished,
            "n_planned": len(plans.planned),
            "planned_by_type": told.by_type(plans.planned),
            "n_drafts_left_out": dict(sorted(plans.left_out.items())),
            "n_without_group": sum(failures.values()),
            "why_without_group": dict(sorted(failures.items())),
            "n_dropped_since_ambiguous": len(ambiguous),
            "n_dropped_by_review": len(dropped),
        },
        "verification": {
            "n_rows_kept_out": len({(p.source.place, r) for p in plans.planned for r in plans.forbidden.get(p.id, ())}),
            "ambiguous": {question: ", ".join(keys) for question, keys in ambiguous.items()},
            "n_pairs_executed": n_executed,
            **checked,
        },
        "wording": {
            "form": options.text,
            "model": None if asking is None else asking.model,
            **rewording,
            "headers": dict(sorted(problems.items())),
        },
        "review": {**reviewed, "notes": notes},
        "record": {**settings, "token_counter": counter.name},
    }
    write_benchmark(out, options, tables, questions, report)
    for warning in told.warnings(report):
        tell(warning)
    tell(
        f"{out}: {len(questions)} questions {told.by_type(assembled.planned)} over {len(tables)} tables; "
        f"report: {out / 'report.md'}; for a person: {out / 'work' / 'review.csv'}"
    )
    return report


# --- steps -------------------------------------------------------------------------------------------------------


def _settings(
    paths: Sequence[Path], options: Options, counter: TokenCounter, asking: PromptedAsking | None
) -> dict[str, Any]:
    """Everything that the groups depend on."""
    return {
        "sources": {db_id: _fingerprint(path) for db_id, path in sorted(databases(paths).items())},
        **{name: getattr(options, name) for name in ("seed", "n_queries", "max_answers", "count", "natural")},
        "shares": dict(options.shares),
        # Natural groups are as they are.
        "budget": None if options.natural else asdict(options.budget),
        "taste": None if options.natural else {"plain": options.taste.plain, "shift": options.taste.shift},
        "most_rows": options.most_rows,
        "format": options.format or "mixed",
        "token_counter": counter.name,
        "language_model": None if asking is None else asking.settings(asking.prompts),
    }


def _fingerprint(path: Path) -> str:
    files = [path] if path.is_file() else sorted(file for file in path.iterdir() if file.is_file())
    found = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            found.update(f"{file.name}\0{hashlib.file_digest(handle, 'sha256').hexdigest()}\n".encode())
    return found.hexdigest()[:16]


def _with_headers(taste: Taste, headers: Mapping[str, Sequence[str]]) -> Taste:
    return Taste(taste.plain, taste.shift, headers)


def _assembled(plans: Plans, making: Making, folder: Path, made_from: str) -> tuple[Assembled, Counter[str]]:
    """Every question's tables, finished groups taken from the folder."""
    if plans.natural:
        sources = {s.place: s for members in plans.natural.values() for s in members}
        tables = {place: making.as_it_is(source) for place, source in sources.items()}
        misprints = {p.id: misprinted(p, tables[p.source.place]) for p in plans.planned}
        members = {p.id: (p, plans.natural[p.id]) for p in plans.planned if misprints[p.id] is None}
        reasons = [f"{tables[p.source.place].format}: {why}" for p in plans.planned if (why := misprints[p.id])]
        return assemble_natural(members, tables), Counter(reasons)
    groups: list[Group] = []
    console = Console(stderr=True)
    for p in track(plans.planned, "groups", console=console, disable=not console.is_terminal):
        forbidden = plans.forbidden[p.id]
        key = digest([made_from, p.id, p.source.place, p.query.to_json(), sorted(forbidden)])
        group = kept_group(folder, p.id, key)
        if group is None:
            group = making.group(p, forbidden)
            keep_group(folder, group, key)
        groups.append(group)
    failures = Counter(_without_id(g.failure, g.question) for g in groups if g.failure is not None)
    return assemble(plans.planned, groups, plans.sources, making.seed), failures


def _without_id(failure: str, question: str) -> str:
    return failure.removeprefix(question).removeprefix(":").strip().removeprefix("on ")


def _texts(
    assembled: Assembled, options: Options, asking: PromptedAsking | None
) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """The questions' texts, those without a language model, and what became of the paraphrases."""
    plain = {p.id: _text(p, options) for p in assembled.planned}
    if asking is None or options.text != "natural":
        return dict(plain), plain, {}
    made = paraphrase_questions(asking, assembled.planned, plain)
    counts = {"n_paraphrased": len(made.texts), "n_not_paraphrased": dict(sorted(made.problems.items()))}
    return {**plain, **made.texts}, plain, counts


def _text(planned: Planned, options: Options) -> str:
    if options.text == "template":
        return template_of(planned, options.seed)
    if options.text == "sentential":
        return planned.query.sentential()
    return natural_question(planned.query, random.Random(f"{options.seed}:wording:{planned.id}"))


def _review_sheet(
    path: Path,
    tables: Sequence[BuiltTable],
    questions: Sequence[BuiltQuestion],
    options: Options,
    said: Sequence[Mapping[str, str]],
) -> list[str]:
    """Write the sheet, with what was said in it and in the user's; notes on signals that are not in it."""
    if not options.top_k:
        return []
    found, notes = candidates(tables, questions, options.top_k, options.encoder)
    before = read_sheet(path) if path.is_file() else []
    write_review(path, questions, tables, found, {**said_by(before), **said_by(said)})
    return notes


def _decided(
    texts: Mapping[str, str], plain: Mapping[str, str], decisions: Decisions
) -> tuple[dict[str, str], set[str]]:
    """Texts after the review, and the questions that go: ambiguous ones, and those whose own wording was rejected.

    Of a rejected paraphrase the question by template is left.
    """
    repaired = {q: plain[q] for q in decisions.rejected if texts[q] != plain[q]}
    dropped = set(decisions.ambiguous) | {q for q in decisions.rejected if texts[q] == plain[q]}
    return {**texts, **repaired, **decisions.rewritten}, dropped


def _counts(decisions: Decisions, plain: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, int]:
    return {
        "n_kept": decisions.kept,
        "n_rewritten": len(decisions.rewritten),
        "n_wordings_rejected": len(decisions.rejected),
        "n_paraphrases_replaced_by_template": sum(texts[q] != plain[q] for q in decisions.rejected),
        "n_dropped_since_a_table_answers_too": len(decisions.ambiguous),
        "n_undecided": decisions.open,
        "n_decisions_without_question": decisions.unknown,
    }
