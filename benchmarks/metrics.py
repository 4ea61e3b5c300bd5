"""Speed of the metrics beside mteb's, on the same random input and in the same process, all checks on.

Run it from the repository root, with the package installed, on an otherwise idle machine:

    python benchmarks/metrics.py

It prints one line per case with the median of several runs after a warm-up (for sibling_scores also the processor
time, which other processes disturb less; the requirement is on the clock). The exit code is 1 if a requirement is
missed or a value differs from mteb's by more than 1e-12.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from mteb._evaluators.retrieval_metrics import calculate_pmrr

from evaluators import p_mrr, sibling_scores

SEED = 20240229
Run = dict[str, dict[str, float]]


def seconds(work: Callable[[], Any], repeats: int, clock: Callable[[], float] = time.perf_counter) -> tuple[float, Any]:
    """The median time of `work`, and what it returned."""
    result = work()  # the warm-up
    times = []
    for _ in range(repeats):
        start = clock()
        result = work()
        times.append(clock() - start)
    return statistics.median(times), result


def pairs(n_queries: int, n_docs: int, n_changed: int, distinct: int | None) -> tuple[Run, Run, dict[str, list[str]]]:
    """Runs for both instructions; `distinct` is the number of different scores, None for all different."""
    rng = random.Random(SEED)
    original: Run = {}
    changed: Run = {}
    docs: dict[str, list[str]] = {}
    for q in range(n_queries):
        ids = [f"doc-{q}-{i}" for i in range(n_docs)]
        for run, suffix in ((original, "-og"), (changed, "-changed")):
            # Shuffled whole numbers are certainly distinct.
            values = rng.sample(range(n_docs), n_docs)
            run[f"{q}{suffix}"] = {
                doc: value / n_docs if distinct is None else rng.randrange(distinct) / distinct
                for doc, value in zip(ids, values, strict=True)
            }
        docs[str(q)] = rng.sample(ids, n_changed)
    return original, changed, docs


def compare_p_mrr(title: str, n_queries: int, distinct: int | None, required: float | None) -> bool:
    original, changed, docs = pairs(n_queries, 1000, 40, distinct)
    ours, result = seconds(lambda: p_mrr(original, changed, docs), 7)
    # mteb takes minutes for many queries: time a slice (its time grows in step with them) and compare the value there.
    size = n_queries if n_queries <= 104 else 50
    part = dict(list(docs.items())[:size])
    theirs, value = seconds(lambda: calculate_pmrr(original, changed, part), 3)
    theirs *= n_queries / size
    mine = result.score if size == n_queries else p_mrr(original, changed, part).score
    difference = abs(mine - value)
    ratio = theirs / ours
    good = difference <= 1e-12 and (required is None or ratio >= required)
    scaled = "" if size == n_queries else f" (scaled up from {size} queries)"
    wanted = "no requirement" if required is None else f"required >= {required:.0f}x"
    print(
        f"p-MRR, {title}: ours {ours * 1000:.1f} ms, mteb {theirs:.2f} s{scaled}, ratio {ratio:.0f}x ({wanted}), "
        f"values differ by {difference:.1e}: {'ok' if good else 'MISSED'}"
    )
    return good


def time_sibling_scores(n_queries: int, n_results: int, required: float) -> bool:
    rng = random.Random(SEED)
    ids = [f"db::table-{i}" for i in range(5000)]
    run: Run = {}
    targets: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for q in map(str, range(n_queries)):
        found = rng.sample(ids, n_results)
        run[q] = {doc: rng.random() for doc in found}
        groups[q] = found[:4]
        targets[q] = rng.choice(groups[q])
    taken, _ = seconds(lambda: sibling_scores(run, targets, groups), 5)
    processor, _ = seconds(lambda: sibling_scores(run, targets, groups), 5, time.process_time)
    good = taken < required
    print(
        f"sibling_scores, {n_queries:,} queries x {n_results} results: {taken:.2f} s, processor {processor:.2f} s "
        f"(required < {required:g} s): {'ok' if good else 'MISSED'}"
    )
    return good


def main() -> int:
    results = [
        compare_p_mrr("104 queries x 1,000 documents x 40 changed, distinct scores", 104, None, 80),
        compare_p_mrr("104 queries x 1,000 documents x 40 changed, 100 distinct scores", 104, 100, 20),
        compare_p_mrr("1,000 queries x 1,000 documents x 40 changed, distinct scores", 1000, None, None),
        time_sibling_scores(10_000, 100, 1.0),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
