"""`mteb-beyond ifir`: the paper's retrieval settings, its tables, its error analysis and its construction pipeline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import mteb

from evaluators.plugin.judge_command import add_judge_options, judge_of
from evaluators.plugin.models import BM25, resolve_model
from evaluators.plugin.running import evaluate
from ifir_tasks.construction.command import add_build_command
from ifir_tasks.report import add_report_command
from ifir_tasks.tasks import IFIRTask


def add_commands(action: Any) -> None:
    """Add ``mteb-beyond ifir`` with its sub-commands."""
    command = action.add_parser("ifir", help="IFIR: run in the paper's settings, report, errors, build a dataset")
    steps = command.add_subparsers(required=True, metavar="STEP")
    _add_run(steps)
    add_report_command(steps)
    add_build_command(steps)


def _add_run(steps: Any) -> None:
    command = steps.add_parser("run", help="run a model in one of the paper's retrieval settings")
    command.add_argument("-m", "--model", required=True, metavar="MODEL", help="a name that mteb knows, or a directory")
    command.add_argument("-t", "--tasks", required=True, nargs="+", metavar="TASK", help="tasks of IFIR")
    command.add_argument("--output-folder", default="results", metavar="DIR", help="mteb's result folder (%(default)s)")
    command.add_argument("--prediction-folder", metavar="DIR", help="save rankings and scores per query there")
    command.add_argument("--batch-size", type=int, default=32, metavar="N", help="(%(default)s)")
    settings = command.add_argument_group("settings of the paper; each combination gets result files of its own")
    settings.add_argument("--window", type=int, metavar="TOKENS", help="sliding window (the paper: 512)")
    settings.add_argument("--overlap", type=int, metavar="TOKENS", help="of windows (128)")
    settings.add_argument("--paper-window", action="store_true", help="with the authors' further, contained window")
    settings.add_argument(
        "--prompts",
        metavar="FAMILY",
        help="put the prompts of a model family before the queries: instructor, e5-mistral, gritlm, default, or none "
        "for empty ones",
    )
    settings.add_argument(
        "--bm25",
        action="store_true",
        help="join with BM25 by reciprocal ranks (table 8); with the authors' weights this reorders the model's own 20 "
        "best passages, so nDCG and MRR change and InstFol does not",
    )
    add_judge_options(command.add_argument_group("judge"))
    command.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    tasks = [mteb.get_task(name) for name in args.tasks]
    for task in tasks:
        if not isinstance(task, IFIRTask):
            raise ValueError(f"{task.metadata.name} is no task of IFIR; use `mteb-beyond run`")
        if args.judge is not None:
            task.judge = judge_of(args, type(task))
            task.most_unscored = args.most_unscored
    from ifir_tasks.retrieval import wrap  # brings sentence-transformers along, which takes seconds to import

    if args.window is None and (args.overlap is not None or args.paper_window):
        raise ValueError("--overlap and --paper-window say how windows are cut: they need --window")
    meta = resolve_model(args.model)
    if args.bm25 and meta.name == BM25:
        raise ValueError(f"--bm25 joins a model with BM25, and {args.model} is BM25")
    model = wrap(
        meta.load_model(),
        window=args.window,
        overlap=128 if args.overlap is None else args.overlap,
        paper_window=args.paper_window,
        prompts=args.prompts,
        bm25=args.bm25,
    )
    folder = None if args.prediction_folder is None else Path(args.prediction_folder)
    result = evaluate(
        model,
        tasks,
        output_folder=args.output_folder,
        prediction_folder=folder,
        encode_kwargs={"batch_size": args.batch_size},
    )
    print(f"{model.mteb_model_meta.name}, result files of mteb below {args.output_folder}/results")
    for done in result.task_results:
        scores = done.scores["test"][0]
        told = {k: scores[k] for k in ("ndcg_at_20", "paper_ndcg_at_20", IFIRTask.judged_score) if k in scores}
        print(f"{done.task_name}: " + ", ".join(f"{key} = {value:.4f}" for key, value in told.items()))
    return 0
