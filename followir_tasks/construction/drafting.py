"""Drafts by a language model: a constraint for each topic, and which relevant documents still meet it, in rounds.

A constraint is put behind the narrative, whose words stay: so the changed instruction cannot ask for less. After each
round the topics whose share of documents that stay relevant lies outside the band are drafted again, and the model is
told what was tried and what it came to.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaluators.construction.workspace import Job, Row, Stage, Workspace
from evaluators.judge import PromptedAsking, Reply
from evaluators.judge.answers import read_verdict
from followir_tasks.construction.asking import AGAIN, FIRST, VERDICT, read_constraint
from followir_tasks.construction.selection import Band, Chosen
from followir_tasks.construction.settling import Settled, settle

__all__ = ["Draft", "Drafts", "Verdict", "draft", "verdicts_on"]

# Relevant documents whose beginnings a draft is based on, and words of each.
_EXAMPLES, _EXAMPLE_WORDS = 12, 60
# Words of a document that the model judges; a person's sheet has more of it.
MOST_WORDS = 3_000


@dataclass(frozen=True)
class Verdict:
    """The model's word on a document: relevant or not, ``None`` if its reply could not be read, and the reason."""

    relevant: bool | None
    reason: str


@dataclass(frozen=True)
class Draft:
    """A changed instruction with the model's verdicts by document.

    Attributes:
        instruction: the narrative and the constraint behind it.
        constraint: the added words.
        verdicts: on each of the topic's relevant documents.
        settled: what they come to.
    """

    instruction: str
    constraint: str
    verdicts: Mapping[str, Verdict]
    settled: Settled


@dataclass
class Drafts:
    """What drafting gave.

    Attributes:
        best: topic -> the draft within the band, else the one nearest to its middle; no entry without any draft.
        counts: of replies and rounds.
    """

    best: dict[str, Draft] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


def draft(
    workspace: Workspace,
    asking: PromptedAsking,
    topics: Sequence[Chosen],
    texts: Mapping[str, str],
    band: Band,
    *,
    rounds: int,
    seed: int,
) -> Drafts:
    """Draft constraints until the share of every topic lies in the band, for so many rounds at most.

    Args:
        workspace: where the stages' files are.
        asking: how to ask.
        topics: what to draft for.
        texts: of all their relevant documents.
        band: for the share that stays relevant.
        rounds: at least 1.
        seed: draws the documents that the model sees the beginnings of.
    """
    tried: dict[str, list[tuple[str, str]]] = {topic.topic: [] for topic in topics}
    found: dict[str, list[Draft]] = {topic.topic: [] for topic in topics}
    out = Drafts(counts={"n_constraints_unreadable": 0, "n_draft_verdicts_unreadable": 0})
    waiting = list(topics)
    for number in range(1, rounds + 1):
        if not waiting:
            break
        name = FIRST if number == 1 else AGAIN
        settings = {"band": [band.least, band.most], "seed": seed, **asking.record_of(name)}
        jobs = [_job(asking, topic, texts, band, tried[topic.topic], seed) for topic in waiting]
        rows = workspace.run(Stage(f"constraints-{number}", settings, jobs, _read))
        drafted = {row["topic"]: row["constraint"] for row in rows}
        out.counts[f"n_topics_drafted_in_round_{number}"] = len(rows)
        out.counts["n_constraints_unreadable"] += sum(c is None for c in drafted.values())
        changed = {
            t.topic: f"{t.instruction.rstrip()} {drafted[t.topic]}" for t in waiting if drafted[t.topic] is not None
        }
        verdicts = verdicts_on(workspace, asking, waiting, changed, texts, f"verdicts-{number}")
        for topic in waiting:
            constraint = drafted[topic.topic]
            if constraint is None:
                # Said in the next round: the same request again would get the same reply from the store.
                tried[topic.topic].append(("", "a reply that held no new constraint in the form below"))
                continue
            said = verdicts[topic.topic]
            settled = settle(list(topic.relevant), {d: v.relevant for d, v in said.items()})
            out.counts["n_draft_verdicts_unreadable"] += len(settled.undecided)
            tried[topic.topic].append((constraint, settled.told(band)))
            found[topic.topic].append(Draft(changed[topic.topic], constraint, said, settled))
        waiting = [t for t in waiting if not (found[t.topic] and _needs_no_other(found[t.topic][-1].settled, band))]
    out.best = {topic: min(drafts, key=lambda d: _distance(d, band)) for topic, drafts in found.items() if drafts}
    out.counts["n_topics_drafted_within_band"] = sum(d.settled.within(band) for d in out.best.values())
    return out


def _needs_no_other(settled: Settled, band: Band) -> bool:
    """Whether the share lies in the band, or is unknown: then it is no fault of the draft."""
    return settled.share is None or settled.within(band)


def _distance(found: Draft, band: Band) -> tuple[bool, float]:
    share = found.settled.share
    return (not found.settled.within(band), 1.0 if share is None else abs(share - (band.least + band.most) / 2))


def _job(
    asking: PromptedAsking,
    topic: Chosen,
    texts: Mapping[str, str],
    band: Band,
    tried: Sequence[tuple[str, str]],
    seed: int,
) -> Job:
    documents = list(topic.relevant)
    drawn = random.Random(f"{seed}/{topic.topic}").sample(documents, min(_EXAMPLES, len(documents)))
    values = {
        "query": topic.query,
        "instruction": topic.instruction,
        "documents": "\n".join(f"- {' '.join(texts[d].split()[:_EXAMPLE_WORDS])}" for d in drawn),
        "least": f"{100 * band.least:g}",
        "most": f"{100 * band.most:g}",
    }
    if tried:
        told = "\n".join(
            f"{n}. {constraint} ({result})".replace("  ", " ") for n, (constraint, result) in enumerate(tried, 1)
        )
        request = asking.request_by(AGAIN, tried=told, **values)
    else:
        request = asking.request_by(FIRST, **values)
    row = {
        "topic": topic.topic,
        "tried": [constraint for constraint, _ in tried if constraint],
        "constraint": None,
        "problem": None,
        "reply": None,
    }
    return Job(row, request)


def _read(row: Row, reply: Reply) -> None:
    row["constraint"] = read_constraint(reply, row["tried"])


def verdicts_on(
    workspace: Workspace,
    asking: PromptedAsking,
    topics: Sequence[Chosen],
    instructions: Mapping[str, str],
    texts: Mapping[str, str],
    name: str,
) -> dict[str, dict[str, Verdict]]:
    """The model's verdicts on the previously relevant documents, and on no others, by topic and document.

    Args:
        workspace: where the stage's file is.
        asking: how to ask.
        topics: those without a changed instruction are passed over.
        instructions: changed instructions by topic.
        texts: by document.
        name: of the stage.
    """
    jobs = [
        _verdict_job(asking, topic, instructions[topic.topic], document, texts[document])
        for topic in topics
        if topic.topic in instructions
        for document in topic.relevant
    ]
    out: dict[str, dict[str, Verdict]] = {topic: {} for topic in instructions}
    for row in workspace.run(Stage(name, asking.record_of(VERDICT), jobs, _read_verdict)) if jobs else ():
        out[row["topic"]][row["document"]] = Verdict(row["relevant"], row["reason"] or row["problem"] or "")
    return out


def _verdict_job(asking: PromptedAsking, topic: Chosen, instruction: str, document: str, text: str) -> Job:
    words = text.split()
    seen = text if len(words) <= MOST_WORDS else " ".join(words[:MOST_WORDS])
    row: Row = {
        "topic": topic.topic,
        "document": document,
        "cut": len(words) > MOST_WORDS,
        "relevant": None,
        "reason": "",
        "problem": None,
        "reply": None,
    }
    return Job(row, asking.request_by(VERDICT, query=topic.query, instruction=instruction, document=seen))


def _read_verdict(row: Row, reply: Reply) -> None:
    row["relevant"], row["reason"] = read_verdict(reply)
