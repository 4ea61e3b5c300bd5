"""The IFIR subsets as mteb tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from huggingface_hub import snapshot_download
from mteb.abstasks.task_metadata import TaskDomain, TaskMetadata

from evaluators.judge.judges import Judge
from evaluators.plugin.checks import column, shown, size_note
from evaluators.plugin.data import TaskData
from evaluators.plugin.dataset import embedded_revision, fingerprint, is_dataset_directory, read_config
from evaluators.plugin.judged import Judged, JudgedTask
from evaluators.plugin.mteb_internals import standard_scores
from evaluators.plugin.results import SpecialScores
from evaluators.plugin.sources import Source
from ifir_tasks.data import QUERY_FILE, is_authors_layout, read_authors, read_own
from ifir_tasks.ids import parse_query_id
from ifir_tasks.instfol import INSTFOL, RUBRICS, inst_fol_means, judge_run
from ifir_tasks.scores import averages, has_relevant, instructed_queries, intervals, per_query_scores

REPOSITORY = "songtingyu/IFIR"
# The last upload of data in the repository's history; later commits edit the card. Only this short form is known.
REVISION = "d5169f7"
SAMPLE = Path(__file__).parent / "sample"

CITATION = r"""
@inproceedings{song2025ifir,
  author = {Song, Tingyu and Gan, Guo and Shang, Mingsheng and Zhao, Yilun},
  booktitle = {Proceedings of the 2025 Conference of the Nations of the Americas Chapter of the Association for
    Computational Linguistics: Human Language Technologies (Volume 1: Long Papers)},
  title = {IFIR: A Comprehensive Benchmark for Evaluating Instruction-Following in Expert-Domain Information
    Retrieval},
  year = {2025},
}
"""


class Subset(NamedTuple):
    """What distinguishes one subset.

    Attributes:
        name: task name.
        folder: folder in the authors' repository.
        levels: whether its instructions come in levels 1-3.
        domains: mteb's domains.
        need: what its instructions ask for.
        n_queries, n_passages: published sizes, empty passages included.
    """

    name: str
    folder: str
    levels: bool
    domains: tuple[TaskDomain, ...]
    need: str
    n_queries: int
    n_passages: int


SUBSETS = (
    Subset("IFIRFiQAInstFol", "fiqa", True, ("Financial",), "financial advice for a person's situation", 1718, 57638),
    Subset("IFIRScifactOpenInstFol", "scifact_open", True, ("Academic",), "evidence on a claim", 152, 500000),
    Subset("IFIRNFCorpusInstFol", "nfcorpus", False, ("Medical", "Academic"), "studies on nutrition", 86, 3633),
    Subset("IFIRAilaInstFol", "aila", True, ("Legal",), "cases similar to a case, of use to one side", 85, 2914),
    Subset("IFIRFireInstFol", "fire", False, ("Legal",), "the prior case cited in a judgement", 167, 1745),
    Subset("IFIRPmInstFol", "pm", True, ("Medical",), "clinical trials for a patient", 172, 241006),
    Subset("IFIRCdsInstFol", "cds", False, ("Medical", "Academic"), "articles on a patient's diagnosis", 42, 633955),
)


class IFIRTask(JudgedTask):
    """IFIR: expert-domain queries, alone and with instructions of rising complexity.

    One search ranks the corpus for the plain query and for each instruction. mteb's usual scores are averaged over
    the instructed queries that have a relevant passage; the main score is their nDCG@20. A judge adds InstFol.
    Both have 95 % intervals over base queries (:mod:`ifir_tasks.scores`, :mod:`ifir_tasks.instfol`).
    """

    data_name = "IFIR"
    metric_version = 3
    judged_score = INSTFOL
    rubrics = RUBRICS
    subset: ClassVar[Subset | None] = None

    @property
    def has_levels(self) -> bool:
        return self.subset is None or self.subset.levels

    @classmethod
    def recognises(cls, directory: Path) -> bool:
        if is_dataset_directory(directory):
            return _has_levelled_ids(directory)
        return cls.subset is not None and any(
            is_authors_layout(place) and place.name == cls.subset.folder
            for place in (directory, directory / cls.subset.folder)
        )

    def read(self, source: Source) -> TaskData:
        directory = self._directory(source)
        own = is_dataset_directory(directory)
        data = read_own(directory) if own else read_authors(directory, self.has_levels)
        self._compare_sizes(data)
        return data

    def _directory(self, source: Source) -> Path:
        folder = self.subset.folder if self.subset else ""
        if source.directory is None:
            fetched = snapshot_download(
                source.repository, repo_type="dataset", revision=source.revision, allow_patterns=[f"{folder}/*"]
            )
            return Path(fetched) / folder
        return self._local_directory(source.directory)

    def _local_directory(self, given: Path) -> Path:
        """The folder of this subset at or below a directory; another subset's data are never taken for it."""
        folder = self.subset.folder if self.subset else ""
        directory = given / folder if (given / folder).is_dir() else given
        authors = (directory / QUERY_FILE).is_file()
        if not (is_dataset_directory(directory) or authors):
            raise FileNotFoundError(
                f"{self.metadata.name}: {given} holds neither {folder or '.'}/test_data.json with a *-corpus.jsonl "
                f"beside it (the authors' layout) nor corpus, queries and qrels as parquet"
            )
        named = [path.name for path in directory.glob("*-corpus.jsonl")]
        if authors and self.subset is not None and named and f"{folder}-corpus.jsonl" not in named:
            raise FileNotFoundError(
                f"{self.metadata.name}: {directory} holds {', '.join(named)}, which is another subset than {folder}"
            )
        if not authors and self.data_path is None and self.subset is not None and directory.name != folder:
            raise FileNotFoundError(
                f"{self.metadata.name}: {given} has no folder {folder}, and is not that subset itself"
            )
        return directory

    def local_revision(self, directory: Path) -> str:
        patterns = ("*.parquet", "*/*.parquet", "*-corpus.jsonl", "test_data.json")
        return fingerprint(self._local_directory(directory), patterns)

    def _compare_sizes(self, data: TaskData) -> None:
        if self.subset is None:
            return
        found = (data.side["n_instructed"], data.side["n_passages_in_file"])
        published = (self.subset.n_queries, self.subset.n_passages)
        if found != published:
            data.notes.append(size_note("instructed queries", "passages", found, published))

    def problems(self, data: TaskData) -> list[str]:
        out: list[str] = []
        levels: dict[str, int | None] = {}
        for key in column(data.queries, "id"):
            try:
                levels[key] = parse_query_id(key).level
            except ValueError as error:
                out.append(str(error))
        instructed = [q for q, level in levels.items() if level is not None]
        without_plain = [q for q in instructed if parse_query_id(q).plain not in levels]
        if without_plain:
            out.append(f"queries: no plain query (-og) for {shown(without_plain)}")
        expected = {1, 2, 3} if self.has_levels else {0}
        odd = [q for q, level in levels.items() if level is not None and level not in expected]
        if odd and self.subset is not None:
            out.append(f"queries: levels other than {sorted(expected)}, which this subset has: {shown(odd)}")
        if levels and all(level is None for level in levels.values()):
            out.append("queries: none carries an instruction")
        if "facets" in data.side:
            out += _facet_problems(data, levels)
        return super().problems(data) + out

    def searched_relevant_docs(self, data: TaskData) -> dict[str, dict[str, int]]:
        # mteb searches only for queries that have a judgement: plain queries and queries without relevant passage
        # get one of grade 0, on any document. It reaches no score, since ours use the real judgements.
        some_document = data.corpus[0]["id"]
        return {q: dict(docs) if docs else {some_document: 0} for q, docs in data.relevant_docs.items()}

    def special_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        rows = per_query_scores(run, data.relevant_docs, len(data.corpus))
        scored = [q for q in rows if has_relevant(data.relevant_docs, q)]
        if not scored:
            raise ValueError(f"{self.metadata.name}: no instructed query has a relevant passage; nothing to score")
        # mteb's own averages run over plain and instructed queries alike; these replace them.
        usual = standard_scores(
            {q: run[q] for q in scored},
            {q: data.relevant_docs[q] for q in scored},
            self.k_values,
            self._previous_results_model_meta,
        )
        return SpecialScores(usual | averages(rows) | intervals(rows), rows)

    def judged_scores(self, run: dict[str, dict[str, float]], data: TaskData, judge: Judge) -> Judged:
        folder = self.subset.folder if self.subset else None
        judged = judge_run(judge, run, instructed_queries(data.relevant_docs), data, folder)
        rows = judged.per_query()
        return Judged(inst_fol_means(rows), rows, judged.pairs, judged.judgements)

    def describe_query(self, query_id: str, data: TaskData) -> dict[str, Any]:
        parts = parse_query_id(query_id)
        return {
            "base query": parts.base,
            "level": "plain query" if parts.level is None else parts.level,
            "other queries on it": [q for q in data.queries["id"] if parse_query_id(q).base == parts.base],
        }


def _has_levelled_ids(directory: Path) -> bool:
    queries = read_config(directory, "queries")
    ids = queries.column("_id").to_pylist() if queries is not None else []
    return bool(ids) and all(isinstance(i, str) and (i.endswith("-og") or i[-3:-1] == "-v") for i in ids)


def _facet_problems(data: TaskData, levels: dict[str, int | None]) -> list[str]:
    table = data.side["facets"].to_pydict()
    bases = {parse_query_id(q).base for q in levels}
    documents = set(column(data.corpus, "id"))
    out = []
    strangers = sorted({q for q in table["query-id"] if q not in bases})
    if strangers:
        out.append(f"facets: unknown base queries {shown(strangers)}")
    missing = sorted({d for d in table["corpus-id"] if d not in documents})
    if missing:
        out.append(f"facets: documents that are not in the corpus: {shown(missing)}")
    odd = [
        (q, d, s)
        for q, d, s in zip(table["query-id"], table["corpus-id"], table["score"], strict=True)
        if s is None or not 0 <= s <= 3
    ]
    if odd:
        out.append(f"facets: scores outside 0..3, as (query, document, score): {shown(odd)}")
    return out


def _metadata(name: str, description: str, domains: tuple[TaskDomain, ...], **more: Any) -> TaskMetadata:
    return TaskMetadata(
        name=name,
        description=description,
        type="InstructionRetrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_20",
        domains=[*domains, "Written"],
        task_subtypes=["Article retrieval"],
        dialect=[],
        **more,
    )


def _subset_task(subset: Subset) -> type[IFIRTask]:
    instructions = "instructions in three levels of complexity" if subset.levels else "one instruction each"
    metadata = _metadata(
        subset.name,
        f"IFIR, subset {subset.folder}: {subset.need}, asked with {instructions}; the plain query is ranked too, so "
        "that the effect of the instruction can be measured.",
        subset.domains,
        reference="https://arxiv.org/abs/2503.04644",
        dataset={"path": REPOSITORY, "revision": REVISION},
        date=("2024-05-01", "2024-10-16"),
        license="mit",
        annotations_creators="LM-generated and reviewed",
        sample_creation="created",
        bibtex_citation=CITATION,
    )
    return type(subset.name, (IFIRTask,), {"metadata": metadata, "subset": subset, "__module__": __name__})


class IFIRSample(IFIRTask):
    """The embedded sample: four domains, generated passages, exact facets."""

    data_name = "IFIRSample"
    embedded = SAMPLE
    metadata = _metadata(
        "IFIRSample",
        "A small generated set in the manner of IFIR: four expert domains, three nested levels of instructions, and "
        "the exact number of levels that each passage satisfies. It works offline and is no substitute for IFIR.",
        ("Financial", "Academic", "Legal", "Medical"),
        reference="https://arxiv.org/abs/2503.04644",
        dataset={"path": "mteb-beyond/ifir-sample", "revision": embedded_revision(SAMPLE)},
        date=("2026-11-01", "2026-11-30"),
        license="mit",
        annotations_creators="algorithmic",
        sample_creation="created",
        bibtex_citation=CITATION,
    )


SUBSET_TASKS: tuple[type[IFIRTask], ...] = tuple(_subset_task(subset) for subset in SUBSETS)
globals().update({cls.__name__: cls for cls in SUBSET_TASKS})  # so that they can be pickled
