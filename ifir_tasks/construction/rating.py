"""The final check: examples for an expert who had no part in the work (IFIR, section 3.4 and table 2)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from evaluators.construction.sheets import Cells, Sheet, numbered, rating, refuse
from evaluators.construction.workspace import Workspace
from ifir_tasks.construction.review import INSTRUCTION_RATINGS, Settled
from ifir_tasks.construction.sources import Source

# Examples of a subset in the paper.
N_EXAMPLES = 50
RELEVANT, EXCLUDED = "relevant_passage_agreement", "exclusion_agreement"
CRITERIA = (*INSTRUCTION_RATINGS, RELEVANT, EXCLUDED)
_PASSAGE_OF = {RELEVANT: "relevant_passage", EXCLUDED: "excluded_passage"}
SHEET = Sheet(
    "final-check",
    key=("query-id",),
    shown=("query", "instruction", *_PASSAGE_OF.values()),
    basis=("instruction", *_PASSAGE_OF.values()),
    filled=CRITERIA,
)


def rate(
    workspace: Workspace, source: Source, settled: Settled, queries: Sequence[str], seed: int, n_examples: int
) -> dict[str, list[int]]:
    """Write the sheet of examples and read what was filled in: the ratings by criterion.

    An example is an instructed query with one of its relevant and one of its excluded passages, if it has any, drawn by
    the seed.

    Args:
        workspace: where the sheet is.
        source: for the passages' texts.
        settled: what the dataset holds.
        queries: ids of the instructed queries in it.
        seed: of the draw.
        n_examples: how many; all queries if there are fewer.

    Raises:
        DatasetError: naming row and column of every fault in the sheet.
    """
    present = SHEET.read(workspace)
    by_id = {i.id: i for i in settled.instructions}
    rng = random.Random(seed)
    drawn = set(rng.sample(list(queries), min(n_examples, len(queries))))
    wanted: list[Cells] = []
    for query in queries:
        if query in drawn:
            passages = {
                _PASSAGE_OF[criterion]: _one(settled_lists[query], source, random.Random(f"{seed}/{query}"))
                for criterion, settled_lists in ((RELEVANT, settled.relevant), (EXCLUDED, settled.excluded))
            }
            wanted.append(
                {"query-id": query, "query": by_id[query].query, "instruction": by_id[query].text, **passages}
            )
    return _ratings(workspace, SHEET.update(workspace, wanted, present))


def _one(documents: Sequence[str], source: Source, rng: random.Random) -> str:
    return source.passages[rng.choice(documents)] if documents else ""


def _ratings(workspace: Workspace, rows: Sequence[Cells]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {criterion: [] for criterion in CRITERIA}
    faults: list[str] = []
    for number, row in numbered(rows):
        for criterion in CRITERIA:
            value = rating(number, criterion, row, faults)
            shown = _PASSAGE_OF.get(criterion)
            if value is not None and shown and not row[shown]:
                faults.append(f"row {number}, column {criterion}: there is no passage to rate")
            elif value is not None:
                out[criterion].append(value)
    refuse(SHEET.path(workspace), faults)
    return out


def means(ratings: Mapping[str, Sequence[int]]) -> dict[str, dict[str, float | int | None]]:
    """Mean and number of the ratings by criterion; no ratings have no mean."""
    return {name: {"mean": sum(v) / len(v) if v else None, "n": len(v)} for name, v in ratings.items()}
