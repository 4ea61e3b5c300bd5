"""How a reranker asks a language model, and what that took."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evaluators.judge import LanguageModel, Outcome, Prompt, Request, Sampling, package_prompts
from tcr_tasks.builder.tokens import default_counter
from tcr_tasks.cutting import Cutter
from tcr_tasks.reranking.pool import Usage

PROMPTS = Path(__file__).parent / "prompts"
CONTEXT_TOKENS = 131_072
FIELDS: Mapping[str, tuple[str, ...]] = {
    "pointwise": ("question", "table"),
    "listwise": ("question", "tables", "number"),
    "exec": ("question", "tables"),
}


@dataclass(frozen=True)
class Asking:
    """A language model and how it is asked.

    Attributes:
        language_model: the endpoint with its store of replies.
        model: its name there.
        sampling: the paper's is a temperature of 0.
        context_tokens: the most that prompt and reply may have together.
        cutter: cuts tables to that limit.
    """

    language_model: LanguageModel
    model: str
    sampling: Sampling = field(default_factory=Sampling)
    context_tokens: int = CONTEXT_TOKENS
    cutter: Cutter = field(default_factory=lambda: Cutter(default_counter()))
    _failed: list[dict[str, Outcome]] = field(default_factory=list, init=False, repr=False, compare=False)

    def request(self, prompt: Prompt, **values: str) -> Request:
        """The request that a prompt makes."""
        return Request(self.model, prompt.messages(**values), self.sampling)

    def room(self, prompt: Prompt, **values: str) -> int:
        """Tokens that are left for a prompt's further texts, beside the longest reply; may be negative."""
        empty = prompt.messages(**dict.fromkeys(prompt.fields, "") | values)
        used = sum(self.cutter.counter.count(message["content"]) for message in empty)
        return self.context_tokens - self.sampling.max_tokens - used

    @contextmanager
    def one_run(self) -> Iterator[Mapping[str, Outcome]]:
        """While it is open, a call that failed is not made again, whatever the budgets that need it.

        Yields:
            The calls that failed so far, by the keys of their requests.
        """
        self._failed.append({})
        try:
            yield self._failed[-1]
        finally:
            self._failed.pop()

    def ask(self, requests: Sequence[Request], label: str) -> tuple[list[Outcome], Usage]:
        """Every request's outcome, and what the different ones among them took."""
        failed = self._failed[-1] if self._failed else {}
        began = time.perf_counter()
        asked = self.language_model.ask([r for r in requests if r.key not in failed], label=label)
        seconds = time.perf_counter() - began
        made = len({outcome.request.key for outcome in asked if not outcome.cached})
        found = failed | {outcome.request.key: outcome for outcome in asked}
        failed.update((outcome.request.key, outcome) for outcome in asked if outcome.failure is not None)
        outcomes = [found[request.key] for request in requests]
        different = {outcome.request.key: outcome for outcome in outcomes}.values()
        usage = Usage(calls=len(different), made=made, seconds=seconds if made else 0.0)
        for outcome in different:
            reply = outcome.reply
            if reply is not None:
                usage.prompt_tokens += reply.prompt_tokens
                usage.completion_tokens += reply.completion_tokens
        return outcomes, usage

    def settings(self, prompt: Prompt) -> dict[str, Any]:
        """What the order depends on beside model and data, for mteb's record of the experiment."""
        sampling = {**asdict(self.sampling), "extra": dict(self.sampling.extra)}
        default = asdict(Sampling())
        changed = {name: value for name, value in sampling.items() if value != default[name]}
        limit = {} if self.context_tokens == CONTEXT_TOKENS else {"context_tokens": self.context_tokens}
        return {"prompt": prompt.version, **limit, **changed}


def own_or_package_prompt(name: str, folder: Path | None = None) -> Prompt:
    """A prompt of the package, or the one of the same name in the user's folder where it has it."""
    is_own = folder is not None and (folder / f"{name}.txt").is_file()
    return package_prompts(PROMPTS, {name: FIELDS[name]}, folder if is_own else None)[name]
