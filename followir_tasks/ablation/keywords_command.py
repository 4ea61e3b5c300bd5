"""``mteb-beyond followir keywords``."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

REPORT, TABLE = "keywords.md", "keywords.csv"


def add_keywords_command(steps: Any) -> None:
    """Add ``keywords`` to the sub-commands of ``mteb-beyond followir``."""
    file = Path(__file__).with_name("keywords.json")
    families = list(json.loads(file.read_text(encoding="utf-8"))["families"])
    command = steps.add_parser(
        "keywords",
        help="score models on SciFact, NFCorpus and FiQA2018 with keywords in place of their instructions (Table 3)",
        description=(
            "Run models on mteb's own tasks as mteb runs them, and with the keywords of their family (FollowIR, Table "
            "5) in place of mteb's prompts. Writes mteb's results, keywords.md and keywords.csv, with paired intervals "
            "of the differences. What is there already is not run again."
        ),
    )
    command.add_argument("models", nargs="+", metavar="MODEL", help="names that mteb knows, or directories")
    command.add_argument(
        "--family", required=True, choices=families, metavar="NAME", help=f"whose keywords: {', '.join(families)}"
    )
    command.add_argument(
        "-t", "--tasks", nargs="+", metavar="TASK", help="of SciFact, NFCorpus and FiQA2018 (all three)"
    )
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="where everything goes")
    command.add_argument("--batch-size", type=int, default=32, metavar="N", help="(%(default)s)")
    command.set_defaults(func=_keywords)


def _keywords(args: argparse.Namespace) -> int:
    import mteb
    import pandas as pd

    from evaluators.files import only_run, write_text
    from followir_tasks.ablation.keywords import TASKS, csv_rows, keyword_families, markdown, run_keywords

    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    chosen = list(dict.fromkeys(args.tasks or TASKS))
    if unknown := [name for name in chosen if name not in TASKS]:
        raise ValueError(f"there are no keywords for {', '.join(unknown)}, only for {', '.join(TASKS)}")
    family = keyword_families()[args.family]
    tasks = [partial(mteb.get_task, name, eval_splits=["test"]) for name in chosen]
    with only_run(args.out):
        runs = [
            run
            for name in dict.fromkeys(args.models)
            for run in run_keywords(name, family, tasks, args.out, args.batch_size)
        ]
        text = markdown(runs, family)
        write_text(args.out / REPORT, text)
        write_text(args.out / TABLE, pd.DataFrame(csv_rows(runs, args.family)).to_csv(index=False, lineterminator="\n"))
    print(text)
    print(args.out / REPORT)
    print(args.out / TABLE)
    return 0
