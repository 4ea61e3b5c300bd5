"""Runs models with each form of the instruction; results are mteb's, filed apart by form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evaluators.plugin.models import loaded, with_variant
from evaluators.plugin.mteb_internals import wrapped_model
from evaluators.plugin.running import evaluate, prediction_folder_of
from evaluators.plugin.task import SPLIT
from followir_tasks.ablation.documents_once import documents_once
from followir_tasks.collection import FollowIRCollection
from followir_tasks.forms import CONFIG, FORMS, KEPT, N_EQUAL
from followir_tasks.tasks import FollowIRTask

PREDICTIONS_FOLDER = "predictions"
FormTask = FollowIRTask | FollowIRCollection


@dataclass(frozen=True)
class FormRun:
    """What a model scored with one form of the instruction.

    Attributes:
        model, revision: as mteb files it.
        task, data_revision: what it was run on.
        form: of the instruction.
        score: topic -> MAP@1000 or nDCG@5 of its original query, 0..1.
        p_mrr: topic with a changed document -> its p-MRR, -1..1; empty where it is not defined.
        n_equal: topics whose original and changed instruction are the same text in this form; ``None``: not counted.
        place: of data that are not the task's own.
    """

    model: str
    revision: str
    task: str
    data_revision: str
    form: str
    score: dict[str, float]
    p_mrr: dict[str, float]
    n_equal: int | None
    place: str = ""

    @property
    def on(self) -> str:
        """How reports call what it was run on."""
        return f"{self.place} as {self.task}" if self.place else self.task


def available_forms(task: FormTask) -> tuple[str, ...]:
    """The forms that a task's dataset allows, by how much is said; loads the data."""
    task.load_data()
    assert task.data is not None
    has_kept = task.data.side.get(CONFIG) is not None
    return tuple(form for form in FORMS if has_kept or form not in KEPT)


def run_forms(name: str, task: FormTask, forms: Sequence[str], out: Path, batch_size: int) -> Iterable[FormRun]:
    """Run a model with each form; what is there already is not run again.

    Args:
        name: of a model that mteb knows, or a directory.
        task: what to run it on.
        forms: which forms.
        out: mteb's output folder, which also holds the predictions.
        batch_size: of the encoder.

    Raises:
        ValueError: if the model cannot be used, naming the form with which it failed.
    """
    model, known, revision = loaded(name)
    once = documents_once(model)
    for form in forms:
        task.instruction_form = form
        try:
            run = _run(once, known, revision, task, out, batch_size)
        except (ValueError, OSError, RuntimeError) as error:
            raise ValueError(f"{known}, form {form!r}: {error}") from error
        yield run


def _run(model: Any, name: str, revision: str, task: FormTask, out: Path, batch_size: int) -> FormRun:
    variant = with_variant(model, task)
    base = out / PREDICTIONS_FOLDER
    result = evaluate(
        variant,
        task,
        output_folder=out,
        prediction_folder=base,
        encode_kwargs={"batch_size": batch_size, "show_progress_bar": False},
        show_progress_bar=False,
    ).task_results[0]
    folder = prediction_folder_of(base, wrapped_model(variant)[1])
    rows = pq.read_table(task.per_query_file(folder)).to_pylist()
    scores = result.scores[SPLIT][0]
    return FormRun(
        model=name,
        revision=revision,
        task=result.task_name,
        data_revision=str(result.dataset_revision),
        form=task.instruction_form,
        score={row["query-id"]: row["followir_score"] for row in rows},
        p_mrr={row["query-id"]: row["p-MRR"] for row in rows if row.get("p-MRR") is not None},
        n_equal=scores.get(N_EQUAL),
        place=str(task.data_path or ""),
    )
