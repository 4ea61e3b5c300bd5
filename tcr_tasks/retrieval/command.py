"""`mteb-beyond tcr retrieve`: the paper's other first stages on any TCR task."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evaluators.judge.options import add_dry_run_option, add_model_options
from tcr_tasks.options import MODEL_HELP, add_ask_again_option, add_out_option, add_task_options, needed_out

logger = logging.getLogger(__name__)

METHODS: Mapping[str, str] = {
    "single": "the model as it is, for comparison: dense, late interaction, learned sparse, BM25",
    "rows": "a vector for each row with its header (--reduce)",
    "hybrid": "interpolation with BM25 (--dense-weight, --grid, --lexical)",
    "cascade": "stages with cut-offs (--stages); with --llm tables are described first: CRAFT, re-created",
    "meta": "a language model (--llm) describes each table",
    "q2t": "a language model (--llm) turns each question into a table",
    "thyme": "THYME, re-created: name and header, columns, and words (--lexical)",
    "dtr": "DTR, re-created: a TAPAS dual encoder; --model is its local directory",
}


# Option -> the methods that it concerns.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "reduce": ("rows",),
    "dense_weight": ("hybrid",),
    "grid": ("hybrid",),
    "lexical": ("hybrid", "thyme"),
    "stages": ("cascade",),
    "llm": ("cascade", "meta", "q2t"),
}
INSTRUCTION_HELP = "the paper's retrieval instruction, as in `mteb-beyond run` (%(default)s)"


class Variant(NamedTuple):
    """A model to run and how its line in the table is labelled."""

    model: Any
    name: str
    kind: str
    setting: str


def add_retrieve_command(steps: Any) -> None:
    """Add ``retrieve`` to the steps of ``mteb-beyond tcr``."""
    command = steps.add_parser(
        "retrieve",
        help="run other first stages: rows, hybrids, cascades, augmentation by a language model, table retrievers",
        description="Run one of TCR-Bench's alternative retrieval paradigms (appendices D.2, D.3 and J) on a TCR task. "
        "Writes mteb's results and predictions, and a table with a line for each run into the folder, which several "
        "runs can share if they are about the same data. What is there already is not run again. Exit code 1 if calls "
        "to the language model failed; the next run makes only these, and scores anew.",
        epilog="methods: " + "; ".join(f"{name}: {text}" for name, text in METHODS.items()),
    )
    command.add_argument("--method", required=True, choices=METHODS, help="see below")
    command.add_argument("-m", "--model", metavar="MODEL", help=MODEL_HELP)
    add_task_options(command)
    command.add_argument("--instruction", choices=("mteb", "prepend", "none"), default="mteb", help=INSTRUCTION_HELP)
    add_out_option(command)
    command.add_argument("--batch-size", type=int, default=32, metavar="N", help="(%(default)s)")
    settings = command.add_argument_group("settings of the methods")
    settings.add_argument(
        "--reduce",
        nargs="+",
        metavar="HOW",
        help="max, mean, or topN for the mean of the N highest, such as top3 (max)",
    )
    settings.add_argument("--dense-weight", type=float, metavar="W", help="0..1 (0.9, the paper's best)")
    settings.add_argument("--grid", action="store_true", help="all weights from 0 to 1 by 0.1, each model run once")
    settings.add_argument("--lexical", metavar="MODEL", help="in place of mteb/baseline-bm25s: a sparse encoder, say")
    settings.add_argument(
        "--stages",
        nargs="+",
        metavar="MODEL:KEEP",
        help="each stage's model and how many tables of a query it keeps, such as mteb/baseline-bm25s:100",
    )
    add_model_options(command.add_argument_group("language model"), "llm", "writes descriptions or tables")
    add_dry_run_option(command)
    add_ask_again_option(command)
    # A description is longer than what other commands ask for.
    command.set_defaults(func=_retrieve, llm_max_tokens=2048)


def _retrieve(args: argparse.Namespace) -> int:
    from evaluators.files import only_run
    from evaluators.plugin.running import evaluate
    from tcr_tasks.conduct import without_tqdm_bars
    from tcr_tasks.retrieval.results import add_rows, failed_calls, require_table_of, rows_of

    _check(args)
    task = _task(args)
    if args.dry_run:
        print(_planned(args, task))
        return 0
    written: list[Path] = []
    n_failed = 0
    with only_run(args.out), without_tqdm_bars():
        task.load_data()
        require_table_of(args.out, task)
        for variant in _BUILD[args.method](args):
            result = evaluate(
                variant.model,
                task,
                output_folder=args.out,
                prediction_folder=args.out / "predictions",
                encode_kwargs={"batch_size": args.batch_size, "show_progress_bar": False},
                show_progress_bar=False,
                # What a reply that is asked for again changes, a result file cannot tell.
                overwrite_strategy="always" if args.ask_again else "only-missing",
            )
            labels = {"model": variant.name, "kind": variant.kind, "setting": variant.setting}
            rows = rows_of(result, **labels, instruction=args.instruction)
            written = add_rows(args.out, rows)
            n_failed += failed_calls(result)
            for row in rows:
                told = ", ".join(f"{name} = {row.scores[name]:.3f}" for name in _SHOWN if name in row.scores)
                print(f"{row.task}: {row.model}, {row.kind}{f', {row.setting}' if row.setting else ''}: {told}")
    for path in written:
        print(path)
    if n_failed:
        logger.warning(
            "%d calls to %s stayed without a reply, so these are not yet its scores. Run it again: only these calls "
            "are made, and it is scored anew",
            n_failed,
            args.llm,
        )
    return 1 if n_failed else 0


_SHOWN = ("recall_at_1", "recall_at_5", "gr_at_1", "ds_at_1")


def _check(args: argparse.Namespace) -> None:
    needed_out(args)
    if args.dry_run and args.llm is None:
        raise ValueError("--dry-run tells what asking a language model takes, and there is no --llm")
    if args.ask_again and args.llm is None:
        raise ValueError("--ask-again concerns replies of a language model, and there is no --llm")
    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    for option, methods in OPTIONS.items():
        value = getattr(args, option)
        # Not by `in`: a weight of 0 equals False.
        if value is not None and value is not False and args.method not in methods:
            raise ValueError(f"--{option.replace('_', '-')} concerns --method {' or '.join(methods)} only")
    if args.grid and args.dense_weight is not None:
        raise ValueError("--grid runs all weights, so it takes no --dense-weight")
    if args.method == "cascade":
        if not args.stages or args.model is not None:
            raise ValueError(
                "--method cascade takes its models from --stages MODEL:KEEP MODEL:KEEP ..., not from --model"
            )
    elif args.model is None:
        raise ValueError(f"--method {args.method} needs --model")
    if args.method in ("meta", "q2t") and args.llm is None:
        raise ValueError(
            f"--method {args.method} needs a language model: --llm MODEL, and --llm-base-url for its endpoint"
        )


def _task(args: argparse.Namespace) -> Any:
    from tcr_tasks.loaded import find_tcr

    task = find_tcr(args.data, args.task, with_diagnostics=True)
    task.instruction = args.instruction
    return task


def _planned(args: argparse.Namespace, task: Any) -> str:
    """What the method would ask of the task's corpus or questions."""
    from evaluators.plugin.task import SPLIT
    from tcr_tasks.asking import Estimate
    from tcr_tasks.builder.tokens import default_counter
    from tcr_tasks.cutting import Cutter
    from tcr_tasks.retrieval.augment import CRAFT, META, descriptions_planned, tables_planned

    task.load_data()
    asking, prompts = _asking(args), {"cascade": CRAFT, "meta": META}
    estimate = Estimate(asking.language_model, Cutter(default_counter()))
    for splits in task.dataset.values():
        if args.method in prompts:
            planned = descriptions_planned(asking, prompts[args.method], splits[SPLIT]["corpus"]["text"])
        else:
            planned = tables_planned(asking, splits[SPLIT]["queries"]["text"])
        estimate.add_planned(planned, again=args.ask_again)
    return estimate.told(f"{args.method}, {task.metadata.name}")


def _loaded(name: str, args: argparse.Namespace) -> tuple[Any, str]:
    """A model as mteb runs it, its embeddings kept in the folder, and its name."""
    from evaluators.plugin.models import loaded
    from tcr_tasks.diagnostics.models import encoded_once
    from tcr_tasks.diagnostics.results import safe_name

    model, known, revision = loaded(name)
    # An instruction may change what the model puts before a text, of which its cache knows nothing.
    folder = args.out / "embeddings" / safe_name(known) / safe_name(revision) / args.instruction
    return encoded_once(model, folder), known


def _single(args: argparse.Namespace) -> Iterable[Variant]:
    model, name = _loaded(args.model, args)
    kinds = ", ".join(model.mteb_model_meta.model_type or ())
    return [Variant(model, name, kinds, "")]


def _rows(args: argparse.Namespace) -> Iterable[Variant]:
    from tcr_tasks.retrieval.multivector import multi_vector

    model, name = _loaded(args.model, args)
    for how in args.reduce or ("max",):
        yield Variant(multi_vector(model, reduce=how), name, "row-level multi-vector", how)


def _hybrid(args: argparse.Namespace) -> Iterable[Variant]:
    from evaluators.plugin.models import BM25
    from tcr_tasks.retrieval.hybrid import DENSE_WEIGHT, hybrid, hybrid_grid, told_weights

    dense, name = _loaded(args.model, args)
    lexical, other = _loaded(args.lexical or BM25, args)
    weight = DENSE_WEIGHT if args.dense_weight is None else args.dense_weight
    made = hybrid_grid(dense, lexical) if args.grid else [hybrid(dense, lexical, dense_weight=weight)]
    for model in made:
        yield Variant(model, f"{name} + {other}", "hybrid", told_weights(model))


def _cascade(args: argparse.Namespace) -> Iterable[Variant]:
    from tcr_tasks.retrieval.augment import CRAFT, meta_info
    from tcr_tasks.retrieval.cascade import cascade
    from tcr_tasks.retrieval.results import AUGMENTED

    stages, told = [], []
    for given in args.stages:
        place, colon, keep = given.rpartition(":")
        if not colon or not keep.isdecimal():
            raise ValueError(f"--stages: {given!r} is not of the form MODEL:KEEP, such as my/model:100")
        model, name = _loaded(place, args)
        stages.append((model, int(keep)))
        told.append(f"{name}:{keep}")
    made = cascade(stages)
    if args.llm is None:
        return [Variant(made, "cascade", "cascade (CRAFT-Simplified, re-created)", " > ".join(told))]
    augmented = meta_info(made, _asking(args), prompt=CRAFT, again=args.ask_again)
    kind = f"cascade + {AUGMENTED} (CRAFT, re-created)"
    return [Variant(augmented, f"cascade ({args.llm})", kind, " > ".join(told))]


def _meta(args: argparse.Namespace) -> Iterable[Variant]:
    from tcr_tasks.retrieval.augment import meta_info
    from tcr_tasks.retrieval.results import AUGMENTED

    model, name = _loaded(args.model, args)
    return [Variant(meta_info(model, _asking(args), again=args.ask_again), name, f"Meta-Info, {AUGMENTED}", args.llm)]


def _q2t(args: argparse.Namespace) -> Iterable[Variant]:
    from tcr_tasks.retrieval.augment import query_to_table
    from tcr_tasks.retrieval.results import AUGMENTED

    model, name = _loaded(args.model, args)
    return [
        Variant(
            query_to_table(model, _asking(args), again=args.ask_again), name, f"Query-to-Table, {AUGMENTED}", args.llm
        )
    ]


def _thyme(args: argparse.Namespace) -> Iterable[Variant]:
    from evaluators.plugin.models import BM25
    from tcr_tasks.retrieval.thyme import thyme

    dense, name = _loaded(args.model, args)
    lexical, other = _loaded(args.lexical or BM25, args)
    return [Variant(thyme(dense, lexical), f"{name} + {other}", "THYME (re-created)", "")]


def _dtr(args: argparse.Namespace) -> Iterable[Variant]:
    from tcr_tasks.retrieval.dtr import dtr

    model = dtr(args.model)
    return [Variant(model, str(model.mteb_model_meta.name), "DTR (re-created)", "")]


def _asking(args: argparse.Namespace) -> Any:
    from evaluators.judge import PromptedAsking
    from evaluators.judge.options import language_model_of, sampling_of
    from tcr_tasks.retrieval.augment import read_prompts

    return PromptedAsking(language_model_of(args, "llm"), args.llm, sampling_of(args, "llm"), read_prompts())


_BUILD: Mapping[str, Callable[[argparse.Namespace], Iterable[Variant]]] = {
    "single": _single,
    "rows": _rows,
    "hybrid": _hybrid,
    "cascade": _cascade,
    "meta": _meta,
    "q2t": _q2t,
    "thyme": _thyme,
    "dtr": _dtr,
}
