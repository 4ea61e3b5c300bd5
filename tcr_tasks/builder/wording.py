"""A query as a natural question, by template; what a language model is given to paraphrase."""

from __future__ import annotations

import random
import re

from tcr_tasks.builder.kinds import name_words
from tcr_tasks.queries import Condition, Query

_OPERATORS = {
    "=": ("is",),
    "!=": ("is not", "is other than"),
    "<": ("is below", "is less than"),
    "<=": ("is at most", "is no more than"),
    ">": ("is above", "is greater than"),
    ">=": ("is at least", "is no less than"),
}
_AGGREGATES = {
    "SUM": ("total", "sum"),
    "AVG": ("average", "mean"),
    "MIN": ("lowest", "smallest"),
    "MAX": ("highest", "largest"),
}
_PLAIN = (
    "What is the {target} of the entries where the {conditions}?",
    "Could you tell me the {target} where the {conditions}?",
    "I need the {target} for every record where the {conditions}.",
    "Which {target} belongs to the entries where the {conditions}?",
    "Where the {conditions}, what {target} is listed?",
)
_AGGREGATED = (
    "What is the {aggregate} {target} of the entries where the {conditions}?",
    "Could you work out the {aggregate} {target} where the {conditions}?",
    "For all records where the {conditions}, what is the {aggregate} {target}?",
    "I need the {aggregate} {target} among the entries where the {conditions}.",
)
_COUNTED = (
    "How many entries have a {target} where the {conditions}?",
    "Could you count the entries with a {target} where the {conditions}?",
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9 _-]+")


def natural_question(query: Query, rng: random.Random) -> str:
    """The question in plain English, with columns in words and values as they are."""
    told = [_condition(c, rng) for c in query.conditions]
    patterns = _COUNTED if query.aggregate == "COUNT" else _PLAIN if query.aggregate is None else _AGGREGATED
    parts = {
        "target": column_words(query.target),
        "conditions": " and the ".join(told),
        "aggregate": rng.choice(_AGGREGATES.get(query.aggregate or "", ("",))),
    }
    return rng.choice(patterns).format(**parts)


def column_words(name: str) -> str:
    """``zipCode`` and ``zip_code`` as ``zip code``; a name with other signs, such as ``% of GDP``, stays."""
    words = name_words(name)
    return " ".join(words) if words and _PLAIN_NAME.fullmatch(name) else name


def _condition(condition: Condition, rng: random.Random) -> str:
    value = f"“{condition.value}”" if isinstance(condition.value, str) else str(condition.value)
    return f"{column_words(condition.column)} {rng.choice(_OPERATORS[condition.operator])} {value}"
