"""Reading FollowIR (project layout, or mteb's repositories) and InstructIR."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset, load_dataset
from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader

from evaluators.plugin.checks import DatasetError, shown
from evaluators.plugin.data import TaskData, lists_by_query, read_layout
from evaluators.plugin.jsonl import read_corpus, read_json_lines, text_id
from followir_tasks.forms import CONFIG, read_forms

_WHOLE_NUMBER = re.compile(r"-?[0-9]+")
INSTRUCTIR_FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
# As the authors publish them: instruction and query are one text, and the judgements lie in a folder.
AUTHORS_FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
SEPARATOR = "[SEP]"
_QRELS_HEADERS = (["query-id", "corpus-id", "score"], ["qid", "pid", "score"])


def read_followir(directory: Path) -> TaskData:
    """Read a FollowIR set in the project's layout, with its changed documents and the instructions' shorter forms.

    Raises:
        DatasetError: if a config is missing, or lists a query twice.
    """
    data = read_layout(directory, ("qrel_diff",))
    problems = []
    if data.top_ranked is None:
        problems.append("config 'top_ranked' is missing: FollowIR reranks given candidates")
    if "instruction" not in data.queries.column_names:
        problems.append("config 'instruction' is missing")
    if problems:
        raise DatasetError(str(directory), problems)
    data.side["qrel_diff"] = lists_by_query(directory, "qrel_diff", data.side["qrel_diff"])
    data.side[CONFIG] = read_forms(directory)
    return data


def fetch_followir(repository: str, revision: str) -> TaskData:
    """Fetch a FollowIR set from one of mteb's repositories, by mteb's own loader."""
    parts = RetrievalDatasetLoader(hf_repo=repository, revision=revision, split="test").load()
    changed = load_dataset(repository, "qrel_diff", split="qrel_diff", revision=revision)
    candidates = parts["top_ranked"]
    if candidates is None:
        raise DatasetError(repository, ["it has no candidates (config top_ranked)"])
    return TaskData(
        corpus=parts["corpus"],
        queries=parts["queries"],
        relevant_docs={q: dict(docs) for q, docs in parts["relevant_docs"].items()},
        top_ranked={q: list(docs) for q, docs in candidates.items()},
        side={"qrel_diff": {row["query-id"]: list(row["corpus-ids"]) for row in changed}},
    )


def is_instructir(directory: Path) -> bool:
    """Whether the directory holds InstructIR's three files."""
    return all((directory / name).is_file() for name in INSTRUCTIR_FILES)


def instructir_files(directory: Path) -> tuple[str, ...] | None:
    """The files of InstructIR that a directory holds, in our form or the authors', or ``None``."""
    if is_instructir(directory):
        return INSTRUCTIR_FILES
    return AUTHORS_FILES if all((directory / name).is_file() for name in AUTHORS_FILES) else None


def read_instructir(directory: Path) -> TaskData:
    """Read ``corpus.jsonl``, ``queries.jsonl`` (``_id``, ``text``, ``instruction``) and ``qrels.tsv``.

    In the authors' own files there is no ``instruction``, but it stands in ``text`` before ``[SEP]`` and the query; the
    judgements are in ``qrels/test.tsv``.

    Raises:
        DatasetError: naming file and line of what cannot be read.
    """
    files = instructir_files(directory)
    if files is None:
        raise DatasetError(str(directory), [f"expected the files {', '.join(INSTRUCTIR_FILES)}"])
    corpus = read_corpus(directory / "corpus.jsonl")
    path = directory / "queries.jsonl"
    columns: dict[str, list[str]] = {"id": [], "text": [], "instruction": []}
    problems: list[str] = []
    for number, given in read_json_lines(path):
        row = _parted(given)
        columns["id"].append(text_id(path, f"line {number}", row.get("_id")))
        for name in ("text", "instruction"):
            value = row.get(name)
            if not isinstance(value, str):
                problems.append(f"line {number}: {name} of query {columns['id'][-1]!r} must be a string, got {value!r}")
            columns[name].append(value if isinstance(value, str) else "")
    if problems:
        raise DatasetError(str(path), problems)
    relevant = _read_qrels(directory / files[2])
    on_dropped = [(q, d) for q, docs in relevant.items() for d in docs if d in corpus.dropped]
    for query, document in on_dropped:
        del relevant[query][document]
    counts = {
        "n_dropped_empty_passages": len(corpus.dropped),
        "n_judgements_on_dropped_passages": len(on_dropped),
    }
    return TaskData(
        corpus=corpus.passages,
        queries=Dataset(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})),
        relevant_docs=relevant,
        counts=counts,
        notes=[f"{n} {key[2:].replace('_', ' ')}" for key, n in counts.items() if n] + _base_level_note(relevant),
        dropped=corpus.dropped,
    )


def _parted(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A query with its instruction apart, which the authors write before it."""
    text = row.get("text")
    if "instruction" in row or not isinstance(text, str) or SEPARATOR not in text:
        return row
    instruction, _, query = text.partition(SEPARATOR)
    return {**row, "text": query.strip(), "instruction": instruction.strip()}


def _base_level_note(relevant: dict[str, dict[str, int]]) -> list[str]:
    """Say so where relevance ignores the instruction: such scores must not be published as InstructIR's."""
    by_base: dict[str, list[dict[str, int]]] = {}
    for query, judged in relevant.items():
        # Ids of another form are reported later, with all other problems.
        by_base.setdefault(query.rpartition("_")[0], []).append(judged)
    several = [judged for judged in by_base.values() if len(judged) > 1]
    if not several or any(other != judged[0] for judged in several for other in judged[1:]):
        return []
    return [
        "all instructions of a base query have the same relevant passages here, where InstructIR rewrites the passage "
        "for each instruction: the scores are not comparable with InstructIR's"
    ]


def fetch_instructir(repository: str, revision: str) -> TaskData:
    """Fetch InstructIR from mteb's repository, by mteb's own loader."""
    parts = RetrievalDatasetLoader(hf_repo=repository, revision=revision, split="test").load()
    relevant = {q: dict(docs) for q, docs in parts["relevant_docs"].items()}
    return TaskData(parts["corpus"], parts["queries"], relevant)


def _read_qrels(path: Path) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        header = next(reader, [])
        if header not in _QRELS_HEADERS:
            raise DatasetError(str(path), [f"expected the columns query-id, corpus-id and score, found {header}"])
        for number, row in enumerate(reader, 2):
            if len(row) != 3 or not _WHOLE_NUMBER.fullmatch(row[2]):
                problems.append(f"line {number} is not 'query, document, whole number': {row}")
            elif row[1] in out.setdefault(row[0], {}):
                problems.append(f"line {number}: document {row[1]!r} is judged twice for query {row[0]!r}")
            else:
                out[row[0]][row[1]] = int(row[2])
    if problems:
        raise DatasetError(str(path), [*problems[:20], *([shown(problems[20:])] if problems[20:] else [])])
    return out
