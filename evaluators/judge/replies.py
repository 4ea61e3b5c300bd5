"""What replies to many requests gave."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from evaluators.judge.language_model import Outcome
from evaluators.judge.reply import Reply, UnreadableReplyError

__all__ = ["Replies", "read_replies"]

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
        """Log how many calls failed and how many replies cannot be used, and what is wrong with the first of each."""
        n = len(self.failed) + len(self.unreadable) + len(self.read)
        for problems, told in ((self.failed, "calls failed"), (self.unreadable, "replies cannot be used")):
            if problems:
                key, why = next(iter(problems.items()))
                place = ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)
                logger.warning("%s: %d of %d %s; the first one, %s: %s", label, len(problems), n, told, place, why)

    def add(self, key: _Key, outcome: Outcome, read: Callable[[Reply], _T]) -> None:
        """Read one more."""
        reply = outcome.reply
        if reply is None:
            self.failed[key] = outcome.failure or "no reply"
            return
        try:
            self.read[key] = read(reply)
        except UnreadableReplyError as error:
            self.unreadable[key] = str(error)


def read_replies(keys: Iterable[_Key], outcomes: Iterable[Outcome], read: Callable[[Reply], _T]) -> Replies[_Key, _T]:
    """Read every reply; what cannot be read is kept with its reason.

    Args:
        keys: what each outcome is about, in their order.
        outcomes: as the language model gave them.
        read: reads a reply; raises :class:`~evaluators.judge.reply.UnreadableReplyError` where it cannot.
    """
    out: Replies[_Key, _T] = Replies({}, {}, {})
    for key, outcome in zip(keys, outcomes, strict=True):
        out.add(key, outcome, read)
    return out
