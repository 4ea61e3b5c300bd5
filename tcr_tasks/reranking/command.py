"""`mteb-beyond tcr rerank`: put a first stage's best tables into a new order by whether they can answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluators.judge.options import add_dry_run_option, add_model_options
from tcr_tasks.options import (
    MODEL_HELP,
    PREDICTIONS_HELP,
    REPLACED_HELP,
    add_ask_again_option,
    add_out_option,
    add_task_options,
    needed_out,
    refuse_unused,
    warn_last,
)

# Method -> its prompt, if it asks a language model.
METHODS: Mapping[str, str | None] = {"ce": None, "pw": "pointwise", "lw": "listwise", "exec": "exec"}
_DEFAULT_BUDGET, _BATCH_SIZE, _CONTEXT_TOKENS = 10, 32, 131_072


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
        "(for `tcr compare`). An interrupted run goes on where it stopped. " + REPLACED_HELP,
    )
    command.add_argument(
        "--first-stage",
        required=True,
        metavar="PREDICTIONS_OR_MODEL",
        help=f"saved predictions (what `tcr qa` takes as --predictions), {PREDICTIONS_HELP}; several runs are refused. "
        f"Or a model, which searches first: {MODEL_HELP}",
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
    command.add_argument("--batch-size", type=int, metavar="N", help=f"texts at a time ({_BATCH_SIZE})")
    command.add_argument(
        "--protocol",
        choices=("shuffled", "paper"),
        help="lw: the order in which the prompt shows the candidates. shuffled (default): at random, so that it does "
        "not give the first stage away; paper: first-stage order, the only one comparable with Tables 4 and 29",
    )
    command.add_argument("--seed", type=int, metavar="N", help="lw: of the shuffles (0)")
    command.add_argument(
        "--context-tokens",
        type=int,
        metavar="N",
        help="longest prompt with its reply, in tokens as `tcr build` counts them; tables beyond it lose their last "
        f"rows, which is counted ({_CONTEXT_TOKENS})",
    )
    command.add_argument(
        "--prompts", type=Path, metavar="DIR", help="a folder with prompts pointwise.txt, listwise.txt or exec.txt"
    )
    add_model_options(command, "llm", "the language model of pw, lw and exec")
    add_ask_again_option(command)
    add_dry_run_option(command)
    command.set_defaults(func=_rerank)


def _rerank(args: argparse.Namespace) -> int:
    methods = _methods(args)
    from tcr_tasks.loaded import load_tcr
    from tcr_tasks.reranking.pool import read_budgets
    from tcr_tasks.reranking.rehearsal import rehearse
    from tcr_tasks.reranking.run import Order, rerank

    budgets = read_budgets(args.budgets)
    needed_out(args)
    saved = _saved(args.first_stage)
    if saved is not None and "ce" not in methods:
        refuse_unused(args, ["batch_size"], "a cross-encoder, or a model as --first-stage,")
    _fill_in(args)
    stage = saved or _model(args.first_stage)
    task = load_tcr(args.data, args.task)
    rerankers = list(_rerankers(args, methods, task))
    order = Order(task, stage, rerankers, budgets, args.out, {"batch_size": args.batch_size})
    if args.dry_run:
        for line in rehearse(order):
            print(line)
        return 0
    written = rerank(order)
    print(f"{written.table}\n")
    for path in written.paths:
        print(path)
    warn_last(written.warnings)
    return 1 if written.n_failed else 0


def _methods(args: argparse.Namespace) -> list[str]:
    given = args.methods or [*(["ce"] if args.ce else []), *(["pw", "lw", "exec"] if args.llm else [])]
    if not given:
        raise ValueError("name a cross-encoder with --ce, a language model with --llm, or both")
    if "ce" in given and not args.ce:
        raise ValueError("the method ce needs a cross-encoder: --ce MODEL")
    if set(given) - {"ce"} and not args.llm:
        raise ValueError(f"the methods {', '.join(m for m in given if m != 'ce')} need a language model: --llm MODEL")
    _check_used(args, given)
    names = [f"{prompt}.txt" for method in given if (prompt := METHODS[method])]
    if args.prompts is not None and not any((args.prompts / name).is_file() for name in names):
        raise FileNotFoundError(f"{args.prompts} holds none of {', '.join(names)}")
    return list(dict.fromkeys(given))


def _check_used(args: argparse.Namespace, methods: list[str]) -> None:
    if "ce" not in methods:
        refuse_unused(args, ["ce"], "--methods ce")
    if not set(methods) - {"ce"}:
        refuse_unused(args, ["llm", "prompts", "context_tokens", "ask_again"], "the methods pw, lw and exec")
    if "lw" not in methods:
        refuse_unused(args, ["protocol", "seed"], "--methods lw")
    if args.protocol == "paper":
        refuse_unused(args, ["seed"], "--protocol shuffled")


def _fill_in(args: argparse.Namespace) -> None:
    """Check numbers, and give those that were not given their usual value."""
    args.batch_size = _BATCH_SIZE if args.batch_size is None else args.batch_size
    args.context_tokens = _CONTEXT_TOKENS if args.context_tokens is None else args.context_tokens
    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    if args.context_tokens <= args.llm_max_tokens:
        raise ValueError(
            f"--context-tokens {args.context_tokens} leaves no room beside a reply of --llm-max-tokens "
            f"{args.llm_max_tokens}"
        )


def _saved(name: str) -> Path | None:
    """The path of saved predictions, ``None`` if it is a model's name or directory."""
    path = Path(name).expanduser()
    is_model = any((path / file).is_file() for file in ("config.json", "modules.json"))
    return path if path.exists() and not is_model else None


def _model(name: str) -> Any:
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

    asking = Asking(
        language_model_of(args, "llm"),
        args.llm,
        sampling_of(args, "llm"),
        args.context_tokens,
        again=args.ask_again,
    )
    for method in methods:
        if method == "pw":
            yield Pointwise(asking, args.prompts)
        elif method == "lw":
            yield Listwise(asking, args.protocol or "shuffled", args.seed or 0, args.prompts)
        elif method == "exec":
            yield Execution(asking, task.data.side["tables"], args.prompts)
