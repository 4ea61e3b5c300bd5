"""Transposed tables: Table 28 (appendix J)."""

from __future__ import annotations

import pandas as pd

from tcr_tasks.diagnostics.base import Base
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.columns import cell_texts
from tcr_tasks.diagnostics.transforms.common import asked, group_case


def transposition(base: Base) -> Case:
    """All questions over all tables, every table transposed and printed in its own format.

    Raises:
        NotPossibleError: if there is no question.
    """
    documents = {key: t.text(frame=transposed(t.frame)) for key, t in base.main.tables.items()}
    return group_case(asked(base, base.main, "question"), documents)


def transposed(frame: pd.DataFrame) -> pd.DataFrame:
    """The printed grid turned over its diagonal: the header becomes the first column, the first column the header.

    The cells of the result are text, as CSV prints them. Twice, it is the identity on a table of text.
    """
    columns = [[str(header), *cell_texts(frame.iloc[:, at])] for at, header in enumerate(frame.columns)]
    return pd.DataFrame(columns[1:], columns=pd.Index(columns[0], dtype=object), dtype=object)
