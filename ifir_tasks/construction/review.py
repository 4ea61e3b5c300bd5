"""Stage 3: what experts say about instructions and passages, in two sheets that they fill in (IFIR, sections 3.2, 3.3).

One sheet has a row for each instruction, the other one for each instruction and passage. Both are read back, and
written anew where something changed: an edited instruction is checked against its passages again, which asks for new
decisions on these, and marks the instructions of higher levels, which were built on it, as stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluators.construction.sheets import Cells, Sheet, choice, numbered, rating, refuse
from evaluators.construction.workspace import Row, Workspace
from ifir_tasks.construction.instructions import Instruction
from ifir_tasks.construction.relevance import Verdict, by_level, nested, verdict_of
from ifir_tasks.construction.sources import Source

INSTRUCTION_RATINGS = ("naturalness", "fluency", "expertise")
INSTRUCTIONS = Sheet(
    "review-instructions",
    key=("query-id",),
    shown=("query", "levels_below", "instruction"),
    basis=("instruction",),
    filled=("stale", "decision", "edited_instruction", *INSTRUCTION_RATINGS),
)
PASSAGES = Sheet(
    "review-passages",
    key=("query-id", "passage-id"),
    shown=("query", "instruction", "passage", "label", "verdict", "reason"),
    basis=("instruction", "verdict"),
    filled=("decision", "agreement"),
)
_INSTRUCTION_DECISIONS = ("accept", "edit", "exclude")
_PASSAGE_DECISIONS = ("accept", "keep", "exclude")
Pair = tuple[str, str]


@dataclass(frozen=True)
class InstructionReview:
    """What was said about an instruction.

    Attributes:
        instruction: as it is to be used: edited, if somebody edited it.
        generated: as it was made.
        decision: ``accept``, ``edit``, ``exclude`` or empty.
        ratings: 1..5 by criterion, where given.
        stale: whether a level below was edited or excluded since, and nobody has said that this does not matter.
    """

    instruction: Instruction
    generated: Instruction
    decision: str = ""
    ratings: Mapping[str, int] = field(default_factory=dict)
    stale: bool = False

    @property
    def edited(self) -> bool:
        """Whether another wording is to be used than was made."""
        return self.instruction.text != self.generated.text


@dataclass(frozen=True)
class Settled:
    """What goes into the dataset.

    Attributes:
        instructions: those not excluded, as they are to be used.
        relevant, excluded: passages by instructed query, in the source's order.
        undecided: (instructed query, passage) without a readable verdict or a decision; never relevant.
        lowered: how many decisions nesting changed, after the review.
    """

    instructions: list[Instruction]
    relevant: dict[str, list[str]]
    excluded: dict[str, list[str]]
    undecided: list[Pair]
    lowered: int


def review_instructions(workspace: Workspace, instructions: Sequence[Instruction]) -> dict[str, InstructionReview]:
    """Read the sheet of instructions, bring it up to date, and tell what was said, by id of the instructed query.

    Raises:
        DatasetError: naming row and column of every fault in the sheet.
    """
    present = INSTRUCTIONS.read(workspace)
    by_id = {i.id: i for i in instructions}
    path = INSTRUCTIONS.path(workspace)
    reviews = _instruction_reviews(path, by_id, present or [])
    said = {row["query-id"]: row for row in present or ()}
    wanted = [
        cells for levels in by_level(instructions).values() for cells in _instruction_cells(levels, reviews, said)
    ]
    return _instruction_reviews(path, by_id, INSTRUCTIONS.update(workspace, wanted, present))


def _instruction_reviews(
    path: Path, instructions: Mapping[str, Instruction], rows: Sequence[Cells]
) -> dict[str, InstructionReview]:
    out = {i: InstructionReview(instruction, instruction) for i, instruction in instructions.items()}
    faults: list[str] = []
    for number, row in numbered(rows):
        instruction = instructions.get(row["query-id"])
        if instruction is None or row["instruction"] != instruction.text:
            continue  # on an instruction that has been made anew: what was said goes into the comment
        decision = choice(number, "decision", row, _INSTRUCTION_DECISIONS, faults)
        wording = " ".join(row["edited_instruction"].split())
        if (decision == "edit") != bool(wording):
            needed = "it has no new wording" if decision == "edit" else "a new wording needs the decision 'edit'"
            faults.append(f"row {number}, column edited_instruction: {needed}")
        ratings = {name: rating(number, name, row, faults) for name in INSTRUCTION_RATINGS}
        out[instruction.id] = InstructionReview(
            replace(instruction, text=wording) if decision == "edit" else instruction,
            instruction,
            decision,
            {name: value for name, value in ratings.items() if value is not None},
            bool(row["stale"].strip()),
        )
    refuse(path, faults)
    return out


def _instruction_cells(
    levels: Sequence[Instruction], reviews: Mapping[str, InstructionReview], said: Mapping[str, Cells]
) -> list[Cells]:
    """The rows of one base query."""
    out: list[Cells] = []
    below: list[str] = []
    for instruction in levels:
        review = reviews[instruction.id]
        cells = {
            "query-id": instruction.id,
            "query": instruction.query,
            "levels_below": "\n".join(below),
            "instruction": instruction.text,
        }
        before = said.get(instruction.id)
        same = before is not None and before["instruction"] == instruction.text
        if before is not None and same and before["levels_below"] != cells["levels_below"]:
            cells["stale"] = "a level below has changed: check this row, then empty this cell"
        out.append(cells)
        wording = "excluded" if review.decision == "exclude" else review.instruction.text
        below.append(f"{instruction.level}: {wording}")
    return out


def review_passages(
    workspace: Workspace,
    source: Source,
    reviews: Mapping[str, InstructionReview],
    verdicts: Mapping[Pair, tuple[Verdict, str]],
    labels: Mapping[Pair, str],
) -> list[Cells]:
    """Read the sheet of passages and bring it up to date; its rows, in the order of the file.

    Raises:
        DatasetError: naming row and column of every fault in the sheet.
    """
    present = PASSAGES.read(workspace)
    wanted = [
        {
            "query-id": query,
            "passage-id": document,
            "query": reviews[query].instruction.query,
            "instruction": reviews[query].instruction.text,
            "passage": source.passages[document],
            "label": labels[query, document],
            "verdict": verdict.name.lower(),
            "reason": reason,
        }
        for (query, document), (verdict, reason) in verdicts.items()
    ]
    return PASSAGES.update(workspace, wanted, present)


def settle(
    workspace: Workspace, reviews: Mapping[str, InstructionReview], rows: Sequence[Cells], checked: Sequence[Row]
) -> Settled:
    """The experts' decisions, and the model's verdicts where there are none, nested again.

    An accepted verdict stands as the sheet shows it. A passage that nobody decided on gets the model's own verdict, so
    that a decision on a lower level also counts for the levels above it.

    Raises:
        DatasetError: if a decision cannot be read, accepts what has no verdict, or keeps a passage that is not kept on
            a lower level.
    """
    path = PASSAGES.path(workspace)
    faults: list[str] = []
    raw = {(row["query-id"], row["passage-id"]): verdict_of(row) for row in checked}
    decided: dict[Pair, tuple[Verdict, bool, int]] = {}
    for number, row in numbered(rows):
        pair = (row["query-id"], row["passage-id"])
        decision = choice(number, "decision", row, _PASSAGE_DECISIONS, faults)
        rating(number, "agreement", row, faults)
        verdict = verdict_of(row)
        if verdict is Verdict.UNDECIDED and decision == "accept":
            faults.append(f"row {number}, column decision: there is no verdict to accept; write keep or exclude")
        if verdict is Verdict.UNDECIDED and row["agreement"].strip():
            faults.append(f"row {number}, column agreement: there is no verdict to agree with")
        said = {"keep": Verdict.KEPT, "exclude": Verdict.EXCLUDED, "accept": verdict}.get(decision, raw[pair])
        decided[pair] = (said, decision == "keep", number)
    refuse(path, faults)
    settled = _nested(reviews, {pair: decided[pair] for pair in raw}, faults)
    refuse(path, faults)
    return settled


def _nested(
    reviews: Mapping[str, InstructionReview], decided: Mapping[Pair, tuple[Verdict, bool, int]], faults: list[str]
) -> Settled:
    instructions = [r.instruction for r in reviews.values() if r.decision != "exclude"]
    out = Settled(instructions, {i.id: [] for i in instructions}, {i.id: [] for i in instructions}, [], 0)
    passages: dict[str, list[str]] = {}
    for query, document in decided:
        passages.setdefault(query, []).append(document)
    lowered = 0
    for levels in by_level(instructions).values():
        for document in passages.get(levels[0].id, []):
            said = [decided[i.id, document] for i in levels]
            final = nested([verdict for verdict, _, _ in said])
            for instruction, (before, kept, number), after in zip(levels, said, final, strict=True):
                lowered += after < before
                if kept and after is not Verdict.KEPT:
                    at, below = next(
                        (i.id, n) for i, (v, _, n) in zip(levels, said, strict=True) if v is not Verdict.KEPT
                    )
                    faults.append(
                        f"row {number}, column decision: passage {document!r} is kept for {instruction.id!r} but not "
                        f"for {at!r} (row {below}), a level below: what is relevant at a level must be so "
                        "at those below; keep it in both rows or in neither"
                    )
                if after is Verdict.UNDECIDED:
                    out.undecided.append((instruction.id, document))
                else:
                    lists = out.relevant if after is Verdict.KEPT else out.excluded
                    lists[instruction.id].append(document)
    return replace(out, lowered=lowered)


def unreviewed(reviews: Mapping[str, InstructionReview], rows: Sequence[Cells]) -> dict[str, list[str]]:
    """What still waits for somebody: ids of instructions without decision, of stale ones, and of passages."""
    return {
        "instructions without decision": [q for q, r in reviews.items() if not r.decision],
        "stale instructions (a level below was changed since: check them and empty the cells in column stale)": [
            q for q, r in reviews.items() if r.stale and r.decision != "exclude"
        ],
        "passages without decision": [
            " ".join(PASSAGES.key_of(row))
            for row in rows
            if not row["decision"].strip() and reviews[row["query-id"]].decision != "exclude"
        ],
    }
