"""The command line ``mteb-beyond``: mteb's own sub-commands with our tasks registered, and our own beside them.

Only the standard library is imported at the top: the demo sets the hub's offline switch before anything that reads
it is imported.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, 1 for a reported error, 2 for unusable arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["demo"] and not any(a == "--model" or a.startswith("--model=") for a in arguments):
        # Everything that the plain demo needs is installed: never wait for a network that may not answer.
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["TRANSFORMERS_OFFLINE"] = "1"
    _configure_logging()
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    if not hasattr(parsed, "func"):
        parser.print_help()
        return 2
    return _run(parsed)


def build_parser() -> argparse.ArgumentParser:
    """mteb's parser with the plug-ins' and our own sub-commands added."""
    from evaluators.plugin.judge_command import add_judge_command
    from evaluators.plugin.mteb_internals import mteb_parser
    from evaluators.plugin.parsers import describe, sub_commands, sub_parsers_action
    from evaluators.plugin.registry import load_plugins

    plugins = load_plugins()
    parser = mteb_parser()
    parser.prog = "mteb-beyond"
    theirs = sub_commands(parser)
    for name, command in theirs.items():
        command.prog = f"mteb-beyond {name}"
    action = sub_parsers_action(parser)
    action.metavar = "COMMAND"
    _extend_run(theirs["run"])
    _add_demo(action)
    _add_check(action)
    _add_show(action)
    add_judge_command(action)
    for plugin in plugins.values():
        add_commands = getattr(plugin, "add_commands", None)
        if add_commands is not None:
            add_commands(action)
    describe(parser)
    ours = [name for name in sub_commands(parser) if name not in theirs]
    parser.description = (
        "Instruction following and answerability for any mteb model. "
        f"mteb's own commands, with our tasks registered: {', '.join(theirs)}. Ours: {', '.join(ours)}."
    )
    return parser


def _run(parsed: argparse.Namespace) -> int:
    from evaluators.judge.endpoint import EndpointError
    from evaluators.plugin.running import StaleResultError

    try:
        code: int | None = parsed.func(parsed)
        return code or 0
    except KeyboardInterrupt:
        print("mteb-beyond: interrupted; finished results and stored replies are kept", file=sys.stderr)
        return 130
    except Exception as error:
        if os.environ.get("MTEB_BEYOND_TRACEBACK"):
            raise
        message = error.args[0] if isinstance(error, KeyError) and error.args else error
        told = isinstance(
            error, ValueError | KeyError | OSError | ModuleNotFoundError | StaleResultError | EndpointError
        )
        print(f"mteb-beyond: {'' if told else type(error).__name__ + ': '}{message}", file=sys.stderr)
        if not isinstance(error, FileNotFoundError | EndpointError | StaleResultError):
            print("(set MTEB_BEYOND_TRACEBACK=1 to see where this happened)", file=sys.stderr)
        return 1


def _configure_logging() -> None:
    from rich.console import Console
    from rich.logging import RichHandler

    # Standard error, so that what a command prints can be piped.
    handler = RichHandler(console=Console(stderr=True), show_path=False, show_time=False)
    # bm25s sets itself to DEBUG when it is imported.
    handler.addFilter(lambda record: record.name != "bm25s" or record.levelno >= logging.WARNING)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])


# ---- mteb's `run`, prepared ------------------------------------------------------------------------------------


def _extend_run(command: argparse.ArgumentParser) -> None:
    from evaluators.causal.settings import CAUSAL_LM
    from evaluators.plugin.judge_command import add_judge_options
    from evaluators.plugin.parsers import option_of
    from evaluators.plugin.registry import registered_tasks

    group = command.add_argument_group("mteb-beyond", "options of our tasks; a variant gets result files of its own")
    option_of(command, "--model").help = (
        "Model to use: a name that mteb knows, a hub name, a local directory (also one of a training or of `followir "
        f"reranker`), or {CAUSAL_LM}MODEL, which makes a reranker of such a causal language model."
    )
    for option in {o.name: o for t in registered_tasks() for o in t.task_options}.values():
        group.add_argument(
            f"--{option.name.replace('_', '-')}",
            dest=option.name,
            choices=option.choices,
            default=None,
            help=f"{option.help} (default: {option.choices[0]})",
        )
    group.add_argument(
        "--data",
        metavar="DIR",
        help="read the tasks' data from this directory, such as a benchmark that you built, or from a published one "
        "(hf://datasets/USER/NAME@REVISION); give each one an --output-folder of its own",
    )
    group.add_argument(
        "--first-stage",
        default=None,
        metavar="FOLDER",
        help="rerank the saved predictions of another model (a folder that --prediction-folder of its run made) "
        "instead of searching; cross-encoders need this on retrieval tasks",
    )
    group.add_argument(
        "--first-stage-top-k", type=int, default=100, metavar="K", help="how many of its best documents (default: 100)"
    )
    add_judge_options(group)
    mteb_run = command.get_default("func")
    command.set_defaults(func=lambda args: run(args, mteb_run))


def run(args: argparse.Namespace, mteb_run: Any) -> int:
    """Prepare model, tasks and cached results, then hand over to mteb's ``run``."""
    from pathlib import Path

    import mteb
    from mteb.cache import ResultCache
    from mteb.results import TaskResult

    from evaluators.plugin.judged import JudgedTask
    from evaluators.plugin.models import resolve_model, variant_meta
    from evaluators.plugin.mteb_internals import register_model
    from evaluators.plugin.running import prediction_folder_of, set_aside_stale_results
    from evaluators.plugin.task import BeyondTask

    if not args.model:
        raise ValueError("name a model with -m: a name that mteb knows, a hub name, or a directory")
    if not (args.benchmarks or args.tasks or args.task_types or args.categories or args.languages):
        raise ValueError("name tasks with -t or a benchmark with -b, for instance -b 'Beyond(sample)'")
    if args.benchmarks:
        tasks = [t for b in mteb.get_benchmarks(names=args.benchmarks) for t in b.tasks]
    else:
        tasks = list(
            mteb.get_tasks(
                categories=args.categories,
                task_types=args.task_types,
                languages=args.languages,
                tasks=args.tasks,
                eval_splits=args.eval_splits,
            )
        )
    _set_options(args, tasks)
    if args.judge is not None:
        _set_judge(args, tasks)
    variants = {t.metadata.name: t.variant() for t in tasks if isinstance(t, BeyondTask)}
    variant = next(iter(variants.values()), {})
    meta = variant_meta(resolve_model(args.model, args.model_revision), variant)
    # mteb looks the model up by what is in `args.model`: give it a key that nothing else has.
    args.model = f"{meta.name} {meta.experiment_name or ''}".strip()
    args.model_revision = None
    register_model(meta, args.model)
    strategy = "always" if args.overwrite else args.overwrite_strategy
    if args.prediction_folder is not None:
        args.prediction_folder = str(prediction_folder_of(Path(args.prediction_folder), meta))
    folder = None if args.prediction_folder is None else Path(args.prediction_folder)
    cache = ResultCache(args.output_folder)
    paths = {task.metadata.name: cache.get_task_result_path(task.metadata.name, meta) for task in tasks}
    for task in tasks:
        if isinstance(task, JudgedTask):
            type(task).report_folder = paths[task.metadata.name].parent
    set_aside_stale_results(tasks, meta, cache, strategy, folder)
    mteb_run(args)
    unjudged = False
    for task in tasks:
        path = paths[task.metadata.name]
        if isinstance(task, BeyondTask) and path.is_file():
            shown = [task.metadata.main_score, *([task.judged_score] if isinstance(task, JudgedTask) else [])]
            for scores in TaskResult.from_disk(path).scores["test"]:
                told = ", ".join(f"{name} = {scores[name]:.4f}" for name in shown if name in scores)
                unjudged |= args.judge is not None and any(name not in scores for name in shown)
                subset = "" if scores["hf_subset"] == "default" else f", {scores['hf_subset']}"
                print(f"{task.metadata.name}{subset}: {told} ({path})")
    if folder is not None:
        print(f"predictions and scores per query: {folder}")
    return 1 if unjudged else 0


def _set_options(args: argparse.Namespace, tasks: Sequence[Any]) -> None:
    """Set the given task options on the classes, since mteb creates its own task objects."""
    from evaluators.plugin.registry import registered_tasks
    from evaluators.plugin.task import BeyondTask

    given = {
        o.name: value
        for t in registered_tasks()
        for o in t.task_options
        if (value := getattr(args, o.name, None)) is not None
    }
    for name, value in given.items():
        without = [t.metadata.name for t in tasks if not any(o.name == name for o in getattr(t, "task_options", ()))]
        if without:
            raise ValueError(
                f"--{name.replace('_', '-')} does not concern {', '.join(without)}; run these separately, since one "
                "record of the model covers the whole run"
            )
        for cls in {type(t) for t in tasks}:
            setattr(cls, name, value)
    if args.data is not None:
        foreign = [t.metadata.name for t in tasks if not isinstance(t, BeyondTask)]
        if foreign:
            raise ValueError(f"--data works with this project's tasks only, not with {', '.join(foreign)}")
        for cls in {type(t) for t in tasks}:
            cls.data_path = args.data
    if args.first_stage is not None:
        if args.first_stage_top_k < 1:
            raise ValueError(f"--first-stage-top-k must be at least 1, got {args.first_stage_top_k}")
        for cls in {type(t) for t in tasks}:
            if issubclass(cls, BeyondTask) and cls.metadata.type == "InstructionReranking":
                raise ValueError(
                    f"--first-stage does not concern {cls.__name__}, which has candidates; run it separately"
                )
            if not issubclass(cls, BeyondTask):
                raise ValueError(f"--first-stage works with this project's tasks only, not with {cls.__name__}")
            cls.first_stage_predictions = args.first_stage
            cls.first_stage_top_k = args.first_stage_top_k


def _set_judge(args: argparse.Namespace, tasks: Sequence[Any]) -> None:
    """Set the judge on the classes of the tasks that take one; the others run as always."""
    from evaluators.plugin.judge_command import judge_of
    from evaluators.plugin.judged import JudgedTask

    classes = {type(t) for t in tasks if isinstance(t, JudgedTask)}
    if not classes:
        raise ValueError(f"--judge concerns none of {', '.join(t.metadata.name for t in tasks)}")
    for cls in classes:
        cls.judge = judge_of(args, cls)
        cls.most_unscored = args.most_unscored


# ---- our own commands ------------------------------------------------------------------------------------------


def _add_demo(action: Any) -> None:
    command = action.add_parser("demo", help="score BM25 and MiniLM on the embedded samples, offline")
    command.add_argument("--output", default="beyond-demo", metavar="DIR", help="where results go (%(default)s)")
    command.add_argument(
        "--model",
        action="append",
        default=None,
        metavar="NAME_OR_PATH",
        help="score this model instead: a name that mteb knows, a hub name or a directory; may be given several times",
    )
    command.set_defaults(func=_demo)


def _demo(args: argparse.Namespace) -> int:
    from evaluators.plugin.demo import demo

    return demo(args.output, args.model)


def _add_check(action: Any) -> None:
    command = action.add_parser("check", help="print everything that is wrong with a dataset; exit code 1 if anything")
    command.add_argument("target", metavar="TASK_OR_DIR", help="a task's name, or a directory with a dataset")
    command.set_defaults(func=_check)


def _check(args: argparse.Namespace) -> int:
    from evaluators.plugin.inspection import check

    return check(args.target)


def _add_show(action: Any) -> None:
    command = action.add_parser("show", help="print the exact text a model gets for a query, and what is right for it")
    command.add_argument("target", metavar="TASK_OR_DIR", help="a task's name, or a directory with a dataset")
    command.add_argument("--query", metavar="ID", help="a query id (default: the first query)")
    command.add_argument(
        "--documents", type=int, default=3, metavar="N", help="how many relevant documents to print (%(default)s)"
    )
    command.set_defaults(func=_show)


def _show(args: argparse.Namespace) -> int:
    from evaluators.plugin.inspection import show

    return show(args.target, args.query, args.documents)
