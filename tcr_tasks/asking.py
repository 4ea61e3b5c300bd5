"""What commands that ask a language model share: what its replies gave, and what asking would take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaluators.judge import LanguageModel, Plan, Request
from evaluators.judge.progress import money
from evaluators.judge.replies import Replies, read_replies
from tcr_tasks.cutting import Cutter

__all__ = ["Estimate", "Replies", "read_replies"]


class Estimate:
    """What asking would take, added up part by part: the requests of a whole run need not fit into memory.

    Attributes:
        plan: of all different requests so far.
        table_tokens: of the tables in those that have no stored reply.
    """

    def __init__(self, language_model: LanguageModel, cutter: Cutter) -> None:
        self._language_model, self._cutter = language_model, cutter
        self._known: set[str] = set()
        self.plan = Plan(0, 0, 0, 0)
        self.table_tokens = 0

    def add(self, asked: Iterable[tuple[Request, Sequence[str]]]) -> None:
        """Add requests, each with the printed tables in it; one that was added before counts once."""
        new = {request.key: (request, tables) for request, tables in asked if request.key not in self._known}
        self._known |= new.keys()
        more = self._language_model.plan([request for request, _ in new.values()])
        self.plan = Plan(
            self.plan.requests + more.requests,
            self.plan.stored + more.stored,
            self.plan.prompt_tokens + more.prompt_tokens,
            self.plan.most_completion_tokens + more.most_completion_tokens,
        )
        stored = self._language_model.store.endpoints(new)
        self.table_tokens += sum(
            self._cutter.tokens(text) for key, (_, tables) in new.items() if key not in stored for text in tables
        )

    def told(self, what: str) -> str:
        """The estimate in two lines; the second since digits and signs take more than a token for four characters."""
        price = self._language_model.price
        cost = "" if price is None else f", cost {money(price.of(self.table_tokens, 0))} by this count"
        counted = f"{self.table_tokens} tokens ({self._cutter.counter.name}){cost}"
        return f"{what}: {self.plan.told(price)}\ntables in the calls to make: {counted}"
