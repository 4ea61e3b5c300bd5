"""Query ids of FollowIR (a topic under its original or changed instruction) and of InstructIR."""

from __future__ import annotations

from evaluators.metrics.pmrr import CHANGED_SUFFIX, ORIGINAL_SUFFIX


def parse_query_id(query_id: str) -> tuple[str, bool]:
    """Topic id, and whether the query carries the changed instruction: ``307-og``, ``307-changed``.

    Raises:
        ValueError: for an id of another form.
    """
    for suffix, changed in ((ORIGINAL_SUFFIX, False), (CHANGED_SUFFIX, True)):
        if isinstance(query_id, str) and query_id.endswith(suffix) and len(query_id) > len(suffix):
            return query_id.removesuffix(suffix), changed
    raise ValueError(
        f"query id {query_id!r} ends neither in {ORIGINAL_SUFFIX!r} nor in {CHANGED_SUFFIX!r}; "
        "so it is unknown which instruction it carries"
    )


def base_query(query_id: str) -> str:
    """InstructIR's base query of ``<base>_<number>``.

    Raises:
        ValueError: for an id of another form.
    """
    base, separator, number = query_id.rpartition("_") if isinstance(query_id, str) else ("", "", "")
    if not (separator and base and number.isdecimal() and number.isascii()):
        raise ValueError(f"query id {query_id!r} is not of the form <base query>_<number of the instruction>")
    return base
