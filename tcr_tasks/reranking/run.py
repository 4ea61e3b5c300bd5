"""The whole of `mteb-beyond tcr rerank`: a first stage and rerankers in, results, report and figures out."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evaluators.drawing import draw
from evaluators.files import only_run, write_text
from evaluators.judge import Outcome
from evaluators.markdown import quoted
from evaluators.plugin.doubt import length_figures
from evaluators.plugin.results import PREDICTIONS
from evaluators.plugin.running import evaluate, prediction_folder_of
from tcr_tasks.asking import remedy
from tcr_tasks.compare import QueryTable, compare, read_tables
from tcr_tasks.conduct import terminated_as_interrupted, without_tqdm_bars
from tcr_tasks.loaded import data_of, require_same_results
from tcr_tasks.reranking.first_stage import SavedRun, first_stage
from tcr_tasks.reranking.lines import KEPT_ORDER, Cost, Line, as_csv
from tcr_tasks.reranking.model import AnswerabilityReranker
from tcr_tasks.reranking.pool import FAILED, UNREADABLE, AskingReranker, Budget, Reranked, Reranker, Usage
from tcr_tasks.reranking.report import in_short, report
from tcr_tasks.reranking.scaling import scaling_figures
from tcr_tasks.tasks import TCRTask

__all__ = ["Order", "opened_stage", "rerank"]

logger = logging.getLogger(__name__)

COMMAND = "tcr rerank"
FIGURES, REPORT, RESULTS, COSTS, PREDICTED = "figures", "report.md", "results.csv", "costs.json", "predictions"


@dataclass(frozen=True)
class Order:
    """What to do.

    Attributes:
        task: with its data loaded.
        stage: a folder or file of saved predictions, or a model.
        rerankers: the methods.
        budgets: of each method; each once, the smallest first.
        out: where everything goes.
    """

    task: TCRTask
    stage: Path | Any
    rerankers: Sequence[Reranker]
    budgets: Sequence[Budget]
    out: Path
    encode_kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def questions(self) -> Sequence[Any]:
        """The task's questions."""
        assert self.task.data is not None
        questions: Sequence[Any] = self.task.data.side["questions"]
        return questions


class Written(NamedTuple):
    """What a run wrote, and what is to be told of it.

    Attributes:
        paths: the report first.
        table: its lines in short.
        n_failed: different calls that stayed without a reply.
        warnings: what makes its scores doubtful, a sentence each.
    """

    paths: list[Path]
    table: str
    n_failed: int
    warnings: list[str]


def rerank(order: Order) -> Written:
    """Rerank, score, and write results, report and figures.

    What was paid for once, calls and scored pairs, is kept: an interrupted run goes on where it stopped. A call that
    failed is made again by the next run, not by this one's larger budgets.

    Raises:
        FileNotFoundError, ValueError: if the first stage does not fit the task, or the folder cannot be used.
        EndpointError: if no call to a language model can succeed, or none is answered.
        BlockingIOError: if another run uses the folder.
    """
    with only_run(order.out), without_tqdm_bars(), terminated_as_interrupted(), ExitStack() as runs:
        require_same_results(order.out / RESULTS, results_about(order.task))
        asking = {id(r.asking): r.asking for r in order.rerankers if isinstance(r, AskingReranker)}
        askers = [runs.enter_context(one.one_run()) for one in asking.values()]
        stage, alone, table = _first_stage(order)
        name = str(stage.mteb_model_meta.name)
        lines = [Line("", "", name, None, alone)]
        costs = _Costs(order.out / COSTS)
        for reranker in order.rerankers:
            for budget in order.budgets:
                model = AnswerabilityReranker(stage, reranker, budget)
                scores, own = _scored(order, model)
                found = model.searches[-1]
                lines.append(
                    Line(
                        reranker.method,
                        reranker.model,
                        name,
                        budget,
                        scores,
                        compare(own, table),
                        costs.of(reranker, budget, found),
                        dict(found.counts),
                        str(reranker.settings.get("protocol", "")),
                        found.n_prompts,
                    )
                )
        failed = [outcome for asker in askers for outcome in asker.failed.values()]
        paths = _write(order, lines, failed)
        return Written(paths, in_short(lines), len(failed), [_warning(line) for line in lines if line.is_doubtful])


def _warning(line: Line) -> str:
    counts = line.counts or {}
    parts = [line.told_unusable, KEPT_ORDER, remedy(counts.get(FAILED, 0), counts.get(UNREADABLE, 0))]
    return "; ".join(filter(None, parts))


def results_about(task: TCRTask) -> dict[str, str]:
    """What the folder's results are, and on which data."""
    return {"command": COMMAND, **data_of(task)}


def _first_stage(order: Order) -> tuple[Any, dict[str, Any], QueryTable]:
    """The first stage as saved rankings, its scores, and its outcomes per query."""
    task = order.task.metadata.name
    stage = opened_stage(order)
    scores, table = _scored(order, stage)
    if not isinstance(stage, SavedRun):
        stage = SavedRun(table.path.with_name(f"{task}{PREDICTIONS}"), task)
    return stage, scores, table


def opened_stage(order: Order) -> Any:
    """The first stage as something that searches."""
    stage, task = order.stage, order.task.metadata.name
    return SavedRun(stage, task) if isinstance(stage, Path) else first_stage(stage)


def _scored(order: Order, model: Any) -> tuple[dict[str, Any], QueryTable]:
    # Always anew: what is expensive is kept below, and a result file does not tell what its ranking took.
    result = evaluate(
        model,
        order.task,
        output_folder=order.out,
        prediction_folder=order.out / PREDICTED,
        overwrite_strategy="always",
        show_progress_bar=False,
        encode_kwargs={"show_progress_bar": False, **order.encode_kwargs},
    )
    variant = order.task.variant()
    meta = model.mteb_model_meta
    arguments = {**(meta.experiment_kwargs or {}), **variant} or None
    folder = prediction_folder_of(order.out / PREDICTED, meta.model_copy(update={"experiment_kwargs": arguments}))
    tables, others = read_tables(order.task.per_query_file(folder))
    if others:
        raise ValueError("; ".join(f"{name}: {why}" for name, why in others.items()))
    return dict(result.task_results[0].scores["test"][0]), next(iter(tables.values()))


class _Costs:
    """Calls made and the seconds they took, over all runs into a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, dict[str, float]] = {}
        if path.is_file():
            try:
                read = json.loads(path.read_text(encoding="utf-8"))
                self._kept = {
                    kind: {name: float(of[name]) for name in ("calls", "seconds")} for kind, of in read.items()
                }
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise ValueError(f"{path} does not hold what calls took ({error}); remove it") from error

    def of(self, reranker: Reranker, budget: Budget, found: Reranked) -> Cost:
        """What a query took on average, by the time of all calls of this kind so far."""
        kind = f"{reranker.method} {reranker.model} {reranker.revision}"
        label = kind if reranker.derives else f"{kind} {budget}"
        usage: Usage = found.usage
        kept = self._kept.setdefault(label, {"calls": 0, "seconds": 0})
        if usage.made and not usage.failed:  # the waits of failed calls are not what a reply takes
            kept["calls"] += usage.made
            kept["seconds"] += usage.seconds
            write_text(self._path, json.dumps(self._kept, indent=1))
        n = len(found.orders)
        calls = usage.calls / n
        counted = usage.prompt_tokens > 0
        return Cost(
            calls,
            usage.prompt_tokens / n if counted else None,
            usage.completion_tokens / n if counted else None,
            calls * kept["seconds"] / kept["calls"] + usage.work_seconds / n if kept["calls"] else None,
        )


def _write(order: Order, lines: Sequence[Line], failed: Sequence[Outcome]) -> list[Path]:
    task = order.task
    assert task.data is not None
    figures = scaling_figures(lines, task.metadata.name)
    drawn = draw(figures, order.out / FIGURES) if figures else []
    shown = [path.relative_to(order.out).as_posix() for path in drawn]
    notes = [*task.data.notes, *_cut_off(order)]
    if failed:
        notes.insert(
            0,
            f"{len(failed)} calls stayed without a reply, and what they were about ranks in first-stage order: these "
            "are not yet the language model's scores. Run it again; only what is missing is asked. The first one: "
            f"{quoted(str(failed[0].failure))}",
        )
    text = report(lines, task.metadata.name, str(task.metadata.revision), notes, shown)
    contents = {REPORT: text, RESULTS: as_csv(lines, results_about(task))}
    for name, content in contents.items():
        write_text(order.out / name, content)
    return [*(order.out / name for name in contents), *drawn]


def _cut_off(order: Order) -> list[str]:
    """How much of the tables a cross-encoder does not read, where its limit is known."""
    data, notes = order.task.data, []
    assert data is not None
    for reranker in order.rerankers:
        encoder = getattr(reranker, "encoder", None)
        found = {} if encoder is None else length_figures(encoder, data.corpus, data.queries)
        if found.get("truncated_documents_share"):
            notes.append(
                f"{reranker.model} reads only the beginning of {found['truncated_documents_share']:.0%} of the tables; "
                f"{found['truncated_tokens_share']:.0%} of all their tokens are cut off"
            )
    return notes
