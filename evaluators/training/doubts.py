"""What a report of a training must say unasked: models that are no better than before, small sets, sets trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluators.training.selection import Scores

__all__ = ["FEW", "Size", "not_above", "too_few", "trained_on"]

# Of fewer queries a difference of two models says next to nothing.
FEW = 30


@dataclass(frozen=True)
class Size:
    """How large an evaluation set is.

    Attributes:
        n: queries that a score is the mean of.
        n_trained_on: how many of them the training data hold, too.
    """

    n: int
    n_trained_on: int = 0


def not_above(
    model: str, metric: str, shown: str, scores: Mapping[str, Scores], baseline: str, before: Mapping[str, Scores]
) -> str | None:
    """A sentence on the sets where a trained model does not score higher than what it is compared with.

    Args:
        model: how the report calls the trained one.
        metric: by which checkpoints are chosen; higher is better.
        shown: its name in the report.
        scores: of the trained model, by evaluation set.
        baseline: how the report calls what it is compared with.
        before: its scores.

    Returns:
        ``None`` if it scores higher everywhere.
    """
    found = []
    for name, values in scores.items():
        now, then = values[metric], before[name][metric]
        if not now > then:
            found.append(f"{name} ({then:.4f}, and {now:.4f} after training)")
    if not found:
        return None
    return f"{model} is not better than {baseline} in {shown} on {', '.join(found)}"


def too_few(sizes: Mapping[str, Size], what: str) -> str | None:
    """A sentence on evaluation sets with fewer than :data:`FEW` queries.

    Args:
        sizes: by evaluation set.
        what: how the report calls these.

    Returns:
        ``None`` if there is no such set.
    """
    small = [f"{name} has {size.n}" for name, size in sizes.items() if size.n < FEW]
    if not small:
        return None
    return (
        f"Too small to conclude from: {', '.join(small)}. With fewer than {FEW} {what} a difference between two "
        "models, and the choice of a checkpoint, may come from a few of them by chance"
    )


def trained_on(sizes: Mapping[str, Size], what: str) -> str | None:
    """A sentence on evaluation sets with queries that are trained on.

    Args:
        sizes: by evaluation set.
        what: how the report calls the queries.

    Returns:
        ``None`` if there is no such set.
    """
    known = [f"{name} ({size.n_trained_on} of {size.n})" for name, size in sizes.items() if size.n_trained_on]
    if not known:
        return None
    return f"{what.capitalize()} that were trained on are in {', '.join(known)}: a score there is no held-out one"
