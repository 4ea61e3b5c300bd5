"""mFollowIR as mteb tasks: FollowIR in Farsi, Russian and Chinese, with queries in the same language or in English.

mteb has two tasks with a subset for each language; here each language is a task, with its own result, intervals and
checks of candidates.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
from datasets import Dataset, load_dataset

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.data import TaskData
from evaluators.plugin.mteb_internals import metadata_of
from evaluators.plugin.sources import Source
from followir_tasks.tasks import FollowIRTask


class Language(NamedTuple):
    """One of mFollowIR's languages.

    Attributes:
        code: as its configs end.
        tag: as mteb writes it.
        name: in English.
        n_queries, n_documents: published sizes, by the statistics that mteb ships; original and changed queries count.
    """

    code: str
    tag: str
    name: str
    n_queries: int
    n_documents: int


LANGUAGES = (
    Language("fas", "fas-Arab", "Farsi", 80, 41189),
    Language("rus", "rus-Cyrl", "Russian", 80, 39326),
    Language("zho", "zho-Hans", "Chinese", 86, 41120),
)
# mteb's task -> what our names have before the language, and in which language queries and instructions are.
UPSTREAM = {"mFollowIR": ("mFollowIR", None), "mFollowIRCrossLingual": ("mFollowIRCross", "English")}


class MFollowIRTask(FollowIRTask):
    """mFollowIR in one language; ``followir_score`` is nDCG@20, the measure of NeuCLIR, whose data these are."""

    measure = "ndcg_cut.20"
    language: ClassVar[str]
    upstream_subset: ClassVar[str]

    def fetch(self, source: Source) -> TaskData:
        return fetch_mfollowir(source.repository, source.revision, self.language)


def fetch_mfollowir(repository: str, revision: str | None, language: str) -> TaskData:
    """Fetch one language from one of mteb's repositories, or from a directory in their layout.

    A language has the configs ``corpus-<code>``, ``queries-<code>``, ``instruction-<code>``, ``default-<code>`` (the
    judgements), ``top_ranked-<code>`` and ``qrel_diff-<code>``.

    Raises:
        DatasetError: if a query has no instruction, or is listed twice.
    """

    def rows(config: str, split: str | None = None) -> Dataset:
        return load_dataset(repository, f"{config}-{language}", split=split or config, revision=revision)

    relevant: dict[str, dict[str, int]] = {}
    for row in rows("default", "test"):
        relevant.setdefault(str(row["query-id"]), {})[str(row["corpus-id"])] = int(row["score"])
    queries = rows("queries")
    ids = [str(query) for query in queries["_id"]]
    instructions = {str(row["query-id"]): row["instruction"] for row in rows("instruction")}
    lacking = sorted(set(ids) - instructions.keys())
    if lacking or len(set(ids)) < len(ids):
        raise DatasetError(f"{repository}, {language}", [f"queries without an instruction, or listed twice: {lacking}"])
    # As mteb does: what is not judged is not searched.
    kept = [place for place, query in enumerate(ids) if query in relevant]
    columns = {
        "id": [ids[place] for place in kept],
        "text": [queries["text"][place] for place in kept],
        "instruction": [instructions[ids[place]] for place in kept],
    }
    return TaskData(
        corpus=_corpus(rows("corpus")),
        queries=Dataset(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})),
        relevant_docs=relevant,
        top_ranked={str(row["query-id"]): list(row["corpus-ids"]) for row in rows("top_ranked")},
        side={"qrel_diff": {str(row["query-id"]): list(row["corpus-ids"]) for row in rows("qrel_diff")}},
    )


def _corpus(given: Dataset) -> Dataset:
    table = given.data.table.select(["_id", "title", "text"]).rename_columns(["id", "title", "text"])
    strings = table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))
    return Dataset(strings.set_column(1, "title", strings.column("title").fill_null("")))


def _task(upstream: str, language: Language) -> type[MFollowIRTask]:
    metadata = metadata_of(upstream)
    prefix, asked_in = UPSTREAM[upstream]
    name = f"{prefix}{language.code.capitalize()}"
    tags = ["eng-Latn", language.tag] if asked_in else [language.tag]
    described = f"{asked_in} queries and instructions" if asked_in else "queries and instructions in that language"
    body: dict[str, Any] = {
        "metadata": metadata.model_copy(
            update={
                "name": name,
                "description": f"mFollowIR on {language.name} documents, {described}, from {upstream}: p-MRR with "
                "missing candidates checked, and nDCG@20 of the original queries.",
                "eval_langs": tags,
                "adapted_from": [upstream],
            }
        ),
        "language": language.code,
        "upstream_subset": f"eng-{language.code}" if asked_in else language.code,
        "published_size": (language.n_queries, language.n_documents),
        "data_name": f"{prefix}-{language.code}",
        "__module__": __name__,
    }
    return type(name, (MFollowIRTask,), body)


MFOLLOWIR_TASKS: tuple[type[MFollowIRTask], ...] = tuple(
    _task(upstream, language) for upstream in UPSTREAM for language in LANGUAGES
)

globals().update({cls.__name__: cls for cls in MFOLLOWIR_TASKS})  # so that they can be pickled
