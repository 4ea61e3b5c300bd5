"""`mteb-beyond tcr qa`: does a reader answer from the tables that retrievers found?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluators.judge.options import add_dry_run_option, add_model_options, language_model_of, sampling_of
from tcr_tasks.options import (
    PREDICTIONS_HELP,
    REPLACED_HELP,
    add_ask_again_option,
    add_out_option,
    add_task_options,
    needed_out,
    refuse_unused,
    warn_last,
)
from tcr_tasks.qa.values import TOLERANCE

if TYPE_CHECKING:
    from tcr_tasks.qa.asking import Exam, Retriever
    from tcr_tasks.qa.examination import Results

COMMAND = "tcr qa"
REPORT, RESULTS, PER_QUERY = "report.md", "results.csv", "per_query.parquet"
# Below this two numbers that a table prints apart would count as one.
_MOST_TOLERANCE = 0.1
_TOP_K = (1, 3, 5)


def add_qa_command(steps: Any) -> None:
    """Add ``qa`` to the steps of ``mteb-beyond tcr``."""
    command = steps.add_parser(
        "qa",
        help="have a language model answer the questions from the tables that retrievers found",
        description="Ask every question with its target alone, with no table, and with the best tables of each "
        "retriever; write QA@k and Eff@k. Replies are stored: an interrupted run goes on where it was, and a prompt "
        "that several retrievers share is paid for once. "
        + REPLACED_HELP
        + " A folder is for one model and one prompt.",
    )
    add_task_options(command)
    command.add_argument(
        "--predictions",
        nargs="+",
        default=[],
        metavar="FILE_OR_DIR",
        help=f"saved predictions, each {PREDICTIONS_HELP}; none: only target and no table",
    )
    command.add_argument(
        "--top-k", type=_cut_offs, nargs="+", metavar="K", help="how many of the best tables, as 1 3 5 or 1,3,5 (1 3 5)"
    )
    command.add_argument(
        "--context-tokens",
        type=int,
        metavar="N",
        help="longest prompt with its reply, in tokens as `tcr build` counts them; tables beyond it lose their last "
        "rows (default: nothing is cut)",
    )
    command.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        metavar="T",
        help="relative difference at which numbers with a fraction are still the same (%(default)s: six significant "
        "digits, as printed); whole numbers must be equal",
    )
    command.add_argument("--prompt", type=Path, metavar="FILE", help="another prompt, with {tables} and {question}")
    add_model_options(command, "llm", "required: the model that answers")
    # A reader may think at length.
    command.set_defaults(llm_max_tokens=4096, llm_timeout=600.0)
    add_ask_again_option(command)
    add_out_option(command)
    add_dry_run_option(command)
    command.set_defaults(func=_qa)


def _qa(args: argparse.Namespace) -> int:
    if args.llm is None:
        raise ValueError("qa needs --llm, the model that answers")
    needed_out(args)
    if args.context_tokens is not None and args.context_tokens <= args.llm_max_tokens:
        raise ValueError(
            f"--context-tokens {args.context_tokens} leaves no room beside a reply of --llm-max-tokens "
            f"{args.llm_max_tokens}"
        )
    from evaluators.files import only_run
    from tcr_tasks.loaded import require_same_results
    from tcr_tasks.qa.examination import examine, plan

    if not 0 <= args.tolerance <= _MOST_TOLERANCE:
        raise ValueError(f"--tolerance lies in 0..{_MOST_TOLERANCE}, got {args.tolerance}")
    if not args.predictions:
        refuse_unused(args, ["top_k"], "--predictions")
    top_k = tuple(dict.fromkeys(k for ks in args.top_k or [_TOP_K] for k in ks))
    exam, retrievers = _exam(args)
    if args.dry_run:
        what = f"{len(retrievers)} retriever(s), {len(exam.questions)} questions"
        print(plan(exam, retrievers, top_k).told(what))
        return 0
    with only_run(args.out):
        about = _about(exam, args.tolerance)
        require_same_results(args.out / RESULTS, {name: about[name] for name in _KEPT})
        results = examine(exam, retrievers, top_k, args.tolerance)
        for path in _write(args.out, results, about):
            print(path)
    _tell(results)
    warn_last(results.warnings)
    return 0 if results.is_complete else 1


def _exam(args: argparse.Namespace) -> tuple[Exam, list[Retriever]]:
    from evaluators.judge import Asking, read_prompt
    from evaluators.plugin.judged_runs import saved_predictions
    from evaluators.plugin.predictions import prediction_files
    from tcr_tasks.loaded import load_tcr
    from tcr_tasks.qa.asking import FIELDS, PROMPT, Exam, read_retrievers

    prompt = read_prompt(args.prompt or PROMPT, FIELDS)
    task = load_tcr(args.data, args.task)
    files = [
        file for place in args.predictions for file in prediction_files(Path(place).expanduser(), task.metadata.name)
    ]
    saved = saved_predictions(task, list(dict.fromkeys(file.resolve() for file in files)))
    asking = Asking(language_model_of(args, "llm"), args.llm, sampling_of(args, "llm"))
    exam = Exam(task, asking, prompt, args.context_tokens, args.ask_again)
    return exam, read_retrievers(saved)


# What does not change within a folder.
_KEPT = ("command", "task", "data_revision", "reader", "prompt_version")


def _about(exam: Exam, tolerance: float) -> dict[str, Any]:
    """What the numbers depend on."""
    from tcr_tasks.loaded import data_of

    return {
        "command": COMMAND,
        "reader": exam.asking.model,
        **data_of(exam.task),
        "prompt_version": exam.prompt.version,
        "tolerance": tolerance,
        "context_tokens": exam.context_tokens,
        "tokens_counted_by": exam.cutter.counter.name if exam.context_tokens is not None else None,
        "temperature": exam.asking.sampling.temperature,
        "top_p": exam.asking.sampling.top_p,
        "max_tokens": exam.asking.sampling.max_tokens,
    }


def _write(out: Path, results: Results, about: dict[str, Any]) -> Sequence[Path]:
    import pandas as pd
    import pyarrow as pa

    from evaluators.files import write_text
    from evaluators.plugin.results import write_table
    from tcr_tasks.qa.report import csv_rows, report

    shown = {name: value for name, value in about.items() if value is not None}
    write_text(out / REPORT, report(results.cells, shown, results.first_failure))
    write_text(out / RESULTS, pd.DataFrame(csv_rows(results.cells, about)).to_csv(index=False, lineterminator="\n"))
    write_table(out / PER_QUERY, pa.Table.from_pylist(results.rows), about)
    return [out / REPORT, out / RESULTS, out / PER_QUERY]


def _tell(results: Results) -> None:
    from tcr_tasks.qa.examination import label_of
    from tcr_tasks.qa.scoring import ALL

    for cell in results.cells:
        if cell.question_type == ALL:
            qa = "absent" if cell.qa is None else f"{cell.qa:.3f}"
            counts = f"{cell.n} questions, {cell.n_unreadable} unreadable, {cell.n_failed} failed"
            told = "; no reply could be read: no result" if cell.n_unreadable == cell.n else ""
            print(f"{label_of(cell.setting)}: F1 {qa} ({counts}{told})")
    if results.first_failure is not None:
        print(f"the first call without a reply: {results.first_failure}")


def _cut_offs(text: str) -> tuple[int, ...]:
    try:
        found = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"expected whole numbers of at least 1 such as 1,3,5, got {text!r}")
    return found
