"""Pairs that people may be asked about: from saved runs of a task, or from its relevant passages and random ones."""

from __future__ import annotations

import random
from pathlib import Path

from evaluators.judge.annotation_draw import Item
from evaluators.judge.scale import Scale
from evaluators.plugin.checks import column
from evaluators.plugin.judged import JudgedTask
from evaluators.plugin.judged_runs import Run, judged_pairs, saved_predictions
from evaluators.plugin.predictions import prediction_files

FROM_RUNS = "best passages of saved runs, with and without instruction"
FROM_JUDGEMENTS = "relevant passages and random ones, no runs"
# A judge looks at the 20 best passages of a list; half of a made-up list may be relevant.
_MOST_RELEVANT = 10


def candidates(task: JudgedTask, predictions: Path | None, scale: Scale | None, seed: int) -> list[Item]:
    """The pairs of a loaded task.

    Args:
        task: its data are loaded.
        predictions: a prediction file of the task, or a folder with such files at or below it, whose pairs are pooled;
            ``None``: for each instructed query up to 10 relevant passages, as many random ones (at least one), and
            one drawn for its plain query. Random passages are easy to score, which makes an agreement look better than
            on the passages that retrievers return.
        scale: on which people score; ``None`` for 0 to the highest score of each level.
        seed: of the random passages.

    Raises:
        FileNotFoundError: if there are no predictions.
        ValueError: if they do not fit the data.
    """
    if predictions is None:
        runs, origin = [_made_up_run(task, seed)], FROM_JUDGEMENTS
    else:
        files = prediction_files(predictions, task.metadata.name)
        runs, origin = [saved.run for saved in saved_predictions(task, files)], FROM_RUNS
    name = task.metadata.name
    return [Item(name, p, scale or (0, p.highest), origin) for run in runs for p in judged_pairs(task, run)]


def _made_up_run(task: JudgedTask, seed: int) -> Run:
    assert task.data is not None
    documents = sorted(column(task.data.corpus, "id"))
    run: Run = {}
    for query in task.data.queries["id"]:
        drawn = random.Random(f"{seed} {task.metadata.name} {query}")
        grades = task.data.relevant_docs.get(query, {})
        relevant = sorted(d for d, grade in grades.items() if grade > 0)
        kept = drawn.sample(relevant, min(len(relevant), _MOST_RELEVANT))
        n_others = max(len(kept), 1)
        # Enough that so many are left when the relevant ones among them are taken out.
        others = drawn.sample(documents, min(len(documents), n_others + len(relevant)))
        listed = kept + [d for d in others if grades.get(d, 0) <= 0][:n_others]
        run[query] = {document: float(-place) for place, document in enumerate(listed)}
    return run
