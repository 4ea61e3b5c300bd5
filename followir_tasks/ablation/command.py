"""``mteb-beyond followir forms``, ``ablate`` and ``keywords``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from followir_tasks.ablation.keywords_command import add_keywords_command
from followir_tasks.forms import FORMS, KEPT

REPORT, TABLE = "ablation.md", "ablation.csv"
# The paper's collections, and the measure of each.
COLLECTIONS = {"Robust04": "map_at_1000", "News21": "ndcg_at_5", "Core17": "map_at_1000"}


def add_ablation_commands(steps: Any) -> None:
    """Add ``forms``, ``ablate`` and ``keywords`` to the sub-commands of ``mteb-beyond followir``."""
    _add_forms(steps)
    _add_ablate(steps)
    add_keywords_command(steps)


def _add_forms(steps: Any) -> None:
    from evaluators.judge.options import add_dry_run_option, add_model_options
    from followir_tasks.loaded import add_task_options

    command = steps.add_parser(
        "forms",
        help="add keywords and short forms of the instructions, by a language model, to a dataset",
        description="Ask a language model for the keywords and a short form of every instruction of a FollowIR-style "
        "dataset, and write the dataset with them (config `instruction_forms`), so that all runs agree on them. "
        "Stored replies are not paid for again. Nothing is written until every form is there.",
    )
    add_task_options(command)
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="required unless --dry-run: a new directory, or the dataset's own"
    )
    command.add_argument("--prompts", type=Path, metavar="DIR", help="prompts to use in place of ours of the same name")
    command.add_argument("--ask-again", action="store_true", help="ask once more where a reply could not be used")
    add_model_options(command.add_argument_group("language model"), "llm", "required: the model that writes the forms")
    add_dry_run_option(command)
    command.set_defaults(func=_forms)


def _add_ablate(steps: Any) -> None:
    from followir_tasks.loaded import add_task_options

    command = steps.add_parser(
        "ablate",
        help="score models with no instruction, its keywords, its short form, and all of it (Figure 3, Table 4)",
        description="Run models on a FollowIR-style dataset with each form of the instruction. Writes mteb's results "
        f"and predictions, {REPORT}, {TABLE} and Figure 3. What is there already is not run again.",
    )
    command.add_argument("models", nargs="+", metavar="MODEL", help="names that mteb knows, or directories")
    add_task_options(command)
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="where everything goes")
    command.add_argument("--forms", nargs="+", choices=FORMS, help="default: all that the dataset has")
    command.add_argument(
        "--collection",
        nargs="?",
        const="",
        choices=("", *COLLECTIONS),
        metavar="NAME",
        help="search the original queries in the dataset's whole corpus, whatever candidates it names; with "
        f"{', '.join(COLLECTIONS)}: by that collection's measure, with the values of Table 4 beside (MAP@1000)",
    )
    command.add_argument("--batch-size", type=int, default=32, metavar="N", help="(%(default)s)")
    command.set_defaults(func=_ablate)


def _forms(args: argparse.Namespace) -> int:
    from evaluators.judge import PromptedAsking
    from evaluators.judge.options import language_model_of, sampling_of
    from followir_tasks.ablation.dataset import require_place, write_with_forms
    from followir_tasks.ablation.making import ask_forms, form_requests, forms_of, read_prompts, told
    from followir_tasks.loaded import find_followir

    if args.llm is None:
        raise ValueError("forms needs --llm, the model that writes them")
    if args.out is None and not args.dry_run:
        raise ValueError("name the directory of the dataset with its forms with --out")
    task = find_followir(args.data, args.task)
    if args.out is not None:
        require_place(task, args.out)
    model = language_model_of(args, "llm")
    asking = PromptedAsking(model, args.llm, sampling_of(args, "llm"), read_prompts(args.prompts))
    task.load_data()
    assert task.data is not None
    requests = form_requests(task.data.queries, asking)
    if args.dry_run:
        planned = model.plan(requests.values()).told(model.price)
        print(f"{args.data or task.metadata.name}, {len(requests)} forms: {planned}")
        return 0
    replies = ask_forms(asking, task.data.queries, ask_again=args.ask_again)
    problems = replies.failed | replies.unreadable
    if problems:
        for wanted, why in problems.items():
            print(f"{wanted.query}, {wanted.form}: {why}")
        print(
            f"{len(replies.failed)} of {len(requests)} calls failed and {len(replies.unreadable)} replies cannot be "
            "used: nothing was written. Run again to repeat failed calls (the others are stored); --ask-again asks "
            "once more where a reply cannot be used"
        )
        return 1
    forms = forms_of(replies.read)
    write_with_forms(task, forms, told(asking), args.out)
    full = dict(zip(task.data.queries["id"], task.data.queries["instruction"], strict=True))
    for name in KEPT:
        words = sum(len(getattr(kept, name).split()) for kept in forms.values()) / len(forms)
        print(f"{name}: {words:.1f} words on average")
    print(f"full: {sum(len(text.split()) for text in full.values()) / len(full):.1f} words on average")
    print(f"{len(forms)} queries: {args.out}")
    return 0


def _ablate(args: argparse.Namespace) -> int:
    import pandas as pd

    from evaluators.drawing import draw
    from evaluators.files import only_run, write_text
    from evaluators.plugin.models import resolve_model
    from followir_tasks.ablation.report import compared, csv_rows, figure_3, markdown
    from followir_tasks.ablation.running import FormRun, available_forms, run_forms

    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    for name in args.models:
        resolve_model(name)  # a name that is wrong is told before anything is run
    task = _task(args)
    there = available_forms(task)
    forms = [form for form in FORMS if form in (args.forms or there)]
    notes = []
    if lacking := [form for form in FORMS if form not in there]:
        notes.append(
            f"Without {' and '.join(lacking)}: the dataset does not hold them (`mteb-beyond followir forms` adds them)."
        )
    with only_run(args.out):
        runs: list[FormRun] = []
        failed: list[str] = []
        for name in dict.fromkeys(args.models):
            try:
                for run in run_forms(name, task, forms, args.out, args.batch_size):
                    runs.append(run)
            except (ValueError, OSError, RuntimeError) as error:  # such as too little memory
                failed.append(str(error))
        if not runs:
            raise ValueError("; ".join(failed))
        notes += [f"**Not run to its end:** {why}" for why in failed]
        found = compared(runs)
        text = markdown(found, notes, args.collection or None)
        write_text(args.out / REPORT, text)
        write_text(args.out / TABLE, pd.DataFrame(csv_rows(found)).to_csv(index=False, lineterminator="\n"))
        figure = figure_3(found)
        drawn = [] if figure is None else draw([figure], args.out)
    print(text)
    for path in (args.out / REPORT, args.out / TABLE, *drawn):
        print(path)
    return 1 if failed else 0


def _task(args: argparse.Namespace) -> Any:
    from followir_tasks.collection import FollowIRCollection
    from followir_tasks.loaded import find_followir

    if args.collection is None:
        return find_followir(args.data, args.task)
    if args.task is not None:
        raise ValueError("--collection takes a dataset (--data), not a --task")
    task = FollowIRCollection()
    if args.data is not None:
        task.data_path = args.data
    task.collection_measure = COLLECTIONS.get(args.collection, task.collection_measure)
    return task
