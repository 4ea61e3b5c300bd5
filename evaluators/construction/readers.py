"""Files that a dataset is built from: where a config is, whether it has changed, and TREC's or BEIR's judgements."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import config_files, read_config
from evaluators.plugin.jsonl import JSON_LINES, id_problem, read_json_lines

LABEL = "label"
_COLUMNS = ("query-id", "corpus-id", "score")


def config_file(place: Path, config: str, names: tuple[str, ...]) -> Path:
    """The file at a place, or the folder of a config that is split into several files.

    Args:
        place: a file, or a directory in the project's layout or in BEIR's.
        config: its name in the project's layout.
        names: its files in other layouts.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if a parquet file has another name, by which its columns would be checked.
    """
    place = place.expanduser()
    if place.is_file():
        if place.suffix == ".parquet" and place.name != f"{config}.parquet":
            raise ValueError(f"{place}: a parquet file of this config is called {config}.parquet")
        return place
    if not place.is_dir():
        raise FileNotFoundError(f"there is no {config} file or dataset directory {place}")
    if config_files(place, config):
        single = place / f"{config}.parquet"
        return single if single.is_file() else place / config
    found = [place / name for name in names if (place / name).is_file()]
    if not found:
        raise FileNotFoundError(f"{place} holds neither {config}.parquet nor {' nor '.join(names)}")
    return found[0]


def judgements_file(place: Path) -> Path:
    """The file with judgements at a place: TREC's, BEIR's, or of a dataset directory."""
    return config_file(place, "qrels", ("qrels/test.tsv", "qrels.tsv", "qrels.txt"))


def is_parquet(path: Path) -> bool:
    """Whether what :func:`config_file` found is a parquet file or a folder of them."""
    return path.is_dir() or path.suffix == ".parquet"


def parquet_table(path: Path, config: str) -> pa.Table:
    """All rows of a config that :func:`config_file` found."""
    table = read_config(path.parent, config)
    assert table is not None
    return table


def digest(path: Path) -> str:
    """A SHA-256 over what :func:`config_file` found."""
    return digest_of(sorted(path.glob("*.parquet")) if path.is_dir() else [path])


def digest_of(files: Iterable[Path]) -> str:
    """A SHA-256 over the contents of files in this order."""
    found = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            found.update(hashlib.file_digest(handle, "sha256").digest())
    return found.hexdigest()


def read_judgements(path: Path) -> dict[str, dict[str, tuple[int, str]]]:
    """Query -> {passage: (grade, label)}, of parquet, JSON lines, tab-separated (BEIR) or TREC's four columns.

    Raises:
        DatasetError: naming every line that is no judgement, or the second one on its passage.
    """
    out: dict[str, dict[str, tuple[int, str]]] = {}
    problems: list[str] = []
    for where, row in _judgement_rows(path):
        try:
            ids, grade = [row["query-id"], row["corpus-id"]], float(row["score"])
        except (KeyError, TypeError, ValueError):
            grade = math.nan
        if not grade.is_integer():
            problems.append(f"{where}: expected query-id, corpus-id and a whole score, found {dict(row)}")
            continue
        if unusable := [problem for one in ids if (problem := id_problem(one))]:
            problems.append(f"{where}: {'; '.join(unusable)}")
            continue
        query, document = map(str, ids)
        judged = out.setdefault(query, {})
        if document in judged:
            problems.append(f"{where}: document {document!r} is judged twice for query {query!r}")
        judged[document] = (int(grade), str(row.get(LABEL) or ""))
    if problems:
        raise DatasetError(str(path), problems)
    return out


def _judgement_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if is_parquet(path):
        yield from ((f"row {n}", row) for n, row in enumerate(parquet_table(path, "qrels").to_pylist(), 1))
    elif path.suffix in JSON_LINES:
        yield from ((f"line {n}", row) for n, row in read_json_lines(path))
    else:
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise DatasetError(str(path), [f"it is no text in UTF-8, or it is packed: {error}"]) from error
        header = _header(path, lines[0]) if lines else None
        tabs = header is not None and "\t" in lines[0]
        names = header or ["query-id", "iteration", "corpus-id", "score"]
        for n, line in enumerate(lines[header is not None :], 1 + (header is not None)):
            parts = line.split("\t") if tabs else line.split()
            if line.strip():
                fits = len(parts) == len(names)
                yield f"line {n}", dict(zip(names, parts, strict=True)) if fits else {"line": line}


def _header(path: Path, line: str) -> list[str] | None:
    """The columns that a first line names, or ``None`` if it is a judgement, whose last column is a number.

    Raises:
        DatasetError: if it names some of the columns that are needed, and not all.
    """
    names = [name.strip() for name in (line.split("\t") if "\t" in line else line.split())]
    if not set(_COLUMNS) & set(names) or names[-1].lstrip("-").isdecimal():
        return None
    lacking = [name for name in _COLUMNS if name not in names]
    if lacking:
        raise DatasetError(str(path), [f"line 1: the header {names} lacks the columns {', '.join(lacking)}"])
    return names
