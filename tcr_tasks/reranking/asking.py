"""How a reranker asks a language model, and what that took."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from evaluators import judge
from evaluators.judge import Prompt, Sampling, package_prompts
from evaluators.judge.replies import Replies
from tcr_tasks.asking import Asker, Planned
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

_Key = TypeVar("_Key", bound=Hashable)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Asking(judge.Asking):
    """A language model and how it is asked.

    Attributes:
        sampling: the paper's is a temperature of 0.
        context_tokens: the most that prompt and reply may have together.
        cutter: cuts tables to that limit.
        again: whether to ask once more where a stored reply cannot be read.
    """

    sampling: Sampling = field(default_factory=Sampling)
    context_tokens: int = CONTEXT_TOKENS
    cutter: Cutter = field(default_factory=lambda: Cutter(default_counter()))
    again: bool = False
    _runs: list[Asker] = field(default_factory=list, init=False, repr=False, compare=False)

    def room(self, prompt: Prompt, **values: str) -> int:
        """Tokens that are left for a prompt's further texts, beside the longest reply; may be negative."""
        empty = prompt.messages(**dict.fromkeys(prompt.fields, "") | values)
        used = sum(self.cutter.counter.count(message["content"]) for message in empty)
        return self.context_tokens - self.sampling.max_tokens - used

    @contextmanager
    def one_run(self) -> Iterator[Asker]:
        """While it is open, a call that failed is not made again, whatever the budgets that need it.

        Yields:
            What asks, and knows the calls that failed so far.
        """
        self._runs.append(self._asker())
        try:
            yield self._runs[-1]
        finally:
            self._runs.pop()

    def ask(self, asked: Mapping[_Key, Planned[_T]], label: str) -> tuple[Replies[_Key, _T], Usage]:
        """What every reply gave, and what the different ones among them took.

        Raises:
            EndpointError: if the endpoint answers nothing.
        """
        replies, took = (self._runs[-1] if self._runs else self._asker()).ask(asked, label)
        different = {outcome.request.key: outcome for outcome in took.outcomes}.values()
        usage = Usage(
            calls=len(different), made=took.made, failed=took.failed, seconds=took.seconds if took.made else 0.0
        )
        for outcome in different:
            reply = outcome.reply
            if reply is not None:
                usage.prompt_tokens += reply.prompt_tokens
                usage.completion_tokens += reply.completion_tokens
        return replies, usage

    def settings_with(self, prompt: Prompt) -> dict[str, Any]:
        """What the order depends on beside model and data, for mteb's record of the experiment."""
        limit = {} if self.context_tokens == CONTEXT_TOKENS else {"context_tokens": self.context_tokens}
        return {"prompt": prompt.version, **limit, **self.changed_sampling()}

    def _asker(self) -> Asker:
        return Asker(self.language_model, again=self.again)


def own_or_package_prompt(name: str, folder: Path | None = None) -> Prompt:
    """A prompt of the package, or the one of the same name in the user's folder where it has it."""
    is_own = folder is not None and (folder / f"{name}.txt").is_file()
    return package_prompts(PROMPTS, {name: FIELDS[name]}, folder if is_own else None)[name]
