"""A table of a TCR-Bench corpus: where it is, what it is called, how it is printed."""

from __future__ import annotations

import functools
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tcr_tasks.serialize import TableFormat, read_table, read_text_table, serialize


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        db_id: database it comes from.
        path: its name within the database, unique there (``zip_code_T3``).
        name: the name that is printed (``zip_code``).
        format: its format in the Mixed setting.
        csv: its content: a file, or the text of one.
        notes: what a prompt that shows the table must say of shifted numbers, a sentence each.
    """

    db_id: str
    path: str
    name: str
    format: TableFormat
    csv: Path | str
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``db_id::path``, as the authors name a table."""
        return f"{self.db_id}::{self.path}"

    @property
    def id(self) -> str:
        """The id in the corpus: a hash of the key, then the key."""
        return corpus_id(self.key)

    def text(self, fmt: TableFormat | None = None) -> str:
        """The table as the text that is encoded, by default in its own format.

        Raises:
            ValueError: naming the table, if its CSV cannot be read.
        """
        fmt = fmt or self.format
        # What a file holds may change.
        return _printed(self, fmt) if isinstance(self.csv, str) else _printed.__wrapped__(self, fmt)

    def frame(self, fmt: TableFormat | None = None) -> pd.DataFrame:
        """The cells that :meth:`text` prints in that format.

        Raises:
            ValueError: as :meth:`text`.
        """
        read = read_text_table if (fmt or self.format) is TableFormat.SAFE_MARKDOWN else read_table
        try:
            return read(io.StringIO(self.csv) if isinstance(self.csv, str) else self.csv)
        except (OSError, ValueError, pd.errors.ParserError) as error:
            raise ValueError(f"table {self.key!r} cannot be read: {error}") from error


@functools.lru_cache(maxsize=2048)
def _printed(table: Table, fmt: TableFormat) -> str:
    """The text, remembered: every task on a dataset prints its tables when it is loaded, 5 ms each."""
    return serialize(table.name, table.frame(fmt), fmt)


def corpus_id(key: str) -> str:
    """Eight hex digits of the key's SHA-256, ``::``, the key.

    Ids end up in tie rules: the hash keeps the target, most often number 0 of its group, from profiting there.
    """
    return f"{hashlib.sha256(key.encode()).hexdigest()[:8]}::{key}"
