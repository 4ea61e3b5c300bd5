"""Writes the data of IFIR, TCR-Bench and InstructIR in the layout that is published."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datasets import Dataset

from evaluators.plugin.data import TaskData
from evaluators.plugin.layout import batches, judgements, write_common, write_config
from ifir_tasks.ids import parse_query_id
from tcr_tasks.tables import Table, corpus_id


def write_ifir(folder: Path, data: TaskData) -> None:
    """Write an IFIR subset. An instruction is what an instructed query's text adds to that of its plain query."""
    texts = dict(zip(data.queries["id"], data.queries["text"], strict=True))
    plain = {query: texts[parse_query_id(query).plain] for query in texts}
    write_config(folder, "queries", ({"_id": query, "text": text} for query, text in plain.items()))
    instructions = (
        {"query-id": query, "instruction": text.removeprefix(f"{plain[query]} ")}
        for query, text in texts.items()
        if parse_query_id(query).level is not None
    )
    write_config(folder, "instruction", instructions)
    write_common(folder, data)


def write_tcr(folder: Path, data: TaskData, directory: Path) -> None:
    """Write TCR-Bench, read in the Mixed setting from the authors' repository at ``directory``.

    What the authors publish of a question beside its tables is kept in the column ``record`` of ``groups``.
    """
    records = _records(directory)
    tables: Iterable[Table] = data.side["tables"].values()
    write_config(folder, "tables", map(_table_row, tables))
    write_config(folder, "queries", ({"_id": q.id, "text": q.text} for q in data.side["questions"]))
    write_config(folder, "groups", (_group_row(q, records[q.id]) for q in data.side["questions"]))
    write_common(folder, data)


def write_instructir(folder: Path, data: TaskData) -> None:
    """Write InstructIR's ``corpus.jsonl``, ``queries.jsonl`` and ``qrels.tsv``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("corpus", data.corpus), ("queries", data.queries)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8", newline="\n") as out:
            for batch in batches(table):
                for row in batch.to_pylist():
                    out.write(json.dumps({"_id": row.pop("id"), **row}, ensure_ascii=False) + "\n")
    with (folder / "qrels.tsv").open("w", encoding="utf-8", newline="") as out:
        # As it is read: no quoting.
        writer = csv.writer(out, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n")
        writer.writerow(["query-id", "corpus-id", "score"])
        writer.writerows(judgements(data.relevant_docs))


def write_instructir_qrels(folder: Path, relevant: dict[str, dict[str, int]]) -> None:
    """Write the judgements once more, as ``qrels.jsonl``."""
    with (folder / "qrels.jsonl").open("w", encoding="utf-8", newline="\n") as out:
        for query, document, score in judgements(relevant):
            row = {"query-id": query, "corpus-id": document, "score": score}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def differences(before: TaskData, after: TaskData) -> list[str]:
    """What a written dataset no longer says as its source did; empty if nothing was lost."""
    out = []
    for what in ("corpus", "queries"):
        if not _same_rows(getattr(before, what), getattr(after, what)):
            out.append(f"{what}: ids or texts differ from the source's")
    for what, a, b in (
        ("qrels", _judged(before), _judged(after)),
        ("top_ranked", before.top_ranked, after.top_ranked),
        ("qrel_diff", before.side.get("qrel_diff"), after.side.get("qrel_diff")),
        ("groups", before.side.get("questions"), after.side.get("questions")),
    ):
        if a != b:
            out.append(f"{what}: differs from the source's")
    return out


def _judged(data: TaskData) -> dict[str, dict[str, int]]:
    # A query without any judgement has no rows; readers give it an empty entry, or none.
    return {query: docs for query, docs in data.relevant_docs.items() if docs}


def _same_rows(a: Dataset, b: Dataset) -> bool:
    names = sorted(a.column_names)
    if len(a) != len(b) or names != sorted(b.column_names):
        return False
    pairs = zip(batches(a), batches(b), strict=True)
    return all(x.select(names).to_pydict() == y.select(names).to_pydict() for x, y in pairs)


def _table_row(table: Table) -> dict[str, Any]:
    if isinstance(table.csv, str):
        content = table.csv
    else:
        with table.csv.open(encoding="utf-8", newline="") as file:
            content = file.read()
    return {
        "db_id": table.db_id,
        "table_path": table.path,
        "table_name": table.name,
        "table_format": str(table.format),
        "csv": content,
    }


def _records(directory: Path) -> dict[str, dict[str, Any]]:
    read = json.loads((directory / "data" / "TCR_Questions.json").read_text(encoding="utf-8-sig"))
    return {entry["question_id"]: entry for entry in read}


def _group_row(question: Any, record: dict[str, Any]) -> dict[str, Any]:
    assert question.target == corpus_id(f"{record['db_id']}::{record['highlighted_table'][0]}")
    return {
        "query-id": question.id,
        "corpus-ids": list(question.group),
        "target": question.target,
        "question_type": question.type,
        "answer": None if question.answer is None else json.dumps(question.answer, ensure_ascii=False),
        "record": json.dumps(record, ensure_ascii=False),
    }
