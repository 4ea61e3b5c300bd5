"""Reading a score from a judge's reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evaluators.judge.reply import Reply, UnreadableReplyError
from evaluators.metrics.instfol import weighted_score
from evaluators.whole import whole_text

_SCORE = re.compile(r'(?<!\\)"score"\s*:\s*"?\s*(-?[0-9]+)')
# Not strict: models write line breaks into texts as they are.
_DECODER = json.JSONDecoder(object_pairs_hook=lambda pairs: _Object(pairs), strict=False)
# Braces that stand in prose, as in "the field {reason}", and are no beginning of an object.
_PROSE = re.compile(r"""\{[^{}"':]*\}""")
_NAMES_SCORE = re.compile(r"""\bscore\b["'”]?\s*:""", re.IGNORECASE)


@dataclass(frozen=True)
class Grade:
    """A score read from a reply.

    Attributes:
        integer: the score that the reply names.
        weighted: the expected score under the token probabilities (IFIR, appendix B), ``None`` if they are not there or
            do not tell.
        paper_weighted: the same over the longer list of probabilities that the authors ask for.
        reason: what the judge gives as its reason.
    """

    integer: int
    weighted: float | None
    paper_weighted: float | None
    reason: str

    @property
    def score(self) -> float:
        """The weighted score, else the integer."""
        return float(self.integer) if self.weighted is None else self.weighted

    @property
    def paper_score(self) -> float:
        """The weighted score over the longer list, else the integer."""
        return float(self.integer) if self.paper_weighted is None else self.paper_weighted


class _Object(dict[str, Any]):
    """A JSON object that remembers whether a key was given twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice = len(self) < len(pairs)


def read_grade(reply: Reply, scale: tuple[int, int], top_logprobs: int, paper_top_logprobs: int) -> Grade:
    """The score in the last JSON object of a reply that has one.

    The score is a whole number of the scale, as a number or as text. The weighted score is computed from the
    ``top_logprobs`` likeliest tokens at the place of the score, the paper's from the ``paper_top_logprobs`` likeliest.
    It needs the score to be one token of its own, blanks around it ignored.

    Raises:
        UnreadableReplyError: saying why the reply holds no score.
    """
    reply.said()
    start, end, found = _last_scored_object(reply)
    integer = _integer(found, scale)
    top = _top_logprobs(reply, start, end, integer)
    return Grade(
        integer=integer,
        weighted=_weighted(top[:top_logprobs], scale),
        paper_weighted=_weighted(top[:paper_top_logprobs], scale),
        reason=whole_text(str(found.get("reason", ""))),
    )


def _last_scored_object(reply: Reply) -> tuple[int, int, dict[str, Any]]:
    """Start, end and content of the last outermost JSON object with a key ``score``."""
    text = reply.text
    scored = [
        (start, end, value)
        for start, end, value in _objects(text)
        if ("score" in value if value is not None else _NAMES_SCORE.search(text, start))
    ]
    start, end, found = scored[-1] if scored else (0, 0, None)
    if found is None:
        # An earlier object does not count either: the last verdict is the one that cannot be read.
        cut = " and was cut off: allow more tokens (max_tokens)" if reply.finish_reason == "length" else ""
        raise UnreadableReplyError(f"the reply holds no complete JSON object with a score{cut}: {reply.text[:80]!r}")
    if found.twice:
        raise UnreadableReplyError(f"the reply gives a key twice: {text[start:end][:120]!r}")
    return start, end, found


def _objects(text: str) -> Iterator[tuple[int, int, _Object | None]]:
    """Start, end and content of the outermost JSON objects; the content is ``None``, and it the last, if it is broken.

    What stands inside an object that is cut off or broken is no object of its own.
    """
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            prose = _PROSE.match(text, at)
            if prose is None:
                yield at, len(text), None
                return
            end = prose.end()
        else:
            yield at, end, value
        at = text.find("{", end)


def _integer(found: dict[str, Any], scale: tuple[int, int]) -> int:
    value = found["score"]
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,9}\s*", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not scale[0] <= value <= scale[1]:
        raise UnreadableReplyError(f"the score {value!r} is no whole number in {scale[0]}..{scale[1]}")
    return value


def _top_logprobs(reply: Reply, start: int, end: int, integer: int) -> list[tuple[str, float]]:
    """The likeliest tokens at the score's place, likeliest first; empty if the place is not one token."""
    places = [m for m in _SCORE.finditer(reply.text, start, end) if m[1] == str(integer)]
    if len(places) != 1 or not _is_the_score(reply.text, start, end, places[0]):
        return []
    begin = 0
    for token in reply.tokens or ():
        if not reply.text.startswith(token.text, begin):  # half a character, or tokens of another text
            return []
        after = begin + len(token.text)
        if begin <= places[0].start(1) and places[0].end(1) <= after:
            return sorted(token.top, key=lambda pair: -pair[1]) if token.text.strip() == str(integer) else []
        begin = after
    return []


def _is_the_score(text: str, start: int, end: int, place: re.Match[str]) -> bool:
    """Whether the object's own score is written there: another number there gives another score."""
    other = "8" if place[1] == "9" else "9"
    changed = text[start : place.start(1)] + other + text[place.end(1) : end]
    try:
        return str(json.loads(changed, strict=False).get("score")).strip() == other
    except ValueError:
        return False


def _weighted(top: list[tuple[str, float]], scale: tuple[int, int]) -> float | None:
    try:
        return weighted_score(top, *scale)
    except ValueError:
        return None
