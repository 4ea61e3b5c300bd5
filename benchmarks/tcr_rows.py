"""Search with a vector per row over TCR-Bench's size, beside a loop over the tables, in the same process.

Run it from the repository root, with the package installed, on an otherwise idle machine:

    python benchmarks/tcr_rows.py

637 tables of 7,000 tokens: at 15 to 120 tokens a row, drawn per table, they have 58 to 466 rows each. Random unit
vectors of 384 numbers stand for the rows' embeddings, since only search is measured. The loop multiplies a query with
one table's rows after the other and takes the maximum, or the mean of the three highest, of each. Printed are the
milliseconds a query, when 209 queries come together, as mteb hands them over, and when one comes alone, with those of
processor time, which other work on the machine hardly touches, in brackets, and their ratio to the loop's. The exit
code is 1 if a query takes 50 ms or more, together or alone, or if search and loop disagree.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tcr_tasks.retrieval.multivector import PieceIndex
from tcr_tasks.retrieval.segments import reduction

SEED = 20240229
TABLES, TOKENS, DIMENSIONS, QUERIES = 637, 7_000, 384, 209
MOST_MS = 50.0
ROUNDS = 3
ALONE = 10

Vectors = NDArray[np.float32]


def unit(rng: np.random.Generator, n: int) -> Vectors:
    vectors = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def loop(tables: list[Vectors], query: Vectors, best: int) -> list[float]:
    """The definition: per table the mean of the ``best`` highest products."""
    return [float(np.sort(table @ query)[-best:].mean()) for table in tables]


def milliseconds(work: Callable[[], object], queries: int) -> tuple[float, float]:
    """A query's time, and that of all processors together."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - start) / queries * 1000, (time.process_time() - used) / queries * 1000


def compare(name: str, index: PieceIndex, tables: list[Vectors], queries: Vectors) -> bool:
    how, best = reduction(name), int(name[3:]) if name.startswith("top") else 1
    expected = np.array([loop(tables, query, best) for query in queries[:ALONE]])
    agree = bool(np.allclose(index.scores(queries[:ALONE], how), expected, atol=1e-5))
    taken: dict[str, list[tuple[float, float]]] = {"together": [], "alone": [], "loop": []}
    for _ in range(ROUNDS):
        taken["together"].append(milliseconds(lambda: index.scores(queries, how), QUERIES))
        taken["alone"].append(milliseconds(lambda: [index.scores(q[None], how) for q in queries[:ALONE]], ALONE))
        taken["loop"].append(milliseconds(lambda: [loop(tables, q, best) for q in queries[:ALONE]], ALONE))
    ms, cpu = ({what: statistics.median(one[at] for one in found) for what, found in taken.items()} for at in (0, 1))
    fast = max(ms["together"], ms["alone"]) < MOST_MS
    told = ", ".join(f"{what} {ms[what]:.1f} ({cpu[what]:.1f})" for what in taken)
    print(
        f"{name}: ms a query: {told}; ratio {ms['loop'] / ms['together']:.1f} and {ms['loop'] / ms['alone']:.1f}"
        f"{'' if fast else f'   MISSED {MOST_MS:.0f} ms'}{'' if agree else '   DISAGREE'}"
    )
    return fast and agree


def main() -> int:
    rng = np.random.default_rng(SEED)
    counts = (TOKENS / rng.uniform(15, 120, TABLES)).astype(int)
    vectors, queries = unit(rng, int(counts.sum())), unit(rng, QUERIES)
    tables = np.split(vectors, np.cumsum(counts)[:-1])
    print(f"{TABLES} tables, {len(vectors)} rows, {vectors.nbytes / 2**20:.0f} MiB")
    index = PieceIndex(vectors, counts.tolist())
    found = [compare(name, index, tables, queries) for name in ("max", "top3")]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
