"""Judges: how well a passage does what a query with its instruction asks for."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

HIGHEST_WITHOUT_LEVELS = 3


@dataclass(frozen=True)
class Pair:
    """What a judge is asked about.

    Attributes:
        query: id of the instructed query.
        document: id of the passage.
        instruction: the query and its instruction, as a retriever reads them.
        passage: the passage, as a retriever reads it.
        rubric: name of the subset whose criteria apply.
        level: the instruction's level, 0 in subsets without levels.
        facet: where the truth is known, how many of three nested levels the passage meets (0..3).
    """

    query: str
    document: str
    instruction: str
    passage: str
    rubric: str
    level: int
    facet: int | None = None

    @property
    def highest(self) -> int:
        """The highest score on the scale of this level: the level, or 3 without levels."""
        return self.level or HIGHEST_WITHOUT_LEVELS


@dataclass(frozen=True)
class Judgement:
    """A judge's word on a pair.

    Attributes:
        score: 0..highest, ``None`` if there is none.
        paper_score: the score as IFIR's authors compute it, from more log-probabilities.
        weighted: whether the score is weighted by token probabilities.
        reason: the judge's reason, or why there is no score.
    """

    score: float | None
    paper_score: float | None = None
    weighted: bool = False
    reason: str = ""


@runtime_checkable
class Judge(Protocol):
    """Scores pairs. A judge's numbers depend on nothing but the pairs and what :meth:`record` says."""

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """One judgement for each pair, in order."""
        ...

    def record(self) -> dict[str, Any]:
        """What the judgements depend on, for result files: JSON values only."""
        ...


class FacetJudge:
    """The exact truth of a generated sample, without any model.

    A passage that meets ``facet`` nested levels scores ``min(facet, level)`` against a level's instruction, and the
    facet itself, 0 to 3, in subsets without levels.
    """

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """As :meth:`Judge.judge`.

        Raises:
            ValueError: if the data carry no facets.
        """
        unknown = next((p for p in pairs if p.facet is None), None)
        if unknown is not None:
            raise ValueError(
                f"FacetJudge reads the config `facets`, which says nothing on query {unknown.query!r} and document "
                f"{unknown.document!r}; only generated samples have it"
            )
        scores = [float(min(p.facet or 0, p.highest)) for p in pairs]
        return [Judgement(score, score) for score in scores]

    def record(self) -> dict[str, Any]:
        """As :meth:`Judge.record`."""
        return {"judge": "FacetJudge"}


class FunctionJudge:
    """A function of a pair as a judge: it returns 0..``pair.highest``, or ``None`` for no score.

    Its results are computed anew each time, unless the function has an attribute ``version`` (text): a function does
    not show whether it changed.
    """

    def __init__(self, function: Callable[[Pair], float | None]) -> None:
        self.function = function

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """As :meth:`Judge.judge`.

        Raises:
            ValueError: if the function returns anything but a number on the scale or ``None``.
        """
        return [self._one(pair) for pair in pairs]

    def _one(self, pair: Pair) -> Judgement:
        try:
            value = self.function(pair)
        except Exception as error:
            error.add_note(f"while judging query {pair.query!r} and document {pair.document!r}")
            raise
        if value is None:
            return Judgement(None, reason="the function gave no score")
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value <= pair.highest:
            raise ValueError(
                f"the judge gave {value!r} for query {pair.query!r} and document {pair.document!r}: expected a number "
                f"in 0..{pair.highest} or None"
            )
        return Judgement(float(value), float(value))

    def record(self) -> dict[str, Any]:
        """As :meth:`Judge.record`."""
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {
            "judge": f"{getattr(self.function, '__module__', '?')}.{name}",
            "version": getattr(self.function, "version", None),
        }


def as_judge(judge: Judge | Callable[[Pair], float | None]) -> Judge:
    """A judge, or a function of a pair made one.

    Raises:
        ValueError: if it is neither.
    """
    if isinstance(judge, type):
        raise ValueError(f"a judge is an object: set {judge.__name__}(), not the class {judge.__name__}")
    if isinstance(judge, Judge):
        return judge
    if callable(judge):
        return FunctionJudge(judge)
    raise ValueError(f"a judge has the methods judge and record, or is a function of a Pair; got {judge!r}")


def check_judgements(pairs: Sequence[Pair], judgements: Sequence[Judgement]) -> None:
    """Check what a judge returned, which anybody may have written.

    Raises:
        ValueError: if it is not one judgement for each pair, or a score is off the scale.
    """
    if len(judgements) != len(pairs):
        raise ValueError(f"the judge returned {len(judgements)} judgements for {len(pairs)} pairs")
    for pair, judgement in zip(pairs, judgements, strict=True):
        if not isinstance(judgement, Judgement):
            raise ValueError(f"the judge must return Judgement objects, got {judgement!r}")
        for score in (judgement.score, judgement.paper_score):
            if score is not None and not 0 <= score <= pair.highest:
                raise ValueError(
                    f"the judge gave {score!r} for query {pair.query!r} and document {pair.document!r}: expected "
                    f"0..{pair.highest}, or None for no score"
                )


def weighted_share(judgements: Iterable[Judgement]) -> float | None:
    """The share (0..1) of the scores that are weighted by log-probabilities, ``None`` if there is no score."""
    weighted = [j.weighted for j in judgements if j.score is not None]
    return sum(weighted) / len(weighted) if weighted else None


def unscored(pairs: Sequence[Pair], judgements: Sequence[Judgement]) -> list[dict[str, str]]:
    """The pairs without a score, each with the reason."""
    return [
        {"query": p.query, "document": p.document, "reason": j.reason}
        for p, j in zip(pairs, judgements, strict=True)
        if j.score is None
    ]


def frequent(reasons: Iterable[str]) -> str:
    """The most frequent reasons for a missing score with their numbers, for a message."""
    return "; ".join(f"{n} x {reason}" for reason, n in Counter(reasons).most_common(3))
