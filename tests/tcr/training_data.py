"""A small built dataset for tests of the training: five databases, two questions each, siblings that do not answer."""

from __future__ import annotations

import random
from pathlib import Path

from evaluators.plugin.dataset import Card, write_dataset
from tcr_tasks.builder.output import BuiltQuestion, BuiltTable, write_layout
from tcr_tasks.queries import Condition, Query
from tcr_tasks.serialize import TableFormat

DATABASES = ("shops", "ships", "trees", "roads", "lakes")
# In this database a sibling answers, too, although the dataset does not say so.
WRONG = "lakes"
SIBLINGS_THAT_ANSWER = 1
CARD = Card("small", "Made by tests.", "mit")


def write_small(directory: Path) -> Path:
    """Each database has tables T0 to T3; question n asks for a row that only T<n> holds.

    ``shops`` and ``ships`` take their rows from the same source table, so they belong together.
    """
    rng = random.Random(0)
    tables: list[BuiltTable] = []
    questions: list[BuiltQuestion] = []
    for number, database in enumerate(DATABASES):
        names = [f"{database[:2]}{at}" for at in range(40)]
        rows = [f"{name},{rng.randrange(100)}" for name in names]
        shared, own = rows[:4], rows[4:]
        contents = [[own[at], *own[4 + 3 * at : 7 + 3 * at], *shared] for at in range(4)]
        if database == WRONG:
            contents[3].append(own[0])  # the answer to question 0
        for at, content in enumerate(contents):
            csv = "\n".join(["name,size", *content]) + "\n"
            source = "harbour.csv" if database in ("shops", "ships") else f"{database}.csv"
            tables.append(
                BuiltTable(
                    db_id=database,
                    table_path=f"{database}_T{at}",
                    table_name=database,
                    table_format=TableFormat.CSV,
                    csv=csv,
                    canonical_csv=csv,
                    canonical_columns={"name": "name", "size": "size"},
                    source=source,
                    strategy="row_deletion",
                )
            )
        for at in range(2):
            name, size = own[at].split(",")
            query = Query("EM", (Condition("name", "=", name),), "size")
            questions.append(
                BuiltQuestion(
                    id=f"q{number}{at}",
                    text=f"What is the size of {name} in {database}?",
                    query=query,
                    target_key=f"{database}::{database}_T{at}",
                    group_keys=[f"{database}::{database}_T{n}" for n in range(4)],
                    template=query.template(0),
                    sentence=query.sentential(),
                    answer=[int(size)],
                    answer_rows=[0],
                )
            )
    write_layout(directory, tables, questions, CARD)
    return directory


def write_plain(directory: Path, n: int = 6) -> Path:
    """A dataset without groups: question n is answered by document n, question 0 also by document 1."""
    write_dataset(
        directory,
        {
            "corpus": [{"_id": f"d{at}", "title": "", "text": f"Document {at} is about item {at}."} for at in range(n)],
            "queries": [{"_id": f"p{at}", "text": f"Which document is about item {at}?"} for at in range(n)],
            "qrels": [
                *({"query-id": f"p{at}", "corpus-id": f"d{at}", "score": 1} for at in range(n)),
                {"query-id": "p0", "corpus-id": "d1", "score": 1},
                {"query-id": "p2", "corpus-id": "d3", "score": 0},
            ],
        },
        CARD,
    )
    return directory
