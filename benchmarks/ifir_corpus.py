"""Seconds and memory of loading a corpus of TREC-CDS's size through IFIR's loader, first with a fresh cache.

Run it from the repository root, with the package installed, on an otherwise idle Linux machine with 4 GB of free disk:

    python benchmarks/ifir_corpus.py

It writes 634,000 passages (about 1.1 GB of JSON lines) into a temporary directory, which it removes at the end, and
loads them twice, each time in a process of its own: the first load converts the corpus, the second one finds it
converted. Measured are the seconds of `load_data` (not of the imports) and the highest anonymous memory of the
process, imports included; pages of mapped files can be dropped at any time and do not count. The file was just
written, so it is read from the page cache. The exit code is 1 if a load misses a requirement.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

SEED = 20240229
N_PASSAGES = 634_000
N_EMPTY = 45
N_QUERIES = 42
RELEVANT_PER_QUERY = 30
SECONDS_ALLOWED = 60.0
GIB = 1024**3
BYTES_ALLOWED = GIB


def write_corpus(path: Path) -> None:
    """Passages of 4 to 16 sentences from a pool, some with signs beyond ASCII, and a few without text."""
    rng = random.Random(SEED)
    letters = "abcdefghijklmnopqrstuvwxyzäéµ"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 11))) for _ in range(20_000)]
    pool = [" ".join(rng.choices(words, k=rng.randint(12, 30))) + "." for _ in range(20_000)]
    empty = set(rng.sample(range(N_PASSAGES), N_EMPTY))
    with path.open("w", encoding="utf-8") as out:
        for number in range(N_PASSAGES):
            text = "" if number in empty else " ".join(rng.choices(pool, k=rng.randint(4, 16)))
            passage = {"_id": str(3_000_000 + number), "title": pool[number % len(pool)][:80], "text": text}
            out.write(json.dumps(passage, ensure_ascii=False) + "\n")


def write_queries(path: Path) -> None:
    rng = random.Random(SEED)
    queries = []
    for number in range(N_QUERIES):
        passages = [{"_id": str(3_000_000 + i)} for i in rng.sample(range(N_PASSAGES), RELEVANT_PER_QUERY)]
        wording, indices = f"As a physician I look for articles on test {number}.", [*range(RELEVANT_PER_QUERY)]
        instruction = {"instruction": wording, "rel": indices}
        queries.append({"_id": number, "text": f"case {number}", "corpus": passages, "instructions": [instruction]})
    path.write_text(json.dumps(queries), encoding="utf-8")


class AnonymousMemory:
    """The highest anonymous resident memory of this process while the object's thread runs, looked at every 2 ms."""

    def __init__(self) -> None:
        self.peak = self.now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @staticmethod
    def now() -> int:
        found = re.search(r"^RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
        if found is None:
            raise RuntimeError("this system does not tell the anonymous memory of a process")
        return int(found[1]) * 1024

    def _watch(self) -> None:
        while not self._stop.wait(0.002):
            self.peak = max(self.peak, self.now())

    def __enter__(self) -> AnonymousMemory:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, self.now())


def load(directory: Path) -> dict[str, Any]:
    """Load once in this process and measure; the imports come before."""
    import mteb

    from evaluators.plugin.registry import load_plugins

    load_plugins()
    task = mteb.get_task("IFIRCdsInstFol")
    task.data_path = directory
    with AnonymousMemory() as memory:
        before = memory.peak
        start = time.perf_counter()
        task.load_data()
        taken = time.perf_counter() - start
    sizes = [len(task.data.corpus), len(task.data.queries), task.data.counts["n_dropped_empty_passages"]]
    return {"seconds": taken, "peak": memory.peak, "before": before, "sizes": sizes}


def measured(title: str, directory: Path, cache: Path) -> bool:
    """Load in a process of its own; prints a line and says whether the requirements are met."""
    environment = os.environ | {"MTEB_BEYOND_CACHE": str(cache)}
    command = [sys.executable, __file__, "load", str(directory)]
    told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout
    found = json.loads(told.splitlines()[-1])
    if found["sizes"] != [N_PASSAGES - N_EMPTY, 2 * N_QUERIES, N_EMPTY]:
        raise AssertionError(f"passages, queries and dropped passages are {found['sizes']}")
    ok = found["seconds"] < SECONDS_ALLOWED and found["peak"] < BYTES_ALLOWED
    print(
        f"{title}: {found['seconds']:.1f} s (allowed {SECONDS_ALLOWED:.0f}), peak of anonymous memory "
        f"{found['peak'] / GIB:.2f} GiB (allowed {BYTES_ALLOWED / GIB:.2f}; {found['before'] / GIB:.2f} before the "
        f"load){'' if ok else '   MISSED'}",
        flush=True,
    )
    return ok


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ifir-corpus-") as scratch:
        directory, cache = Path(scratch) / "cds", Path(scratch) / "cache"
        directory.mkdir()
        start = time.perf_counter()
        write_corpus(directory / "cds-corpus.jsonl")
        write_queries(directory / "test_data.json")
        size = (directory / "cds-corpus.jsonl").stat().st_size
        taken = time.perf_counter() - start
        print(f"{N_PASSAGES:,} passages, {size / 1e9:.2f} GB, written in {taken:.0f} s", flush=True)
        results = [measured(title, directory, cache) for title in ("first load ", "second load")]
    return 0 if all(results) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["load"]:
        print(json.dumps(load(Path(sys.argv[2]))))
        sys.exit(0)
    sys.exit(main())
