"""What answerability-aware reranking costs beside its model: bookkeeping of AAR-CE, queries of AAR-Exec.

Run it from the repository root, with the package and its extra `demo` installed, on an otherwise idle machine:

    python benchmarks/tcr_rerank.py

Questions over tables of about 7,000 tokens (280 rows of eight columns) are reranked in one process, and CPU seconds
compared, so that only ratios are reported:

- a cross-encoder of MiniLM's shape (random weights, 512 tokens) scores every pair once; then the budgets T3 to T∞ are
  derived from the kept scores. Ratio: deriving all six / scoring. Scoring each budget for itself would read the pairs
  of the first ones again.
- a query of AAR-Exec runs on ten candidates, tables read and cells understood anew, and again with tables at hand.
  Ratio: either / the cross-encoder's time for the same ten pairs.

The exit code is 1 if deriving takes 2 % of scoring or more, or the queries 10 % of the cross-encoder or more.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evaluators.plugin.models import bundled_directory
from tcr_tasks.reranking.cells import read_cell
from tcr_tasks.reranking.cross_encoder import CrossEncoding
from tcr_tasks.reranking.pool import PAPER_BUDGETS, Context, Pool, budget_label
from tcr_tasks.reranking.translation import Named, Sheet, Translation
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import Table
from tcr_tasks.tasks import TCRSample

SEED = 7
QUESTIONS, TABLES, ROWS, CANDIDATES, ROUNDS = 2, 60, 280, 10, 5
MOST_DERIVING, MOST_QUERIES = 0.02, 0.1
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "islet", "jetty", "knoll", "ledge"]
QUERY = Translation(
    {
        "city": Named("text", ("town", "city")),
        "kind": Named("text", ("kind",)),
        "day": Named("date", ("day",)),
        "staff": Named("number", ("staff (x 10)", "staff")),
    },
    "SELECT avg(staff) FROM t WHERE kind IN ('amber', 'birch') AND day >= '2012-01-01' AND city <> 'delta'",
)


def tables() -> dict[str, Table]:
    rng = random.Random(SEED)

    def row(number: int) -> str:
        day = f"{rng.randint(1, 28)}/{rng.choice(('Jan', 'May', 'Sep'))}/{rng.randint(2001, 2020)}"
        words = [rng.choice(WORDS) for _ in range(3)]
        cells = [number, words[0], words[1], day, f"{rng.randint(1, 90)}.{rng.randint(1, 99)}k", rng.random(), words[2]]
        return ",".join(map(str, [*cells, rng.randint(10_000, 99_999)]))

    head = "key,city,kind,day,staff,share,street,zip"
    return {
        f"t{n}": Table("db", f"t{n}", "shops", TableFormat.CSV, "\n".join([head, *map(row, range(ROWS))]))
        for n in range(TABLES)
    }


def cross_encoder(folder: Path) -> Any:
    """A cross-encoder of MiniLM's shape."""
    from sentence_transformers import CrossEncoder
    from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

    place = bundled_directory()
    BertForSequenceClassification(AutoConfig.from_pretrained(place, num_labels=1)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(place, model_max_length=512).save_pretrained(folder)
    return CrossEncoder(str(folder), device="cpu", max_length=512)


def main() -> int:
    made = tables()
    documents = {key: table.text() for key, table in made.items()}
    questions = {f"q{n}": f"What is the average staff of shops of the kind {WORDS[n]}?" for n in range(QUESTIONS)}
    context = Context(TCRSample.metadata, "test", "default", {"batch_size": 32, "show_progress_bar": False})
    with tempfile.TemporaryDirectory() as folder:
        way = CrossEncoding(cross_encoder(Path(folder)))
        pool = Pool(questions, {q: list(made) for q in questions}, documents)
        start = time.process_time()
        usage = way.rerank(pool, context).usage
        scoring = time.process_time() - start
    start = time.process_time()
    for budget in PAPER_BUDGETS:
        way.rerank(Pool(questions, {q: list(made)[:budget] for q in questions}, documents), context)
    deriving = time.process_time() - start
    separately = sum(QUESTIONS * min(TABLES, budget or TABLES) for budget in PAPER_BUDGETS)
    labels = " ".join(map(budget_label, PAPER_BUDGETS))
    print(
        f"AAR-CE: {usage.made} pairs scored; deriving {labels}: {deriving / scoring:.4f} of the scoring (at most "
        f"{MOST_DERIVING}); scored separately they would take {separately / usage.made:.2f} times the scoring"
    )
    of_ten = scoring / usage.made * CANDIDATES
    candidates = list(made.values())[:CANDIDATES]
    taken: dict[str, list[float]] = {"anew": [], "at hand": []}
    for _ in range(ROUNDS):
        read_cell.cache_clear()
        sheets = [Sheet(table) for table in candidates]
        for how in taken:
            start = time.process_time()
            for sheet in sheets:
                QUERY.run(sheet)
            taken[how].append(time.process_time() - start)
    anew, at_hand = (statistics.median(seconds) / of_ten for seconds in taken.values())
    print(
        f"AAR-Exec: a query on {CANDIDATES} tables of {ROWS} rows: {anew:.3f} of the cross-encoder's time for "
        f"these pairs with tables read anew, {at_hand:.3f} with tables at hand (at most {MOST_QUERIES})"
    )
    return int(deriving / scoring >= MOST_DERIVING or anew >= MOST_QUERIES)


if __name__ == "__main__":
    sys.exit(main())
