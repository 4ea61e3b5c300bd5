"""A first stage with a reranker behind it, as a model of mteb."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from mteb.models import ModelMeta

from evaluators.metrics.ranking import top
from evaluators.plugin.mteb_internals import document_texts, query_texts
from tcr_tasks.reranking.first_stage import first_stage
from tcr_tasks.reranking.pool import DEFAULT_BUDGET, NOT_WRONG, Budget, Context, Pool, Reranked, Reranker, budget_label
from tcr_tasks.tasks import INSTRUCTION

__all__ = ["AnswerabilityReranker", "reranking"]

logger = logging.getLogger(__name__)


class AnswerabilityReranker:
    """A first stage whose best tables another model puts into a new order (TCR-Bench, section 6, "AAR").

    The tables beyond the budget follow in the first stage's order, as do equal ones. Its scores are ranks: the number
    of tables from this one to the end.

    Attributes:
        searches: what the reranking of each search so far gave, with its counts; copies of the model share it.
    """

    def __init__(self, stage: Any, reranker: Reranker, budget: Budget = DEFAULT_BUDGET) -> None:
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
            raise ValueError(f"a budget is a whole number of at least 1, or None for all, not {budget!r}")
        self.stage = stage
        self.reranker = reranker
        self.budget = budget
        self.searches: list[Reranked] = []
        self.mteb_model_meta = _meta(stage.mteb_model_meta, reranker, budget)

    def index(self, corpus: Any, **kwargs: Any) -> None:
        """Hand the corpus to the first stage, and keep the texts."""
        self.stage.index(corpus, **kwargs)
        self._documents = dict(zip(corpus["id"], document_texts(corpus), strict=True))

    def search(
        self,
        queries: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        encode_kwargs: Mapping[str, Any],
        **kwargs: Any,
    ) -> dict[str, dict[str, float]]:
        """Search with the first stage, then rerank its best."""
        context = Context(task_metadata, hf_split, hf_subset, encode_kwargs)
        found = self.stage.search(queries, **context._asdict(), **kwargs)
        rankings = {query: top(scores, len(scores), query) for query, scores in found.items() if scores}
        texts = dict(zip(queries["id"], query_texts(queries), strict=True))
        pool = Pool(
            {query: _without_instruction(texts[query]) for query in rankings},
            {query: ranking[: self.budget] for query, ranking in rankings.items()},
            self._documents,
        )
        reranked = self.reranker.rerank(pool, context)
        self.searches.append(reranked)
        wrong = {name: n for name, n in reranked.counts.items() if name not in NOT_WRONG}
        if wrong:
            told = ", ".join(f"{name}: {n}" for name, n in sorted(wrong.items()))
            logger.warning("%s %s: %s", self.reranker.method, budget_label(self.budget), told)
        out: dict[str, dict[str, float]] = {query: {} for query in queries["id"]}
        for query, ranking in rankings.items():
            order = [*reranked.orders[query], *ranking[len(pool.candidates[query]) :]]
            if sorted(order) != sorted(ranking):
                raise ValueError(f"query {query!r}: {self.reranker.method} did not return each candidate once")
            out[query] = {table: float(len(order) - place) for place, table in enumerate(order)}
        return out


def reranking(model: Any, reranker: Reranker, budget: Budget = DEFAULT_BUDGET) -> AnswerabilityReranker:
    """A model of mteb, or a :class:`~tcr_tasks.reranking.first_stage.SavedRun`, with a reranker behind it.

    Args:
        model: the first stage, what :func:`tcr_tasks.reranking.first_stage.first_stage` takes.
        reranker: such as :class:`~tcr_tasks.reranking.pointwise.Pointwise`.
        budget: how many of the first stage's best tables are reranked; ``None``: all.
    """
    return AnswerabilityReranker(first_stage(model), reranker, budget)


def _without_instruction(text: str) -> str:
    """The question alone: rerankers get it without the instruction that dense models may get before it."""
    return text.removeprefix(INSTRUCTION).lstrip()


def _meta(stage: ModelMeta, reranker: Reranker, budget: Budget) -> ModelMeta:
    model = re.sub(r"[^A-Za-z0-9_.-]+", "_", reranker.model.strip("/"))
    told = f"{stage.name}@{str(stage.revision)[:8]}" + (f"+{stage.experiment_name}" if stage.experiment_name else "")
    meta = ModelMeta.create_empty(
        {
            "name": f"{reranker.method}/{model}",
            "revision": reranker.revision,
            # Of the first stage: it decides whether queries get an instruction.
            "model_type": list(stage.model_type),
        }
    )
    settings = {"first_stage": told, "budget": "all" if budget is None else budget, **reranker.settings}
    return meta.model_copy(update={"experiment_kwargs": settings})
