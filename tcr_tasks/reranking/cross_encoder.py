"""AAR-CE: a cross-encoder reads each question with each candidate (TCR-Bench, section 6 and appendix K)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from mteb.models.search_wrappers import SearchCrossEncoderWrapper

from evaluators.plugin.given import given_model
from evaluators.plugin.mteb_internals import is_cross_encoder
from tcr_tasks.conduct import without_tqdm_bars
from tcr_tasks.reranking.pair_scores import Pair, PairScores
from tcr_tasks.reranking.pool import Context, Pool, Reranked, Usage, by_score


class CrossEncoding:
    """Candidates by a cross-encoder's score; equal scores keep the first stage's order.

    A pair is scored once, whatever the budgets it occurs in.

    Args:
        model: any cross-encoder that mteb runs; a ``ModelMeta`` is loaded.
        folder: where scores are kept, in a file of the model's own; ``None``: in memory.

    Raises:
        ValueError: if the model is no cross-encoder.
    """

    method = "AAR-CE"
    settings: Mapping[str, Any] = {}
    derives = True

    def __init__(self, model: Any, folder: Path | None = None) -> None:
        self.encoder = given_model(model)
        if not is_cross_encoder(self.encoder):
            raise ValueError(f"{self.encoder.mteb_model_meta.name} is no cross-encoder")
        meta = self.encoder.mteb_model_meta
        self.model, self.revision = str(meta.name), str(meta.revision)
        told = f"{meta.name}@{meta.revision}"
        name = f"{told}.sqlite".replace("/", "__")
        self._scores = PairScores(None if folder is None else folder / name, told)

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        """The candidates by descending score."""
        pairs = _pairs(pool)
        began = time.perf_counter()
        scores, made = self._scores.scores(
            (pair for of_query in pairs.values() for pair in of_query.values()),
            lambda some: self._predict(some, context),
        )
        seconds = time.perf_counter() - began if made else 0.0
        orders = {
            query: by_score(pool.candidates[query], {table: scores[pair] for table, pair in of_query.items()})
            for query, of_query in pairs.items()
        }
        calls = sum(map(len, pairs.values()))
        return Reranked(orders, usage=Usage(calls=calls, made=made, seconds=seconds))

    def n_unscored(self, pools: Sequence[Pool]) -> int:
        """How many different pairs of these pools have no score yet."""
        return self._scores.n_unknown(p for pool in pools for of in _pairs(pool).values() for p in of.values())

    def _predict(self, pairs: Sequence[Pair], context: Context) -> Sequence[float]:
        questions, tables = (_numbered(texts) for texts in zip(*pairs, strict=True))
        wanted: dict[str, list[str]] = {}
        for pair in pairs:
            wanted.setdefault(questions[pair.question], []).append(tables[pair.table])
        # mteb's own way, so that a score here is what mteb would compute.
        search = SearchCrossEncoderWrapper(self.encoder)
        settings: Any = context._asdict() | {"encode_kwargs": {"batch_size": 32, **context.encode_kwargs}}
        with without_tqdm_bars():
            search.index(_as_dataset(tables), **settings)
            found = search.search(_as_dataset(questions), top_k=len(tables), top_ranked=wanted, **settings)
        return [found[questions[pair.question]][tables[pair.table]] for pair in pairs]


def _pairs(pool: Pool) -> dict[str, dict[str, Pair]]:
    """Query -> candidate -> the pair."""
    return {q: {t: Pair(text, pool.documents[t]) for t in pool.candidates[q]} for q, text in pool.questions.items()}


def _numbered(texts: Sequence[str]) -> dict[str, str]:
    return {text: str(number) for number, text in enumerate(dict.fromkeys(texts))}


def _as_dataset(ids: Mapping[str, str]) -> Dataset:
    return Dataset(pa.table({"id": list(ids.values()), "title": [""] * len(ids), "text": list(ids)}))
