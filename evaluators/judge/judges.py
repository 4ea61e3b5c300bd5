"""Judges: how well a passage does what a query with its instruction asks for."""

from __future__ import annotations

import hashlib
import json
import numbers
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from evaluators.judge.endpoint import Endpoint
from evaluators.judge.grading import UnreadableReplyError, read_grade
from evaluators.judge.language_model import LanguageModel, Outcome, Plan
from evaluators.judge.prompt import Prompt, read_prompt
from evaluators.judge.request import Request, Sampling

DEFAULT_MODEL = "gpt-4o-mini"
RUBRIC_FIELDS = ("instruction", "passage")
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


@dataclass
class LLMJudge:
    """A language model with a rubric for each subset and level (IFIR, section 4.1 and appendix B).

    The score is the expected score under the probabilities of the score's token; where the server gives none, the
    whole number that the model wrote. A reply without readable score is no score.

    Attributes:
        rubrics: directory with ``<subset>-level-<n>.txt`` and ``<subset>.txt`` (subsets without levels); see
            :mod:`evaluators.judge.prompt` for their form. Fields: ``instruction``, ``passage``.
        model: its name at the endpoint.
        language_model: endpoint and store; default: OpenAI's, with the key in ``$OPENAI_API_KEY``.
        sampling: temperature 0, top_p 0.7 and 512 tokens, as in the paper; its ``top_logprobs`` is set from below.
        top_logprobs: how many log-probabilities the score is weighted with (the paper: 5); 0 asks for none.
        paper_top_logprobs: the same for ``paper_score`` (the authors' formula and code: 10).
        again: ask again where the stored reply is unreadable.
    """

    rubrics: Path
    model: str = DEFAULT_MODEL
    language_model: LanguageModel | None = None
    sampling: Sampling = field(default_factory=Sampling)
    top_logprobs: int = 5
    paper_top_logprobs: int = 10
    again: bool = False

    def __post_init__(self) -> None:
        if self.top_logprobs < 0 or self.paper_top_logprobs < self.top_logprobs:
            raise ValueError(
                "expected 0 <= top_logprobs <= paper_top_logprobs, got "
                f"{self.top_logprobs!r} and {self.paper_top_logprobs!r}"
            )
        asked = self.paper_top_logprobs if self.top_logprobs else 0
        self.sampling = replace(self.sampling, top_logprobs=asked)
        self.rubrics = Path(self.rubrics).expanduser()
        if not self.rubrics.is_dir():
            raise FileNotFoundError(f"the rubrics' directory {self.rubrics} does not exist")
        self._prompts: dict[tuple[str, int], Prompt] = {}

    def rubric(self, subset: str, level: int) -> Prompt:
        """The rubric of a subset and level.

        Raises:
            FileNotFoundError, ValueError: if there is none, it is no prompt file, or its scale is not 0..highest.
        """
        if (subset, level) not in self._prompts:
            name = f"{subset}-level-{level}" if level else subset
            prompt = read_prompt(self.rubrics / f"{name}.txt", RUBRIC_FIELDS)
            expected = (0, level or HIGHEST_WITHOUT_LEVELS)
            if prompt.scale != expected:
                raise ValueError(
                    f"{self.rubrics / f'{name}.txt'}: its scale must be {expected[0]}-{expected[1]}, found "
                    f"{prompt.header.get('scale')!r}"
                )
            self._prompts[subset, level] = prompt
        return self._prompts[subset, level]

    def requests(self, pairs: Sequence[Pair]) -> list[Request]:
        """What the model is asked, one request for each pair."""
        return [
            Request(
                self.model,
                self.rubric(p.rubric, p.level).messages(instruction=p.instruction, passage=p.passage),
                self.sampling,
            )
            for p in pairs
        ]

    def plan(self, pairs: Sequence[Pair]) -> Plan:
        """What judging these pairs would take; asks nothing."""
        return self._language_model().plan(self.requests(pairs))

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """As :meth:`Judge.judge`.

        Raises:
            EndpointError: if the endpoint answers nothing.
        """
        asked = self.requests(pairs)
        stored = self._language_model().store.endpoints(r.key for r in asked) if self.again else {}
        made = self._asked(pairs, asked, frozenset())
        if stored:
            # Only what was stored before: the others were asked just now.
            unreadable = {r.key for r, j in zip(asked, made, strict=True) if j.score is None and r.key in stored}
            if unreadable:
                made = self._asked(pairs, asked, frozenset(unreadable))
        return made

    def record(self) -> dict[str, Any]:
        """As :meth:`Judge.record`: model, endpoint, versions of all rubrics in the directory, sampling."""
        return {
            "judge": "LLMJudge",
            "model": self.model,
            "endpoint": self._language_model().endpoint.shown_url,
            "rubrics": rubrics_version(self.rubrics),
            "sampling": self.sampling.body(),
            "top_logprobs": self.top_logprobs,
            "paper_top_logprobs": self.paper_top_logprobs,
        }

    def _language_model(self) -> LanguageModel:
        if self.language_model is None:
            self.language_model = LanguageModel(Endpoint())
        return self.language_model

    def _asked(self, pairs: Sequence[Pair], asked: Sequence[Request], again: frozenset[str]) -> list[Judgement]:
        outcomes = self._language_model().ask(asked, label="judging", again=again)
        return [self._judgement(pair, outcome) for pair, outcome in zip(pairs, outcomes, strict=True)]

    def _judgement(self, pair: Pair, outcome: Outcome) -> Judgement:
        reply = outcome.reply
        if reply is None:
            return Judgement(None, reason=f"the call failed: {outcome.failure}")
        try:
            grade = read_grade(reply, (0, pair.highest), self.top_logprobs, self.paper_top_logprobs)
        except UnreadableReplyError as error:
            return Judgement(None, reason=str(error))
        return Judgement(grade.score, grade.paper_score, grade.weighted is not None, grade.reason)


def rubrics_version(directory: Path) -> str:
    """Eight hex digits over all rubric files of a directory: names and contents."""
    files = sorted(f for f in directory.glob("*.txt") if f.is_file())
    contents = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:8]


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


def unscored(pairs: Sequence[Pair], judgements: Sequence[Judgement]) -> list[dict[str, str]]:
    """The pairs without a score, each with the reason."""
    return [
        {"query": p.query, "document": p.document, "reason": j.reason}
        for p, j in zip(pairs, judgements, strict=True)
        if j.score is None
    ]


def reasons(listed: Sequence[Mapping[str, str]]) -> str:
    """The most frequent reasons of :func:`unscored`, for a message."""
    counted = Counter(entry["reason"] for entry in listed)
    return "; ".join(f"{n} x {reason}" for reason, n in counted.most_common(3))
