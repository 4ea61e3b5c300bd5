"""The command ``mteb-beyond ifir build``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from evaluators.construction.options import WAITING, add_next_stage_dry_run_option, add_stage_options, workspace_of


def add_build_command(action: Any) -> None:
    """Add ``build`` to the sub-commands of ``mteb-beyond ifir``."""
    from evaluators.judge.options import add_model_options
    from ifir_tasks.construction.domains import read_domains
    from ifir_tasks.construction.rating import N_EXAMPLES
    from ifir_tasks.construction.routes import ROUTES

    command = action.add_parser(
        "build",
        help="build a dataset with instructions from a retrieval set",
        description=(
            "Build an IFIR-style dataset from a retrieval set: instructions by a language model, level by level; a "
            "check of every relevant passage against each; sheets for experts; the dataset with its statistics; "
            "examples for a final check. Run it again with the same arguments: finished stages are skipped, and it "
            "goes on as soon as the sheets in DIR/work are filled in: `decision` for each instruction (accept, edit, "
            "exclude) and each passage (accept the verdict, keep, exclude; a passage kept at a level must be kept at "
            "those below), ratings 1 to 5. "
            f"Exit code {WAITING}: it waits for somebody."
        ),
    )
    for name, what in (("corpus", "corpus.jsonl"), ("queries", "queries.jsonl"), ("qrels", "qrels/test.tsv")):
        command.add_argument(
            f"--{name}",
            required=True,
            type=Path,
            metavar="PATH",
            help=f"{what} as in BEIR, {name}.parquet, or a dataset directory with either",
        )
    command.add_argument(
        "--domain",
        required=True,
        metavar="NAME",
        help=f"what experts of a field ask for: {', '.join(sorted(read_domains()))}, or one of --domains",
    )
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="the dataset directory")
    command.add_argument(
        "--route",
        choices=ROUTES,
        default="levels",
        help="where instructions come from: levels: a language model, each level built on the one before; nfcorpus: a "
        "language model, one instruction from the query's fields; fire: the context of a citation mark; cds: the "
        "query's description, without a language model (%(default)s)",
    )
    command.add_argument(
        "--domains", type=Path, metavar="PATH", help="further domains: a JSON file or a folder of them"
    )
    command.add_argument("--prompts", type=Path, metavar="DIR", help="prompts to use in place of ours of the same name")
    command.add_argument("--seed", type=int, default=0, help="of every random choice (%(default)s)")
    command.add_argument(
        "--min-grade", type=int, default=1, metavar="N", help="lowest grade that is relevant (%(default)s)"
    )
    command.add_argument(
        "--marks", type=int, default=1, metavar="N", help="fire: most citation marks of a judgement (%(default)s)"
    )
    command.add_argument(
        "--examples", type=int, default=N_EXAMPLES, metavar="N", help="for the final check (%(default)s)"
    )
    command.add_argument(
        "--license", default="unknown", metavar="ID", help="of the dataset, for its card (%(default)s)"
    )
    for name, what in (
        ("accept-unreviewed", "write the dataset although decisions of reviewers are missing; the card says so"),
        ("keep-empty", "keep instructions that no passage meets"),
    ):
        command.add_argument(f"--{name}", action="store_true", help=what)
    add_stage_options(command)
    add_next_stage_dry_run_option(command)
    add_model_options(command.add_argument_group("language model"), "llm", "model that writes and checks instructions")
    command.set_defaults(func=_build)


def _build(args: argparse.Namespace) -> int:
    from evaluators.construction.workspace import Pause
    from evaluators.judge.options import language_model_of, sampling_of
    from ifir_tasks.construction.domains import choose_domain
    from ifir_tasks.construction.pipeline import Options, build
    from ifir_tasks.construction.prompts import DomainAsking, read_prompts
    from ifir_tasks.construction.sources import read_source

    for name in ("marks", "examples"):
        if getattr(args, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(args, name)}")
    domain = choose_domain(args.domain, args.domains)
    language_model = language_model_of(args, "llm")
    asking = DomainAsking(language_model, args.llm or "", sampling_of(args, "llm"), read_prompts(args.prompts), domain)
    workspace = workspace_of(args, language_model if args.llm else None)
    source = read_source(args.corpus, args.queries, args.qrels, args.min_grade)
    options = Options(
        args.route, args.seed, args.marks, args.accept_unreviewed, args.keep_empty, args.examples, args.license
    )
    try:
        build(workspace, source, asking, options)
    except Pause as pause:
        print(pause)
        return 0 if args.dry_run else WAITING
    return 0
