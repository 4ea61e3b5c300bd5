"""`mteb-beyond judge`: a judge's scores for saved predictions, merged into the results of their models."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mteb.cache import ResultCache

from evaluators.files import write_text
from evaluators.judge.batch import read_batch, write_batch
from evaluators.judge.judges import FacetJudge, Judge
from evaluators.judge.llm_judge import LLMJudge
from evaluators.judge.options import add_dry_run_option, add_judge_model_options, judge_settings
from evaluators.plugin.agreement_command import add_agreement_command
from evaluators.plugin.checks import shown
from evaluators.plugin.judged import JUDGE_KEY, Judged, JudgedTask, check_share
from evaluators.plugin.judged_runs import judged_pairs, judged_task, saved_predictions
from evaluators.plugin.predictions import Predictions, prediction_files
from evaluators.plugin.results import SpecialScores, bounded, output_folder, read_settings, write_per_query
from evaluators.plugin.task import RECORD_KEY, SPLIT

FACETS = "facets"
# Result files of mteb are rounded to six decimals.
_ROUNDING = 2e-6


def add_judge_options(parser: Any) -> None:
    """Add ``--judge`` and what goes with it."""
    add_judge_model_options(
        parser,
        f"model that scores how well passages do what the instruction asks for, or {FACETS!r}: the exact truth of a "
        "generated sample, without any model",
    )
    parser.add_argument("--rubrics", metavar="DIR", help="directory with other rubrics (default: the package's own)")
    parser.add_argument(
        "--most-unscored",
        metavar="SHARE",
        type=float,
        default=0.05,
        help="withhold the judge's scores if a larger share of the pairs has none (0..1, %(default)s)",
    )
    parser.add_argument(
        "--judge-again", action="store_true", help="ask again where the stored reply holds no readable score"
    )


def judge_of(args: argparse.Namespace, task: type[JudgedTask]) -> Judge:
    """The judge that the options name, with the rubrics of a task.

    Raises:
        ValueError, FileNotFoundError: if a setting makes no sense.
    """
    check_share(args.most_unscored)
    if args.judge == FACETS:
        return FacetJudge()
    rubrics = Path(args.rubrics) if args.rubrics else task.rubrics
    return LLMJudge(rubrics, again=args.judge_again, **judge_settings(args))


def add_judge_command(action: Any) -> None:
    """Add ``mteb-beyond judge``."""
    command = action.add_parser(
        "judge", help="score saved predictions with a judge and merge the scores into the result files"
    )
    command.add_argument("--task", metavar="TASK", help="required: a task that takes a judge, such as IFIRSample")
    command.add_argument(
        "--predictions",
        metavar="FILE_OR_DIR",
        help="required: a prediction file of mteb, a folder with one directly in it (then this run alone), or a folder "
        "below which they lie (then all of them)",
    )
    command.add_argument(
        "--results",
        metavar="DIR",
        help="required unless --dry-run or --batch-out: the --output-folder of `mteb-beyond run`, whose result files "
        "get the scores",
    )
    add_judge_options(command)
    add_dry_run_option(command)
    command.add_argument("--batch-out", metavar="FILE", help="write the calls to make as a request file of a Batch API")
    command.add_argument("--batch-in", metavar="FILE", nargs="+", help="first read these result files of a Batch API")
    command.set_defaults(func=run_judge)
    add_agreement_command(command.add_subparsers(metavar="agreement"))


def run_judge(args: argparse.Namespace) -> int:
    """Carry out ``mteb-beyond judge``; returns the exit code."""
    for name in ("task", "predictions", "judge"):
        if getattr(args, name) is None:
            raise ValueError(f"judge needs --{name}")
    if args.results is None and not (args.dry_run or args.batch_out):
        raise ValueError("judge needs --results, the --output-folder of the run whose result files get the scores")
    # What can be told at once comes before the data, which may take minutes to load.
    results = None if args.results is None else output_folder(Path(args.results).expanduser())
    task = judged_task(args.task)
    task.judge = judge = judge_of(args, type(task))
    task.most_unscored = args.most_unscored
    asks_model = args.dry_run or args.batch_out or args.batch_in
    if asks_model and not isinstance(judge, LLMJudge):
        raise ValueError(f"--judge {args.judge} asks no model: there is nothing to plan or to send in a batch")
    files = prediction_files(Path(args.predictions).expanduser(), task.metadata.name)
    task.load_data()
    saved = saved_predictions(task, files)
    places = [] if results is None else [_place(task, predictions, results) for predictions in saved]
    if asks_model:
        assert isinstance(judge, LLMJudge)
        _read_batches(judge, args.batch_in or ())
        if args.dry_run or args.batch_out:
            return _plan(task, judge, saved, args)
    scored = [_judge(task, place) for place in places]
    return 0 if all(scored) else 1


def _plan(task: JudgedTask, judge: LLMJudge, saved: Sequence[Predictions], args: argparse.Namespace) -> int:
    per_file = [judged_pairs(task, predictions.run) for predictions in saved]
    requests = judge.requests([pair for pairs in per_file for pair in pairs])
    asking = judge.language_model
    assert asking is not None
    n_pairs = sum(map(len, per_file))
    print(f"{len(saved)} prediction file(s), {n_pairs} pairs: {asking.plan(requests).told(asking.price)}")
    if args.batch_out and not args.dry_run:
        for path in write_batch(requests, asking.store, Path(args.batch_out)):
            print(f"written: {path}")
    return 0


def _read_batches(judge: LLMJudge, files: Sequence[str]) -> None:
    asking = judge.language_model
    assert asking is not None
    for name in files:
        report = read_batch(Path(name), asking.store, asking.endpoint.shown_url)
        print(f"{name}: {report.stored} replies stored, {len(report.failed)} failed, {len(report.unknown)} unknown")
        for key, reason in report.failed[:5]:
            print(f"  failed: {key[:16]}: {reason}")
        if report.unknown:
            print(f"  written by another store: {shown(report.unknown)}")


class _Place(NamedTuple):
    """One model's predictions, their scores without judge, and the result file that these made."""

    predictions: Predictions
    plain: SpecialScores
    result: Path


def _place(task: JudgedTask, predictions: Predictions, results: Path) -> _Place:
    assert task.data is not None
    plain = task.special_scores(predictions.run, task.data)
    return _Place(predictions, plain, _result_file(task, predictions, results, plain.scores))


def _judge(task: JudgedTask, place: _Place) -> bool:
    """Judge one model's predictions and merge the scores into its result file; ``False`` if there is no score.

    A judge that left too many pairs without score, or none at all in some level, does not replace the scores of an
    earlier one that it cannot give.
    """
    assert task.data is not None
    predictions, result = place.predictions, place.result
    earlier = json.loads(result.read_text(encoding="utf-8"))["scores"][SPLIT][0]
    judged = task.judge_run(predictions.run, task.data)
    score = judged.scores.get(task.judged_score)
    counts = f"{judged.scores['n_judged']} judged, {judged.scores['n_unscored']} unscored"
    name = f"{task.metadata.name}, {predictions.model['model_name']}"
    what = "withheld" if judged.withheld else "not to be had, since some level has no score"
    had_scores = any(bounded(key).endswith(task.judged_score) for key in earlier)
    if (judged.withheld and had_scores) or (score is None and task.judged_score in earlier):
        print(
            f"{name}: {task.judged_score} {what}, {counts}; {result} keeps the scores of an earlier judge, "
            f"{_judge_name(earlier)}"
        )
        return False
    task.write_report(judged, result.parent)
    _merge(result, task, judged, place.plain)
    table = task.per_query_file(predictions.path.parent)
    if table.is_file():
        write_per_query(table, judged.beside(place.plain.per_query), task.provenance(), settings=read_settings(table))
    value = what if score is None else f"= {score:.4f}"
    replaced = f", in place of those of {_judge_name(earlier)}" if had_scores else ""
    now = _judge_name({RECORD_KEY: task.record()})
    print(f"{name}: {task.judged_score} {value}, {counts}, judge {now}{replaced} ({result})")
    return score is not None


def _judge_name(scores: Mapping[str, Any]) -> str:
    record = scores.get(RECORD_KEY, {}).get(JUDGE_KEY, {})
    return str(record.get("model") or record.get("judge", "unknown"))


def _result_file(task: JudgedTask, predictions: Predictions, results: Path, scores: dict[str, Any]) -> Path:
    """The result file that these predictions made: the one of this model that has the same scores.

    Raises:
        FileNotFoundError: if the model has no result for the task.
        ValueError: if none or several of its results have these scores, or their data are others.
    """
    model, revision = predictions.model["model_name"], predictions.model["revision"]
    plain = ResultCache(results).get_task_result_path(task.metadata.name, model, revision)
    candidates = [p for p in (plain, *sorted(plain.parent.glob(f"experiments/*/{plain.name}"))) if p.is_file()]
    if not candidates:
        raise FileNotFoundError(
            f"{predictions.path}: the model {model!r} at {revision!r} has no result {plain}; "
            "run it first with --output-folder and --prediction-folder, or name the prediction folders of other models "
            "in --predictions"
        )
    fitting = []
    for path in candidates:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["dataset_revision"] != task.metadata.revision:
            continue
        if not _differing(content["scores"][SPLIT][0], scores):
            fitting.append(path)
    if len(fitting) != 1:
        listed = ", ".join(map(str, fitting or candidates))
        what = "several results have" if fitting else "no result of the present data has"
        name = task.metadata.main_score
        raise ValueError(
            f"{predictions.path}: its rankings give {name} = {scores[name]:.6f}, and {what} that score and all others "
            f"that follow from the rankings: {listed}"
        )
    return fitting[0]


def _differing(saved: dict[str, Any], computed: dict[str, Any]) -> list[str]:
    """The scores of a result file that these rankings do not give, those of the plain queries among them.

    Bounds of intervals tell no more about rankings than their scores, and other releases of numpy may draw others.
    """
    numbers = {k: v for k, v in computed.items() if isinstance(v, float | int) and math.isfinite(v) and bounded(k) == k}
    return [k for k, v in numbers.items() if k in saved and not math.isclose(saved[k], v, abs_tol=_ROUNDING)]


def _merge(path: Path, task: JudgedTask, judged: Judged, plain: SpecialScores) -> None:
    """Write the judge's scores into a result file, touching nothing else; an earlier judge's scores are replaced.

    The other scores of a file of an older metric version are brought up to date: they were just computed anew, and
    those that the file has are the same.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    scores = content["scores"][SPLIT][0]
    for key in [k for k in scores if _is_judged(k, task)]:
        del scores[key]
    record, kept = task.record(), scores.setdefault(RECORD_KEY, {})
    new = dict(judged.scores)
    if kept.get("metric_version") != record["metric_version"]:
        new = plain.scores | new
        kept |= {key: record[key] for key in ("version", "metric_version")}
    # As mteb rounds what it writes, so that it makes no difference when a run was judged.
    scores |= {k: round(v, 6) if isinstance(v, float) else v for k, v in new.items()}
    kept[JUDGE_KEY] = record[JUDGE_KEY]
    write_text(path, json.dumps(content, indent=2))


def _is_judged(key: str, task: JudgedTask) -> bool:
    return key in ("n_judged", "n_unscored", "weighted") or bounded(key).endswith(task.judged_score)
