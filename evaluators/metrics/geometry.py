"""Where embeddings lie: dispersed or collapsed, and how far a target stands before its siblings (TCR-Bench, G.3).

All functions take embeddings as rows and look at their directions only: rows are scaled to length 1 first. Turning or
mirroring the space changes no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluators.metrics.siblings import SiblingQuery

Vectors = NDArray[np.float64]
# Centred points whose spread is below this share of their length are one point, up to rounding of float32.
_ONE_POINT = 1e-12


@dataclass(frozen=True, slots=True)
class Spread:
    """The shape of a set of embeddings; ``None`` where a value is undefined.

    Attributes:
        n: number of embeddings.
        d_eff: effective dimensionality, (sum of eigenvalues)^2 / sum of squared eigenvalues of the covariance of the
            embeddings, 1 .. min(n - 1, dimensions). Undefined for one point, or several in the same place.
        rho: largest eigenvalue / sum of eigenvalues, 0..1; 1 when all lie on a line. Undefined as ``d_eff``.
        mean_distance: mean cosine distance (1 - cosine) over all pairs, 0..2. Undefined for one point.
    """

    n: int
    d_eff: float | None
    rho: float | None
    mean_distance: float | None


@dataclass(frozen=True, slots=True)
class LocalGeometry:
    """One query's target and siblings.

    Attributes:
        spread: of target and siblings together.
        margin: cos(query, target) - largest cos(query, sibling), -2..2; positive: the target is nearer than every
            sibling. ``None`` without siblings.
    """

    spread: Spread
    margin: float | None


@dataclass(frozen=True, slots=True)
class GeometrySummary:
    """What :func:`summarise_local` returns.

    Attributes:
        values: name -> value; a name is absent where the value is undefined.
        undefined: name -> why it is.
    """

    values: dict[str, float]
    undefined: dict[str, str]


def unit(vectors: ArrayLike) -> Vectors:
    """The rows scaled to length 1, in float64.

    Raises:
        ValueError: if it is not a matrix, or a row is zero or not finite.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"expected one embedding a row, got an array of shape {rows.shape}")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unusable = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if unusable.size:
        raise ValueError(f"embedding {unusable[0]} is zero or not finite, so it has no direction")
    return np.asarray(rows / lengths)


def spread(vectors: ArrayLike) -> Spread:
    """Effective dimensionality, spectral concentration and mean distance of at least one embedding.

    Costs n * dimensions * min(n, dimensions): the eigenvalues are those of the covariance or, for fewer points than
    dimensions, of the Gram matrix, which has the same ones above zero.

    Raises:
        ValueError: as :func:`unit`, or if there is no embedding.
    """
    rows = unit(vectors)
    n, dimensions = rows.shape
    if n == 0:
        raise ValueError("no embedding to describe")
    if n == 1:
        return Spread(1, None, None, None)
    centred = rows - rows.mean(axis=0)
    product = centred @ centred.T if n < dimensions else centred.T @ centred
    # Not below 0 but for rounding.
    eigenvalues = np.clip(np.linalg.eigvalsh(product), 0, None)
    total = float(eigenvalues.sum())
    # The sum of all cosines is the squared length of the sum of the rows; n of them are of a row with itself.
    cosines = (float(np.square(rows.sum(axis=0)).sum()) - n) / (n * (n - 1))
    if total / n < _ONE_POINT:
        return Spread(n, None, None, 1 - cosines)
    return Spread(
        n=n,
        d_eff=total**2 / float(np.square(eigenvalues).sum()),
        rho=float(eigenvalues.max()) / total,
        mean_distance=1 - cosines,
    )


def local_geometry(query: ArrayLike, target: ArrayLike, siblings: ArrayLike) -> LocalGeometry:
    """Spread and margin of one query's group.

    Args:
        query, target: one embedding each.
        siblings: one embedding a row; without any (an empty list) the margin is undefined.

    Raises:
        ValueError: if an embedding is zero or not finite, or their dimensions differ.
    """
    rows = [np.asarray(query), np.asarray(target), *np.asarray(siblings)]
    sizes = {row.shape for row in rows}
    if len(sizes) > 1:
        raise ValueError(f"query, target and siblings have embeddings of different shapes: {sorted(sizes)}")
    around, *group = unit(np.stack(rows))
    cosines = [float(around @ member) for member in group]
    margin = cosines[0] - max(cosines[1:]) if len(group) > 1 else None
    return LocalGeometry(spread(np.stack(group)), margin)


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation, -1..1; ``None`` where it is undefined: under two pairs, or one side constant.

    Raises:
        ValueError: if the sequences differ in length.
    """
    if len(first) != len(second):
        raise ValueError(f"cannot correlate {len(first)} values with {len(second)}")
    if len(first) < 2 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def summarise_local(local: Mapping[str, LocalGeometry], outcomes: Mapping[str, SiblingQuery]) -> GeometrySummary:
    """The paper's quantities over queries (Table 24 and the text below it). A group with four questions counts four
    times, as there.

    ================================ ======================================================================
    ``median_d_eff``, ``median_rho`` medians over the queries whose group defines them
    ``median_distance``              the same of the mean pairwise cosine distance within a group
    ``mean_margin``                  mean Delta_q over the queries with siblings
    ``positive_margin_share``        share of these with Delta_q > 0
    ``mean_margin_target_first``     mean Delta_q where the best document of the whole ranking is the target
    ``mean_margin_sibling_first``    mean Delta_q where it is a sibling
    ``neighbourhood_hit_target_miss`` share of all queries whose best document is a sibling
    ``r_<quantity>_<outcome>``       Pearson's r of d_eff, rho, distance and margin with r_at_1 and gr_at_1 (0 or 1
                                     a query)
    ================================ ======================================================================

    Args:
        local: query id -> its group's geometry.
        outcomes: query id -> its values of :func:`evaluators.metrics.siblings.sibling_queries`.

    Raises:
        ValueError: if there is no query, or both do not name the same queries.
    """
    if not local or local.keys() != outcomes.keys():
        raise ValueError(f"expected the same queries, at least one: {len(local)} groups, {len(outcomes)} outcomes")
    quantities: dict[str, dict[str, float]] = {
        "d_eff": {q: v for q, g in local.items() if (v := g.spread.d_eff) is not None},
        "rho": {q: v for q, g in local.items() if (v := g.spread.rho) is not None},
        "distance": {q: v for q, g in local.items() if (v := g.spread.mean_distance) is not None},
        "margin": {q: v for q, g in local.items() if (v := g.margin) is not None},
    }
    margins = quantities["margin"]
    target_first = [m for q, m in margins.items() if outcomes[q].target_in[1]]
    sibling_first = [m for q, m in margins.items() if outcomes[q].group_in[1] and not outcomes[q].target_in[1]]
    found: dict[str, float | None] = {
        "median_d_eff": _median(quantities["d_eff"].values()),
        "median_rho": _median(quantities["rho"].values()),
        "median_distance": _median(quantities["distance"].values()),
        "mean_margin": _mean(margins.values()),
        "positive_margin_share": _mean([float(m > 0) for m in margins.values()]),
        "mean_margin_target_first": _mean(target_first),
        "mean_margin_sibling_first": _mean(sibling_first),
        "neighbourhood_hit_target_miss": _mean(
            [float(o.group_in[1] == 1 and not o.target_in[1]) for o in outcomes.values()]
        ),
    }
    for name, values in quantities.items():
        for outcome in ("r_at_1", "gr_at_1"):
            hits = [float(_hit(outcomes[q], outcome)) for q in values]
            found[f"r_{name}_{outcome}"] = pearson(list(values.values()), hits)
    return GeometrySummary(
        values={name: value for name, value in found.items() if value is not None},
        undefined={name: _why(name) for name, value in found.items() if value is None},
    )


def _hit(outcome: SiblingQuery, name: str) -> bool:
    return outcome.target_in[1] if name == "r_at_1" else outcome.group_in[1] == 1


def _why(name: str) -> str:
    if name.startswith("r_"):
        return "a correlation needs two queries with different values on both sides"
    if name.endswith("_first"):
        return "no query has such a best document and siblings"
    return "no query has a group of two or more different embeddings"


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.median(found)) if found else None
