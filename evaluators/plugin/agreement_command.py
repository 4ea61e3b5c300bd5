"""`mteb-beyond judge agreement`: how well people and a judge agree on the same pairs."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluators.judge.annotation import Annotation, cell_length, read_annotations, write_annotations
from evaluators.judge.annotation_draw import Item, distinct, draw
from evaluators.judge.llm_judge import LLMJudge, OneRubricJudge
from evaluators.judge.options import add_judge_model_options, judge_settings
from evaluators.judge.scale import LIKERT
from evaluators.plugin.agreement_draw import candidates
from evaluators.plugin.judged_runs import judged_task

LEVELS_SCALE, LIKERT_SCALE = "levels", "1-5"
SCALES = (LEVELS_SCALE, LIKERT_SCALE)
LIKERT_RUBRIC = "likert.txt"


def add_agreement_command(action: Any) -> None:
    """Add ``agreement`` with its two steps to a parser's sub-commands."""
    command = action.add_parser("agreement", help="how well people and a judge agree: draw pairs, then compare scores")
    steps = command.add_subparsers(dest="step", required=True, metavar="STEP")
    _add_draw(steps)
    _add_score(steps)


def _add_draw(steps: Any) -> None:
    command = steps.add_parser("draw", help="draw pairs of instructed query and passage into a file for annotators")
    command.add_argument("--tasks", nargs="+", required=True, metavar="TASK", help="tasks that take a judge")
    command.add_argument(
        "--predictions",
        metavar="FILE_OR_DIR",
        help="draw from the best passages of saved runs, with and without instruction; several models' are pooled "
        "(default: from relevant passages and random ones)",
    )
    command.add_argument("--out", required=True, metavar="FILE.csv", help="a new file, for a spreadsheet")
    command.add_argument("--n", type=int, default=400, metavar="N", help="how many pairs (%(default)s)")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="another seed draws others (%(default)s)")
    command.add_argument(
        "--scale",
        choices=SCALES,
        default=LEVELS_SCALE,
        help="on which people score: levels, 0 to the highest score of each level's rubric, or 1-5, as in the paper "
        "(%(default)s)",
    )
    command.add_argument(
        "--longest", type=int, metavar="N", help="leave out pairs with a text of more characters; says how many"
    )
    command.set_defaults(func=run_draw)


def _add_score(steps: Any) -> None:
    command = steps.add_parser("score", help="read annotators' files, ask the judge about the same pairs, and compare")
    command.add_argument("files", nargs="+", metavar="FILE.csv", help="files of one draw, one for each person")
    add_judge_model_options(command, "model that scores the same pairs")
    command.add_argument(
        "--scale",
        choices=SCALES,
        help=f"on which the judge scores: by the levels' rubrics, or 1-5 by {LIKERT_RUBRIC} (default: as people did)",
    )
    command.add_argument("--rubrics", metavar="DIR", help="directory with other rubrics (default: those of the tasks)")
    command.add_argument("--out", metavar="FILE.json", help="where the report goes, beside the printed one")
    command.add_argument(
        "--dry-run", action="store_true", help="say how many calls it takes and what they cost, and stop"
    )
    command.set_defaults(func=run_score)


def run_draw(args: argparse.Namespace) -> int:
    """Carry out ``judge agreement draw``; returns the exit code."""
    out = Path(args.out)
    if out.exists():
        raise FileExistsError(f"{out} exists and may hold people's scores; name another file")
    _require_folder(args.out)
    predictions = None if args.predictions is None else Path(args.predictions)
    scale = LIKERT if args.scale == LIKERT_SCALE else None
    items: list[Item] = []
    for name in dict.fromkeys(args.tasks):
        task = judged_task(name)
        task.load_data()
        items += candidates(task, predictions, scale, args.seed)
        task.unload_data()
    items = distinct(items)
    if args.longest is not None:
        items = _without_long(items, args.longest)
    drawn = draw(items, args.n, args.seed)
    write_annotations(drawn, out)
    there, taken = Counter(i.stratum for i in items), Counter(i.stratum for i in drawn)
    for stratum in sorted(there):
        print(f"{stratum[0]}, level {stratum[1]}: {taken[stratum]} of {there[stratum]} pairs")
    print(f"{len(drawn)} pairs from the {drawn[0].candidates}, seed {args.seed}: {out}")
    print("Give each annotator a copy: whole numbers on the row's scale into the column score, nothing else changed.")
    return 0


def _require_folder(out: str | None) -> None:
    """Before any work: the file's folder is there."""
    if out is not None and not Path(out).resolve().parent.is_dir():
        raise FileNotFoundError(f"--out {out}: its folder does not exist")


def _without_long(items: Sequence[Item], longest: int) -> list[Item]:
    kept = [i for i in items if max(cell_length(i.pair.instruction), cell_length(i.pair.passage)) <= longest]
    print(f"{len(items) - len(kept)} of {len(items)} pairs have a text of more than {longest} characters: left out")
    return kept


def run_score(args: argparse.Namespace) -> int:
    """Carry out ``judge agreement score``; returns the exit code."""
    if args.judge is None:
        raise ValueError("judge agreement score needs --judge MODEL")
    if len({Path(name).resolve() for name in args.files}) < len(args.files):
        raise ValueError("a file is named twice: every file stands for another person")
    _require_folder(args.out)
    files = {name: read_annotations(Path(name)) for name in args.files}
    judge = _judge(args, files)
    if args.dry_run:
        pairs = [row.item.pair for rows in files.values() for row in rows if row.score is not None]
        assert judge.language_model is not None
        print(judge.plan(pairs).told(judge.language_model.price))
        return 0
    from evaluators.judge.agreement_report import agreement_report, told  # scipy.stats takes a second to import

    report = agreement_report(files, judge, judge.scale if isinstance(judge, OneRubricJudge) else None)
    print(told(report))
    if args.out is not None:
        text = json.dumps(report.as_json(), indent=2, ensure_ascii=False)
        Path(args.out).write_text(text + "\n", encoding="utf-8")
        print(f"\nwritten: {args.out}")
    return 0


def _judge(args: argparse.Namespace, files: dict[str, list[Annotation]]) -> LLMJudge | OneRubricJudge:
    items = [row.item for rows in files.values() for row in rows]
    on_likert = {item.scale == LIKERT for item in items} == {True}
    scale = args.scale or (LIKERT_SCALE if on_likert else LEVELS_SCALE)
    rubrics = Path(args.rubrics) if args.rubrics else _rubrics_of({item.task for item in items})
    if scale == LIKERT_SCALE:
        judge = OneRubricJudge(rubrics / LIKERT_RUBRIC, **judge_settings(args))
        if judge.scale != LIKERT:
            raise ValueError(f"{judge.rubric}: its scale must be 1-5, found {judge.scale[0]}-{judge.scale[1]}")
        return judge
    return LLMJudge(rubrics, **judge_settings(args))


def _rubrics_of(names: set[str]) -> Path:
    found = {judged_task(name).rubrics for name in names}
    if len(found) != 1:
        raise ValueError(
            f"the tasks {', '.join(sorted(names))} have different rubrics; name a directory with --rubrics"
        )
    return found.pop()
