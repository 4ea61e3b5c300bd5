"""What becomes of a topic's relevant documents under the changed instruction: a pure rule, enforced in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from followir_tasks.construction.selection import Band

__all__ = ["Settled", "settle"]


@dataclass(frozen=True)
class Settled:
    """A topic's relevant documents, each in exactly one of three lists, in the order of the judgements.

    Attributes:
        stay: relevant under both instructions.
        leave: relevant under the original instruction and not under the changed one (the dataset's ``qrel_diff``).
        undecided: neither a readable verdict nor a person's decision; they are in no part of the dataset.
    """

    stay: list[str]
    leave: list[str]
    undecided: list[str]

    @property
    def decided(self) -> int:
        """How many documents have a verdict."""
        return len(self.stay) + len(self.leave)

    @property
    def share(self) -> float | None:
        """Stays of those decided, 0..1; ``None`` if none is."""
        return len(self.stay) / self.decided if self.decided else None

    def within(self, band: Band) -> bool:
        """Whether the share lies in the band."""
        return band.holds(len(self.stay), self.decided)

    def told(self, band: Band) -> str:
        """The share in words."""
        if self.share is None:
            return f"no verdict on any of the {len(self.undecided)} documents"
        where = "" if self.within(band) else f", outside {band.told}"
        return f"{self.share:.0%} of {self.decided} relevant documents stay{where}"


def settle(relevant: Sequence[str], verdicts: Mapping[str, bool | None]) -> Settled:
    """Sort a topic's relevant documents by verdict.

    Args:
        relevant: under the original instruction. Only these can be relevant under the changed one, which narrows it.
        verdicts: document -> whether it is relevant under the changed instruction; ``None``: undecided.

    Raises:
        ValueError: if there is a verdict on another document: nothing may become newly relevant.
    """
    strangers = sorted(verdicts.keys() - set(relevant))
    if strangers:
        raise ValueError(
            f"verdicts on documents that were not relevant before, for instance {strangers[0]!r}: a changed "
            "instruction narrows the original one, so nothing may become newly relevant"
        )
    out = Settled([], [], [])
    for document in relevant:
        verdict = verdicts.get(document)
        (out.undecided if verdict is None else out.stay if verdict else out.leave).append(document)
    return out
