"""What is trained on: a query, an instruction, a document, and whether the document is relevant under both."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluators.plugin.checks import DatasetError, column
from evaluators.plugin.data import TaskData, lists_by_query, passage_texts, read_layout
from evaluators.plugin.dataset import is_dataset_directory, read_config
from evaluators.plugin.jsonl import read_json_lines
from followir_tasks.ids import parse_query_id

__all__ = ["Instance", "Instances", "read_instances"]


@dataclass(frozen=True)
class Instance:
    """A training instance.

    Attributes:
        query, instruction, document: texts as a model reads them.
        relevant: whether the document is, under this instruction.
    """

    query: str
    instruction: str
    document: str
    relevant: bool


@dataclass
class Instances:
    """Balanced instances, and how they came about.

    Attributes:
        rows: as many relevant as non-relevant ones for each query-instruction pair.
        counts: ``n_pairs`` (of query and instruction), ``n_relevant``, ``n_not_relevant``, ``n_instruction_negatives``
            (non-relevant here, relevant under another instruction of the same query), and ``n_pairs_without_both``,
            which have no relevant or no non-relevant document and are left out. ``followir train`` adds
            ``n_cut_to_fit``: how many the model does not read as a whole.
    """

    rows: list[Instance] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, other: Instances) -> None:
        """Take those of another source, too."""
        self.rows += other.rows
        for name, n in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + n


def read_instances(path: Path, seed: int, most: int | None = None) -> Instances:
    """Read a dataset with instructions in the project's layout, or JSON lines as ``followir teach`` writes them.

    For each query-instruction pair as many non-relevant documents as relevant ones: first those that are relevant under
    another instruction of the same query (the instruction alone tells them apart), then others that were judged, then
    unjudged candidates; drawn by the seed.

    Args:
        path: a directory, or a file of JSON lines with ``query``, ``instruction``, ``document`` and ``label`` (0 or 1).
        seed: of the draws.
        most: relevant documents of a pair, at most.

    Raises:
        FileNotFoundError: if there is neither.
        DatasetError: naming what is wrong with them.
        ValueError: if no pair has a relevant and a non-relevant document.
    """
    if path.is_file():
        pairs = _of_lines(path)
    elif is_dataset_directory(path):
        pairs = _of_directory(path)
    else:
        raise FileNotFoundError(f"{path} is neither a file of JSON lines nor a dataset directory")
    out = _balanced(pairs, seed, most)
    if not out.rows:
        raise ValueError(f"{path}: no query-instruction pair has both a relevant and a non-relevant document")
    return out


@dataclass
class _Judged:
    """The documents of a query-instruction pair: text -> nothing, in the order in which they are preferred."""

    query: str
    instruction: str
    relevant: list[str] = field(default_factory=list)
    # By another instruction of the same query relevant; judged; unjudged candidates.
    negatives: tuple[list[str], list[str], list[str]] = field(default_factory=lambda: ([], [], []))


def _of_lines(path: Path) -> list[_Judged]:
    pairs: dict[tuple[str, str], _Judged] = {}
    relevant: dict[tuple[str, str], set[str]] = {}
    rows = []
    for number, row in read_json_lines(path):
        texts = [row.get(name) for name in ("query", "instruction", "document")]
        if not all(isinstance(text, str) for text in texts) or row.get("label") not in (0, 1):
            raise DatasetError(
                str(path), [f"line {number}: expected query, instruction and document as text, label 0 or 1"]
            )
        query, instruction, document = map(str, texts)
        rows.append((query, instruction, document, bool(row["label"])))
        if row["label"]:
            relevant.setdefault((query, document), set()).add(instruction)
    for query, instruction, document, label in rows:
        pair = pairs.setdefault((query, instruction), _Judged(query, instruction))
        if label:
            pair.relevant.append(document)
        else:
            pair.negatives[0 if relevant.get((query, document), set()) - {instruction} else 1].append(document)
    return list(pairs.values())


def _of_directory(directory: Path) -> list[_Judged]:
    data = read_layout(directory)
    if "instruction" not in data.queries.column_names:
        raise DatasetError(str(directory), ["config 'instruction' is missing: there is nothing to follow"])
    texts = passage_texts(data.corpus, set(column(data.corpus, "id")))
    changed = _changed(directory)
    by_text: dict[str, list[str]] = {}
    for key, text in zip(data.queries["id"], data.queries["text"], strict=True):
        by_text.setdefault(text, []).append(key)
    return [_judged(row, data, texts, by_text[row["text"]], changed.get(row["id"], ())) for row in data.queries]


def _changed(directory: Path) -> Mapping[str, Sequence[str]]:
    """Query id under the changed instruction -> documents that it excludes."""
    table = read_config(directory, "qrel_diff")
    lists = {} if table is None else lists_by_query(directory, "qrel_diff", table)
    queries = read_config(directory, "queries")
    assert queries is not None
    ids = [key for key in queries.column("_id").to_pylist() if lists and parse_query_id(key)[1]]
    return {key: lists.get(parse_query_id(key)[0], []) for key in ids}


def _judged(
    row: Mapping[str, str], data: TaskData, texts: Mapping[str, str], same_query: Iterable[str], excluded: Iterable[str]
) -> _Judged:
    key = row["id"]
    grades = data.relevant_docs.get(key, {})
    others = {d for q in same_query if q != key for d, grade in data.relevant_docs.get(q, {}).items() if grade > 0}
    not_relevant = {d for d, grade in grades.items() if grade <= 0} | set(excluded)
    not_relevant -= {d for d, grade in grades.items() if grade > 0}
    unjudged = [d for d in (data.top_ranked or {}).get(key, []) if d not in grades and d not in not_relevant]
    out = _Judged(row["text"], row["instruction"] or "")
    out.relevant += [texts[d] for d, grade in grades.items() if grade > 0]
    for documents, place in (
        (sorted(not_relevant & others), 0),
        (sorted(not_relevant - others), 1),
        # Relevant under another instruction and not judged under this one: nobody knows.
        ([d for d in unjudged if d not in others], 2),
    ):
        out.negatives[place].extend(texts[d] for d in documents)
    return out


def _balanced(pairs: Sequence[_Judged], seed: int, most: int | None) -> Instances:
    counts = dict.fromkeys(
        ("n_pairs", "n_relevant", "n_not_relevant", "n_instruction_negatives", "n_pairs_without_both"), 0
    )
    out = Instances(counts=counts)
    for pair in pairs:
        rng = random.Random(f"{seed} {pair.query} {pair.instruction}")
        available = [text for group in pair.negatives for text in rng.sample(group, len(group))]
        n = min(len(pair.relevant), len(available), *([] if most is None else [most]))
        if n == 0:
            counts["n_pairs_without_both"] += 1
            continue
        counts["n_pairs"] += 1
        counts["n_relevant"] += n
        counts["n_not_relevant"] += n
        counts["n_instruction_negatives"] += min(n, len(pair.negatives[0]))
        for text in rng.sample(pair.relevant, n):
            out.rows.append(Instance(pair.query, pair.instruction, text, True))
        out.rows += [Instance(pair.query, pair.instruction, text, False) for text in available[:n]]
    return out
