"""The command ``mteb-beyond followir build``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from evaluators.construction.options import WAITING, add_next_stage_dry_run_option, add_stage_options, workspace_of


def add_build_command(steps: Any) -> None:
    """Add ``build`` to the sub-commands of ``mteb-beyond followir``."""
    from evaluators.judge.options import add_model_options
    from evaluators.plugin.models import BM25

    command = steps.add_parser(
        "build",
        help="build a set of paired instructions from a judged collection",
        description=(
            "Build a FollowIR-style dataset from TREC topics, judgements and documents: for each topic an instruction "
            "that narrows the narrative, by a language model or by people; the relevant documents, and only these, "
            "judged again; sheets for people; candidates pooled from models; the dataset with its statistics. Run it "
            "again with the same arguments: finished stages are skipped, and it goes on as soon as the sheets in "
            f"DIR/work are filled in. Exit code {WAITING}: it waits for somebody."
        ),
    )
    source = command.add_argument_group("source")
    source.add_argument(
        "--topics", required=True, type=Path, metavar="FILE", help="TREC topics: SGML, XML, or JSON lines (.jsonl)"
    )
    source.add_argument(
        "--qrels",
        required=True,
        type=Path,
        metavar="FILE",
        help="TREC's four columns, BEIR's tab-separated file, or a dataset directory with either",
    )
    source.add_argument(
        "--docs",
        required=True,
        metavar="PLACE",
        help="a file or folder of TREC's SGML (gzip, too) or JSON lines, a dataset directory, or ir_datasets:ID",
    )
    source.add_argument(
        "--query", choices=("description", "title"), default="description", help="what the query is (%(default)s)"
    )
    source.add_argument(
        "--min-grade", type=int, default=1, metavar="N", help="lowest grade that is relevant (%(default)s)"
    )
    source.add_argument(
        "--exclude",
        nargs="+",
        type=Path,
        default=[],
        metavar="PATH",
        help="other sets, as files of topics or dataset directories: left out are the same numbers, and the same or "
        "nearly the same requests under other numbers",
    )
    source.add_argument("--n-topics", type=int, metavar="N", help="how many to draw (default: all that can be used)")
    source.add_argument("--seed", type=int, default=0, help="of every random choice (%(default)s)")
    change = command.add_argument_group("changed instructions")
    change.add_argument(
        "--stay",
        nargs=2,
        type=float,
        default=(35.0, 65.0),
        metavar=("LEAST", "MOST"),
        help="percent of a topic's relevant documents that stay relevant; other topics are drafted again, or left out. "
        "FollowIR asked for about half (default: 35 65)",
    )
    change.add_argument("--rounds", type=int, default=3, metavar="N", help="of drafts at most (%(default)s)")
    change.add_argument("--prompts", type=Path, metavar="DIR", help="prompts to use in place of ours of the same name")
    pooled = command.add_argument_group("candidates")
    pooled.add_argument(
        "--pool",
        nargs="+",
        default=[BM25],
        metavar="MODEL",
        help="models whose best documents are candidates: names that mteb knows, hub names or directories. Each one "
        f"encodes the whole collection ({BM25})",
    )
    pooled.add_argument(
        "--candidates", type=int, default=1000, metavar="N", help="of every topic, relevant ones included (%(default)s)"
    )
    pooled.add_argument(
        "--maxp", metavar="MODEL", help="chooses the passage that stands for a long document (default: first of --pool)"
    )
    pooled.add_argument("--batch-size", type=int, default=32, metavar="N", help="texts at a time (%(default)s)")
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="the dataset directory")
    command.add_argument(
        "--license", default="unknown", metavar="ID", help="of the dataset, for its card (%(default)s)"
    )
    for name, what in (
        (
            "whole-collection",
            "write the whole collection as the corpus, for retrieval from it; candidates stay. It holds candidates by "
            "their chosen passages and every other document by all of its passages; scores are of passages",
        ),
        ("accept-unreviewed", "write the dataset although people's decisions are missing; the card says so"),
    ):
        command.add_argument(f"--{name}", action="store_true", help=what)
    add_stage_options(command)
    add_next_stage_dry_run_option(command)
    add_model_options(
        command.add_argument_group("language model"), "llm", "model that drafts instructions and verdicts"
    )
    command.set_defaults(func=_build)


def _build(args: argparse.Namespace) -> int:
    from evaluators.construction.workspace import Pause
    from evaluators.judge import PromptedAsking
    from evaluators.judge.options import language_model_of, sampling_of
    from followir_tasks.construction.asking import read_prompts
    from followir_tasks.construction.documents import find_documents
    from followir_tasks.construction.pipeline import Options, build
    from followir_tasks.construction.pooling import Ranker
    from followir_tasks.construction.selection import Band
    from followir_tasks.construction.sources import read_source

    for name in ("rounds", "candidates", "batch_size", "n_topics"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    band = Band(args.stay[0] / 100, args.stay[1] / 100)
    asking = None
    if args.llm:
        prompts = read_prompts(args.prompts)
        asking = PromptedAsking(language_model_of(args, "llm"), args.llm, sampling_of(args, "llm"), prompts)
    workspace = workspace_of(args, asking.language_model if asking else None)
    pools = [Ranker(name, args.batch_size) for name in dict.fromkeys(args.pool)]
    scorer = Ranker(args.maxp, args.batch_size) if args.maxp else pools[0]
    source = read_source(
        args.topics,
        args.qrels,
        find_documents(args.docs),
        query=args.query,
        min_grade=args.min_grade,
        band=band,
        exclude=args.exclude,
        number=args.n_topics,
        seed=args.seed,
    )
    options = Options(
        band, args.rounds, args.candidates, args.seed, args.accept_unreviewed, args.license, args.whole_collection
    )
    try:
        build(workspace, source, asking, options, pools, scorer)
    except Pause as pause:
        print(pause)
        return 0 if args.dry_run else WAITING
    return 0
