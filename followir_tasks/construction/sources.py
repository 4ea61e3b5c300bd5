"""The steps before anybody is asked: which topics, and the texts of their relevant documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evaluators.construction.readers import digest, judgements_file, read_judgements
from evaluators.construction.workspace import Row, Workspace, fingerprint
from evaluators.plugin.checks import DatasetError, shown
from followir_tasks.construction.collection import OVERLAP, WORDS, Collection, write_collection
from followir_tasks.construction.documents import Documents
from followir_tasks.construction.exclusion import QueryField, topics_of_others
from followir_tasks.construction.selection import Band, Chosen, Selection, select
from followir_tasks.construction.statistics import Size, size_of_source
from followir_tasks.construction.topics import read_topics

__all__ = ["Source", "collected", "read_source", "with_texts"]


@dataclass(frozen=True)
class Source:
    """Topics, judgements and documents.

    Attributes:
        selection: the topics to work on.
        size: of the whole source, as on the left of table 1.
        documents: the collection.
        key: changes with any byte of the documents.
        settings: what the selection was made from.
    """

    selection: Selection
    size: Size
    documents: Documents
    key: str
    settings: Mapping[str, Any]


def read_source(
    topics: Path,
    qrels: Path,
    documents: Documents,
    *,
    query: QueryField = "description",
    min_grade: int = 1,
    band: Band,
    exclude: Sequence[Path] = (),
    number: int | None = None,
    seed: int = 0,
) -> Source:
    """Read topics and judgements and choose topics; documents are only looked at for whether they changed.

    Raises:
        FileNotFoundError: if a file is not there.
        DatasetError: naming what is wrong in a file, or if judgements and topics have no number in common.
        ValueError: if too few topics are left, or ``min_grade`` is below 1.
    """
    if min_grade < 1:
        raise ValueError(f"the lowest relevant grade must be at least 1, got {min_grade}")
    found = read_topics(topics, (query, "narrative"))
    file = judgements_file(qrels)
    judged = {q: {d: grade for d, (grade, _) in ds.items()} for q, ds in read_judgements(file).items()}
    if not judged.keys() & {t.number for t in found}:
        raise DatasetError(
            str(file),
            [f"it judges none of the topics of {topics}: its first ones are {shown(judged)}"],
        )
    excluded = topics_of_others(exclude)
    selection = select(
        found, judged, query=query, min_grade=min_grade, band=band, excluded=excluded, number=number, seed=seed
    )
    settings = {
        "topics": digest(topics.expanduser()),
        "qrels": digest(file),
        "exclude": fingerprint([asdict(t) for t in excluded]),
        "query": query,
        "min_grade": min_grade,
        "n_topics": number,
        "seed": seed,
    }
    return Source(
        selection,
        size_of_source(found, judged, query=query, min_grade=min_grade),
        documents,
        documents.fingerprint(),
        settings,
    )


def with_texts(workspace: Workspace, source: Source, band: Band) -> tuple[list[Chosen], dict[str, str], dict[str, int]]:
    """The topics with the relevant documents that the collection holds, and the texts of these, title first.

    The collection is read once, a document at a time.

    Returns:
        Topics, texts by document, and counts of what is missing.

    Raises:
        DatasetError: if a relevant document occurs more than once.
        ValueError: if no topic is left.
    """
    chosen = source.selection.chosen
    wanted = {d for topic in chosen for d in topic.relevant}
    settings = {**source.settings, "documents": source.key}

    def make() -> list[Row]:
        out: dict[str, Row] = {}
        twice: list[str] = []
        for document in source.documents:
            if document.id in wanted:
                if document.id in out:
                    twice.append(document.id)
                text = f"{document.title}\n\n{document.text}".strip() if document.text.strip() else ""
                out[document.id] = {"document": document.id, "text": text}
        if twice:
            raise DatasetError(source.documents.name, [f"{len(twice)} ids occur more than once: {shown(twice)}"])
        return [out[d] for d in sorted(out)]

    rows = workspace.computed("relevant-documents", settings, sorted(wanted), make)
    texts = {row["document"]: row["text"] for row in rows if row["text"]}
    there = [replace(t, relevant={d: g for d, g in t.relevant.items() if d in texts}) for t in chosen]
    kept = [t for t in there if band.attainable(len(t.relevant))]
    if not kept:
        raise ValueError(
            f"{source.documents.name}: it holds {len(texts)} of {len(wanted)} relevant documents, too few for any "
            "topic; do topics, judgements and documents belong together?"
        )
    return (
        kept,
        texts,
        {
            "n_relevant_documents": len(wanted),
            "n_relevant_documents_not_in_collection": len(wanted) - len(rows),
            "n_relevant_documents_without_text": len(rows) - len(texts),
            "n_topics_with_too_few_relevant_in_collection": len(there) - len(kept),
        },
    )


def collected(workspace: Workspace, source: Source) -> Collection:
    """The collection, cut and on disk: from before, or made now."""
    path = workspace.work / "collection.arrow"

    def make() -> list[Row]:
        made = write_collection(source.documents, path)
        return [{"counts": made.counts, "without": made.without}]

    if not path.is_file():
        (workspace.work / "collection.jsonl").unlink(missing_ok=True)  # which tells of it
    (row,) = workspace.computed("collection", {"documents": source.key}, [WORDS, OVERLAP], make)
    return Collection(path, row["counts"], row["without"])
