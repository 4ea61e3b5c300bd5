"""The training set: what the judge agreed on, one relevant and one non-relevant document a pair, in files."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from evaluators.construction.counts import counted
from evaluators.construction.workspace import Row, Workspace, fingerprint, write_rows
from evaluators.files import write_text
from evaluators.plugin.dataset import TRAINING_LINES, Card, is_dataset_directory, write_dataset
from followir_tasks.teaching.synthesis import INTENDED

__all__ = ["REPORT", "TRIPLETS", "agreement", "balanced", "export", "keep", "unread"]

TRIPLETS, REPORT = "triplets.jsonl", "report.json"
# Above this share of replies that cannot be read, log and card say so.
MOST_UNREAD = 0.05
# Above this probability of agreeing as often by tossing a coin, the judge is not shown to judge.
LUCK = 0.05
RELEVANT, NOT_RELEVANT = INTENDED


def balanced(
    documents: Sequence[Row], judged: Sequence[Row], seed: int
) -> tuple[list[tuple[Row, Row]], dict[str, int]]:
    """One (relevant, non-relevant) couple of rows for each pair that has both, drawn by the seed; and the counts.

    Counts: documents asked for, written and judged; those on which judge and intention agree, by label; pairs with both
    labels, with one and with none. The paper keeps some pairs with one label only (about 1,800 instances on about 1,200
    pairs); here every pair is balanced in itself, so these are counted and left out.
    """
    agreed: dict[str, dict[str, list[Row]]] = {str(row["pair"]): {name: [] for name in INTENDED} for row in documents}
    for row in judged:
        if row["judged"] == row["intended"]:
            agreed[row["pair"]][row["intended"]].append(row)
    couples = []
    for pair, by_label in agreed.items():
        if all(by_label.values()):
            rng = random.Random(f"{seed} {pair}")
            couples.append((rng.choice(by_label[RELEVANT]), rng.choice(by_label[NOT_RELEVANT])))
    n_labels = [sum(map(bool, by_label.values())) for by_label in agreed.values()]
    counts = {
        "n_documents_asked_for": len(documents),
        "n_documents_written": sum(row["document"] is not None for row in documents),
        "n_documents_judged": sum(row["judged"] is not None for row in judged),
        "n_documents_without_verdict": sum(row["judged"] is None for row in judged),
        "n_agreed_relevant": sum(len(found[RELEVANT]) for found in agreed.values()),
        "n_agreed_not_relevant": sum(len(found[NOT_RELEVANT]) for found in agreed.values()),
        "n_pairs_with_both_labels": n_labels.count(2),
        "n_pairs_with_one_label": n_labels.count(1),
        "n_pairs_with_none": n_labels.count(0),
        "n_instances": 2 * len(couples),
    }
    return couples, counts


def agreement(counts: Mapping[str, int]) -> str:
    """How often the judge agreed with the intended label, and whether a coin could have.

    Args:
        counts: of :func:`balanced`.
    """
    n, agreed = counts["n_documents_judged"], counts["n_agreed_relevant"] + counts["n_agreed_not_relevant"]
    told = f"the judge agreed with the intended label of {agreed} of {n} documents"
    if n and binomtest(agreed, n, 0.5, alternative="greater").pvalue > LUCK:
        return f"{told}, which a coin might have done (p > {LUCK}): do not train on what it kept"
    return told


def unread(counts: Mapping[str, int]) -> str | None:
    """A sentence on replies that could not be read, if they are more than a few.

    Args:
        counts: of :func:`balanced`.
    """
    asked, written = counts["n_documents_asked_for"], counts["n_documents_written"]
    documents, verdicts = asked - written, counts["n_documents_without_verdict"]
    if documents <= MOST_UNREAD * asked and verdicts <= MOST_UNREAD * written:
        return None
    return (
        f"{documents} of {asked} documents and {verdicts} of {written} verdicts could not be read, so that the set is "
        "smaller, and may be of other topics, than it would be"
    )


def keep(workspace: Workspace, couples: Sequence[tuple[Row, Row]], judged: Sequence[Row], seed: int) -> None:
    """Note in ``work/kept.jsonl`` which documents are kept.

    Raises:
        ValueError: if another seed drew them before, and nobody said to make the set again.
    """
    workspace.computed("kept", {"seed": seed}, judged, lambda: [row for couple in couples for row in couple])


def export(
    workspace: Workspace,
    couples: Sequence[tuple[Row, Row]],
    counts: Mapping[str, int],
    record: Mapping[str, Any],
    license_id: str,
) -> None:
    """Write the set: the project's layout, JSON lines that ``followir train`` reads, triplets for others, counts.

    Nothing is written if it is there already.

    ``triplets.jsonl`` has ``anchor`` (query, blank, instruction, as mteb hands it to models), ``positive`` and
    ``negative``: the columns of sentence-transformers' losses.

    Raises:
        ValueError: if there is nothing to write.
    """
    lacking = unread(counts)
    if not couples:
        why = f" ({lacking}; --ask-again asks once more)" if lacking else ""
        raise ValueError(
            f"no pair has a relevant and a non-relevant document that the judge agreed on{why}: {counted(counts)}"
        )
    workspace.tell(agreement(counts))
    if lacking:
        workspace.tell(f"mind: {lacking}; --ask-again asks once more")
    out = workspace.directory
    files = (TRAINING_LINES, TRIPLETS, REPORT)
    there = is_dataset_directory(out) and all((out / name).is_file() for name in files)
    key = fingerprint([couples, counts, record, license_id])
    if workspace.write_once("export", key, lambda: _write(out, couples, counts, record, license_id), there=there):
        workspace.tell(f"{out}: {2 * len(couples)} instances on {len(couples)} query-instruction pairs")
    else:
        workspace.tell(f"{out}: the set is written already")


def _write(
    out: Path,
    couples: Sequence[tuple[Row, Row]],
    counts: Mapping[str, int],
    record: Mapping[str, Any],
    license_id: str,
) -> None:
    write_dataset(out, _configs(couples), _card(counts, record, license_id))
    lines = [
        {
            "query": row["query"],
            "instruction": row["instruction"],
            "document": row["document"],
            "label": int(row["intended"] == RELEVANT),
        }
        for couple in couples
        for row in couple
    ]
    write_rows(out / TRAINING_LINES, lines)
    triplets = [
        {
            "anchor": f"{positive['query']} {positive['instruction']}",
            "positive": positive["document"],
            "negative": negative["document"],
        }
        for positive, negative in couples
    ]
    write_rows(out / TRIPLETS, triplets)
    write_text(out / REPORT, json.dumps({"counts": dict(counts), "record": dict(record)}, indent=1) + "\n")


def _configs(couples: Sequence[tuple[Row, Row]]) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {name: [] for name in ("corpus", "queries", "instruction", "qrels", "top_ranked")}
    texts: dict[str, str] = {}
    for couple in couples:
        key = couple[0]["pair"]
        out["queries"].append({"_id": key, "text": couple[0]["query"]})
        out["instruction"].append({"query-id": key, "instruction": couple[0]["instruction"]})
        grades: dict[str, int] = {}
        for row in couple:
            # An id that follows from the text alone: it tells nothing about relevance.
            document = hashlib.sha256(row["document"].encode()).hexdigest()[:16]
            texts[document] = row["document"]
            grades[document] = int(row["intended"] == RELEVANT)
        out["qrels"] += [{"query-id": key, "corpus-id": d, "score": grades[d]} for d in sorted(grades)]
        out["top_ranked"].append({"query-id": key, "corpus-ids": sorted(grades)})
    out["corpus"] = [{"_id": key, "title": "", "text": texts[key]} for key in sorted(texts)]
    return out


def _card(counts: Mapping[str, int], record: Mapping[str, Any], license_id: str) -> Card:
    judged, lacking = agreement(counts), unread(counts)
    mind = f"\n\n{judged[0].upper()}{judged[1:]}." + (f"\n\n**Mind:** {lacking}." if lacking else "")
    table = "\n".join(f"| {name[2:].replace('_', ' ')} | {n} |" for name, n in counts.items())
    return Card(
        title="Training set for following instructions",
        body=(
            "Queries with narratives as instructions, and for each a synthetic document that is relevant and one that "
            f"is not, in the way of FollowIR (arXiv 2403.15246, section 5): written by {record['writer']}, kept where "
            f"the judge, {record['judge']}, agreed with the intended label. Documents are invented; prompts and sizes "
            f"are not the paper's.{mind}\n\n| step | count |\n|---|---|\n{table}"
        ),
        license=license_id,
        tags=("retrieval", "instruction-following", "synthetic"),
    )
