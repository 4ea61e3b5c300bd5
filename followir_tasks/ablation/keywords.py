"""Keywords in place of instructions on BEIR's sets (FollowIR, section 4.3, Tables 3 and 5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mteb.abstasks import AbsTask
from mteb.cache import ResultCache

from evaluators.markdown import markdown_table
from evaluators.metrics.standard import trec_measure
from evaluators.plugin.models import loaded
from evaluators.plugin.mteb_internals import wrapped_model
from evaluators.plugin.predictions import read_predictions
from evaluators.plugin.prompting import PromptFamily, TaskPrompts, with_prompts
from evaluators.plugin.results import PREDICTIONS
from evaluators.plugin.running import evaluate, prediction_folder_of
from evaluators.plugin.task import SPLIT
from followir_tasks.ablation.comparison import Estimate, mean_over_topics, paired_difference
from followir_tasks.report.published import DIFFERENCE, ORIGINAL, Column, published_notes, published_table

FILE = Path(__file__).with_name("keywords.json")
TASKS = ("SciFact", "NFCorpus", "FiQA2018")
MEASURE = "ndcg_cut.10"
_SUBSET = "default"


class KeywordFamily(NamedTuple):
    """The keywords of a family of models.

    Attributes:
        prompts: the keywords by task, which stand in place of the model's own instruction, or where it expects one, and
            otherwise before the query with a blank between.
        printed: how Table 5 calls the family.
        models: its models in Table 3, spelled as in Table 2.
    """

    prompts: PromptFamily
    printed: str
    models: tuple[str, ...]


@dataclass(frozen=True)
class KeywordRun:
    """What a model scored on one set, as it is and with keywords.

    Attributes:
        model: as mteb files it.
        task: mteb's task.
        original: query -> nDCG@10, the model with the prompts that mteb gives it.
        keywords: the same with keywords in place of these.
    """

    model: str
    task: str
    original: dict[str, float]
    keywords: dict[str, float]


@cache
def keyword_families() -> dict[str, KeywordFamily]:
    """The families of Table 5, by our short names."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: KeywordFamily(_prompts(name, entry["keywords"]), entry["printed"], tuple(entry["models"]))
        for name, entry in content["families"].items()
    }


def _prompts(name: str, keywords: Mapping[str, str]) -> PromptFamily:
    tasks = {task: TaskPrompts(text) for task, text in keywords.items()}
    return PromptFamily(f"keywords-{name}", "{prompt} ", tasks, in_place=True)


def run_keywords(
    name: str, family: KeywordFamily, tasks: Sequence[Callable[[], AbsTask]], out: Path, batch_size: int
) -> Iterable[KeywordRun]:
    """Run a model on each task as it is and with keywords; what is there already is not run again.

    Args:
        name: of a model that mteb knows, or a directory.
        family: whose keywords.
        tasks: make mteb's tasks, one at a time.
        out: mteb's output folder, which also holds the predictions.
        batch_size: of the encoder.

    Raises:
        ValueError: if the model cannot be used.
    """
    model, known, _ = loaded(name)
    prompted = with_prompts(model, family.prompts)
    for make in tasks:
        task = make()
        scores = [_per_query(one, make(), out, batch_size) for one in (model, prompted)]
        yield KeywordRun(known, task.metadata.name, *scores)


def _per_query(model: Any, task: AbsTask, out: Path, batch_size: int) -> dict[str, float]:
    """nDCG@10 of each query that mteb scores."""
    task.load_data()
    assert task.dataset is not None
    judged = task.dataset[_SUBSET][SPLIT]["relevant_docs"]
    qrels = {query: dict(documents) for query, documents in judged.items() if documents}
    name, meta = task.metadata.name, wrapped_model(model)[1]
    base = out / "predictions"
    file = prediction_folder_of(base, meta) / f"{name}{PREDICTIONS}"
    is_done = file.is_file() and ResultCache(out).get_task_result_path(name, meta).is_file()
    evaluate(
        model,
        task,
        output_folder=out,
        prediction_folder=base,
        # mteb writes no predictions where it answers from a result.
        overwrite_strategy="only-missing" if is_done else "always",
        encode_kwargs={"batch_size": batch_size, "show_progress_bar": False},
        show_progress_bar=False,
    )
    run = read_predictions(file, _SUBSET, SPLIT).run
    return trec_measure(run, qrels, MEASURE)


# ---- reporting -------------------------------------------------------------------------------------------------


def csv_rows(runs: Iterable[KeywordRun], family: str) -> list[dict[str, Any]]:
    """A row for each run; nDCG@10 0..1."""
    out = []
    for run in runs:
        original, difference = estimates(run)
        interval = difference.interval
        out.append(
            {
                "model": run.model,
                "task": run.task,
                "family": family,
                "n_queries": original.n,
                "ndcg_at_10": original.value,
                "difference_with_keywords": difference.value,
                "difference_low": None if interval is None else interval.low,
                "difference_high": None if interval is None else interval.high,
            }
        )
    return out


def estimates(run: KeywordRun) -> tuple[Estimate, Estimate]:
    """The score as it is, and what keywords change, with queries resampled.

    Raises:
        ValueError: if no query was scored.
    """
    original, difference = mean_over_topics(run.original), paired_difference(run.keywords, run.original)
    if original is None or difference is None:
        raise ValueError(f"{run.model}, {run.task}: no query was scored")
    return original, difference


def markdown(runs: Sequence[KeywordRun], family: KeywordFamily) -> str:
    """The report: Table 3's shape, and its rows of the family."""
    rows = []
    for run in runs:
        original, difference = estimates(run)
        interval = difference.interval
        bounds = "-" if interval is None else f"[{100 * interval.low:z.1f}, {100 * interval.high:z.1f}]"
        sentence = family.prompts.tasks[run.task].query
        cells = [run.model, run.task, sentence, str(original.n), f"{100 * original.value:.1f}"]
        rows.append([*cells, f"{100 * difference.value:+z.1f}", bounds])
    heads = ["model", "task", "keywords", "queries", "nDCG@10", "with keywords", "95 % interval"]
    table = published_table("3")
    columns = [Column(task, score) for task in TASKS for score in (ORIGINAL, DIFFERENCE)]
    shown = [
        [name, *(f"{table.value(name, c):{'+' if c.score == DIFFERENCE else ''}.1f}" for c in columns)]
        for name in family.models
    ]
    published_heads = ["published model", *(head for task in TASKS for head in (task, "with keywords"))]
    parts = [
        "# FollowIR: keywords in place of instructions (Table 3)",
        f"nDCG@10 times 100, and what the keywords of {family.printed} (Table 5) change; brackets: 95 % interval, "
        "queries resampled with both their values. Keywords stand where a model expects its instruction, otherwise in "
        "front of the query; where the paper puts them is not known.",
        markdown_table(heads, rows, heads[:3]),
        f"{table.source}:",
        markdown_table(published_heads, shown, published_heads[:1]),
        "\n".join(f"- {note}" for note in published_notes(family.models)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
