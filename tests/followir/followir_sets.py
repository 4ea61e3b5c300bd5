"""A FollowIR-style dataset small enough for a hand calculation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluators.plugin.dataset import Card, write_dataset

Rows = list[dict[str, Any]]
DOCS = [f"d{i:02}" for i in range(12)]
TOPICS = ("t1", "t2", "t3")
QUERIES = [topic + suffix for topic in TOPICS for suffix in ("-og", "-changed")]
CANDIDATES = {"t1": DOCS[:8], "t2": DOCS[2:10], "t3": DOCS[4:]}
JUDGED = {
    "t1-og": {"d00": 1, "d01": 2, "d02": 1, "d03": 0},
    "t1-changed": {"d00": 1, "d01": 0, "d02": 0, "d03": 0},
    "t2-og": {"d05": 1, "d06": 1},
    "t2-changed": {"d05": 1, "d06": 1},
    "t3-og": {"d08": 1, "d11": 2},
    "t3-changed": {"d08": 1, "d11": 0},
}
CHANGED = {"t1": ["d01", "d02"], "t2": [], "t3": ["d11"]}


def full(query: str) -> str:
    topic, variant = query.split("-")
    return f"Relevant passages tell of {topic} at length and in the {variant} way, and name a source for it."


def forms_rows() -> Rows:
    """Two topics differ in both forms between original and changed; t2 has the same keywords under both."""
    return [
        {
            "query-id": q,
            "keywords": q.split("-")[0] if q.startswith("t2") else q.replace("-", " "),
            "short": f"only {q}",
        }
        for q in QUERIES
    ]


def configs(*, with_forms: bool = True) -> dict[str, Rows]:
    rows: dict[str, Rows] = {
        "corpus": [{"_id": d, "title": f"Title {d}", "text": f"a text on {d}"} for d in DOCS],
        "queries": [{"_id": q, "text": f"topic {q.split('-')[0]}"} for q in QUERIES],
        "instruction": [{"query-id": q, "instruction": full(q)} for q in QUERIES],
        "qrels": [
            {"query-id": q, "corpus-id": d, "score": grade} for q, docs in JUDGED.items() for d, grade in docs.items()
        ],
        "top_ranked": [{"query-id": q, "corpus-ids": CANDIDATES[q.split("-")[0]]} for q in QUERIES],
        "qrel_diff": [{"query-id": topic, "corpus-ids": docs} for topic, docs in CHANGED.items()],
    }
    return rows | ({"instruction_forms": forms_rows()} if with_forms else {})


def write_set(directory: Path, rows: dict[str, Rows] | None = None) -> Path:
    write_dataset(directory, configs() if rows is None else rows, Card("Test", "For a test.", "mit"))
    return directory
