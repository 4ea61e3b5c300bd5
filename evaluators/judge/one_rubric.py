"""A language model that scores every pair by one rubric, whatever its subset and level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluators.judge.endpoint import Endpoint
from evaluators.judge.grading import UnreadableReplyError, read_grade
from evaluators.judge.judges import DEFAULT_MODEL, RUBRIC_FIELDS, Judgement, Pair
from evaluators.judge.language_model import LanguageModel, Outcome, Plan
from evaluators.judge.prompt import read_prompt
from evaluators.judge.request import Request, Sampling


@dataclass
class OneRubricJudge:
    """As :class:`~evaluators.judge.judges.LLMJudge`, with one rubric on the scale that its file states.

    Its scores need not begin at 0 and are no scores for InstFol.

    Attributes:
        rubric: the prompt file, with a ``scale`` in its header and the fields ``instruction`` and ``passage``.
        model, language_model, sampling, top_logprobs: as in ``LLMJudge``.
    """

    rubric: Path
    model: str = DEFAULT_MODEL
    language_model: LanguageModel | None = None
    sampling: Sampling = field(default_factory=Sampling)
    top_logprobs: int = 5

    def __post_init__(self) -> None:
        self.sampling = replace(self.sampling, top_logprobs=self.top_logprobs)
        self._prompt = read_prompt(Path(self.rubric), RUBRIC_FIELDS)
        scale = self._prompt.scale
        if scale is None:
            raise ValueError(f"{self.rubric}: its header needs a line such as 'scale: 1-5'")
        self.scale: tuple[int, int] = scale

    def requests(self, pairs: Sequence[Pair]) -> list[Request]:
        """What the model is asked, one request for each pair."""
        return [
            Request(self.model, self._prompt.messages(instruction=p.instruction, passage=p.passage), self.sampling)
            for p in pairs
        ]

    def plan(self, pairs: Sequence[Pair]) -> Plan:
        """What judging these pairs would take; asks nothing."""
        return self._language_model().plan(self.requests(pairs))

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """One judgement for each pair, in order.

        Raises:
            EndpointError: if the endpoint answers nothing.
        """
        return [self._judgement(o) for o in self._language_model().ask(self.requests(pairs), label="judging")]

    def record(self) -> dict[str, Any]:
        """What the judgements depend on."""
        return {
            "judge": "OneRubricJudge",
            "model": self.model,
            "endpoint": self._language_model().endpoint.shown_url,
            "rubric": self._prompt.name,
            "rubric_version": self._prompt.version,
            "scale": list(self.scale),
            "sampling": self.sampling.body(),
            "top_logprobs": self.top_logprobs,
        }

    def _language_model(self) -> LanguageModel:
        if self.language_model is None:
            self.language_model = LanguageModel(Endpoint())
        return self.language_model

    def _judgement(self, outcome: Outcome) -> Judgement:
        if outcome.reply is None:
            return Judgement(None, reason=f"the call failed: {outcome.failure}")
        try:
            grade = read_grade(outcome.reply, self.scale, self.top_logprobs, self.top_logprobs)
        except UnreadableReplyError as error:
            return Judgement(None, reason=str(error))
        return Judgement(grade.score, grade.paper_score, grade.weighted is not None, grade.reason)
