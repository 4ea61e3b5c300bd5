"""Small tables for tests of the builder, made anew by the tests as SQLite and as CSV."""

from __future__ import annotations

import csv
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

HEADER = ("shop_id", "city", "zip", "opened", "staff", "revenue", "manager")
CITIES = ("Ghent", "Bergen", "Porto", "Turku", "Graz", "Lyon", "Split", "Brno")
FIRST = ("Ada", "Bo", "Cy", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida", "Jon")
LAST = ("Abel", "Beck", "Cole", "Dahl", "Eder", "Falk", "Gray", "Hahn", "Iver", "Jung")


def shops(n_rows: int = 240, seed: int = 0) -> list[tuple[Any, ...]]:
    """Rows of a table with a key, texts, codes with leading zeros, dates, integers, fractions and gaps."""
    rng = random.Random(seed)
    return [
        (
            1000 + number,
            rng.choice(CITIES),
            f"{rng.randrange(1000):05d}",
            f"20{rng.randrange(10, 20)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}",
            rng.randrange(3, 90),
            rng.randrange(1000, 90000) / 4 if number % 17 else None,
            f"{rng.choice(FIRST)} {rng.choice(LAST)}",
        )
        for number in range(n_rows)
    ]


def write_sqlite(path: Path, tables: dict[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]) -> Path:
    """A database with untyped columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        for name, (header, rows) in tables.items():
            columns = ", ".join(f'"{column}"' for column in header)
            connection.execute(f'CREATE TABLE "{name}" ({columns})')
            connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(header))})', rows)
        connection.commit()
    return path


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    """A CSV file; missing cells are empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path
