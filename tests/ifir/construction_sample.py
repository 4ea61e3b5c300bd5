"""The embedded sample as a source for the construction, and a model that knows its truth."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from evaluators.plugin.dataset import Card, read_config, write_dataset
from ifir_tasks.construction import add_build_command
from ifir_tasks.ids import parse_query_id
from ifir_tasks.sample_build import DIRECTORY

sys.path.insert(0, str(Path(__file__).parent.parent / "judge"))

Rows = list[dict[str, Any]]
Messages = list[dict[str, Any]]
TAGS = {"finance": "fin", "science": "sci", "law": "law", "health": "hea", "nutrition": "nut"}


@cache
def sample(config: str) -> Rows:
    table = read_config(DIRECTORY, config)
    assert table is not None
    return list(table.to_pylist())


@cache
def truth() -> dict[tuple[str, str], int]:
    """(base query, passage) -> nested levels that the passage meets."""
    return {(row["query-id"], row["corpus-id"]): row["score"] for row in sample("facets")}


def base_rows(domain: str) -> Rows:
    """The domain's base queries; the claims of science say which side is asked for."""
    texts = {row["_id"]: row["text"] for row in sample("queries")}
    wants = {row["query-id"]: json.loads(row["facets"]) for row in sample("base_queries") if row["domain"] == domain}
    rows: Rows = []
    for base, want in wants.items():
        row = {"_id": base, "text": texts[f"{base}-og"]}
        rows.append(row | ({"label": want["stance"].upper()} if "stance" in want else {}))
    return rows


def source_rows(domain: str, n_queries: int = 8) -> dict[str, Rows]:
    """The sample's corpus with a domain's base queries; relevant is what meets level 1 (grade 1) or more (2)."""
    queries = base_rows(domain)[:n_queries]
    qrels = [
        {"query-id": q["_id"], "corpus-id": d["_id"], "score": min(2, truth()[q["_id"], d["_id"]])}
        for q in queries
        for d in sample("corpus")
        if truth()[q["_id"], d["_id"]]
    ]
    return {"corpus": sample("corpus"), "queries": queries, "qrels": qrels}


def write_source(folder: Path, rows: dict[str, Rows]) -> Path:
    """A dataset directory in the project's layout."""
    write_dataset(folder, rows, Card("source", "source", "mit"))
    return folder


def write_beir(folder: Path, rows: dict[str, Rows]) -> Path:
    """The same in BEIR's files."""
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus", "queries"):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[name]))
    columns = list(rows["qrels"][0])
    lines = ["\t".join(columns), *("\t".join(str(row[c]) for c in columns) for row in rows["qrels"])]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return folder


class SampleModel:
    """Answers with the sample's own instructions, and with yes and no as its facets say.

    `calls` counts what was asked for by kind. `change` may replace a reply: (kind, base, level, reply) -> reply.
    """

    def __init__(self, change: Callable[[str, str, int, str], str] = lambda kind, base, level, reply: reply) -> None:
        self.change = change
        self.calls: list[tuple[str, str, int]] = []
        self.bases = {r["text"]: r["_id"][:-3] for r in sample("queries") if r["_id"].endswith("-og")}
        self.documents = {f"{r['title']} {r['text']}".strip(): r["_id"] for r in sample("corpus")}
        self.wordings: dict[tuple[str, int], str] = {}
        for row in sample("instruction"):
            parts = parse_query_id(row["query-id"])
            assert parts.level is not None
            self.wordings[parts.base, parts.level] = row["instruction"]
        self.levels = {(base, text): level for (base, level), text in self.wordings.items()}

    def __call__(self, messages: Messages) -> str:
        text = messages[-1]["content"]
        base = self.bases[between("query", text)]
        below = between("instruction", text)
        if "<passage>" in text:
            level = self.level_of(base, below)
            document = self.documents[between("passage", text)]
            met = truth()[base, document] >= (level or 3)
            kind, reply = "relevance", f"Answer: {'yes' if met else 'no'}\nReason: {document} has its facets."
        else:
            level = self.level_of(base, below) + 1 if below else min(n for b, n in self.wordings if b == base)
            kind, reply = "instruction", f"Instruction: {self.wordings[base, level]}"
        self.calls.append((kind, base, level))
        return self.change(kind, base, level, reply)

    def level_of(self, base: str, wording: str) -> int:
        """The level of the sample's instruction, or of a template of the package's domains."""
        stance = base.startswith("sci") and re.search(r"\b(supports|contradicts)\b", wording)
        return self.levels.get((base, wording), 2 if stance else 1)


def between(tag: str, text: str) -> str:
    """What stands between the tags, an empty text if they are not there."""
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def build(source: Path, out: Path, url: str | None, *more: str, domain: str = "finance") -> int:
    """`ifir build` as the command line runs it; returns the exit code."""
    parser = argparse.ArgumentParser()
    add_build_command(parser.add_subparsers())
    places = [f"--{name}={source}" for name in ("corpus", "queries", "qrels")]
    model = [] if url is None else ["--llm=test-model", f"--llm-base-url={url}"]
    args = parser.parse_args(["build", *places, f"--domain={domain}", f"--out={out}", *model, *more])
    return int(args.func(args))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def write_csv(path: Path, rows: list[dict[str, str]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def fill(path: Path, **cells: str) -> list[dict[str, str]]:
    """Write the same cells into every row of a sheet; returns the rows."""
    rows = [row | cells for row in read_csv(path)]
    write_csv(path, rows)
    return rows


def built(out: Path, config: str) -> Rows:
    table = read_config(out, config)
    assert table is not None
    return list(table.to_pylist())
