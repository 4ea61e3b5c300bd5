"""Is it the right answer? F1 between the values that were given and the values that were expected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """How well an answer's values are those expected; all in 0..1, higher is better.

    Attributes:
        precision: matched / given; 0 if none was given where some were expected.
        recall: matched / expected; 0 if none was expected where some were given.
        f1: 2 * matched / (given + expected), the harmonic mean of the two.
    """

    precision: float
    recall: float
    f1: float


def answer_f1(given: Collection[T], expected: Collection[T], same: Callable[[T, T], bool]) -> AnswerScore:
    """F1 of two sets of values: ``2 * matched / (given + expected)``, range 0..1, higher is better.

    Sets: a value that is given twice counts once, on either side. Each value is matched with at most one of the other
    side, and ``matched`` is the largest possible number of such pairs (maximum bipartite matching), so that neither the
    order of values nor values that are the same as several others decide anything. Two empty sets agree: 1.

    The definition is this project's own. TCR-Bench (section 4.2) reports an "average F1" of the LongTableBench
    pipeline without defining it, so that absolute values cannot be compared with the published ones.

    Args:
        given, expected: the values; equal ones count once.
        same: whether two values are the same; symmetric, but it need not be transitive (a tolerance is not).
    """
    rows, columns = list(dict.fromkeys(given)), list(dict.fromkeys(expected))
    if not rows and not columns:
        return AnswerScore(1.0, 1.0, 1.0)
    if not rows or not columns:
        return AnswerScore(0.0, 0.0, 0.0)
    pairs = csr_array(np.array([[same(a, b) for b in columns] for a in rows], dtype=np.int8))
    matched = int((maximum_bipartite_matching(pairs, perm_type="column") >= 0).sum())
    return AnswerScore(matched / len(rows), matched / len(columns), 2 * matched / (len(rows) + len(columns)))
