"""Stage 4: the dataset directory, in the project's layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluators.construction.workspace import Row, Workspace, fingerprint
from evaluators.files import write_text
from evaluators.plugin.checks import column
from evaluators.plugin.dataset import Card, card_text, is_dataset_directory, write_dataset
from ifir_tasks.construction.instructions import Instruction
from ifir_tasks.construction.review import Settled
from ifir_tasks.construction.sources import Source
from ifir_tasks.ids import query_id

_NAME = "export"


def exported(settled: Settled, keep_empty: bool) -> tuple[list[Instruction], dict[str, int]]:
    """The instructions that go into the dataset, and counts of those that do not for want of a relevant passage.

    Raises:
        ValueError: if none is left.
    """
    empty = [i for i in settled.instructions if not settled.relevant[i.id]]
    chosen = [i for i in settled.instructions if keep_empty or settled.relevant[i.id]]
    if not chosen or len(empty) == len(settled.instructions):
        raise ValueError(
            f"no instruction has a relevant passage ({len(settled.instructions)} instructions): there is no dataset"
        )
    left = {i.base for i in settled.instructions} - {i.base for i in chosen}
    counts = {
        "n_instructions_without_relevant": len(empty),
        "n_instructions_without_relevant_kept": len(empty) if keep_empty else 0,
        "n_base_queries_left_without_instruction": len(left),
    }
    return chosen, counts


def write(
    workspace: Workspace, source: Source, instructions: Sequence[Instruction], settled: Settled, domain: str, card: Card
) -> None:
    """Write the dataset; nothing is written if it is there already."""
    configs = _configs(instructions, settled, domain)
    key = fingerprint([configs, source.fingerprint])
    names = ["corpus", *configs]
    if workspace.write_once(
        _NAME,
        key,
        lambda: write_dataset(workspace.directory, {"corpus": _corpus(source), **configs}, card),
        there=is_dataset_directory(workspace.directory),
    ):
        workspace.tell(f"{workspace.directory}: dataset written, {len(instructions)} instructed queries")
    else:
        write_text(workspace.directory / "README.md", card_text(card, names))
        workspace.tell(f"{workspace.directory}: the dataset is written already")


def _configs(instructions: Sequence[Instruction], settled: Settled, domain: str) -> dict[str, list[Row]]:
    bases: dict[str, list[Instruction]] = {}
    for instruction in instructions:
        bases.setdefault(instruction.base, []).append(instruction)
    out: dict[str, list[Row]] = {name: [] for name in ("queries", "qrels", "instruction", "base_queries")}
    for base, listed in bases.items():
        out["queries"].append({"_id": query_id(base, None), "text": listed[0].query})
        out["base_queries"].append({"query-id": base, "domain": domain})
        for instruction in listed:
            out["queries"].append({"_id": instruction.id, "text": instruction.query})
            out["instruction"].append({"query-id": instruction.id, "instruction": instruction.text})
            out["qrels"] += [
                {"query-id": instruction.id, "corpus-id": document, "score": 1}
                for document in settled.relevant[instruction.id]
            ]
    return out


def _corpus(source: Source) -> Iterator[Mapping[str, Any]]:
    columns = (column(source.corpus, name) for name in ("id", "title", "text"))
    for identifier, title, text in zip(*columns, strict=True):
        yield {"_id": identifier, "title": title or "", "text": text}
