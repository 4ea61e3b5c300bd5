"""mFollowIR: one language of a repository in mteb's form, scored with our p-MRR and its checks."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mteb
import pytest
import yaml
from fixed_ranking import FixedRanking, scores_of
from followir_sets import CANDIDATES, CHANGED, JUDGED, QUERIES, Rows, configs

from evaluators.metrics.pmrr import p_mrr
from evaluators.plugin.checks import DatasetError
from followir_tasks import mfollowir
from followir_tasks.mfollowir import MFOLLOWIR_TASKS, MFollowIRTask, fetch_mfollowir

pytestmark = pytest.mark.usefixtures("fresh_cache")

# Our config -> its name there, and its split.
NAMES = {
    "corpus": ("corpus", "corpus"),
    "queries": ("queries", "queries"),
    "instruction": ("instruction", "instruction"),
    "qrels": ("default", "test"),
    "top_ranked": ("top_ranked", "top_ranked"),
    "qrel_diff": ("qrel_diff", "qrel_diff"),
}


def write_repository(folder: Path, by_language: dict[str, dict[str, Rows]]) -> Path:
    """A directory that `datasets` reads as it reads mteb's repositories."""
    listed = []
    folder.mkdir(parents=True)
    for language, rows in by_language.items():
        for name, (config, split) in NAMES.items():
            path = f"{config}-{language}.jsonl"
            (folder / path).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[name]))
            files = [{"split": split, "path": path}]
            listed.append({"config_name": f"{config}-{language}", "data_files": files})
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': listed})}---\n")
    return folder


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    farsi, russian = (configs(with_forms=False) for _ in range(2))
    for rows in (farsi, russian):
        rows["queries"].append({"_id": "t9-og", "text": "not judged"})
        rows["instruction"].append({"query-id": "t9-og", "instruction": "not judged"})
    russian["corpus"][0] = {"_id": "d00", "title": None, "text": "Привет"}
    return write_repository(tmp_path_factory.mktemp("hub") / "mfollowir", {"fas": farsi, "rus": russian})


def test_the_tasks() -> None:
    assert [cls.metadata.name for cls in MFOLLOWIR_TASKS] == [
        *("mFollowIRFas", "mFollowIRRus", "mFollowIRZho"),
        *("mFollowIRCrossFas", "mFollowIRCrossRus", "mFollowIRCrossZho"),
    ]
    cross = mteb.get_task("mFollowIRCrossZho")
    assert cross.metadata.dataset == mteb.get_task("mFollowIRCrossLingual").metadata.dataset
    assert cross.metadata.eval_langs == ["eng-Latn", "zho-Hans"]
    # Statistics that mteb ships: 1,000 candidates for each query, and the number of documents and queries together.
    for cls in MFOLLOWIR_TASKS:
        upstream = mteb.get_task(cls.metadata.adapted_from[0]).metadata
        shipped = upstream.descriptive_stats["test"]["hf_subset_descriptive_stats"][cls.upstream_subset]
        n_queries, n_documents = cls.published_size
        assert shipped["top_ranked_statistics"]["num_top_ranked"] == 1000 * n_queries
        assert shipped["num_samples"] == n_queries + n_documents


def test_one_language_is_read(repository: Path) -> None:
    data = fetch_mfollowir(str(repository), None, "rus")
    assert data.corpus[0] == {"id": "d00", "title": "", "text": "Привет"}
    assert len(data.corpus) == 12
    assert data.queries["id"] == QUERIES  # what is not judged is not searched
    assert data.queries[1]["instruction"].startswith("Relevant passages tell of t1")
    assert data.relevant_docs == JUDGED
    assert data.top_ranked == {q: CANDIDATES[q.split("-")[0]] for q in QUERIES}
    assert data.side["qrel_diff"] == CHANGED
    assert fetch_mfollowir(str(repository), None, "fas").corpus[0]["title"] == "Title d00"


@pytest.fixture
def task(repository: Path, monkeypatch: pytest.MonkeyPatch) -> MFollowIRTask:
    """The Russian task, whose public source is the local repository."""
    fetch = mfollowir.fetch_mfollowir
    monkeypatch.setattr(mfollowir, "fetch_mfollowir", lambda name, revision, code: fetch(str(repository), None, code))
    monkeypatch.delenv("MTEB_BEYOND_DATA", raising=False)
    made = mteb.get_task("mFollowIRRus")
    assert isinstance(made, MFollowIRTask)
    return made


def test_scores_by_hand(task: MFollowIRTask) -> None:
    run = {q: {d: -float((int(d[1:]) * (5 if "og" in q else 7)) % 12) for d in CANDIDATES[q[:2]]} for q in QUERIES}
    scores = scores_of(task, FixedRanking(run))
    pair = [{q[:2]: s for q, s in run.items() if q.endswith(end)} for end in ("-og", "-changed")]
    assert scores["p-MRR"] == pytest.approx(p_mrr(pair[0], pair[1], CHANGED).score, abs=1e-12)
    ndcg = []
    for query in (q for q in QUERIES if q.endswith("-og")):
        ranked = sorted(run[query], key=lambda d: (run[query][d], d), reverse=True)
        grades = [JUDGED[query].get(d, 0) for d in ranked]
        ideal = sorted(JUDGED[query].values(), reverse=True)
        gains = [sum(g / math.log2(rank + 1) for rank, g in enumerate(of, 1)) for of in (grades, ideal)]
        ndcg.append(gains[0] / gains[1])
    assert scores["followir_score"] == pytest.approx(sum(ndcg) / 3, abs=1e-9)
    assert scores["languages"] == ["rus-Cyrl"]
    assert "not comparable with the published ones" in scores["mteb_beyond"]["notes"][0]


def test_a_missing_candidate_is_refused(task: MFollowIRTask) -> None:
    run = {q: {d: float(d[1:]) for d in CANDIDATES[q[:2]]} for q in QUERIES}
    del run["t2-og"]["d05"]
    with pytest.raises(ValueError, match="left 1 candidates of 1 queries unranked"):
        scores_of(task, FixedRanking(run))


def test_a_query_without_an_instruction(tmp_path: Path) -> None:
    rows = configs(with_forms=False)
    rows["instruction"].pop()
    with pytest.raises(DatasetError, match="t3-changed"):
        fetch_mfollowir(str(write_repository(tmp_path / "set", {"zho": rows})), None, "zho")
