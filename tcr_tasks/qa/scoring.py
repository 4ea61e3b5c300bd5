"""Answers scored per question, and averaged per setting and question type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from evaluators.judge import Outcome
from evaluators.judge.reply import UnreadableReplyError
from evaluators.metrics.answers import AnswerScore, answer_f1
from evaluators.metrics.bootstrap import Interval, bootstrap_mean
from evaluators.metrics.efficiency import Efficiency, bootstrap_efficiency
from tcr_tasks.asking import is_doubtful
from tcr_tasks.qa.asking import Asked, Setting
from tcr_tasks.qa.reply import read_answer
from tcr_tasks.qa.values import Value, same_value

__all__ = ["ALL", "FAILED", "READ", "UNREADABLE", "Answered", "Cell", "cells_of", "score"]

ALL = "All"
READ, UNREADABLE, FAILED = "read", "unreadable", "failed"
_NO_SCORE = AnswerScore(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Answered:
    """What became of one question in one setting.

    Attributes:
        asked: the question with its tables.
        status: ``read``; ``unreadable``: a reply from which no answer could be read, which is wrong; ``failed``: no
            reply, so that nothing is known.
        values: the answer's values; empty where there is none, or where it says that there is none.
        score: ``None`` where the call failed.
        reason: why it is not ``read``.
        reply: the reply's text, empty where there is none.
        prompt_tokens, completion_tokens: as the server counted them.
    """

    asked: Asked
    status: str
    values: tuple[Value, ...] = ()
    score: AnswerScore | None = None
    reason: str = ""
    reply: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def is_target_shown(self) -> bool:
        """Whether the target is among the tables."""
        return any(table.id == self.asked.question.target for table in self.asked.tables)


def score(asked: Asked, outcome: Outcome, expected: Sequence[Value], tolerance: float) -> Answered:
    """The answer in a reply, compared with the values expected; see :mod:`tcr_tasks.qa.values`."""
    reply = outcome.reply
    if reply is None:
        return Answered(asked, FAILED, reason=outcome.failure or "no reply")
    counts = (reply.prompt_tokens, reply.completion_tokens)
    try:
        values = read_answer(reply)
    except UnreadableReplyError as error:
        return Answered(asked, UNREADABLE, (), _NO_SCORE, str(error), reply.text, *counts)
    found = answer_f1(values, expected, partial(same_value, tolerance=tolerance))
    return Answered(asked, READ, values, found, "", reply.text, *counts)


@dataclass(frozen=True)
class Cell:
    """The questions of one type in one setting.

    Attributes:
        setting: which tables.
        question_type: EM, SF, SA, or ``All``.
        n, n_unreadable, n_failed, n_empty: questions; replies without an answer; calls without reply; answers that say
            that there is none.
        qa: mean F1 over all questions, an unreadable answer being wrong (0); ``None`` if a call failed, or if no answer
            at all could be read.
        qa_interval: 95 %, from resampled questions.
        qa_readable: mean F1 over the questions with a readable answer; ``None`` without any.
        recall: share of questions with the target among the tables; ``None`` for no table.
        efficiency: Eff@k; ``None`` but for a retriever's tables, or if a call failed there or with the target alone.
        tables, tables_cut, rows, rows_cut, targets_cut: what was shown, and what did not fit.
    """

    setting: Setting
    question_type: str
    n: int
    n_unreadable: int
    n_failed: int
    n_empty: int
    qa: float | None
    qa_interval: Interval | None
    qa_readable: float | None
    recall: float | None
    efficiency: Efficiency | None
    tables: int
    tables_cut: int
    rows: int
    rows_cut: int
    targets_cut: int

    @property
    def is_doubtful(self) -> bool:
        """Whether the numbers must not stand without a mark, since so many replies cannot be used."""
        return is_doubtful(self.n_unreadable + self.n_failed, self.n)


def cells_of(setting: Setting, answered: Sequence[Answered], oracle: Mapping[str, Answered]) -> list[Cell]:
    """A setting's averages over all questions and over those of each type.

    Args:
        setting, answered: the setting, and what became of every question.
        oracle: the same questions with the target alone, by id.
    """
    types = list(dict.fromkeys(a.asked.question.type for a in answered))
    out = [_cell(setting, ALL, answered, oracle)]
    for kind in [t for t in ("EM", "SF", "SA") if t in types]:
        out.append(_cell(setting, kind, [a for a in answered if a.asked.question.type == kind], oracle))
    return out


def _cell(setting: Setting, kind: str, answered: Sequence[Answered], oracle: Mapping[str, Answered]) -> Cell:
    scores = [a.score.f1 for a in answered if a.score is not None]
    read = [a.score.f1 for a in answered if a.score is not None and a.status == READ]
    # Of a reader none of whose replies can be read nothing is known; 0 would say that it is always wrong.
    is_known = len(scores) == len(answered) and bool(read)
    qa = bootstrap_mean(scores) if is_known else None
    hits = [float(a.is_target_shown) for a in answered]
    tables = [table for a in answered for table in a.asked.tables]
    targets = [t for a in answered for t in a.asked.tables if t.id == a.asked.question.target]
    return Cell(
        setting,
        kind,
        n=len(answered),
        n_unreadable=sum(a.status == UNREADABLE for a in answered),
        n_failed=sum(a.status == FAILED for a in answered),
        n_empty=sum(a.status == READ and not a.values for a in answered),
        qa=qa.value if qa is not None else None,
        qa_interval=qa.interval() if qa is not None else None,
        qa_readable=sum(read) / len(read) if read else None,
        recall=sum(hits) / len(hits) if tables else None,
        efficiency=_efficiency(setting, answered, oracle, hits),
        tables=len(tables),
        tables_cut=sum(table.is_cut for table in tables),
        rows=sum(table.rows for table in tables),
        rows_cut=sum(table.rows - table.kept for table in tables),
        targets_cut=sum(table.is_cut for table in targets),
    )


def _efficiency(
    setting: Setting, answered: Sequence[Answered], oracle: Mapping[str, Answered], hits: Sequence[float]
) -> Efficiency | None:
    pairs = [(a.score, oracle[a.asked.question.id].score) for a in answered]
    known = [(mine.f1, best.f1) for mine, best in pairs if mine is not None and best is not None]
    if setting.k is None or len(known) < len(pairs) or not any(a.status == READ for a in answered):
        return None
    return bootstrap_efficiency([mine for mine, _ in known], [best for _, best in known], hits)
