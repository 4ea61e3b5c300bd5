"""InstructIR's robustness against a naive computation, on a small set and on real queries and passages.

The real data are read from the folder `instructir` in `$MTEB_BEYOND_DATA` (corpus.jsonl, queries.jsonl, qrels.tsv:
150 base queries with 1,163 instructions over 1,743 passages); the tests that need them are skipped without it.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Mapping
from itertools import compress
from pathlib import Path
from statistics import fmean
from typing import Any

import mteb
import numpy as np
import pyarrow.parquet as pq
import pytest
from fixed_ranking import FixedRanking, Run, scores_of

import followir_tasks
from evaluators.plugin import with_variant
from evaluators.plugin.mteb_internals import query_texts
from evaluators.plugin.task import BeyondTask
from followir_tasks.data import INSTRUCTIR_FILES

assert followir_tasks.InstructIRRobustness  # the import registers the task

pytestmark = pytest.mark.usefixtures("fresh_cache")

Qrels = Mapping[str, Mapping[str, int]]


def naive_ndcg(scores: Mapping[str, float], judged: Mapping[str, int], k: int = 10) -> float:
    """Graded nDCG, ordered by (score, document id) descending."""
    ranked = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)[:k]
    gained = sum(judged.get(doc, 0) / math.log2(rank + 1) for rank, doc in enumerate(ranked, 1))
    ideal = sorted(judged.values(), reverse=True)[:k]
    return gained / sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))


def naive_robustness(run: Run, qrels: Qrels) -> tuple[float, int, int]:
    """Mean of the lowest nDCG@10, number of base queries in it, and of those with one instruction."""
    by_base: dict[str, list[float]] = defaultdict(list)
    for query, judged in qrels.items():
        by_base["_".join(query.split("_")[:-1])].append(naive_ndcg(run[query], judged))
    lowest = [min(values) for values in by_base.values() if len(values) > 1]
    return fmean(lowest), len(lowest), len(by_base) - len(lowest)


# --- a small set ---------------------------------------------------------------------------------------------------

# Three base queries with 2, 3 and 1 instructions; `b` has graded judgements on two passages.
SMALL: dict[str, dict[str, int]] = {
    "a_1": {"m0": 1},
    "a_2": {"m0": 1},
    "b_c_1": {"m1": 1, "m2": 3},
    "b_c_2": {"m1": 1, "m2": 3},
    "b_c_10": {"m1": 1, "m2": 3},
    "d_1": {"m3": 1},
}


def written(directory: Path, qrels: Qrels = SMALL) -> BeyondTask:
    directory.mkdir(parents=True, exist_ok=True)
    passages = [{"_id": f"m{i}", "title": "", "text": f"passage {i}"} for i in range(15)]
    queries = [{"_id": q, "text": f"query {q[0]}", "instruction": f"as {q}"} for q in qrels]
    for name, rows in (("corpus", passages), ("queries", queries)):
        (directory / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = [f"{q}\t{doc}\t{grade}\n" for q, docs in qrels.items() for doc, grade in docs.items()]
    (directory / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")
    task = mteb.get_task("InstructIRRobustness")
    assert isinstance(task, BeyondTask)
    task.data_path = directory
    return task


def ranking(*first: str) -> dict[str, float]:
    others = [f"m{i}" for i in range(15) if f"m{i}" not in first]
    return {doc: -float(rank) for rank, doc in enumerate((*first, *others))}


def test_robustness_by_hand(tmp_path: Path) -> None:
    run = {
        "a_1": ranking("m0"),
        "a_2": ranking("m9", "m0"),  # 1 / log2(3)
        "b_c_1": ranking("m2", "m1"),
        "b_c_2": ranking("m1", "m2"),
        # the only one that misses both
        "b_c_10": ranking("m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12"),
        "d_1": ranking("m9", "m8", "m3"),
    }
    model = FixedRanking(run)
    scores = scores_of(written(tmp_path / "set"), model, prediction_folder=tmp_path / "predictions")
    assert scores["robustness_at_10"] == pytest.approx((1 / math.log2(3) + 0.0) / 2, abs=1e-12)
    counts = {name: value for name, value in scores.items() if name.startswith("n_")}
    assert counts == {
        "n_documents_in_shortest_ranking": 15,
        "n_base_queries": 2,
        "n_base_queries_with_one_instruction": 1,
        "n_queries": 6,
        "n_dropped_empty_passages": 0,
        "n_judgements_on_dropped_passages": 0,
    }
    assert scores["mteb_beyond"]["metric_version"] == 2
    rows = pq.read_table(tmp_path / "predictions" / "InstructIRRobustness_per_query.parquet").to_pylist()
    ndcg = {row["query-id"]: row["ndcg_at_10"] for row in rows}
    graded = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    expected = {"a_1": 1, "a_2": 1 / math.log2(3), "b_c_1": 1, "b_c_2": graded, "b_c_10": 0, "d_1": 0.5}
    assert ndcg == pytest.approx(expected, abs=1e-12)
    assert {row["query-id"]: row["base_query"] for row in rows} == {q: q.rsplit("_", 1)[0] for q in SMALL}
    # Of the two base queries with several instructions a quarter of the resamples holds one alone; of all three, with
    # all their instructions, 1 in 27, which is more than the 2.5 % beyond either bound.
    bounds = {key: value for key, value in scores.items() if key.endswith(("_low", "_high"))}
    assert bounds == pytest.approx(
        {
            "robustness_at_10_low": 0,
            "robustness_at_10_high": 1 / math.log2(3),
            "ndcg_at_10_low": min((1 + graded + 0) / 3, 0.5),
            "ndcg_at_10_high": (1 + 1 / math.log2(3)) / 2,
        },
        abs=1e-12,
    )


@pytest.mark.parametrize("seed", range(3))
def test_robustness_is_the_naive_one(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    run = {q: {f"m{i}": float(rng.integers(5)) for i in range(15)} for q in SMALL}  # with ties
    scores = scores_of(written(tmp_path), FixedRanking(run))
    expected, n_bases, n_single = naive_robustness(run, SMALL)
    assert scores["robustness_at_10"] == pytest.approx(expected, abs=1e-12)
    assert (scores["n_base_queries"], scores["n_base_queries_with_one_instruction"]) == (n_bases, n_single)
    assert type(scores["robustness_at_10"]) is float
    assert scores["ndcg_at_10"] == pytest.approx(fmean(naive_ndcg(run[q], SMALL[q]) for q in SMALL), abs=1e-5)


@pytest.mark.parametrize("order", ["query-first", "instruction-first"])
def test_the_order_of_query_and_instruction(tmp_path: Path, order: str) -> None:
    """As mteb joins them, or as the authors' files do: the instruction, [SEP], the query."""
    task = written(tmp_path)
    task.instruction_order = order  # type: ignore[attr-defined]
    read: dict[str, str] = {}

    class Reading(FixedRanking):
        def search(self, queries: Any, **kwargs: Any) -> Run:
            read.update(zip(queries["id"], query_texts(queries), strict=True))
            return super().search(queries, **kwargs)

    scores = scores_of(task, with_variant(Reading({q: ranking("m0") for q in SMALL}), task))
    joined = "query {} as {}" if order == "query-first" else "as {1} [SEP] query {0}"
    assert read == {q: joined.format(q[0], q) for q in SMALL}
    assert scores["mteb_beyond"]["options"] == {"instruction_order": order}


def test_the_authors_own_files(tmp_path: Path) -> None:
    """kaistAI/InstructIR: `<instruction> [SEP] <query>` in `text`, and `qrels/test.tsv` with the columns qid, pid."""
    written(tmp_path / "ours")
    theirs = tmp_path / "theirs"
    (theirs / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl"):
        (theirs / name).write_bytes((tmp_path / "ours" / name).read_bytes())
    rows = [json.loads(line) for line in (theirs / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    joined = [{"_id": r["_id"], "text": f"{r['instruction']} [SEP] {r['text']}", "metadata": {}} for r in rows]
    (theirs / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in joined), encoding="utf-8")
    lines = (tmp_path / "ours" / "qrels.tsv").read_text(encoding="utf-8").splitlines()
    (theirs / "qrels" / "test.tsv").write_text("\n".join(["qid\tpid\tscore", *lines[1:]]) + "\n", encoding="utf-8")
    ours, authors = (mteb.get_task("InstructIRRobustness") for _ in range(2))
    ours.data_path, authors.data_path = tmp_path / "ours", theirs
    for task in (ours, authors):
        task.load_data()
    assert authors.data.queries.to_list() == ours.data.queries.to_list()
    assert authors.data.relevant_docs == ours.data.relevant_docs == SMALL
    assert type(authors).recognises(theirs) and not type(authors).recognises(theirs / "qrels")
    assert len(authors.metadata.revision) == 40 and authors.metadata.revision != ours.metadata.revision
    # In their order, a model reads their text again.
    authors.instruction_order = "instruction-first"
    read = query_texts(authors.prepare_queries(None, authors.data.queries))
    assert read == [row["text"] for row in joined]


@pytest.mark.parametrize("fault", ["absent", "nan"])
def test_unusable_rankings(tmp_path: Path, fault: str) -> None:
    run = {q: ranking("m0") for q in SMALL}
    if fault == "absent":
        del run["b_c_2"]
    else:
        run["b_c_2"]["m4"] = math.nan
    with pytest.raises(ValueError, match="b_c_2"):
        scores_of(written(tmp_path), FixedRanking(run))


def test_no_base_query_with_several_instructions(tmp_path: Path) -> None:
    qrels = {q: SMALL[q] for q in ("a_1", "d_1")}
    with pytest.raises(ValueError, match="none of 2 base queries has several instructions"):
        scores_of(written(tmp_path, qrels), FixedRanking({q: ranking("m0") for q in qrels}))


# --- the real queries ----------------------------------------------------------------------------------------------


@pytest.fixture
def real() -> Path:
    base = os.environ.get("MTEB_BEYOND_DATA")
    if not base:
        pytest.skip("MTEB_BEYOND_DATA is not set; it should name a folder that holds instructir/")
    directory = Path(base) / "instructir"
    if not (directory / "queries.jsonl").is_file():
        pytest.skip(f"{directory} does not hold InstructIR's files")
    return directory


def real_task() -> BeyondTask:
    """The task, left to find its data by itself."""
    task = mteb.get_task("InstructIRRobustness")
    assert isinstance(task, BeyondTask)
    return task


def test_real_sizes(real: Path) -> None:
    task = real_task()
    assert task.source().directory == real.resolve()
    task.load_data()
    data = task.data
    assert data is not None
    assert (len(data.queries), len(data.corpus), len(data.relevant_docs)) == (1163, 1743, 1163)
    assert len({q.rsplit("_", 1)[0] for q in data.queries["id"]}) == 150
    assert data.counts == {"n_dropped_empty_passages": 0, "n_judgements_on_dropped_passages": 0}
    # Relevance is known per base query only, and whoever reads the scores must know it.
    assert len(data.notes) == 1
    assert "not comparable with InstructIR's" in data.notes[0]
    asked = [json.loads(line) for line in (real / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    assert data.queries.to_list() == [
        {"id": row["_id"], "text": row["text"], "instruction": row["instruction"]} for row in asked
    ]
    assert all(set(docs.values()) == {1} and len(docs) >= 1 for docs in data.relevant_docs.values())


def test_bm25_on_real_data(real: Path, tmp_path: Path) -> None:
    """Of the first 40 base queries, against all passages."""
    lines = {name: (real / name).read_text(encoding="utf-8").splitlines(keepends=True) for name in INSTRUCTIR_FILES}
    queries = [json.loads(line)["_id"] for line in lines["queries.jsonl"]]
    bases = set(list(dict.fromkeys(query.rpartition("_")[0] for query in queries))[:40])
    kept = [query.rpartition("_")[0] in bases for query in queries]
    header, *judged = lines["qrels.tsv"]
    part = tmp_path / "part"
    part.mkdir()
    (part / "corpus.jsonl").write_text("".join(lines["corpus.jsonl"]), encoding="utf-8")
    (part / "queries.jsonl").write_text("".join(compress(lines["queries.jsonl"], kept)), encoding="utf-8")
    judged = [line for line in judged if line.split("\t")[0].rpartition("_")[0] in bases]
    (part / "qrels.tsv").write_text("".join([header, *judged]), encoding="utf-8")
    task = real_task()
    task.data_path = part
    scores = scores_of(task, mteb.get_model("mteb/baseline-bm25s"), prediction_folder=tmp_path / "predictions")
    saved = json.loads((tmp_path / "predictions" / task.prediction_file_name).read_text(encoding="utf-8"))
    run: Run = saved["default"]["test"]
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    for line in judged:
        query, document, grade = line.split("\t")
        qrels[query][document] = int(grade)
    expected, n_bases, n_single = naive_robustness(run, qrels)
    assert n_bases + n_single == 40
    assert scores["robustness_at_10"] == pytest.approx(expected, abs=1e-6)
    assert (scores["n_base_queries"], scores["n_base_queries_with_one_instruction"]) == (n_bases, n_single)
    assert scores["n_queries"] == sum(kept) < 1163
    # The worst instruction is worse than the average one, and BM25 is far better than chance.
    assert 0.1 < scores["robustness_at_10"] < scores["ndcg_at_10"] < 1
