"""Reading IFIR: the authors' layout, and the project's own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa
from datasets import Dataset

from evaluators.plugin.checks import DatasetError, shown
from evaluators.plugin.data import TaskData, read_layout
from evaluators.plugin.dataset import config_files
from evaluators.plugin.jsonl import read_corpus, text_id
from ifir_tasks.ids import parse_query_id, query_id

QUERY_FILE = "test_data.json"


def corpus_file(directory: Path) -> Path | None:
    """The corpus file of a subset in the authors' layout, ``<subset>-corpus.jsonl``."""
    found = sorted(directory.glob("*-corpus.jsonl"))
    return found[0] if len(found) == 1 else None


def is_authors_layout(directory: Path) -> bool:
    """Whether the directory holds one subset as the authors publish it."""
    return (directory / QUERY_FILE).is_file() and corpus_file(directory) is not None


def read_authors(directory: Path, has_levels: bool) -> TaskData:
    """Read ``<subset>-corpus.jsonl`` and ``test_data.json``.

    A query is read once as plain query (``<base>-og``) and once per instruction (``<base>-v<level>``), whose text is
    the query, a blank and the instruction, as the paper's appendix B says. Passages without text are dropped; a
    judgement on such a passage is dropped too; both are counted. A subset without levels has level 0 throughout.

    Raises:
        DatasetError: listing what cannot be read, with query or line.
    """
    corpus_path = corpus_file(directory)
    if corpus_path is None:
        raise DatasetError(str(directory), ["expected exactly one file *-corpus.jsonl"])
    path = directory / QUERY_FILE
    try:
        entries = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise DatasetError(str(path), [f"cannot be read as JSON: {error}"]) from error
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise DatasetError(str(path), ["expected a JSON list of query objects"])
    corpus = read_corpus(corpus_path)
    reader = _QueryReader(path, corpus.dropped, has_levels)
    for number, entry in enumerate(entries):
        reader.read(number, entry)
    if reader.problems:
        raise DatasetError(str(path), reader.problems)
    counts = {
        "n_dropped_empty_passages": len(corpus.dropped),
        "n_judgements_on_dropped_passages": reader.on_dropped,
    }
    notes = [f"{n} {key[2:].replace('_', ' ')}" for key, n in counts.items() if n]
    if reader.without_instruction:
        notes.append(f"queries without any instruction are left out: {shown(reader.without_instruction)}")
    if reader.repeated:
        notes.append(f"passages listed twice as relevant count once: {shown(reader.repeated)}")
    return TaskData(
        corpus=corpus.passages,
        queries=Dataset(pa.table({"id": list(reader.texts), "text": list(reader.texts.values())})),
        relevant_docs=reader.relevant,
        counts=counts,
        notes=notes,
        side={"n_passages_in_file": corpus.n_lines, "n_instructed": reader.n_instructed},
        dropped=corpus.dropped,
    )


class _QueryReader:
    """Collects queries and judgements from the entries of ``test_data.json``, and what is wrong with them."""

    def __init__(self, path: Path, dropped: frozenset[str], has_levels: bool) -> None:
        self.path = path
        self.dropped = dropped
        self.has_levels = has_levels
        self.texts: dict[str, str] = {}
        self.relevant: dict[str, dict[str, int]] = {}
        self.problems: list[str] = []
        self.without_instruction: list[str] = []
        self.repeated: list[tuple[str, str]] = []
        self.on_dropped = 0
        self.n_instructed = 0

    def read(self, number: int, entry: dict[str, Any]) -> None:
        base = self._id(f"entry {number}", entry.get("_id"))
        if base is None:
            return
        if parse_query_id(query_id(base, 1)).base != base:
            self.problems.append(f"query id {base!r} ends like a numbered instruction; rename it")
            return
        text, instructions, listed = entry.get("text"), entry.get("instructions"), entry.get("corpus")
        if not isinstance(text, str) or not text.strip():
            self.problems.append(f"query {base!r} has no text")
            return
        if not (_all_objects(instructions) and _all_objects(listed)):
            self.problems.append(f"query {base!r}: `instructions` and `corpus` must be lists of objects")
            return
        if not instructions:
            self.without_instruction.append(base)
            return
        passages = [self._id(f"query {base!r}", p.get("_id")) for p in listed]
        self._add(query_id(base, None), text, {})
        numbers: Counter[int] = Counter()
        for instruction in instructions:
            level = self._level(base, instruction)
            if level is None:
                continue
            numbers[level] += 1
            wording = instruction.get("instruction")
            if not isinstance(wording, str) or not wording.strip():
                self.problems.append(f"query {base!r}: its level-{level} instruction has no text")
                continue
            relevant = self._relevant(base, level, instruction.get("rel"), passages)
            self._add(query_id(base, level, numbers[level]), f"{text} {wording}", relevant)
            self.n_instructed += 1

    def _id(self, where: str, value: Any) -> str | None:
        try:
            return text_id(self.path, where, value)
        except DatasetError as error:
            self.problems += error.problems
            return None

    def _level(self, base: str, instruction: dict[str, Any]) -> int | None:
        if not self.has_levels:
            return 0
        level = instruction.get("level")
        if isinstance(level, bool) or level not in (1, 2, 3):
            self.problems.append(f"query {base!r}: level {level!r} of an instruction is not 1, 2 or 3")
            return None
        return int(level)

    def _relevant(self, base: str, level: int, indices: Any, passages: list[str | None]) -> dict[str, int]:
        out: dict[str, int] = {}
        if not isinstance(indices, list):
            self.problems.append(f"query {base!r}, level {level}: `rel` must be a list, got {indices!r}")
            return out
        for index in indices:
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(passages):
                self.problems.append(
                    f"query {base!r}, level {level}: `rel` points to {index!r}, but the query lists "
                    f"{len(passages)} passages"
                )
                continue
            passage = passages[index]
            if passage is None:  # named already
                continue
            if passage in self.dropped:
                self.on_dropped += 1
            elif passage in out:
                self.repeated.append((base, passage))
            else:
                out[passage] = 1
        return out

    def _add(self, key: str, text: str, relevant: dict[str, int]) -> None:
        if key in self.texts:
            self.problems.append(f"query id {key!r} occurs more than once")
        self.texts[key] = text
        self.relevant[key] = relevant


def _all_objects(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(element, dict) for element in value)


def read_own(directory: Path) -> TaskData:
    """Read a dataset in the project's layout, in which instructions are a config of their own.

    Raises:
        DatasetError: if an instructed query has no instruction, or a plain one has one.
    """
    data = read_layout(directory, [name for name in ("facets", "base_queries") if config_files(directory, name)])
    queries = data.queries.to_dict()
    wordings = queries.get("instruction") or [None] * len(queries["id"])
    texts: list[str] = []
    problems: list[str] = []
    plain_texts = dict(zip(queries["id"], queries["text"], strict=True))
    for key, text, wording in zip(queries["id"], queries["text"], wordings, strict=True):
        try:
            parts = parse_query_id(key)
        except ValueError as error:
            problems.append(str(error))
            continue
        plain = parts.level is None
        if not isinstance(text, str) or not text.strip():
            problems.append(f"query {key!r} has no text")
        elif plain != (wording is None):
            problems.append(f"query {key!r} {'is plain but has an' if plain else 'has no'} instruction")
        elif wording is not None and not wording.strip():
            problems.append(f"query {key!r} has an empty instruction")
        elif text != plain_texts.get(parts.plain, text):
            problems.append(f"query {key!r}: its text differs from that of its plain query {parts.plain!r}")
        texts.append(text if wording is None else f"{text} {wording}")
    if problems:
        raise DatasetError(str(directory), problems)
    data.queries = Dataset(pa.table({"id": queries["id"], "text": texts}))
    for key in queries["id"]:
        data.relevant_docs.setdefault(key, {})
    data.side["n_instructed"] = sum(wording is not None for wording in wordings)
    data.side["n_passages_in_file"] = len(data.corpus)
    return data
