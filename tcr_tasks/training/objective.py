"""The losses: contrast over exactly the allowed negatives, and, on request, the base encoder's neighbourhoods kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from tcr_tasks.training.batches import IN_BATCH, POSITIVE, UNUSED

__all__ = ["AnswerabilityLoss", "contrast", "drift"]


def contrast(cosines: Tensor, roles: Tensor, temperature: float, in_batch: bool) -> Tensor:
    """Mean over queries of -log(exp(c+/t) / sum exp(c/t)), the sum over the positive and the allowed negatives.

    With as many siblings for every query, none of them shared, and in-batch negatives, this is sentence-transformers'
    MultipleNegativesRankingLoss with ``scale = 1 / temperature`` (the loss of van den Oord et al. 2018). That loss
    takes the same number of negatives for every query, and every other document of a batch as one more; this one takes
    those that the roles allow. A query without any negative has the loss 0.

    Args:
        cosines: queries x documents, -1..1.
        roles: queries x documents, see :func:`tcr_tasks.training.batches.roles`; one positive a query.
        temperature: t, above 0.
        in_batch: whether the documents of other queries count.
    """
    logits = cosines / temperature
    barred = (roles == UNUSED) if in_batch else (roles == UNUSED) | (roles == IN_BATCH)
    positive = logits[roles == POSITIVE]
    return (logits.masked_fill(barred, -torch.inf).logsumexp(dim=1) - positive).mean()


def drift(vectors: Tensor, teacher: Tensor, groups: Tensor) -> Tensor:
    """Mean squared change of the cosine over all pairs of texts that are not of one group, 0..4.

    Args:
        vectors: texts x dimensions, of the model that is trained.
        teacher: texts x dimensions, of the base encoder; unit length.
        groups: a number for each text, equal within a group of siblings (and its queries).
    """
    units = normalize(vectors, dim=1)
    apart = groups[:, None] != groups[None, :]
    if not bool(apart.any()):
        return units.sum() * 0.0
    return (units @ units.T - teacher @ teacher.T)[apart].square().mean()


class AnswerabilityLoss(nn.Module):
    """Contrast, plus ``keep`` times :func:`drift` where the batches carry the base encoder's vectors.

    ``drift`` is a mean of squares of changes of about 0.1, so it is multiplied by 100 first: a weight of 1 then makes
    both terms of one size.
    """

    def __init__(self, model: nn.Module, temperature: float, in_batch: bool, keep: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self.in_batch = in_batch
        self.keep = keep

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Mapping[str, Tensor]) -> Any:
        queries, documents = (self.model(features)["sentence_embedding"].float() for features in sentence_features)
        roles = labels["roles"]
        cosines = normalize(queries, dim=1) @ normalize(documents[: roles.shape[1]], dim=1).T
        loss = contrast(cosines, roles, self.temperature, self.in_batch)
        if "teacher" not in labels:
            return loss
        changed = drift(torch.cat([queries, documents]), labels["teacher"], labels["groups"])
        return loss + self.keep * 100.0 * changed

    def get_config_dict(self) -> dict[str, Any]:
        """What a model card says of the loss."""
        return {"temperature": self.temperature, "in_batch": self.in_batch, "keep": self.keep}
