"""Stages that each rank again what the one before kept: CRAFT-Simplified of TCR-Bench's appendix D.2, re-created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mteb.models import ModelMeta

from evaluators.metrics.ranking import check_k, top
from evaluators.plugin.given import given_model
from evaluators.plugin.models import recorded, told_model
from evaluators.plugin.searching import is_searcher, searcher

__all__ = ["Cascade", "Stage", "cascade"]


class Stage(NamedTuple):
    """A model as mteb runs it, and how many tables of each query it keeps."""

    model: Any
    keep: int


class Cascade:
    """A search model of mteb made of stages.

    The first stage searches the corpus, each later one ranks what the one before it kept, and the last one's ranking
    is the result: a query has as many documents as the last stage keeps. Encoders and cross-encoders read only what is
    left of the corpus for any query; search models index all of it, since their scores may depend on it.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = tuple(stages)
        names = [str(stage.model.mteb_model_meta.name).rsplit("/", 1)[-1] for stage in self.stages]
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": f"mteb-beyond/cascade-{'-'.join(names)}", "revision": "1", "model_type": ["hybrid"]}
        )

    def index(self, corpus: Any, **kwargs: Any) -> None:
        """Keep the corpus, and let the search models among the stages index it."""
        self._corpus, self._arguments = corpus, kwargs
        self._places = {document: at for at, document in enumerate(corpus["id"])}
        for stage in self.stages:
            if is_searcher(stage.model):
                stage.model.index(corpus, **kwargs)

    def search(
        self,
        queries: Any,
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        task_metadata: Any,
        **kwargs: Any,
    ) -> dict[str, dict[str, float]]:
        """The last stage's ranking of what the stages before it kept."""
        kept: Mapping[str, Sequence[str]] | None = top_ranked
        found: dict[str, dict[str, float]] = {}
        for stage in self.stages:
            model = searcher(stage.model, candidates=kept is not None, task_type=task_metadata.type)
            if not is_searcher(stage.model):
                model.index(self._left(kept), **self._arguments)
            scores = model.search(
                queries, top_k=len(self._places), top_ranked=kept, task_metadata=task_metadata, **kwargs
            )
            kept = {query: top(scores[query], stage.keep, query) for query in queries["id"]}
            found = {query: {document: scores[query][document] for document in kept[query]} for query in kept}
        return {query: {d: scores[d] for d in top(scores, top_k, query)} for query, scores in found.items()}

    def _left(self, kept: Mapping[str, Sequence[str]] | None) -> Any:
        """The documents that are left for any query, in the corpus' order."""
        if kept is None:
            return self._corpus
        return self._corpus.select(sorted({self._places[d] for documents in kept.values() for d in documents}))


def cascade(stages: Sequence[tuple[Any, int]]) -> Any:
    """A cascade of models, each with its cut-off.

    The paper's consists of splade-v3, Qwen3-Embedding-0.6B and Qwen3-Embedding-4B; it does not state cut-offs. The
    record's ``experiment_kwargs`` state models and cut-offs, so mteb files each variant apart.

    Args:
        stages: models (sentence-transformers, in mteb's form, or a ``ModelMeta``, which is loaded), each with the
            number of tables per query that it keeps.

    Raises:
        ValueError: for fewer than two stages, a cut-off that is no whole number of at least 1 or greater than the one
            before, or a model that has no name.
    """
    if len(stages) < 2:
        raise ValueError(f"a cascade has at least two stages, got {len(stages)}")
    cuts = [check_k(keep) for _, keep in stages]
    if cuts != sorted(cuts, reverse=True):
        raise ValueError(f"a stage cannot keep more than the one before it: {cuts}")
    made = Cascade([Stage(given_model(model), keep) for (model, _), keep in zip(stages, cuts, strict=True)])
    told = " ".join(f"{told_model(stage.model.mteb_model_meta)}:{stage.keep}" for stage in made.stages)
    return recorded(made, made.mteb_model_meta, {"stages": told})
