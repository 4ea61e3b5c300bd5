"""Query ids of IFIR: which base query, and which instruction on it."""

from __future__ import annotations

import re
from typing import NamedTuple

PLAIN_SUFFIX = "-og"
_ID = re.compile(r"(?P<base>.+?)(?:~(?P<number>[2-9]|[1-9][0-9]+))?-(?:(?P<plain>og)|v(?P<level>[0-3]))", re.DOTALL)


class QueryId(NamedTuple):
    """The parts of a query id.

    Attributes:
        base: id of the base query.
        level: the instruction's level, 0 in subsets without levels, ``None`` for the plain query.
        number: 1, or higher for a further instruction of the same level.
    """

    base: str
    level: int | None
    number: int = 1

    @property
    def plain(self) -> str:
        """Id of the plain query of the same base query."""
        return self.base + PLAIN_SUFFIX


def parse_query_id(query_id: str) -> QueryId:
    """``q7-og`` is base query ``q7`` alone, ``q7-v2`` with its level-2 instruction, ``q7~2-v2`` with a second one.

    Raises:
        ValueError: for an id of another form.
    """
    found = _ID.fullmatch(query_id) if isinstance(query_id, str) else None
    if found is None or (found["plain"] and found["number"]):
        raise ValueError(
            f"query id {query_id!r} is not of the form <base>-og, <base>-v0 ... <base>-v3 or <base>~2-v1; "
            "so it is unknown which instruction it carries"
        )
    level = None if found["plain"] else int(found["level"])
    return QueryId(found["base"], level, int(found["number"] or 1))


def query_id(base: str, level: int | None, number: int = 1) -> str:
    """The id with these parts; the inverse of :func:`parse_query_id`."""
    if level is None:
        return base + PLAIN_SUFFIX
    return f"{base}{f'~{number}' if number > 1 else ''}-v{level}"
