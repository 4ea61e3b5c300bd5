"""The command ``mteb-beyond tcr build``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcr_tasks.options import require_folder

if TYPE_CHECKING:
    from evaluators.judge import PromptedAsking
    from tcr_tasks.builder.plans import Options, Plans


def add_build_command(steps: Any) -> None:
    """Add ``build`` to the sub-commands of ``mteb-beyond tcr``."""
    from evaluators.judge.options import add_model_options

    command = steps.add_parser(
        "build",
        help="build a benchmark in the manner of TCR-Bench from your own tables",
        description=(
            "Build a benchmark of questions that exactly one table answers, among siblings that look alike, from "
            "SQLite files, folders of CSV or parquet files, or a folder of databases <name>/<name>.sqlite. Nothing "
            "leaves this machine unless --llm names a model elsewhere. Run it again with the same arguments: finished "
            "groups are kept. Afterwards look through DIR/work/review.csv, fill in its columns decision and rewrite, "
            "and run again with --review."
        ),
    )
    command.add_argument("sources", nargs="+", type=Path, metavar="SOURCE", help="a SQLite file or a folder")
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="where the benchmark goes")
    command.add_argument(
        "--natural",
        action="store_true",
        help="groups of source tables that share a schema (partitions by year, region, branch), as they are; one "
        "question a table at most",
    )
    _add_questions(command.add_argument_group("questions"))
    _add_tables(command.add_argument_group("tables"))
    _add_review(command.add_argument_group("review"))
    add_model_options(
        command.add_argument_group("language model"),
        "llm",
        "model that rewords questions and headers; it sees column names, some values of each, and the questions",
    )
    command.add_argument("--prompts", type=Path, metavar="DIR", help="prompts to use in place of ours of the same name")
    command.add_argument("--seed", type=int, default=0, help="of everything that is drawn (%(default)s)")
    command.add_argument(
        "--layout",
        choices=("own", "tcr-open", "both"),
        default="own",
        help="own: this project's, into DIR; tcr-open: that of TCR-Bench's authors, into DIR/tcr-open (%(default)s)",
    )
    command.add_argument(
        "--license", default="unknown", metavar="ID", help="of the dataset, for its card (%(default)s)"
    )
    command.add_argument("--redo", action="store_true", help="build again although DIR was built from something else")
    command.add_argument(
        "--dry-run", action="store_true", help="say what would be asked of which tables and of the model; write nothing"
    )
    command.set_defaults(func=_build)


def _add_questions(group: Any) -> None:
    group.add_argument(
        "--queries",
        type=int,
        metavar="N",
        help="how many questions (default: four for each table, one with --natural, 209 at most)",
    )
    group.add_argument(
        "--types",
        type=_shares,
        metavar="T=N,...",
        help="relative numbers of exact match, filtering and aggregation (default: EM=98,SF=55,SA=56, as released)",
    )
    group.add_argument("--count", action="store_true", help="COUNT as an aggregate beside SUM, AVG, MIN and MAX")
    group.add_argument(
        "--max-answers",
        type=int,
        default=5,
        metavar="N",
        help="rows that may answer a question; an aggregate may take in four times as many (%(default)s)",
    )
    group.add_argument(
        "--text",
        choices=("natural", "template", "sentential"),
        default="natural",
        help="what a retriever is asked: plain English, by template or reworded by --llm; a fixed pattern; or the "
        "conditions as sentences (%(default)s)",
    )


def _add_tables(group: Any) -> None:
    group.add_argument(
        "--tokens", type=_range, default=(6_500, 7_800), metavar="LOW,HIGH", help="of a table (6500,7800)"
    )
    group.add_argument(
        "--format",
        choices=("mixed", "csv", "html", "markdown"),
        default="mixed",
        help="in which tables are measured and printed in the Mixed setting: mixed draws one for each (%(default)s)",
    )
    group.add_argument(
        "--plain",
        type=float,
        default=0.5,
        metavar="P",
        help="probability that a column's values stay as they are in a table; else dates and numbers are written in "
        "another form (%(default)s)",
    )
    group.add_argument(
        "--shift",
        type=float,
        default=0.03,
        metavar="P",
        help="probability that a column of numbers is multiplied, divided or increased, which its header says "
        "(%(default)s)",
    )
    group.add_argument(
        "--rows", type=int, default=20_000, metavar="N", help="rows of a source that are used at most (%(default)s)"
    )


def _add_review(group: Any) -> None:
    group.add_argument(
        "--top-k",
        type=int,
        default=5,
        metavar="K",
        help="for each question, the K tables outside its group that each signal puts first (BM25, shared values, "
        "shared columns, an encoder) go into DIR/work/review.csv; 0: no such file (%(default)s)",
    )
    group.add_argument("--encoder", metavar="MODEL", help="a sentence-transformers model as one more signal")
    group.add_argument(
        "--review",
        type=Path,
        metavar="FILE",
        help="the filled-in review.csv: decision keep, drop or rewrite for a wording, keep or drop (this table "
        "answers, too) for a table",
    )


def _build(args: argparse.Namespace) -> int:
    from tcr_tasks.builder.pipeline import build
    from tcr_tasks.builder.plans import make_plans
    from tcr_tasks.builder.tokens import default_counter

    require_folder(args.out.expanduser())
    options, asking = _options(args), _asking(args)
    if args.dry_run:
        _tell_plans(make_plans(args.sources, options), asking)
        return 0
    build(args.sources, args.out.expanduser(), options, default_counter(), asking, redo=args.redo)
    return 0


def _options(args: argparse.Namespace) -> Options:
    from tcr_tasks.builder.augment import Taste
    from tcr_tasks.builder.generate import RELEASED_SHARES
    from tcr_tasks.builder.length import Budget
    from tcr_tasks.builder.plans import Options
    from tcr_tasks.serialize import TableFormat

    for name, least in (("queries", 1), ("max_answers", 1), ("top_k", 0), ("rows", 2)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise ValueError(f"--{name.replace('_', '-')} must be at least {least}, got {value}")
    low, high = args.tokens
    fmt = None if args.format == "mixed" else TableFormat(args.format)
    return Options(
        seed=args.seed,
        n_queries=args.queries,
        max_answers=args.max_answers,
        shares=args.types or dict(RELEASED_SHARES),
        count=args.count,
        natural=args.natural,
        budget=Budget(lower=low, upper=high, measured_as=fmt),
        taste=Taste(args.plain, args.shift),
        most_rows=args.rows,
        text=args.text,
        format=fmt,
        layout=args.layout,
        top_k=args.top_k,
        encoder=args.encoder,
        review=args.review,
        license=args.license,
    )


def _asking(args: argparse.Namespace) -> PromptedAsking | None:
    if args.llm is None:
        if args.prompts is not None:
            raise ValueError("--prompts are for a language model: name one with --llm")
        return None
    from evaluators.judge import PromptedAsking
    from evaluators.judge.options import language_model_of, sampling_of
    from tcr_tasks.builder.paraphrase import read_prompts

    return PromptedAsking(
        language_model_of(args, "llm"), args.llm, sampling_of(args, "llm"), read_prompts(args.prompts)
    )


def _tell_plans(plans: Plans, asking: PromptedAsking | None) -> None:
    from tcr_tasks.builder.paraphrase import header_requests, question_requests
    from tcr_tasks.builder.report import by_type

    types = by_type(plans.planned)
    print(f"{len(plans.sources)} usable tables; {len(plans.planned)} of {plans.n_wished} questions {types}")
    for skipped in plans.skipped:
        print(f"not used: {skipped.place}: {skipped.reason}")
    for reason, count in sorted(plans.left_out.items()):
        print(f"drafts left out: {reason}: {count}")
    if asking is not None:
        # The prompts' length: the texts themselves are not written yet.
        texts = {p.id: p.query.template(0) for p in plans.planned}
        requests = question_requests(asking, plans.planned, texts)
        requests += [] if plans.natural else header_requests(asking, plans.sources)
        print(f"language model: {asking.language_model.plan(requests).told(asking.language_model.price)}")


def _range(text: str) -> tuple[int, int]:
    try:
        low, high = (int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected two whole numbers such as 6500,7800, got {text!r}") from None
    if not 0 < low <= high:
        raise argparse.ArgumentTypeError(f"expected the smaller number first, both above 0, got {text!r}")
    return low, high


def _shares(text: str) -> dict[str, float]:
    try:
        shares = {name.strip().upper(): float(n) for name, n in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected types with numbers such as EM=2,SF=1,SA=1, got {text!r}") from None
    if set(shares) - {"EM", "SF", "SA"} or min(shares.values()) < 0 or not 0 < sum(shares.values()) < float("inf"):
        raise argparse.ArgumentTypeError(f"expected numbers of 0 or more for some of EM, SF, SA, got {text!r}")
    return shares
