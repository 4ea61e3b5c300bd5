"""Figures as plain values: panels of marks, however they are drawn (:mod:`evaluators.drawing`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["bars", "line", "levels", "points", "histogram"]


@dataclass(frozen=True)
class Marks:
    """One series.

    Attributes:
        kind: bars, lines and levels (a short line across a category) have ``x`` as categories; a histogram has its
            values in ``x`` and no ``y``.
        name: in the legend; empty: not there.
        low, high: bounds of each ``y``; empty: none.
        texts: one per point, on hovering.
        tags: short texts on the points.
        faint: drawn in grey, behind the others.
    """

    kind: Kind
    name: str
    x: Sequence[Any]
    y: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    texts: Sequence[str] = ()
    tags: Sequence[str] = ()
    faint: bool = False


@dataclass(frozen=True)
class Panel:
    """Axes with their series.

    Attributes:
        share: whether ``y`` is a share, whose axis goes from 0 to 1.
        border: where a vertical line divides the ``x`` axis, if anywhere.
    """

    title: str
    marks: Sequence[Marks]
    x_title: str
    y_title: str
    share: bool = False
    border: float | None = None


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        name: of its files.
        title: with its number in the paper.
        subtitle: model, data, number of queries, and what the marks beside the scores are.
        panels: beside one another.
    """

    name: str
    title: str
    subtitle: str
    panels: Sequence[Panel]
