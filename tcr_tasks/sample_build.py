"""Builds the embedded sample for TCR-Bench's tasks: ``python -m tcr_tasks.sample_build``.

For each question a group of tables is made from one source table, as in section A.3 of the TCR-Bench paper: the
target answers it, its siblings look alike and do not. All randomness comes from generators that are seeded with the
seed and the question's id, so a question can be added without changing the tables of the others.
"""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

from evaluators.plugin.dataset import Card, write_dataset
from tcr_tasks.builder.output import BuiltQuestion, BuiltTable, layout_rows
from tcr_tasks.queries import Query
from tcr_tasks.sample_questions import QUESTIONS, Question
from tcr_tasks.sample_sources import SOURCES, load
from tcr_tasks.sample_tables import Table, group, matches
from tcr_tasks.serialize import TableFormat, read_table
from tcr_tasks.tables import corpus_id

SAMPLE_DIRECTORY = Path(__file__).parent / "sample"

CARD = Card(
    title="TCR-Bench sample (mteb-beyond)",
    license="mit",
    tags=("table-retrieval", "answerability", "tcr-bench"),
    body=f"""
A small set for trying the TCR-Bench tasks without a download, and for tests. **It is not TCR-Bench**: it shares the
construction and the layout with it, but no table and no question. Scores on it compare with no published number.

**What it is.** {len(QUESTIONS)} questions (exact match, selective filtering, selective aggregation). Each has a group
of 3 to 8 tables from one source: the target, which alone in the whole sample holds the answer, and siblings that look
alike and cannot answer. A model that finds the topic finds the group; to find the target it must notice what is there
and what is missing.

**How it was made** (`python -m tcr_tasks.sample_build`, deterministic), after appendix A of *Semantically Similar, Yet
Not Answerable: Diagnosing the Semantic-Answerability Gap in Table RAG*:

- a sibling lacks a column that the query needs (`column_deletion`), or lost 30 to 70 % of the target's rows, those with
  the answer among them, and got others (`row_deletion`), or has rows drawn anew (`resampling`);
- headers, dates, numbers and category names of every table are reworded independently (January 15th, 2023; 12.85k;
  MCMLXXIII; x 10, which the header says). Config `tables` keeps the exact canonical table beside the printed one;
- each query was executed on every table of the sample: exactly one answers it;
- the questions were written by hand.

**Limits.** English only; one question per group; tables of some hundred tokens, a tenth of TCR-Bench's; the rows with
the answer stand early in the target, so that a model of 256 tokens can see them; with so few questions a difference of
0.05 means nothing.

**Sources.** The data come from the Python package [vega_datasets](https://github.com/altair-viz/vega_datasets) 0.9.0
(MIT License, copyright (c) 2018 Jake Vanderplas), which redistributes public data of the
[vega-datasets](https://github.com/vega/vega-datasets) collection. Files used:
{", ".join(f"`{source.file}`" for source in SOURCES.values())}. According to that package's descriptions the airport
data are in the public domain (ourairports.com), as are the weather data (NOAA) and Iowa's electricity (U.S. Energy
Information Administration); employment is from the U.S. Bureau of Labor Statistics; barley is Immer's trial of 1934,
iris Fisher's of 1936, wheat Playfair's of 1822; cars is from StatLib; driving follows an article of the New York Times
of May 2, 2010; stocks and ohlc are price series. The choice and wording here are under this project's MIT License.
""",
)


def build(seed: int = 0) -> dict[str, list[dict[str, Any]]]:
    """The rows of all configs: tables, corpus, queries, qrels, groups.

    Raises:
        ModuleNotFoundError: if vega-datasets is not installed.
        ValueError: if a query has no answer in its source, or is answered by another number of tables than one.
    """
    sources = {name: load(source) for name, source in SOURCES.items()}
    tables: list[BuiltTable] = []
    questions: list[BuiltQuestion] = []
    for question in QUESTIONS:
        rng = random.Random(f"{seed}:{question.id}")
        # No row that answers another question may enter this group.
        others = [q.query for q in QUESTIONS if q.source == question.source and q is not question]
        rows = [row for row in sources[question.source] if not any(matches(q, row, question) for q in others)]
        if question.only:
            column, values = question.only
            rows = [row for row in rows if row[column] in values]
        of_group, built = _group(question, group(question, rows, rng), rng)
        tables += of_group
        questions.append(built)
    configs = layout_rows(tables, questions)
    _check(configs)
    return configs


def _group(question: Question, tables: list[Table], rng: random.Random) -> tuple[list[BuiltTable], BuiltQuestion]:
    """The tables of a question by their numbers, which tell nothing of the target, and the question."""
    db_id, table_name = question.place.split("/")
    numbers = list(range(len(tables)))
    rng.shuffle(numbers)
    built = [
        BuiltTable(
            db_id=db_id,
            table_path=f"{table_name}_T{number}",
            table_name=table_name,
            table_format=TableFormat(table.look.fmt),
            csv=table.csv,
            canonical_csv=table.canonical_csv,
            canonical_columns={header: column for column, (header, _) in table.look.columns.items()},
            source=SOURCES[question.source].file,
            strategy=table.strategy,
            prompt_notes=table.prompt_notes,
        )
        for number, table in zip(numbers, tables, strict=True)
    ]
    query = question.query
    frame = read_table(io.StringIO(tables[0].canonical_csv))
    return sorted(built, key=lambda table: int(table.table_path.rpartition("_T")[2])), BuiltQuestion(
        id=question.id,
        text=question.text,
        query=query,
        target_key=built[0].key,
        group_keys=[table.key for table in built],
        template=query.template(rng.randrange(6 if query.question_type == "EM" else 4)),
        sentence=query.sentential(),
        answer=query.answer(frame),
        answer_rows=query.rows(frame),
    )


def _check(configs: dict[str, list[dict[str, Any]]]) -> None:
    """Every query on every table: exactly one answers, the target."""
    frames = {corpus_id(t["table-key"]): read_table(io.StringIO(t["canonical_csv"])) for t in configs["tables"]}
    for row in configs["groups"]:
        query = Query.from_json(row["query"])
        answering = [doc_id for doc_id, frame in frames.items() if query.answer(frame)]
        if answering != [row["target"]]:
            raise ValueError(f"{row['query-id']}: answered by {answering}, not by {row['target']} alone")


def main() -> None:
    """Write the sample into the package."""
    configs = build()
    write_dataset(SAMPLE_DIRECTORY, configs, CARD)
    print(f"{SAMPLE_DIRECTORY}: " + ", ".join(f"{len(rows)} {name}" for name, rows in configs.items()))


if __name__ == "__main__":
    main()
