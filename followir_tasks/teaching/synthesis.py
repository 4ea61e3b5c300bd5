"""Synthetic documents for query-instruction pairs, and the filter that their intended labels must pass.

FollowIR, section 5: about two relevant and two non-relevant documents a pair by a language model; a judge scores each
against the instruction, and those stay on which it agrees with the intended label. Prompts are our own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evaluators.construction.workspace import Job, Row, Stage, Workspace, fingerprint, read_rows, write_rows
from evaluators.judge import Reply, package_prompts
from evaluators.judge.answers import declines, kept_text, read_verdict
from evaluators.judge.asking import PromptedAsking
from evaluators.judge.prompt import Prompt
from evaluators.judge.reply import UnreadableReplyError
from followir_tasks.teaching.sources import Asked

__all__ = ["INTENDED", "VERDICT", "Score", "judge_by_model", "judge_by_reranker", "read_prompts", "write_documents"]

FOLDER = Path(__file__).parent / "prompts"
INTENDED, VERDICT = ("relevant", "not-relevant"), "verdict"
FIELDS = {
    **dict.fromkeys(INTENDED, ("query", "instruction", "form")),
    VERDICT: ("query", "instruction", "document"),
}
# What documents of a pair are to be, in turn, so that a deterministic model writes different ones.
FORMS = (
    "a newspaper report",
    "a passage of an encyclopedia",
    "an agency's bulletin",
    "a passage of a magazine feature",
    "an excerpt from an official report",
    "a transcript of a radio item",
)
LEAST_WORDS = 20
# How a reply begins that is no document: JSON, code, what the model says to its user.
_NO_DOCUMENT = re.compile(
    r"[{`]|(?:sure|certainly|of course)[,!.]|here(?:['\u2019]s| is| are)\b[^\n]*:\s*\n", re.IGNORECASE
)
# (query, instruction, document) rows -> probabilities of relevance, 0..1.
Score = Callable[[list[tuple[str, str, str]]], Sequence[float]]


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """The prompts of the package, or those of the same name in the user's folder."""
    return package_prompts(FOLDER, FIELDS, folder)


def write_documents(workspace: Workspace, asking: PromptedAsking, pairs: Sequence[Asked], per_label: int) -> list[Row]:
    """A row for each pair, intended label and number; ``document`` is ``None`` where the reply held none.

    Raises:
        ValueError: if more documents a label are wanted than there are forms.
    """
    if not 1 <= per_label <= len(FORMS):
        raise ValueError(f"documents per label must lie in 1..{len(FORMS)}, got {per_label}")
    jobs = []
    for pair in pairs:
        for intended in INTENDED:
            for number in range(per_label):
                row: Row = {
                    "pair": pair.id,
                    "query": pair.query,
                    "instruction": pair.instruction,
                    "intended": intended,
                    "form": FORMS[number],
                    "document": None,
                    "problem": None,
                }
                request = asking.request_by(
                    intended, query=pair.query, instruction=pair.instruction, form=FORMS[number]
                )
                jobs.append(Job(row, request))
    used = {name: asking.prompts[name] for name in INTENDED}
    return workspace.run(Stage("documents", {**asking.settings(used), "per_label": per_label}, jobs, _read_document))


def _read_document(row: Row, reply: Reply) -> None:
    said = kept_text(reply)
    # A judge would find a refusal not relevant, so that the filter would let it through as such a document.
    if _NO_DOCUMENT.match(said.lstrip()) or declines(said):
        raise UnreadableReplyError(f"the reply is no document, or begins with something else: {said[:80]!r}")
    text = "\n\n".join(" ".join(part.split()) for part in said.split("\n\n") if part.strip())
    if len(text.split()) < LEAST_WORDS:
        raise UnreadableReplyError(f"the reply has fewer than {LEAST_WORDS} words, so it is no document: {text[:80]!r}")
    row["document"] = text


def judge_by_model(workspace: Workspace, asking: PromptedAsking, documents: Sequence[Row]) -> list[Row]:
    """A language model's verdict on each document that was written: ``judged`` is a label, or ``None``."""
    jobs = [
        Job(row, asking.request_by(VERDICT, **{name: row[name] for name in ("query", "instruction", "document")}))
        for row in _to_judge(documents)
    ]
    settings = asking.settings({VERDICT: asking.prompts[VERDICT]})
    return workspace.run(Stage("judged", {**settings, "judge": "language model"}, jobs, _read_verdict))


def judge_by_reranker(workspace: Workspace, name: str, score: Score, documents: Sequence[Row]) -> list[Row]:
    """A reranker's verdict: relevant where its probability is above a half.

    Args:
        workspace: of the set.
        name: model and revision, for the record.
        score: see :data:`Score`; what it scored before is kept in ``work/probabilities.jsonl``.
        documents: of :func:`write_documents`.
    """
    rows = _to_judge(documents)
    triples = [(row["query"], row["instruction"], row["document"]) for row in rows]
    found = _scored_once(workspace.work / "probabilities.jsonl", name, score, triples)
    jobs = []
    for row, value in zip(rows, found, strict=True):
        verdict = INTENDED[0] if value > 0.5 else INTENDED[1]
        jobs.append(Job({**row, "judged": verdict, "probability": float(value)}))
    return workspace.run(Stage("judged", {"judge": name}, jobs))


def _scored_once(
    path: Path, name: str, score: Score, rows: Sequence[tuple[str, str, str]], chunk: int = 256
) -> list[float]:
    keys = [fingerprint([name, *row]) for row in rows]
    known = {row["key"]: float(row["probability"]) for row in read_rows(path)} if path.is_file() else {}
    missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in known}
    for start in range(0, len(missing), chunk):
        part = list(missing)[start : start + chunk]
        known |= dict(zip(part, map(float, score([missing[key] for key in part])), strict=True))
        write_rows(path, [{"key": key, "probability": value} for key, value in known.items()])
    return [known[key] for key in keys]


def _to_judge(documents: Sequence[Row]) -> list[dict[str, Any]]:
    kept = ("pair", "query", "instruction", "intended", "document")
    return [{**{k: row[k] for k in kept}, "judged": None, "problem": None} for row in documents if row["document"]]


def _read_verdict(row: Row, reply: Reply) -> None:
    yes, row["reason"] = read_verdict(reply)
    row["judged"] = INTENDED[0] if yes else INTENDED[1]
