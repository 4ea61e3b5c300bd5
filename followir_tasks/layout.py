"""Writes a FollowIR set in the project's layout."""

from __future__ import annotations

from pathlib import Path

from evaluators.plugin.data import TaskData
from evaluators.plugin.layout import write_common, write_config
from followir_tasks.forms import CONFIG


def write_followir(folder: Path, data: TaskData) -> None:
    """Write a FollowIR set with candidates, changed documents and, where it has them, the instructions' forms."""
    rows = list(zip(data.queries["id"], data.queries["text"], data.queries["instruction"], strict=True))
    write_config(folder, "queries", ({"_id": query, "text": text} for query, text, _ in rows))
    write_config(folder, "instruction", ({"query-id": query, "instruction": asked} for query, _, asked in rows))
    for name, lists in (("top_ranked", data.top_ranked or {}), ("qrel_diff", data.side["qrel_diff"])):
        write_config(folder, name, ({"query-id": query, "corpus-ids": ids} for query, ids in lists.items()))
    if forms := data.side.get(CONFIG):
        write_config(folder, CONFIG, ({"query-id": query, **kept._asdict()} for query, kept in forms.items()))
    write_common(folder, data)
