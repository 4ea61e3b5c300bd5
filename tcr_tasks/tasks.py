"""TCR-Bench as mteb tasks, one per way of printing tables."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import pyarrow as pa
from datasets import Dataset
from mteb.abstasks.task_metadata import PromptDict, TaskMetadata

from evaluators.metrics.ranking import ranks_of
from evaluators.metrics.siblings import sibling_queries, sibling_scores
from evaluators.plugin.checks import DatasetError
from evaluators.plugin.data import TaskData
from evaluators.plugin.dataset import config_files, embedded_revision, fingerprint, is_dataset_directory
from evaluators.plugin.mteb_internals import is_cross_encoder
from evaluators.plugin.results import SpecialScores, TaskOption
from evaluators.plugin.sources import Source, fetch_git_archive
from evaluators.plugin.task import BeyondTask
from tcr_tasks.data import Question, authors_patterns, group_problems, is_authors_layout, read_authors, read_own
from tcr_tasks.serialize import TableFormat
from tcr_tasks.statistics import interval_scores

logger = logging.getLogger(__name__)

REPOSITORY = "minger-hsxz/TCR-Bench-Open"
COMMIT = "7d4c8b7c9c95ac4a133cd130315c738fc8be05e2"
SAMPLE = Path(__file__).parent / "sample"
K_VALUES = (1, 2, 3, 4, 5)

# The paper's retrieval instruction (appendix C.1), which its authors put before every query of a dense model.
INSTRUCTION = (
    "Given a TableQA query, retrieve a relevant table that can answer the query. Note that the retrieved table should "
    "contain sufficient information to provide an answer, rather than resulting in an empty answer."
)
# mteb builds this type from an enumeration at run time, which a type checker cannot follow.
QUERY_PROMPT = cast(PromptDict, {"query": INSTRUCTION})

CITATION = r"""
@misc{tian2026semantically,
  archiveprefix = {arXiv},
  author = {Jiaming Tian and Liyao Li and Wentao Ye and Haobo Wang and Peng Lu and Lihua Yu and Zujie Ren and Gang Chen
    and Junbo Zhao},
  eprint = {2607.17742},
  title = {Semantically Similar, Yet Not Answerable: Diagnosing the Semantic-Answerability Gap in Table RAG},
  year = {2026},
}
"""


class Setting(NamedTuple):
    """What distinguishes one task.

    Attributes:
        name: task name.
        format: how every table is printed; ``None``: each in the format that the data fix for it (Mixed).
        part: which question and table files: ``""`` all, ``"_EM"`` the diagnostic subset.
        text: the format in words.
    """

    name: str
    format: TableFormat | None
    part: str
    text: str


SETTINGS = (
    Setting("TCRBenchMixed", None, "", "each as CSV, HTML or Markdown, as the authors' file fixes it"),
    Setting("TCRBenchCSV", TableFormat.CSV, "", "as CSV"),
    Setting("TCRBenchHTML", TableFormat.HTML, "", "as HTML"),
    Setting("TCRBenchMarkdown", TableFormat.MARKDOWN, "", "as Markdown"),
    Setting("TCRBenchTSen", TableFormat.TSEN, "", "as sentences, one row a line"),
    Setting("TCRBenchTSenS", TableFormat.TSENS, "", "as sentences with shuffled columns"),
    Setting("TCRBenchDiagnosticMixed", None, "_EM", "each as CSV, HTML or Markdown; exact-match questions only"),
)
# Not the authors' way: nothing of the tables is lost. Outside the benchmark.
SAFE_SETTING = Setting(
    "TCRBenchSafeMarkdown", TableFormat.SAFE_MARKDOWN, "", "as Markdown, read as text and escaped: nothing is lost"
)


class TCRTask(BeyondTask):
    """TCR-Bench: one table can answer the question, its siblings look alike and cannot.

    Main score R@1; beside it GR@k (was the group found?) and DS@1 (the target within the group), by question type, and
    how sure R@1, GR@1 and DS@1 are.
    """

    metric_version = 2
    data_name = REPOSITORY.split("/")[-1]
    setting: ClassVar[Setting] = SETTINGS[0]
    task_options = (
        TaskOption(
            "instruction",
            ("mteb", "prepend", "none"),
            "TCR-Bench's retrieval instruction: as mteb task prompt, which instruction-aware models use (mteb); before "
            "every query of every dense model, as the authors do (prepend); not at all (none)",
        ),
    )
    instruction: str = "mteb"

    @classmethod
    def recognises(cls, directory: Path) -> bool:
        if cls.setting.format is not None:  # the same data as Mixed, printed otherwise
            return False
        return is_authors_layout(directory) or (
            is_dataset_directory(directory) and bool(config_files(directory, "groups"))
        )

    def read(self, source: Source) -> TaskData:
        directory = source.directory or fetch_git_archive(source.repository, source.revision)
        if is_dataset_directory(directory):
            return read_own(directory, self.setting.format, self.setting.part, published=self.embedded is None)
        if not is_authors_layout(directory):
            raise DatasetError(
                str(directory), ["expected data/TCR_Questions.json and tables/TCR_8k, or corpus, queries and qrels"]
            )
        return read_authors(directory, self.setting.format, self.setting.part)

    def local_revision(self, directory: Path) -> str:
        return fingerprint(directory) if is_dataset_directory(directory) else fingerprint(directory, authors_patterns())

    def problems(self, data: TaskData) -> list[str]:
        return super().problems(data) + group_problems(data.side["questions"], data.side["tables"])

    def metadata_changes(self) -> dict[str, Any]:
        # An empty prompt keeps instruction-aware models from falling back to mteb's general one.
        return {} if self.option_values()["instruction"] == "mteb" else {"prompt": {"query": ""}}

    def prepare_queries(self, model: Any, queries: Dataset) -> Dataset:
        if self.option_values()["instruction"] != "prepend":
            return queries
        kinds = set(model.mteb_model_meta.model_type)
        if "hybrid" in kinds:
            raise ValueError(
                f"{self.metadata.name}: instruction='prepend' puts a text before the queries of dense models only, but "
                f"{model.mteb_model_meta.name} joins several models that read the same queries; use 'mteb' or 'none'"
            )
        if is_cross_encoder(model) or not kinds & {"dense", "late-interaction"}:
            logger.info("%s: not a dense model, so no instruction is prepended", self.metadata.name)
            return queries
        texts = [f"{INSTRUCTION} {text}" for text in queries["text"]]
        return Dataset(pa.table({"id": list(queries["id"]), "text": texts}))

    def special_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        questions: list[Question] = data.side["questions"]
        targets = {q.id: q.target for q in questions}
        groups = {q.id: q.group for q in questions}
        scores = sibling_scores(run, targets, groups, K_VALUES, {q.id: q.type for q in questions})
        scores |= {f"chance_recall_at_{k}": min(k / len(data.corpus), 1.0) for k in K_VALUES}
        per_query = sibling_queries(run, targets, groups, K_VALUES)
        scores |= interval_scores(per_query, questions, len(data.corpus))
        rows = {}
        for q in questions:
            found = per_query[q.id]
            rows[q.id] = {
                "question_type": q.type,
                "group_size": found.group_size,
                "target": q.target,
                "target_rank": ranks_of(run[q.id], [q.target], q.id)[0],
                "top": found.top,
                "top_is": _kind(found.top, q),
                **{f"recall_at_{k}": float(found.target_in[k]) for k in K_VALUES},
                **{f"gr_at_{k}": found.group_in[k] / min(found.group_size, k) for k in K_VALUES},
                "tied_top": found.tied,
            }
        return SpecialScores(scores, rows)

    def describe_query(self, query_id: str, data: TaskData) -> dict[str, Any]:
        question = next(q for q in data.side["questions"] if q.id == query_id)
        return {
            "question type": question.type,
            "target": question.target,
            "siblings": [t for t in question.group if t != question.target],
            "strategies": question.strategies,
        }


def _kind(table: str | None, question: Question) -> str:
    """What the best table is to the question: target, sibling (by strategy where known), other, or none."""
    if table is None:
        return "none"
    if table == question.target:
        return "target"
    return question.strategies.get(table, "sibling") if table in question.group else "other"


def _metadata(name: str, description: str, **more: Any) -> TaskMetadata:
    return TaskMetadata(
        name=name,
        description=description,
        prompt=QUERY_PROMPT,
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="recall_at_1",
        task_subtypes=["Question Answering Retrieval"],
        dialect=[],
        reference="https://arxiv.org/abs/2607.17742",
        bibtex_citation=CITATION,
        **more,
    )


def _setting_task(setting: Setting) -> type[TCRTask]:
    metadata = _metadata(
        setting.name,
        "TCR-Bench: find the one table that can answer a question among sibling tables that look alike; tables printed "
        f"{setting.text}.",
        dataset={"path": REPOSITORY, "revision": COMMIT},
        date=("2018-01-01", "2026-07-31"),
        license="cc-by-4.0",
        domains=["Web", "Written"],
        annotations_creators="LM-generated and reviewed",
        sample_creation="created",
    )
    return type(setting.name, (TCRTask,), {"metadata": metadata, "setting": setting, "__module__": __name__})


BENCHMARK_TASKS: tuple[type[TCRTask], ...] = tuple(_setting_task(setting) for setting in SETTINGS)
SAFE_TASK: type[TCRTask] = _setting_task(SAFE_SETTING)

globals().update({cls.__name__: cls for cls in (*BENCHMARK_TASKS, SAFE_TASK)})  # so that they can be pickled


class TCRSample(TCRTask):
    """The embedded sample: public tables, siblings by the paper's strategies, answers checked on every table."""

    data_name = "TCRSample"
    embedded = SAMPLE
    metadata = _metadata(
        "TCRSample",
        "A small set in the manner of TCR-Bench, built from public tables: each question is answered by exactly one "
        "table of the whole corpus. It works offline and is no substitute for TCR-Bench.",
        dataset={"path": "mteb-beyond/tcr-sample", "revision": embedded_revision(SAMPLE)},
        license="mit",
        date=("2026-11-01", "2026-11-30"),
        domains=["Web", "Written"],
        annotations_creators="algorithmic",
        sample_creation="created",
    )
