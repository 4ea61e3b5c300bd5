"""`mteb-beyond tcr rerank`: put a first stage's best tables into a new order by whether they can answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluators.judge.options import add_dry_run_option, add_model_options
from tcr_tasks.options import PREDICTIONS_HELP, add_out_option, add_task_options, needed_out

METHODS = ("ce", "pw", "lw", "exec")
_DEFAULT_BUDGET = 10


def add_rerank_command(steps: Any) -> None:
    """Add ``rerank`` to the steps of ``mteb-beyond tcr``."""
    command = steps.add_parser(
        "rerank",
        help="rerank a retriever's best tables by whether they can answer the question",
        description="Answerability-aware reranking of TCR-Bench (section 6, appendix K), and one method beyond it. ce: "
        "a cross-encoder scores each pair once, and every budget follows from these scores. pw: a language model says "
        "of each candidate whether it can answer. lw: it orders all candidates of a question in one prompt. exec (not "
        "in the paper): it turns the question into one query, which SQLite runs on each candidate. The output folder "
        "gets report.md and results.csv of this run, result files, predictions and scores per query of every variant "
        "(for `tcr compare`). Replies and scored pairs are kept, so an interrupted run goes on where it stopped.",
    )
    command.add_argument(
        "--first-stage",
        required=True,
        metavar="PREDICTIONS_OR_MODEL",
        help=f"saved predictions (what `tcr qa` takes as --predictions), {PREDICTIONS_HELP}; several runs are refused. "
        "Or a model, which searches first: a directory or a name that mteb knows",
    )
    command.add_argument("--ce", metavar="MODEL", help="cross-encoder: a directory or a name that mteb knows")
    command.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        metavar="METHOD",
        help=f"of {', '.join(METHODS)} (default: ce with --ce; pw, lw and exec with --llm)",
    )
    command.add_argument(
        "--budgets",
        nargs="+",
        default=[str(_DEFAULT_BUDGET)],
        metavar="K",
        help="how many of the first stage's best tables to rerank, or all; the paper's are 3 5 10 20 50 all "
        f"({_DEFAULT_BUDGET})",
    )
    add_task_options(command)
    add_out_option(command)
    command.add_argument("--batch-size", type=int, default=32, metavar="N", help="texts at a time (%(default)s)")
    command.add_argument(
        "--protocol",
        choices=("shuffled", "paper"),
        default="shuffled",
        help="lw: the order in which the prompt shows the candidates. shuffled (default): at random, so that it does "
        "not give the first stage away; paper: first-stage order, the only one comparable with Tables 4 and 29",
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="lw: of the shuffles (%(default)s)")
    command.add_argument(
        "--context-tokens",
        type=int,
        default=131_072,
        metavar="N",
        help="longest prompt with its reply, in tokens as `tcr build` counts them; tables beyond it lose their last "
        "rows, which is counted (%(default)s)",
    )
    command.add_argument(
        "--prompts", type=Path, metavar="DIR", help="a folder with prompts pointwise.txt, listwise.txt or exec.txt"
    )
    add_model_options(command, "llm", "the language model of pw, lw and exec")
    add_dry_run_option(command)
    command.set_defaults(func=_rerank)


def _rerank(args: argparse.Namespace) -> int:
    methods = _methods(args)
    from tcr_tasks.loaded import load_tcr
    from tcr_tasks.reranking.pool import read_budgets
    from tcr_tasks.reranking.rehearsal import rehearse
    from tcr_tasks.reranking.run import Order, rerank

    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    if args.context_tokens <= args.llm_max_tokens:
        raise ValueError(
            f"--context-tokens {args.context_tokens} leaves no room beside a reply of --llm-max-tokens "
            f"{args.llm_max_tokens}"
        )
    budgets = read_budgets(args.budgets)
    needed_out(args)
    stage = _stage(args.first_stage)
    task = load_tcr(args.data, args.task)
    rerankers = list(_rerankers(args, methods, task))
    order = Order(task, stage, rerankers, budgets, args.out, {"batch_size": args.batch_size})
    if args.dry_run:
        for line in rehearse(order):
            print(line)
        return 0
    written = rerank(order)
    print(written.paths[0].read_text(encoding="utf-8"))
    for path in written.paths:
        print(path)
    return 1 if written.n_failed else 0


def _methods(args: argparse.Namespace) -> list[str]:
    given = args.methods or [*(["ce"] if args.ce else []), *(["pw", "lw", "exec"] if args.llm else [])]
    if not given:
        raise ValueError("name a cross-encoder with --ce, a language model with --llm, or both")
    if "ce" in given and not args.ce:
        raise ValueError("the method ce needs a cross-encoder: --ce MODEL")
    if set(given) - {"ce"} and not args.llm:
        raise ValueError(f"the methods {', '.join(m for m in given if m != 'ce')} need a language model: --llm MODEL")
    if args.prompts is not None and not any((args.prompts / f"{n}.txt").is_file() for n in _PROMPTS):
        raise FileNotFoundError(f"{args.prompts} holds none of {', '.join(f'{n}.txt' for n in _PROMPTS)}")
    return list(dict.fromkeys(given))


_PROMPTS = ("pointwise", "listwise", "exec")


def _stage(name: str) -> Any:
    """Saved predictions as a path, anything else as a loaded model."""
    path = Path(name).expanduser()
    is_model = any((path / file).is_file() for file in ("config.json", "modules.json"))
    if path.exists() and not is_model:
        return path
    from evaluators.plugin.models import loaded

    try:
        return loaded(name)[0]
    except ValueError as error:
        raise ValueError(f"--first-stage {name}: there is no such folder of saved predictions, and {error}") from error


def _rerankers(args: argparse.Namespace, methods: list[str], task: Any) -> Iterator[Any]:
    if "ce" in methods:
        from evaluators.plugin.models import loaded
        from tcr_tasks.reranking.cross_encoder import CrossEncoding

        scores = None if args.out is None else args.out / "scores"
        # A dry run writes nothing.
        kept = scores if not args.dry_run or (scores is not None and scores.is_dir()) else None
        yield CrossEncoding(loaded(args.ce)[0], kept)
    if not set(methods) - {"ce"}:
        return
    from evaluators.judge.options import language_model_of, sampling_of
    from tcr_tasks.reranking.asking import Asking
    from tcr_tasks.reranking.execution import Execution
    from tcr_tasks.reranking.listwise import Listwise
    from tcr_tasks.reranking.pointwise import Pointwise

    asking = Asking(language_model_of(args, "llm"), args.llm, sampling_of(args, "llm"), args.context_tokens)
    for method in methods:
        if method == "pw":
            yield Pointwise(asking, args.prompts)
        elif method == "lw":
            yield Listwise(asking, args.protocol, args.seed, args.prompts)
        elif method == "exec":
            yield Execution(asking, task.data.side["tables"], args.prompts)
