"""What building a FollowIR-style dataset costs, by document and by topic, as shares of one run.

Run it from the repository root, with the package installed, on an otherwise idle machine:

    python benchmarks/followir_build.py [--documents N] [--topics N] [--model DIR]

A collection in TREC's SGML is written (a third of the documents have more than 400 words), with topics and judgements,
and a dataset is built from it with BM25, and with an encoder if one is named. The language model is a function in this
process, so that its own time does not count. Told are, for each step, the CPU seconds, the share of all seconds, and
microseconds a document or milliseconds a topic; a second build over half the documents tells how a step grows. Of the
memory, the highest of Python's own objects while the collection is read and cut, which is to stay within a few parts of
10,000 passages, however large the collection is. The exit code is 1 if reading and cutting grows by more than
three for twice the documents, or its memory by more than a half; the latter is looked at from 20,000 documents on, of
which a half already fills more than one part.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from evaluators.construction.workspace import Workspace
from followir_tasks.construction.collection import write_collection
from followir_tasks.construction.documents import find_documents
from followir_tasks.construction.maxp import best_passages
from followir_tasks.construction.pooling import Ranker, candidates, pool
from followir_tasks.construction.selection import Band
from followir_tasks.construction.sources import read_source, with_texts

SEED = 3
RELEVANT = 20
CANDIDATES = 200
MOST_GROWTH = 3.0
MOST_MEMORY_GROWTH = 1.5
BAND = Band(0.35, 0.65)
_T = TypeVar("_T")


def write_source(folder: Path, n_documents: int, n_topics: int) -> None:
    """Documents of 60 to 900 words from 5,000, topics, and judgements."""
    rng = random.Random(SEED)
    words = ["".join(rng.choices("abcdefghiklmnoprstuvw", k=rng.randint(3, 9))) for _ in range(5_000)]
    pool_of_texts = [" ".join(rng.choices(words, k=30)) for _ in range(5_000)]
    folder.mkdir(parents=True)
    with (folder / "docs.sgml").open("w") as out:
        for n in range(n_documents):
            text = "\n".join(rng.choices(pool_of_texts, k=rng.choice([2, 5, 30])))
            out.write(
                f"<DOC>\n<DOCNO>D{n}</DOCNO>\n<HEADLINE>{text[:40]}</HEADLINE>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"
            )
    with (folder / "topics.txt").open("w") as topics, (folder / "qrels.txt").open("w") as qrels:
        for n in range(n_topics):
            query, narrative = (" ".join(rng.choices(words, k=k)) for k in (15, 45))
            topics.write(f"<top>\n<num>{n}\n<title>{query}\n<desc>{query}\n<narr>{narrative}\n</top>\n")
            qrels.writelines(f"{n} 0 D{d} 1\n" for d in rng.sample(range(n_documents), RELEVANT))


class Clock:
    """CPU seconds by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, step: str, work: Callable[[], _T]) -> _T:
        """Do the work, and remember how long it took."""
        began = time.process_time()
        done = work()
        self.seconds[step] = time.process_time() - began
        return done


def measure(folder: Path, n_documents: int, n_topics: int, models: list[str]) -> tuple[dict[str, float], int]:
    """Seconds by step, and the peak of Python's memory in bytes while the collection is read and cut."""
    write_source(folder, n_documents, n_topics)
    clock = Clock()
    workspace = Workspace(folder / "out", None, tell=lambda text: None)
    documents = find_documents(str(folder / "docs.sgml"))
    source = clock.time(
        "topics, judgements", lambda: read_source(folder / "topics.txt", folder / "qrels.txt", documents, band=BAND)
    )
    topics, _, _ = clock.time("relevant documents", lambda: with_texts(workspace, source, BAND))
    collection = clock.time("read and cut", lambda: write_collection(documents, folder / "collection.arrow"))
    rankers = [Ranker(name) for name in models]
    for ranker in rankers:
        assert ranker.model is not None  # loaded, which is not measured
    lists = [
        clock.time(
            f"pool {r.label}", lambda n=n, r=r: pool(workspace, n, r, collection, source.key, topics, CANDIDATES)
        )
        for n, r in enumerate(rankers, 1)
    ]
    chosen = candidates({t.topic: list(t.relevant) for t in topics}, lists, CANDIDATES)
    queries = {t.topic: t.query for t in topics}
    clock.time(
        f"passages {rankers[0].label}",
        lambda: best_passages(workspace, rankers[0], collection, source.key, queries, chosen),
    )
    tracemalloc.start()
    write_collection(documents, folder / "again.arrow")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return clock.seconds, peak


def main() -> int:
    """Print the tables; 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000, metavar="N", help="of the larger build (%(default)s)")
    parser.add_argument("--topics", type=int, default=10, metavar="N", help="(%(default)s)")
    parser.add_argument("--model", metavar="MODEL", help="an encoder that pools beside BM25")
    args = parser.parse_args()
    models = ["mteb/baseline-bm25s", *([args.model] if args.model else [])]
    with tempfile.TemporaryDirectory(prefix="followir-build-") as scratch:
        half, half_peak = measure(Path(scratch) / "half", args.documents // 2, args.topics, models)
        whole, peak = measure(Path(scratch) / "whole", args.documents, args.topics, models)
    total = sum(whole.values())
    print(f"{args.documents} documents, {args.topics} topics, {CANDIDATES} candidates each")
    print(f"{'step':45} CPU s  share  us a document  ms a topic  growth for twice the documents")
    for step, seconds in whole.items():
        print(
            f"{step:45} {seconds:5.2f}  {seconds / total:5.0%}  {seconds / args.documents * 1e6:13.0f}"
            f"  {seconds / args.topics * 1e3:10.1f}  {seconds / max(half[step], 1e-3):.2f}",
            flush=True,
        )
    print(f"peak of Python's memory, read and cut: {peak / 2**20:.0f} MiB ({half_peak / 2**20:.0f} for half of them)")
    growth = whole["read and cut"] / half["read and cut"]
    told_by_memory = args.documents >= 20_000
    missed = growth > MOST_GROWTH or (told_by_memory and peak > MOST_MEMORY_GROWTH * half_peak)
    print("MISSED" if missed else "within the limits")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
