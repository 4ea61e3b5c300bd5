"""Language models as judges, with a rubric for each subset and level or one for all."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluators.judge.endpoint import Endpoint
from evaluators.judge.grading import read_grade
from evaluators.judge.judges import HIGHEST_WITHOUT_LEVELS, Judgement, Pair
from evaluators.judge.language_model import LanguageModel, Outcome, Plan
from evaluators.judge.prompt import Prompt, read_prompt
from evaluators.judge.reply import UnreadableReplyError
from evaluators.judge.request import Request, Sampling
from evaluators.judge.scale import Scale

DEFAULT_MODEL = "gpt-4o-mini"
RUBRIC_FIELDS = ("instruction", "passage")


@dataclass(kw_only=True)
class ModelJudge(ABC):
    """A language model that scores pairs; a subclass says by which rubric.

    The score is the expected score under the probabilities of the score's token (IFIR, appendix B); where the server
    gives none, the whole number that the model wrote. A reply without readable score is no score.

    Attributes:
        model: its name at the endpoint.
        language_model: endpoint and store; default: OpenAI's, with the key in ``$OPENAI_API_KEY``.
        sampling: temperature 0, top_p 0.7 and 512 tokens, as in the paper; its ``top_logprobs`` is set from below.
        top_logprobs: how many log-probabilities the score is weighted with (the paper: 5); 0 asks for none.
        paper_top_logprobs: the same for ``paper_score`` (the authors' formula and code: 10).
        again: ask again where the stored reply is unreadable.
    """

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

    @abstractmethod
    def prompt_for(self, pair: Pair) -> Prompt:
        """The rubric that applies to a pair."""

    @abstractmethod
    def scale_for(self, pair: Pair) -> Scale:
        """The scale of that rubric."""

    @abstractmethod
    def rubric_record(self) -> dict[str, Any]:
        """What the record says on the rubrics."""

    def requests(self, pairs: Sequence[Pair]) -> list[Request]:
        """What the model is asked, one request for each pair."""
        return [
            Request(
                self.model,
                self.prompt_for(p).messages(instruction=p.instruction, passage=p.passage),
                self.sampling,
            )
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
        """What the judgements depend on: model, endpoint, rubrics, sampling."""
        return {
            "judge": type(self).__name__,
            "model": self.model,
            "endpoint": self._language_model().endpoint.shown_url,
            **self.rubric_record(),
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
            grade = read_grade(reply, self.scale_for(pair), self.top_logprobs, self.paper_top_logprobs)
        except UnreadableReplyError as error:
            return Judgement(None, reason=str(error))
        return Judgement(grade.score, grade.paper_score, grade.weighted is not None, grade.reason)


@dataclass
class LLMJudge(ModelJudge):
    """A rubric for each subset and level, whose scores begin at 0 (IFIR, section 4.1).

    Attributes:
        rubrics: directory with ``<subset>-level-<n>.txt`` and ``<subset>.txt`` (subsets without levels); see
            :mod:`evaluators.judge.prompt` for their form. Fields: ``instruction``, ``passage``.
    """

    rubrics: Path

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rubrics = Path(self.rubrics).expanduser()
        if not self.rubrics.is_dir():
            raise FileNotFoundError(f"the rubrics' directory {self.rubrics} does not exist")
        self._prompts: dict[tuple[str, int], Prompt] = {}

    def prompt_for(self, pair: Pair) -> Prompt:
        """The rubric of the pair's subset and level.

        Raises:
            FileNotFoundError, ValueError: if there is none, it is no prompt file, or its scale is not 0..highest.
        """
        subset, level = pair.rubric, pair.level
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

    def scale_for(self, pair: Pair) -> Scale:
        return 0, pair.highest

    def rubric_record(self) -> dict[str, Any]:
        return {"rubrics": rubrics_version(self.rubrics)}


@dataclass
class OneRubricJudge(ModelJudge):
    """One rubric for every pair, on the scale that its file states.

    Its scores need not begin at 0 and are no scores for InstFol.

    Attributes:
        rubric: the prompt file, with a ``scale`` in its header and the fields ``instruction`` and ``passage``.
    """

    rubric: Path

    def __post_init__(self) -> None:
        self.paper_top_logprobs = self.top_logprobs  # the authors' way of scoring is on the levels' scales
        super().__post_init__()
        self._prompt = read_prompt(Path(self.rubric), RUBRIC_FIELDS)
        scale = self._prompt.scale
        if scale is None:
            raise ValueError(f"{self.rubric}: its header needs a line such as 'scale: 1-5'")
        self.scale: Scale = scale

    def prompt_for(self, pair: Pair) -> Prompt:
        return self._prompt

    def scale_for(self, pair: Pair) -> Scale:
        return self.scale

    def rubric_record(self) -> dict[str, Any]:
        return {"rubric": self._prompt.name, "rubric_version": self._prompt.version, "scale": list(self.scale)}


def rubrics_version(directory: Path) -> str:
    """Eight hex digits over all rubric files of a directory: names and contents."""
    files = sorted(f for f in directory.glob("*.txt") if f.is_file())
    contents = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:8]
