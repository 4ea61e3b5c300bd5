"""Stage 2: which of a query's relevant passages also meet its instructions (IFIR, section 3.3 and figure 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from evaluators.construction.readers import LABEL
from evaluators.construction.workspace import Job, Row, Stage, Workspace
from evaluators.judge import Reply
from evaluators.judge.answers import read_verdict
from ifir_tasks.construction.instructions import Instruction
from ifir_tasks.construction.prompts import RELEVANCE, DomainAsking
from ifir_tasks.construction.sources import Source


class Verdict(IntEnum):
    """Whether a passage meets an instruction, in the order in which a lower one wins over those of higher levels."""

    EXCLUDED = 0
    UNDECIDED = 1
    KEPT = 2


def nested(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts of ascending levels, made so that a passage never counts for more at a level than below it.

    A passage that meets a level's instruction must meet all below (IFIR, appendix A.2). The rule is enforced upwards:
    each level gets the lowest verdict of the levels up to it, so a rejection at level 1 rejects at levels 2 and 3, and
    no verdict is ever raised. Verdicts that are nested already stay as they are.
    """
    out: list[Verdict] = []
    for verdict in verdicts:
        out.append(min(verdict, out[-1]) if out else verdict)
    return out


def by_level(instructions: Iterable[Instruction]) -> dict[str, list[Instruction]]:
    """Each base query's instructions, by ascending level."""
    out: dict[str, list[Instruction]] = {}
    for instruction in sorted(instructions, key=lambda i: i.level):
        out.setdefault(instruction.base, []).append(instruction)
    return out


def check_relevance(
    workspace: Workspace, asking: DomainAsking | None, source: Source, instructions: Sequence[Instruction], name: str
) -> list[Row]:
    """One row for each instruction and each relevant passage of its source query, with ``verdict`` and ``reason``.

    An unreadable reply leaves the passage undecided, with a ``problem``. Verdicts are as the model gave them, before
    nesting.

    Args:
        workspace: where the stage's file is.
        asking: how to ask; ``None`` takes the source's word that its relevant passages meet the instruction.
        source: texts and relevant passages.
        instructions: what to check against.
        name: of the stage.
    """
    settings: dict[str, object] = {"passages": source.relevance_fingerprint}
    if asking is not None:
        settings |= asking.record_of(RELEVANCE)
    jobs = [
        _job(asking, source, instruction, document, label)
        for instruction in instructions
        for document, label in source.relevant[instruction.source].items()
    ]
    return workspace.run(Stage(name, settings, jobs, _read))


def _job(asking: DomainAsking | None, source: Source, instruction: Instruction, document: str, label: str) -> Job:
    given = instruction.given.get(LABEL, "")
    row: Row = {
        "query-id": instruction.id,
        "passage-id": document,
        "instruction": instruction.text,
        "label": label,
        "against_label": bool(given and label and given != label),
        "verdict": _word(Verdict.UNDECIDED),
        "reason": "",
        "problem": None,
        "reply": None,
    }
    if asking is None:
        return Job(row | {"verdict": _word(Verdict.KEPT), "reason": "relevant in the source; no model was asked"})
    passage = source.passages[document]
    return Job(
        row, asking.request_by(RELEVANCE, query=instruction.query, instruction=instruction.text, passage=passage)
    )


def _read(row: Row, reply: Reply) -> None:
    met, row["reason"] = read_verdict(reply)
    row["verdict"] = _word(Verdict.KEPT if met else Verdict.EXCLUDED)


def _word(verdict: Verdict) -> str:
    return verdict.name.lower()


def verdict_of(row: Mapping[str, str]) -> Verdict:
    """The verdict in a row."""
    return Verdict[row["verdict"].upper()]


def nest_rows(
    rows: Sequence[Row], instructions: Iterable[Instruction]
) -> tuple[dict[tuple[str, str], tuple[Verdict, str]], int]:
    """Verdict and reason of every (instructed query, passage) after nesting over these instructions.

    Returns:
        The verdicts, and how many of them nesting lowered.
    """
    raw = {(row["query-id"], row["passage-id"]): row for row in rows}
    passages: dict[str, list[str]] = {}
    for query, document in raw:
        passages.setdefault(query, []).append(document)
    out: dict[tuple[str, str], tuple[Verdict, str]] = {}
    lowered = 0
    for levels in by_level(instructions).values():
        for document in passages.get(levels[0].id, []):
            own = [verdict_of(raw[i.id, document]) for i in levels]
            for place, (instruction, before, after) in enumerate(zip(levels, own, nested(own), strict=True)):
                reason = raw[instruction.id, document]["reason"]
                if after < before:
                    lowered += 1
                    cause = next(i.level for i, v in zip(levels[:place], own[:place], strict=True) if v == after)
                    reason = f"{_word(after)} at level {cause}, so also here; by itself: {reason}"
                out[instruction.id, document] = (after, reason)
    return out, lowered
