"""What people say about changed instructions and about documents, in two sheets (FollowIR, section 3).

``review-topics.csv`` has a row for each topic. A person accepts the draft, writes another wording (``edit``) or drops
the topic; without a language model there is no draft, and every wording is a person's. ``review-documents.csv`` has a
row for each topic with a wording and each document that was relevant before: the person accepts the model's verdict or
says ``relevant`` or ``not_relevant``. A topic whose share of documents that stay relevant lies outside the band after
all its documents were decided comes back, with the reason in the column ``returned``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.construction.sheets import Cells, Sheet, choice, numbered, refuse
from evaluators.construction.workspace import Workspace
from followir_tasks.construction.drafting import Draft, Verdict
from followir_tasks.construction.selection import Band, Chosen

__all__ = ["DOCUMENTS", "TOPICS", "Wording", "read_wordings", "review_documents", "update_topics"]

TOPICS = Sheet(
    "review-topics",
    key=("topic",),
    shown=("query", "instruction", "draft", "draft_share"),
    basis=("instruction", "draft"),
    filled=("returned", "decision", "changed_instruction"),
)
DOCUMENTS = Sheet(
    "review-documents",
    key=("topic", "document"),
    shown=("query", "changed_instruction", "text", "verdict", "reason"),
    basis=("changed_instruction", "verdict"),
    filled=("decision",),
)
_TOPIC_DECISIONS = ("accept", "edit", "drop")
_SAYS: Mapping[str, bool] = {"relevant": True, "not_relevant": False}
_WORD = {True: "relevant", False: "not_relevant", None: "undecided"}


@dataclass(frozen=True)
class Wording:
    """A topic's changed instruction.

    Attributes:
        text: an empty text if there is none.
        decision: ``accept``, ``edit``, ``drop``, or empty if nobody decided.
        edited: whether a person wrote it.
    """

    text: str
    decision: str = ""
    edited: bool = False


def read_wordings(
    workspace: Workspace, topics: Sequence[Chosen], drafts: Mapping[str, Draft]
) -> tuple[dict[str, Wording], list[Cells] | None]:
    """What the sheet of topics says, by topic, and its rows (``None`` if there is no sheet yet).

    Raises:
        DatasetError: naming row and column of every fault.
    """
    present = TOPICS.read(workspace)
    out = {t.topic: Wording(drafts[t.topic].instruction if t.topic in drafts else "") for t in topics}
    original = {t.topic: t.instruction for t in topics}
    faults: list[str] = []
    for number, row in numbered(present or []):
        topic = row["topic"]
        if topic not in out or (row["instruction"], row["draft"]) != (original[topic], out[topic].text):
            continue  # about a draft that is another now: what was said goes into the comment
        decision = choice(number, "decision", row, _TOPIC_DECISIONS, faults)
        words = " ".join(row["changed_instruction"].split())
        if (decision == "edit") != bool(words) and decision != "drop":  # of a dropped topic, what was written may stay
            needed = "it has no new wording" if decision == "edit" else "a new wording needs the decision 'edit'"
            faults.append(f"row {number}, column changed_instruction: {needed}")
        elif decision == "accept" and not out[topic].text:
            faults.append(f"row {number}, column decision: there is no draft to accept; write edit or drop")
        elif decision == "edit" and words.casefold() == " ".join(original[topic].split()).casefold():
            faults.append(f"row {number}, column changed_instruction: it is the original instruction")
        else:
            edited = decision == "edit" and words != out[topic].text
            out[topic] = Wording(words if decision == "edit" else out[topic].text, decision, edited)
    refuse(TOPICS.path(workspace), faults)
    return out, present


def update_topics(
    workspace: Workspace,
    topics: Sequence[Chosen],
    drafts: Mapping[str, Draft],
    band: Band,
    returned: Mapping[str, str],
    present: Sequence[Cells] | None,
) -> None:
    """Write the sheet of topics if it is not as it should be."""
    wanted = [
        {
            "topic": t.topic,
            "query": t.query,
            "instruction": t.instruction,
            "draft": drafts[t.topic].instruction if t.topic in drafts else "",
            "draft_share": drafts[t.topic].settled.told(band) if t.topic in drafts else "",
            "returned": returned.get(t.topic, ""),
        }
        for t in topics
    ]
    TOPICS.update(workspace, wanted, present)


def review_documents(
    workspace: Workspace,
    topics: Sequence[Chosen],
    wordings: Mapping[str, Wording],
    verdicts: Mapping[str, Mapping[str, Verdict]],
    texts: Mapping[str, str],
) -> tuple[dict[str, dict[str, bool | None]], dict[str, list[str]]]:
    """Bring the sheet of documents up to date and read it.

    Returns:
        By topic: whether each document is relevant under the changed instruction, by a person's decision or else the
        model's verdict (``None``: neither), and the documents that nobody decided on.

    Raises:
        DatasetError: naming row and column of every fault, such as a verdict accepted where there is none.
    """
    present = DOCUMENTS.read(workspace)
    none = Verdict(None, "")
    wanted = [
        {
            "topic": t.topic,
            "document": document,
            "query": t.query,
            "changed_instruction": wordings[t.topic].text,
            "text": texts[document],
            "verdict": _WORD[(said := verdicts.get(t.topic, {}).get(document, none)).relevant],
            "reason": said.reason,
        }
        for t in topics
        if wordings[t.topic].text and wordings[t.topic].decision != "drop"
        for document in t.relevant
    ]
    if present is None and not wanted:
        return {}, {}
    rows = DOCUMENTS.update(workspace, wanted, present)
    out: dict[str, dict[str, bool | None]] = {}
    open_: dict[str, list[str]] = {}
    faults: list[str] = []
    for number, row in numbered(rows):
        decision = choice(number, "decision", row, ("accept", *_SAYS), faults)
        drafted = _SAYS.get(row["verdict"])
        if decision == "accept" and drafted is None:
            faults.append(f"row {number}, column decision: there is no verdict to accept; write {' or '.join(_SAYS)}")
        out.setdefault(row["topic"], {})[row["document"]] = _SAYS.get(decision, drafted)
        if not decision:
            open_.setdefault(row["topic"], []).append(row["document"])
    refuse(DOCUMENTS.path(workspace), faults)
    return out, open_
