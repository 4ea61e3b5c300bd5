"""What commands that ask a language model share: what its replies gave, and what asking would take."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from evaluators.judge import LanguageModel, Outcome, Plan, Reply, Request
from evaluators.judge.progress import money
from evaluators.judge.reply import UnreadableReplyError
from tcr_tasks.cutting import Cutter

__all__ = ["Estimate", "Replies", "read_replies"]

logger = logging.getLogger(__name__)

_Key = TypeVar("_Key", bound=Hashable)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Replies(Generic[_Key, _T]):
    """What replies gave.

    Attributes:
        read: key -> what was read.
        failed: key -> why there is no reply.
        unreadable: key -> why nothing could be read from the reply.
    """

    read: dict[_Key, _T]
    failed: dict[_Key, str]
    unreadable: dict[_Key, str]

    def warn(self, label: str) -> None:
        """Log how many replies cannot be used, and what is wrong with the first one."""
        problems = self.failed | self.unreadable
        if problems:
            key, why = next(iter(problems.items()))
            place = ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)
            n = len(problems) + len(self.read)
            logger.warning(
                "%s: %d of %d replies cannot be used; the first one, %s: %s", label, len(problems), n, place, why
            )


def read_replies(keys: Iterable[_Key], outcomes: Iterable[Outcome], read: Callable[[Reply], _T]) -> Replies[_Key, _T]:
    """Read every reply; what cannot be read is kept with its reason.

    Args:
        keys: what each outcome is about, in their order.
        outcomes: as the language model gave them.
        read: reads a reply; raises :class:`~evaluators.judge.reply.UnreadableReplyError` where it cannot.
    """
    out: Replies[_Key, _T] = Replies({}, {}, {})
    for key, outcome in zip(keys, outcomes, strict=True):
        reply = outcome.reply
        if reply is None:
            out.failed[key] = outcome.failure or "no reply"
            continue
        try:
            out.read[key] = read(reply)
        except UnreadableReplyError as error:
            out.unreadable[key] = str(error)
    return out


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
