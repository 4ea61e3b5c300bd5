"""On the samples a ranker that knows the truth gets the best scores, and its reverse the worst."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import mteb
import pytest
from mteb.models import ModelMeta

from evaluators.judge import FacetJudge
from evaluators.plugin.registry import load_plugins
from ifir_tasks.ids import parse_query_id

load_plugins()


class Ranker:
    """A search model whose scores a function of query and document gives."""

    def __init__(self, score: Callable[[str, str], float]) -> None:
        self.score = score
        self.mteb_model_meta = ModelMeta.create_empty({"name": "tests/ranker", "revision": "1"})
        self.run: dict[str, dict[str, float]] = {}
        self.documents: list[str] = []

    def index(self, corpus: Any, **kwargs: Any) -> None:
        self.documents = list(corpus["id"])

    def search(self, queries: Any, *, top_ranked: Any = None, **kwargs: Any) -> dict[str, dict[str, float]]:
        for query in queries["id"]:
            documents = top_ranked[query] if top_ranked else self.documents
            self.run[query] = {d: float(self.score(query, d)) for d in documents}
        return self.run


def sample(name: str) -> Any:
    task = mteb.get_task(name)
    task.load_data()
    return task


def scores(task: Any, ranker: Ranker) -> dict[str, Any]:
    return mteb.evaluate(ranker, task, cache=None).task_results[0].scores["test"][0]


def noise(query: str, document: str) -> float:
    return int(hashlib.sha256(f"{query} {document}".encode()).hexdigest()[:8], 16) / 2**32


def test_tcr() -> None:
    task = sample("TCRSample")
    targets = {q.id: q.target for q in task.data.side["questions"]}
    groups = {q.id: set(q.group) for q in task.data.side["questions"]}
    best = scores(task, Ranker(lambda q, d: d == targets[q]))
    assert best["recall_at_1"] == best["gr_at_1"] == best["ds_at_1"] == 1
    assert best["EM_ds_at_1"] == best["SF_ds_at_1"] == best["SA_ds_at_1"] == 1
    siblings_only = scores(task, Ranker(lambda q, d: d in groups[q] - {targets[q]}))
    assert siblings_only["recall_at_1"] == siblings_only["ds_at_1"] == 0
    assert siblings_only["gr_at_1"] == siblings_only["neighbourhood_hit_target_miss"] == 1
    blind = scores(task, Ranker(lambda q, d: d in groups[q]))
    # Every member of the group is tied: what a blind draw is expected to get is the chance level, up to weighting.
    assert blind["tied_top_share"] == 1
    assert blind["ds_at_1_expected_under_ties"] == pytest.approx(blind["chance_ds_at_1"], abs=1e-9)


def test_followir() -> None:
    task = sample("FollowIRSample")
    relevant = task.data.relevant_docs

    def truth(query: str, document: str) -> float:
        return relevant[query].get(document, 0)

    best = scores(task, Ranker(truth))
    assert best["p-MRR"] > 0.5
    assert best["followir_score"] == 1
    worst = scores(task, Ranker(lambda q, d: -truth(q, d)))
    assert worst["p-MRR"] < -0.3
    assert worst["followir_score"] < best["chance_followir_score"]
    deaf = scores(task, Ranker(lambda q, d: noise(q.split("-")[0], d)))
    assert deaf["p-MRR"] == 0
    drawn = scores(task, Ranker(noise))
    assert drawn["followir_score"] == pytest.approx(drawn["chance_followir_score"], abs=0.03)


def test_ifir() -> None:
    task = sample("IFIRSample")
    task.judge = FacetJudge()
    facets = {(r["query-id"], r["corpus-id"]): r["score"] for r in task.data.side["facets"].to_pylist()}

    def facet(query: str, document: str) -> int:
        return facets[parse_query_id(query).base, document]

    knowing = Ranker(lambda q, d: noise(q, d) if q.endswith("-og") else facet(q, d))
    best = scores(task, knowing)
    assert best["ndcg_at_20"] == pytest.approx(1)
    assert all(best[f"level_{level}_ndcg_at_20"] == pytest.approx(1) for level in (1, 2, 3))
    assert best["query_only_ndcg_at_20"] == pytest.approx(best["chance_ndcg_at_20"], abs=0.03)

    # Exact judge scores come from the facets: min(facet, level), or the facet itself without levels.
    def top20(run: dict[str, float]) -> list[str]:
        return sorted(run, key=lambda d: (run[d], d), reverse=True)[:20]

    attainable: dict[int, list[float]] = {}
    for query in [q for q in knowing.run if not q.endswith("-og")]:
        parts = parse_query_id(query)
        maximum = parts.level or 3
        found = [min(facet(query, d), maximum) for d in top20(knowing.run[parts.plain])]
        most = sorted((min(facet(query, d), maximum) for d in knowing.documents), reverse=True)[:20]
        plain = sum(found) / 20
        attainable.setdefault(parts.level or 0, []).append((sum(most) / 20 - plain) / (maximum - plain))
    means = {level: sum(values) / len(values) for level, values in attainable.items()}
    assert all(best[f"level_{level}_instfol_at_20"] == pytest.approx(mean) for level, mean in means.items())
    assert best["instfol_at_20"] == pytest.approx(sum(means.values()) / 4)
    assert best["instfol_at_20"] > 0.2
    assert (best["n_unscored"], best["weighted"]) == (0, 0)

    deaf = scores(task, Ranker(lambda q, d: noise(parse_query_id(q).base, d)))
    assert {deaf[k] for k in deaf if k.endswith("instfol_at_20")} == {0}
    # Knowing the facets without heeding the instruction is no instruction following either.
    informed = scores(task, Ranker(lambda q, d: facet(q, d)))
    assert {informed[k] for k in informed if k.endswith("instfol_at_20")} == {0}
