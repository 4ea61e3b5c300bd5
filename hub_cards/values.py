"""Values of result files: with their intervals and chance levels, and as they are written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from hub_cards.measures import Kind

# The chance level of a score of a level or question type; a plain query's ranking has that of the instructed one.
_CHANCE = re.compile(r"(?P<part>level_[0-3]_|EM_|SF_|SA_)?(?P<plain>query_only_)?(?P<rest>.+)")


class Score(NamedTuple):
    """A value with its bounds; ``None`` where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


MISSING = Score(None)


def value_of(scores: Mapping[str, Any], key: str) -> Score:
    """A score of a result file with its 95 % interval where the file has one.

    ``unscored_share`` is derived: pairs without a judge's score / all pairs that a judge was asked about.
    """
    if key == "unscored_share":
        judged, unscored = (number(scores.get(name)) for name in ("n_judged", "n_unscored"))
        known = judged is not None and unscored is not None and judged + unscored > 0
        return Score(unscored / (judged + unscored)) if known else MISSING  # type: ignore[operator]
    value = number(scores.get(key))
    if value is None:
        return MISSING
    return Score(value, number(scores.get(f"{key}_low")), number(scores.get(f"{key}_high")))


def chance_of(scores: Mapping[str, Any], key: str) -> float | None:
    """What a random ranking scores by the same data, where the result file says it.

    0 for p-MRR: exchanging the two rankings of a query turns its sign, so that random ones give 0 on average.
    """
    if key == "p-MRR":
        return 0.0
    found = _CHANCE.fullmatch(key)
    assert found is not None
    return number(scores.get(f"{found['part'] or ''}chance_{found['rest']}"))


def number(value: Any) -> float | None:
    """A finite number, or ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def written(value: float | None, kind: Kind = "score") -> str:
    """A number as tables show it; '-' for a missing one."""
    if value is None:
        return "-"
    if kind == "count":
        return f"{value:.0f}"
    if kind == "p" and value < 0.001:
        return "<0.001"
    return f"{value:z.3f}"


def interval_written(score: Score) -> str:
    """``[low, high]``, empty without an interval."""
    if score.low is None or score.high is None:
        return ""
    return f"[{score.low:z.3f}, {score.high:z.3f}]"
