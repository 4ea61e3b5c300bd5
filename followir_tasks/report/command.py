"""``mteb-beyond followir report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from evaluators.plugin.report_options import add_report_options


def add_report_command(steps: Any) -> None:
    """Add ``report`` to the sub-commands of ``mteb-beyond followir``."""
    command = steps.add_parser(
        "report",
        help="print results in the shape of the FollowIR paper's Table 2",
        description=(
            "Read the result files of `mteb-beyond run` and print, in the shape of the FollowIR paper's Table 2, each "
            "model's score of the original queries and p-MRR on each set, times 100, with the paper's rows beside "
            "them, marked. The page over all benchmarks is `mteb-beyond report`."
        ),
    )
    add_report_options(command)
    command.add_argument("--out", type=Path, metavar="FILE.md", help="write it there instead")
    command.set_defaults(func=_report)


def _report(args: argparse.Namespace) -> int:
    from evaluators.files import write_text
    from evaluators.plugin.registry import registered_tasks
    from evaluators.plugin.stored import stored_scores
    from followir_tasks.instructir import InstructIRRobustness
    from followir_tasks.report.tables import report
    from followir_tasks.tasks import FollowIRTask

    if args.out is not None and args.out.suffix != ".md":
        raise ValueError(f"--out {args.out} must end in .md")
    tasks = [cls.metadata.name for cls in registered_tasks() if issubclass(cls, FollowIRTask | InstructIRRobustness)]
    hint = f"mteb-beyond run -m MODEL -b 'FollowIR(paired)' --output-folder {args.folder}"
    found = stored_scores(args.folder, tasks, hint)
    text = report(found.models, found.notes, args.published)
    if args.out is None:
        print(text)
        return 0
    write_text(args.out.expanduser(), text)
    print(f"written: {args.out}")
    return 0
