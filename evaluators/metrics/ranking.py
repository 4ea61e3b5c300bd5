"""Ranks and top lists of a run, with the one tie rule of this project.

A *run* maps query ids to ``{document id: score}``, as mteb returns it. Ranks start at 1. Documents are ordered
by (score, document id) descending, the rule of trec_eval and of mteb, so neither the order in which a model
returns its documents nor the storage order of a dictionary can change a number.

Scores are compared as Python floats. trec_eval keeps them in float32, where nearly equal scores become ties;
:func:`top_and_tied` reports such ties, so that a result can say how many of its queries depend on them.
"""

from __future__ import annotations

import math
import numbers
import operator
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Scores = Mapping[str, float]
Run = Mapping[str, Scores]


class NotFiniteError(ValueError):
    """A model's scores or embeddings hold NaN or infinity, so that nothing can be ranked by them."""


# Beyond 32 bits trec_eval would take another number.
MAX_GRADE = 2**31 - 1


def check_document_ids(ids: Mapping[str, object] | Sequence[str], query_id: str) -> None:
    """Raise a ``ValueError`` that names the query if a document id is not a string."""
    try:
        "".join(ids)  # the fastest way to have every element's type checked
    except TypeError:
        bad = next(d for d in ids if not isinstance(d, str))
        raise ValueError(
            f"query {query_id!r}: document id {bad!r} is {type(bad).__name__}, not a string; "
            "convert ids to strings before scoring"
        ) from None


def check_query_ids(ids: Mapping[str, object], what: str) -> None:
    """Raise a ``ValueError`` that names the first query id that is not a string."""
    for query_id in ids:
        if not isinstance(query_id, str):
            raise ValueError(
                f"{what}: query id {query_id!r} is {type(query_id).__name__}, not a string; "
                "convert ids to strings before scoring"
            )


def check_k(k: object) -> int:
    """A cut-off as an ``int``; numpy integers are taken too.

    Raises:
        ValueError: if it is not a whole number of at least 1.
    """
    if not isinstance(k, bool | np.bool_):
        try:
            value = operator.index(k)  # type: ignore[arg-type]
        except TypeError:
            value = 0
        if value >= 1:
            return value
    raise ValueError(f"k must be a whole number of at least 1, got {k!r}")


def check_judgements(qrels: Mapping[str, Mapping[str, int]], run: Run) -> None:
    """Check that every judged query has a run and that ids are strings and grades whole numbers.

    Raises:
        ValueError: naming query and document.
    """
    check_query_ids(qrels, "qrels")
    if not qrels:
        raise ValueError("no query to score: `qrels` is empty")
    for query_id, judged in qrels.items():
        if query_id not in run:
            raise ValueError(f"query {query_id!r} is judged but not among the {len(run)} queries of the run")
        check_document_ids(judged, query_id)
        for doc, grade in judged.items():
            if not isinstance(grade, int | np.integer):
                raise ValueError(f"query {query_id!r}: grade {grade!r} of document {doc!r} is not a whole number")
            if abs(grade) > MAX_GRADE:
                raise ValueError(f"query {query_id!r}: grade {grade!r} of document {doc!r} is beyond {MAX_GRADE}")


def score_array(scores: Scores, query_id: str) -> NDArray[np.float64]:
    """The scores of one query as an array, in the mapping's order, after checking ids and values.

    Raises:
        ValueError: if a document id is not a string or a score is not a finite number; the message names both.
    """
    check_document_ids(scores, query_id)
    try:
        # Unlike numpy, `array` takes numbers only and would not parse a string.
        values = np.frombuffer(array("d", list(scores.values())), dtype=np.float64)
        finite = bool(np.isfinite(values).all())
    except TypeError:
        doc, score = next((d, s) for d, s in scores.items() if not isinstance(s, numbers.Real))
        raise ValueError(f"query {query_id!r}: score {score!r} of document {doc!r} is not a number") from None
    except OverflowError:  # a whole number beyond the range of floats
        finite = False
    if not finite:
        doc, bad = next((d, s) for d, s in scores.items() if not _is_finite(s))
        raise NotFiniteError(
            f"query {query_id!r}: document {doc!r} has the score {bad!r}; scores must be finite "
            "(a NaN usually means that the model overflowed in half precision)"
        )
    return values


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def ranks_of(scores: Scores, wanted: Sequence[str], query_id: str) -> list[int]:
    """The rank (from 1) of each wanted document; ``len(scores) + 1`` for one that the run does not hold.

    Ties are broken by document id, the higher id first. Raises ``ValueError`` as :func:`score_array` does.
    """
    values = score_array(scores, query_id)
    n = len(values)
    present = [doc for doc in wanted if doc in scores]
    if not present:
        return [n + 1] * len(wanted)
    own = np.fromiter((scores[doc] for doc in present), dtype=np.float64, count=len(present))
    ordered = np.sort(values)
    above = n - np.searchsorted(ordered, own, side="right")
    below = np.searchsorted(ordered, own, side="left")
    ranks = above + 1
    tied = (n - above - below) > 1
    if tied.any():
        # Only the documents that share a wanted document's score have to be compared by id.
        peers = _peers(scores, values, own[tied])
        for i in np.flatnonzero(tied).tolist():
            same = peers[own[i]]
            ranks[i] += len(same) - bisect_right(same, present[i])
    by_doc = dict(zip(present, ranks.tolist(), strict=True))
    return [by_doc.get(doc, n + 1) for doc in wanted]


def _peers(scores: Scores, values: NDArray[np.float64], tied_values: NDArray[np.float64]) -> dict[float, list[str]]:
    peers: dict[float, list[str]] = {s: [] for s in tied_values.tolist()}
    for doc, value in zip(scores, values.tolist(), strict=True):
        if value in peers:
            peers[value].append(doc)
    for same in peers.values():
        same.sort()
    return peers


def top(scores: Scores, k: int, query_id: str) -> list[str]:
    """The ``k`` best documents, best first (fewer if the run holds fewer)."""
    return [doc for _, doc in _best_pairs(list(scores), score_array(scores, query_id), k)]


def top_and_tied(scores: Scores, k: int, query_id: str) -> tuple[list[str], list[str]]:
    """The ``k`` best documents, and those that share the best score when scores are compared in float32.

    The second list holds at least the best document, in no particular order; both are empty for an empty run.
    """
    docs = list(scores)
    values = score_array(scores, query_id)
    pairs = _best_pairs(docs, values, max(k, 2))
    best = [doc for _, doc in pairs[:k]]
    # The second best decides whether anything is tied at all; only then is the whole run looked at.
    if len(pairs) < 2 or _surely_apart(pairs[0][0], pairs[1][0]):
        return best, best[:1]
    with np.errstate(over="ignore"):  # beyond float32 everything is one tie, for trec_eval too
        single = values.astype(np.float32)
    return best, [docs[i] for i in np.flatnonzero(single == single.max()).tolist()]


def _surely_apart(high: float, low: float) -> bool:
    """Whether two numbers are certainly different float32 numbers: further apart than float32's spacing there."""
    size = max(abs(high), abs(low))
    return size < 3e38 and high - low > 1.2e-7 * size + 1.5e-45


def _best_pairs(docs: list[str], values: NDArray[np.float64], k: int) -> list[tuple[float, str]]:
    if k < len(docs) // 4:
        # Everything that could be among the k best, ties at the cut included; then the full rule on these few.
        cut = np.partition(values, len(values) - k)[len(values) - k]
        kept = (values >= cut).nonzero()[0]
        pairs = [(value, docs[i]) for value, i in zip(values[kept].tolist(), kept.tolist(), strict=True)]
    else:
        pairs = list(zip(values.tolist(), docs, strict=True))
    pairs.sort(reverse=True)
    return pairs[:k]
