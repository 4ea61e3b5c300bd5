"""InstFol: how much of the possible improvement does an instruction bring? (IFIR, section 4.1 and appendix B)"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

_INTEGER = re.compile(r"-?[0-9]{1,9}")
# The alpha of the paper's equation 1 is 1 / (3 - S_q) for every rubric.
PAPER_MAX_SCORE = 3.0
# Judge scores are means of float32 values at times: closer to the maximum than this is the maximum.
_ROUNDING = 1e-6


def inst_fol(s_instruction: float, s_query: float, max_score: float) -> float:
    """InstFol of one query (IFIR, equation 1): the improvement as a share of the improvement that was possible.

    ``(s_instruction - s_query) / (max_score - s_query)``. When the plain query already has the highest possible
    score nothing can be gained, and the value is the (negative or zero) difference itself.

    Range: ``-s_query / (max_score - s_query)`` .. 1, not -1..1 as the paper says: a query whose plain results were
    nearly perfect can fall far below -1. Higher is better; 0 means that the instruction made no difference.

    Args:
        s_instruction: mean judge score of the passages retrieved with the instruction, 0..max_score.
        s_query: mean judge score, against the same instruction, of the passages retrieved without it.
        max_score: the rubric's highest score. The paper uses 3 whatever the rubric.

    Raises:
        ValueError: if max_score is not positive or a score is not finite or outside 0..max_score.
    """
    if not (math.isfinite(max_score) and max_score > 0):
        raise ValueError(f"max_score must be a positive number, got {max_score!r}")
    highest = float(max_score)
    after, before = (
        _within(name, float(value), highest) for name, value in (("s_instruction", s_instruction), ("s_query", s_query))
    )
    gain, room = after - before, highest - before
    if gain == 0:
        return 0.0
    # A mean of highest scores can miss the maximum by a rounding error, which must not become the divisor.
    return gain / room if room > _ROUNDING else gain


def inst_fol_of_lists(
    instructed: Sequence[float | None], plain: Sequence[float | None], max_score: float
) -> float | None:
    """InstFol of one query from the judge scores of its two ranked lists.

    Each list is averaged over the passages that have a score, so lists of different length, shorter than the cut-off or
    with gaps can be compared. Range and direction as :func:`inst_fol`.

    Args:
        instructed: scores, against the instruction, of the passages retrieved with it; ``None`` for a missing score.
        plain: the same for the passages retrieved without it.
        max_score: the rubric's highest score.

    Returns:
        ``None`` if one of the lists has no score at all.

    Raises:
        ValueError: as :func:`inst_fol`.
    """
    after, before = mean_of_known(instructed), mean_of_known(plain)
    return None if after is None or before is None else inst_fol(after, before, max_score)


def paper_inst_fol_of_lists(instructed: Sequence[float | None], plain: Sequence[float | None]) -> float | None:
    """InstFol of one query as IFIR's authors compute it.

    A rank counts only where both lists have a score there, and the highest score is 3 whatever the rubric
    (section 4.1), so that a subset whose rubric ends at 1 stays far from 1.

    Returns:
        ``None`` if no rank has both scores.

    Raises:
        ValueError: as :func:`inst_fol`.
    """
    both = [pair for pair in zip(instructed, plain, strict=False) if None not in pair]
    return inst_fol_of_lists([after for after, _ in both], [before for _, before in both], PAPER_MAX_SCORE)


def mean_of_known(scores: Iterable[float | None]) -> float | None:
    """The mean of the values that are there, ``None`` if none is."""
    known = [score for score in scores if score is not None]
    return math.fsum(known) / len(known) if known else None


def _within(name: str, value: float, highest: float) -> float:
    if not (math.isfinite(value) and -_ROUNDING <= value <= highest + _ROUNDING):
        raise ValueError(f"{name} must lie in 0..{highest}, got {value!r}; a missing score is no score")
    return min(max(value, 0.0), highest)


def weighted_score(
    top_logprobs: Mapping[str, float] | Iterable[tuple[str, float]],
    lowest: int = 0,
    highest: int = 3,
    min_prob: float = 0.01,
) -> float:
    """The expected score under a judge's token probabilities (IFIR, appendix B, "weighted_score").

    ``sum(s * exp(lp)) / sum(exp(lp))`` over those of the given tokens that are whole numbers in
    ``lowest..highest``, blanks around them ignored, and have a probability of at least ``min_prob``.
    Range ``lowest..highest``. Two tokens for one number (``"2"`` and ``" 2"``) both count.

    Args:
        top_logprobs: token -> natural log-probability, or such pairs, of the position that holds the score.
        lowest, highest: the rubric's scale.
        min_prob: less likely tokens are dropped; at least 0 and below 1.

    Raises:
        ValueError: if no token is left (the reply holds no readable score: that is a missing score, not 0), if a
            log-probability is NaN or above 0 by more than rounding, if a token is not a string, or if the scale or
            ``min_prob`` make no sense.
    """
    if lowest >= highest:
        raise ValueError(f"the scale needs lowest < highest, got {lowest}..{highest}")
    if not 0 <= min_prob < 1:
        raise ValueError(f"min_prob must be at least 0 and below 1, got {min_prob!r}")
    pairs = list(top_logprobs.items() if isinstance(top_logprobs, Mapping) else top_logprobs)
    weights: dict[int, float] = {}
    for token, logprob in pairs:
        # Some servers round to values a hair above 0.
        if math.isnan(logprob) or logprob > 1e-6:
            raise ValueError(f"token {token!r} has the log-probability {logprob!r}; it must be at most 0")
        if not isinstance(token, str):
            raise ValueError(f"token {token!r} is not a string")
        number = token.strip()
        if not _INTEGER.fullmatch(number) or not lowest <= int(number) <= highest:
            continue
        probability = math.exp(logprob)
        if probability < min_prob:
            continue
        weights[int(number)] = weights.get(int(number), 0.0) + probability
    weight = math.fsum(weights.values())
    if weight == 0:
        raise ValueError(
            f"no token among {[t for t, _ in pairs]} is a whole number in {lowest}..{highest} with a probability "
            f"of at least {min_prob}: the reply has no readable score"
        )
    expected = math.fsum(number * w for number, w in weights.items()) / weight
    # The expectation lies between the numbers seen; a rounding error must not carry it off the scale.
    return min(max(expected, float(min(weights))), float(max(weights)))
