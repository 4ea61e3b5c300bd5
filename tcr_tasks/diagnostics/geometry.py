"""The embeddings of a case: global and local geometry, and the places of points in pictures (appendix G.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluators.metrics.geometry import LocalGeometry, local_geometry, spread, summarise_local, unit
from evaluators.metrics.siblings import SiblingQuery
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.score import Score

# Groups that are told apart by colour in the pictures; the paper shows six.
SHOWN_GROUPS = 6
_PERPLEXITY = 30

Vectors = NDArray[np.float64]


class Embedded(NamedTuple):
    """A case's embeddings: document id -> row, query id -> row."""

    documents: Mapping[str, Vectors]
    queries: Mapping[str, Vectors]


class Measured(NamedTuple):
    """Numbers, what is undefined and why, and Delta_q by query."""

    scores: list[Score]
    notes: list[str]
    margins: dict[str, float]


def without_direction(embedded: Embedded) -> list[str]:
    """Documents and queries whose embedding is zero, so that no angle with it exists."""
    return [key for rows in embedded for key, row in rows.items() if not np.any(row)]


def measure(case: Case, embedded: Embedded, per_query: Mapping[str, SiblingQuery]) -> Measured:
    """Tables 23 and 24 for a case with one target a query, over the queries in ``per_query``.

    Metrics: ``global_d_eff``, ``global_rho``, ``global_mean_distance`` over all documents (n: their number), and
    those of :func:`evaluators.metrics.geometry.summarise_local` over the queries.
    """
    whole = spread(np.stack(list(embedded.documents.values())))
    found = {"d_eff": whole.d_eff, "rho": whole.rho, "mean_distance": whole.mean_distance}
    scores = [Score(f"global_{name}", value, whole.n) for name, value in found.items() if value is not None]
    local = {q: _local(case, embedded, q) for q in per_query}
    summary = summarise_local(local, per_query)
    scores += [Score(name, value, len(local)) for name, value in summary.values.items()]
    reasons: dict[str, list[str]] = {}
    for name, why in summary.undefined.items():
        reasons.setdefault(why, []).append(name)
    notes = [f"undefined, since {why}: {', '.join(names)}" for why, names in reasons.items()]
    margins = {q: g.margin for q, g in local.items() if g.margin is not None}
    return Measured(scores, notes, margins)


def _local(case: Case, embedded: Embedded, query: str) -> LocalGeometry:
    target = case.targets[query][0]
    siblings = [embedded.documents[d] for d in case.groups[query] if d != target]
    return local_geometry(embedded.queries[query], embedded.documents[target], siblings)


def picture(case: Case, embedded: Embedded, margins: Mapping[str, float], seed: int = 0) -> dict[str, Any]:
    """Coordinates for Figures 5 and 7, as JSON values.

    - ``points``: one ``[document, group or None, x, y, x, y]`` per document: its two principal components, and its
      place in a t-SNE by cosine distance (perplexity 30, or less for few documents); ``group`` numbers the largest
      groups.
    - ``explained``: share of the variance that the two components hold, 0..1.
    - ``pockets``: the groups with the smallest and the largest Delta_q, each with the query, placed by classical
      multidimensional scaling of cosine distances.

    With fewer than five documents there is no t-SNE, and so no picture: the dictionary is empty.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    names = list(embedded.documents)
    if len(names) < 5:
        return {}
    rows = unit(np.stack(list(embedded.documents.values())))
    principal = PCA(n_components=2, random_state=seed)
    flat = principal.fit_transform(rows)
    perplexity = min(_PERPLEXITY, (len(names) - 1) / 3)
    near = TSNE(metric="cosine", init="pca", perplexity=perplexity, random_state=seed).fit_transform(rows)
    shown = _largest_groups(case)
    number = {document: place for place, group in enumerate(shown) for document in group}
    points = [
        [name, number.get(name), *map(float, a), *map(float, b)] for name, a, b in zip(names, flat, near, strict=True)
    ]
    return {
        "points": points,
        "explained": float(principal.explained_variance_ratio_.sum()),
        "pockets": [_pocket(case, embedded, q, margins[q]) for q in _extremes(margins)],
    }


def _largest_groups(case: Case) -> list[frozenset[str]]:
    groups = sorted({frozenset(g) for g in case.groups.values()}, key=lambda g: (-len(g), min(g)))
    chosen: list[frozenset[str]] = []
    for group in groups:
        if all(group.isdisjoint(other) for other in chosen):
            chosen.append(group)
    return chosen[:SHOWN_GROUPS]


def _extremes(margins: Mapping[str, float]) -> Sequence[str]:
    if not margins:
        return ()
    ordered = sorted(margins, key=lambda q: (margins[q], q))
    return (ordered[0], ordered[-1]) if len(ordered) > 1 else ordered


def _pocket(case: Case, embedded: Embedded, query: str, margin: float) -> dict[str, Any]:
    members = list(case.groups[query])
    rows = unit(np.stack([embedded.queries[query], *(embedded.documents[d] for d in members)]))
    cosines = rows @ rows.T
    return {
        "query": query,
        "margin": margin,
        "target": case.targets[query][0],
        "points": [
            [name, float(cosine), *map(float, place)]
            for name, cosine, place in zip(["query", *members], cosines[0], _scaled(1 - cosines), strict=True)
        ],
    }


def _scaled(distances: Vectors) -> Vectors:
    """Points in the plane whose distances come near the given ones: classical multidimensional scaling."""
    n = len(distances)
    centring = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-centring @ np.square(distances) @ centring / 2)
    return np.asarray(vectors[:, [-1, -2]] * np.sqrt(np.clip(values[[-1, -2]], 0, None)))
