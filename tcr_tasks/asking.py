"""What commands that ask a language model share: its replies read, calls that are lost, and what asking would take."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from evaluators.judge import EndpointError, LanguageModel, Outcome, Plan, Reply, Request
from evaluators.judge.replies import Replies
from evaluators.judge.reply import UnreadableReplyError
from evaluators.judge.request import CHARACTERS_PER_TOKEN
from tcr_tasks.cutting import Cutter

__all__ = ["MARK", "Asker", "Estimate", "Planned", "Took", "is_doubtful", "remedy", "unreadable_keys"]

_Key = TypeVar("_Key", bound=Hashable)
_T = TypeVar("_T")
# Of scores behind which too many replies are missing.
MARK = "†"
# With a larger share of replies that cannot be used a score says little of the model; a judge's is not even given.
_MOST_UNUSABLE = 0.05
# A few calls may stay without an answer where others would not.
_LOST_FOR_GOOD = 5


def is_doubtful(unusable: int, asked: int) -> bool:
    """Whether so many replies of those asked for cannot be used that a score must not stand without a mark."""
    return unusable > _MOST_UNUSABLE * asked


def remedy(failed: int, unreadable: int) -> str:
    """What a user can do about so many calls without a reply and replies that cannot be read; empty if nothing."""
    told = []
    if failed:
        told.append("run again to ask what has no reply")
    if unreadable:
        told.append("--ask-again asks anew where a reply cannot be read")
    return "; ".join(told)


@dataclass(frozen=True)
class Planned(Generic[_T]):
    """A request with what is in it.

    Attributes:
        request: what is asked.
        tables: the printed tables in it.
        read: reads the reply; raises :class:`~evaluators.judge.reply.UnreadableReplyError` where it cannot.
    """

    request: Request
    tables: Sequence[str]
    read: Callable[[Reply], _T]


class Took(NamedTuple):
    """What asking took.

    Attributes:
        outcomes: of all requests, in their order.
        made: different calls that were made now.
        failed: those of them that stayed without a reply.
        seconds: wall-clock.
    """

    outcomes: list[Outcome]
    made: int
    failed: int
    seconds: float


class Asker:
    """Asks a language model throughout a run.

    A call that failed is not made again in the run, whatever needs it. If nobody answers, the run ends.

    Args:
        language_model: the endpoint with its store of replies.
        again: whether to ask once more, and once only, where a stored reply cannot be read.

    Attributes:
        failed: the calls that failed so far, by the keys of their requests.
    """

    def __init__(self, language_model: LanguageModel, *, again: bool = False) -> None:
        self.failed: dict[str, Outcome] = {}
        self._language_model, self._again = language_model, again
        self._made: set[str] = set()
        self._lost = 0

    def ask(self, asked: Mapping[_Key, Planned[_T]], label: str) -> tuple[Replies[_Key, _T], Took]:
        """Every request's reply, read.

        Raises:
            EndpointError: if the endpoint answers nothing.
        """
        again = unreadable_keys(self._language_model, asked.values()) - self._made if self._again else frozenset()
        began = time.perf_counter()
        found = {
            outcome.request.key: outcome
            for outcome in self._language_model.ask(
                [one.request for one in asked.values() if one.request.key not in self.failed], label=label, again=again
            )
        }
        seconds = time.perf_counter() - began
        made = [outcome for outcome in found.values() if not outcome.cached]
        self._watch(made, label)
        self._made.update(outcome.request.key for outcome in made)
        self.failed.update((key, outcome) for key, outcome in found.items() if outcome.failure is not None)
        known = self.failed | found
        outcomes = [known[one.request.key] for one in asked.values()]
        replies: Replies[_Key, _T] = Replies({}, {}, {})
        for (key, one), outcome in zip(asked.items(), outcomes, strict=True):
            replies.add(key, outcome, one.read)
        replies.warn(label)
        return replies, Took(outcomes, len(made), sum(o.failure is not None for o in made), seconds)

    def _watch(self, made: Sequence[Outcome], label: str) -> None:
        """End the run if no call is answered; each would be tried several times, with growing waits."""
        if not made:
            return
        self._lost = self._lost + len(made) if all(outcome.unreachable for outcome in made) else 0
        if self._lost >= _LOST_FOR_GOOD:
            raise EndpointError(
                f"{self._language_model.endpoint.shown_url}: {label}: {self._lost} calls, and none was answered; the "
                f"last one: {made[-1].failure}. Replies that came before are stored; run again to go on"
            )


def unreadable_keys(language_model: LanguageModel, asked: Iterable[Planned[Any]]) -> frozenset[str]:
    """The keys of the requests whose stored reply cannot be read."""
    different = {one.request.key: one for one in asked}
    store = language_model.store
    unreadable = set()
    for key in store.endpoints(different):
        try:
            different[key].read(store.reply(key))
        except UnreadableReplyError:
            unreadable.add(key)
    return frozenset(unreadable)


class Estimate:
    """What asking would take, added up part by part: the requests of a whole run need not fit into memory.

    Prompt tokens are those of the tables, counted, since digits and signs take more than a token for four characters,
    and one for every four characters of the rest.

    Attributes:
        plan: of all different requests so far.
        table_tokens: of the tables in those that would be asked.
    """

    def __init__(self, language_model: LanguageModel, cutter: Cutter) -> None:
        self._language_model, self._cutter = language_model, cutter
        self._known: set[str] = set()
        self.plan = Plan(0, 0, 0, 0)
        self.table_tokens = 0

    def add(self, asked: Iterable[tuple[Request, Sequence[str]]], again: frozenset[str] = frozenset()) -> None:
        """Add requests, each with the printed tables in it; one that was added before counts once.

        Args:
            asked: requests and tables.
            again: keys of requests that would be asked although a reply is stored.
        """
        new = {request.key: (request, tables) for request, tables in asked if request.key not in self._known}
        self._known |= new.keys()
        stored = self._language_model.store.endpoints(new).keys() - again
        missing = [one for key, one in new.items() if key not in stored]
        in_tables = [sum(map(self._cutter.tokens, tables)) for _, tables in missing]
        self.table_tokens += sum(in_tables)
        more = Plan.of([request for request, _ in missing], len(stored))
        self.plan = Plan(
            self.plan.requests + more.requests,
            self.plan.stored + more.stored,
            self.plan.prompt_tokens + sum(in_tables) + sum(_rest(*one) for one in missing),
            self.plan.most_completion_tokens + more.most_completion_tokens,
            f"{self.table_tokens} of them in tables, counted by {self._cutter.counter.name}; the rest: four characters "
            "a token",
        )

    def add_planned(self, asked: Iterable[Planned[Any]], *, again: bool) -> None:
        """Add requests that are read; with ``again``, stored replies that cannot be read would be asked for anew."""
        listed = list(asked)
        keys = unreadable_keys(self._language_model, listed) if again else frozenset()
        self.add(((one.request, one.tables) for one in listed), keys)

    def told(self, what: str) -> str:
        """The estimate in a line."""
        return f"{what}: {self.plan.told(self._language_model.price)}"


def _rest(request: Request, tables: Sequence[str]) -> int:
    """The tokens beside the tables, which a prompt may show without blank lines at their ends."""
    characters = sum(len(message["content"]) for message in request.messages) - sum(map(len, tables))
    return -(-max(characters, 0) // CHARACTERS_PER_TOKEN)
