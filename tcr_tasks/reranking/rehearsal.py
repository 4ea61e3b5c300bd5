"""What `mteb-beyond tcr rerank` would ask: the first stage searches, and nothing is asked or scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from evaluators.plugin.searching import SearchedOnce
from evaluators.plugin.task import SPLIT
from tcr_tasks.asking import Estimate
from tcr_tasks.reranking.cross_encoder import CrossEncoding
from tcr_tasks.reranking.model import AnswerabilityReranker
from tcr_tasks.reranking.pool import AskingReranker, Context, Pool, Reranked, Reranker, budget_label
from tcr_tasks.reranking.run import Order, opened_stage

__all__ = ["rehearse"]


class _Onlooker:
    """Stands in a reranker's place, hands its pools on, and leaves their order."""

    derives = True

    def __init__(self, reranker: Reranker, take: Callable[[Pool], None]) -> None:
        self.method, self.model, self.revision = reranker.method, reranker.model, reranker.revision
        self.settings = reranker.settings
        self._take = take

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        self._take(pool)
        return Reranked({query: list(tables) for query, tables in pool.candidates.items()})


def rehearse(order: Order) -> Iterator[str]:
    """For each method a line: the calls to make with an estimate of their tokens, or the pairs to score.

    Raises:
        FileNotFoundError, ValueError: as :func:`tcr_tasks.reranking.run.rerank`.
    """
    stage = SearchedOnce(opened_stage(order))
    for reranker in order.rerankers:
        labels = ", ".join(budget_label(budget) for budget in order.budgets)
        what = f"{reranker.method} ({labels}), {len(order.questions)} questions"
        if isinstance(reranker, AskingReranker):
            yield _estimated(order, stage, reranker).told(what)
        elif isinstance(reranker, CrossEncoding):
            yield f"{what}: {_pairs(order, stage, reranker)} pairs to score"


def _estimated(order: Order, stage: Any, reranker: AskingReranker) -> Estimate:
    again = reranker.asking.again
    estimate = Estimate(reranker.asking.language_model, reranker.asking.cutter)
    _search(order, stage, reranker, lambda pool: estimate.add_planned(reranker.planned(pool), again=again))
    return estimate


def _pairs(order: Order, stage: Any, reranker: CrossEncoding) -> int:
    pools: list[Pool] = []
    _search(order, stage, reranker, pools.append)
    return reranker.n_unscored(pools)


def _search(order: Order, stage: Any, reranker: Reranker, take: Callable[[Pool], None]) -> None:
    """Show the reranker's pools of every budget."""
    metadata, (subset,) = order.task.metadata, order.task.dataset
    part = order.task.dataset[subset][SPLIT]
    place: dict[str, Any] = {
        "task_metadata": metadata,
        "hf_split": SPLIT,
        "hf_subset": subset,
        "encode_kwargs": {"show_progress_bar": False, **order.encode_kwargs},
        "num_proc": None,
    }
    for budget in order.budgets:
        model = AnswerabilityReranker(stage, _Onlooker(reranker, take), budget)
        model.index(part["corpus"], **place)
        model.search(part["queries"], top_k=max(order.task.k_values), **place)
