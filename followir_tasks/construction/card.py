"""The card of a finished dataset: what it is, how it came about and what its numbers are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluators.plugin.dataset import Card
from followir_tasks.construction import statistics
from followir_tasks.construction.selection import Band

__all__ = ["CANDIDATES", "WHOLE", "card"]

# What a report says of the corpus.
CANDIDATES, WHOLE = "candidates", "the whole collection"


def card(report: Mapping[str, Any], band: Band, license_id: str) -> Card:
    """The card of a dataset, from its report."""
    counts, record = report["counts"], report["record"]
    waiting = {k: n for k, n in counts.items() if k.startswith("n_unreviewed_") and n}
    told = ", ".join(f"{n} {k.removeprefix('n_unreviewed_').replace('_', ' ')}" for k, n in waiting.items())
    reviewed = f"People's decisions are missing: {told}." if told else "People decided on every topic and document."
    drafted = f"drafts by {record['model']}" if record["model"] else "people"
    tables = statistics.markdown(report, band).partition("\n\n")[2]
    return Card(
        title="FollowIR-style dataset",
        body=(
            "Pairs of instructions on the same query and the same candidates (`-og`, `-changed`), built from a judged "
            "collection in the way of FollowIR (arXiv 2403.15246): the changed instruction narrows the narrative, and "
            f"only documents that were relevant before were judged again; by {drafted}. {reviewed}\n\n"
            f"Every topic has {record['candidates']} candidates: its relevant documents, and the best other ones of "
            f"{', '.join(record['pool'])} for the query alone; a document that nobody judged counts as not relevant. A "
            "document of more than 400 words stands as its best passage of 400 words (200 overlap) by "
            f"{record['passages_chosen_by']}; it was judged as a whole. The config `passages` names the documents."
            f"{_of_whole_collection(counts) if record['corpus'] == WHOLE else ''}\n\n{tables}"
        ),
        license=license_id,
        tags=("information-retrieval", "instruction-following"),
    )


def _of_whole_collection(counts: Mapping[str, int]) -> str:
    return (
        "\n\nThe corpus is the whole collection, in passages. A document that is a candidate of any topic stands in it "
        "with the passages chosen for it; every other one with all of its passages, `DOCUMENT::1`, `DOCUMENT::2` and "
        "so on, so that a long one may take several ranks. The judgements name a topic's own passages: of "
        f"{counts['n_candidates_relevant_with_another_topics_passage']} relevant documents the corpus also holds a "
        "passage chosen for another topic, which counts as not relevant. Rankings of the candidates are not concerned."
    )
