"""Seconds and memory of checking every question on every table, as a TCR-Bench corpus grows.

Run it from the repository root, with the package installed, on an otherwise idle Linux machine:

    python benchmarks/tcr_verify.py [--quick]

A corpus of Q questions and T tables of about 7,000 tokens (280 rows of eight columns: keys, texts, dates, integers,
fractions) is made from T // 10 databases, each with five schemas (all columns, or one of four missing), as the builder
makes them; then from a single database, where every question runs on every table. Measured in a process of its own:
the CPU seconds of stacking and of asking, without making the tables, and the highest resident memory of the process.
The exit code is 1 if 209 x 637 takes 15 s or more, or 2 GiB, or 1,000 x 5,000 takes 3 minutes or more.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from tcr_tasks.builder.verify import Corpus
from tcr_tasks.queries import Condition, Query

SEED = 1
ROWS = 280
SIZES = ((50, 160), (100, 320), (209, 637), (400, 1_300), (1_000, 5_000))
SECONDS_ALLOWED = {(209, 637): 15.0, (1_000, 5_000): 180.0}
BYTES_ALLOWED = {(209, 637): 2 * 1024**3}
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "islet", "jetty", "knoll", "ledge"]


def tables(n_tables: int, n_databases: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables of the databases in turn; every second one lacks a column."""
    rng = np.random.default_rng(SEED)
    words = np.array(WORDS)
    for number in range(n_tables):
        db = number % n_databases
        frame = pd.DataFrame(
            {
                f"key_{db}": np.arange(number * ROWS, (number + 1) * ROWS),
                f"name_{db}": pd.Series([f"{a} {b} {n}" for a, b, n in _names(rng, words)], dtype="str"),
                f"kind_{db}": pd.Series(words[rng.integers(0, 12, ROWS)], dtype="str"),
                f"day_{db}": pd.Series(
                    [f"20{y:02d}-{m:02d}-15" for y, m in rng.integers(1, 13, (ROWS, 2))], dtype="str"
                ),
                f"count_{db}": rng.integers(0, 100_000, ROWS),
                f"price_{db}": rng.integers(0, 1_000_000, ROWS) / 100,
                f"share_{db}": rng.random(ROWS).round(3),
                f"city_{db}": pd.Series(words[rng.integers(0, 12, ROWS)] + "ville", dtype="str"),
            }
        )
        missing = (None, "kind", None, "day", None, "count", None, "city")[number // n_databases % 8]
        yield f"db{db}::t{number}", frame if missing is None else frame.drop(columns=f"{missing}_{db}")


def _names(rng: np.random.Generator, words: np.ndarray) -> list[tuple[str, str, int]]:
    drawn = rng.integers(0, 12, (ROWS, 2))
    return [(words[a], words[b], int(n)) for (a, b), n in zip(drawn, rng.integers(0, 900, ROWS), strict=True)]


def queries(n_queries: int, n_databases: int) -> list[Query]:
    """EM, SF and SA questions with two or three conditions to the databases in turn."""
    rng = random.Random(SEED)
    out = []
    for number in range(n_queries):
        db = number % n_databases
        kind = Condition(f"kind_{db}", "=", rng.choice(WORDS))
        count = Condition(f"count_{db}", ">=", rng.randrange(90_000, 100_000))
        day = Condition(f"day_{db}", "!=", "2007-06-15")
        out.append(
            (
                Query("EM", (Condition(f"name_{db}", "=", f"amber cedar {number % 900}"), kind), f"city_{db}"),
                Query("SF", (kind, count, day), f"name_{db}"),
                Query("SA", (kind, count), f"price_{db}", "AVG"),
            )[number % 3]
        )
    return out


def measure(n_queries: int, n_tables: int, n_databases: int) -> dict[str, float]:
    """One corpus, in this process."""
    asked = queries(n_queries, n_databases)
    stacking = 0.0
    with Corpus() as corpus:
        for key, frame in tables(n_tables, n_databases):
            began = time.process_time()
            corpus.add(key, frame)
            stacking += time.process_time() - began
        began = time.process_time()
        answered = sum(len(corpus.answering(query)) for query in asked)
        asking = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"stacking": stacking, "asking": asking, "bytes": memory, "answered": answered}


def main() -> int:
    """Print the table; 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the largest corpus")
    parser.add_argument("--one", nargs=3, type=int, metavar=("QUERIES", "TABLES", "DATABASES"), help="one corpus only")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one)))
        return 0
    missed = False
    print("questions  tables  databases  stacking s  asking s  total s  memory MiB")
    for n_queries, n_tables in SIZES[:-1] if args.quick else SIZES:
        for n_databases in (n_tables // 10, 1):
            size = (str(n_queries), str(n_tables), str(n_databases))
            done = subprocess.run(
                [sys.executable, __file__, "--one", *size], check=True, capture_output=True, text=True
            )
            found = json.loads(done.stdout)
            total = found["stacking"] + found["asking"]
            print(
                f"{n_queries:9} {n_tables:7} {n_databases:10} {found['stacking']:11.2f} {found['asking']:9.2f} "
                f"{total:8.2f} {found['bytes'] / 1024**2:11.0f}",
                flush=True,
            )
            missed |= total >= SECONDS_ALLOWED.get((n_queries, n_tables), float("inf"))
            missed |= found["bytes"] >= BYTES_ALLOWED.get((n_queries, n_tables), float("inf"))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
