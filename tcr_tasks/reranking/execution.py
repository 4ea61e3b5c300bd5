"""AAR-Exec: the question becomes one query, which an SQL engine runs on each candidate. Not in the paper.

One call a question instead of one a table, and the answer is checked on the values.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from evaluators.judge import Prompt
from evaluators.plugin.checks import shown
from tcr_tasks.asking import Planned
from tcr_tasks.reranking.asking import Asking, own_or_package_prompt
from tcr_tasks.reranking.pool import (
    ALL_ANSWER,
    ANSWERED,
    LACKS,
    NONE_ANSWERS,
    TOO_LONG,
    Context,
    Pool,
    Reranked,
    first,
    replies_counted,
)
from tcr_tasks.reranking.sandbox import Outcome
from tcr_tasks.reranking.translation import Sheet, Translation, read_translation
from tcr_tasks.tables import Table

_COUNTED = {
    Outcome.ANSWERED: ANSWERED,
    Outcome.LACKS: LACKS,
    Outcome.REFUSED: "tables on which the query was refused",
    Outcome.STOPPED: "tables on which the query was stopped",
    Outcome.FAILED: "tables on which the query failed",
}


class Execution:
    """Candidates on which the question's query gives an answer before all others, each part in first-stage order.

    The model sees the candidates' headers with a value of each, in alphabetical order, so that the first stage does not
    show. A reply that failed or cannot be read leaves the first stage's order and is counted; so is every table on
    which the query fails, is refused or is stopped, and which therefore does not answer. Questions that every one of
    several candidates answers are counted, too: the query told nothing, and the order is the first stage's.

    Args:
        asking: the model that translates.
        tables: corpus id -> table, for every candidate there may be (``task.data.side["tables"]``).
        prompts: a folder with an ``exec.txt`` in place of the package's.
    """

    method = "AAR-Exec"
    derives = False

    def __init__(self, asking: Asking, tables: Mapping[str, Table], prompts: Path | None = None) -> None:
        self.asking = asking
        self._sheets = {key: Sheet(table) for key, table in tables.items()}
        self.prompt: Prompt = own_or_package_prompt("exec", prompts)
        self.model, self.revision = asking.model, self.prompt.version
        self.settings = asking.settings_with(self.prompt)

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        """The candidates that answer first."""
        asked, counts = self._asked(pool)
        replies, usage = self.asking.ask(asked, self.method)
        began = time.perf_counter()
        orders = {query: list(tables) for query, tables in pool.candidates.items()}
        for query, translation in replies.read.items():
            found = {table: translation.run(self._sheets[table]) for table in orders[query]}
            counts.update(_COUNTED[outcome] for outcome in found.values() if outcome in _COUNTED)
            answering = {table for table, one in found.items() if one is Outcome.ANSWERED}
            counts[NONE_ANSWERS] += not answering
            # Such a query tells nothing of the tables; of a single candidate nothing was to be told.
            counts[ALL_ANSWER] += len(answering) == len(orders[query]) > 1
            orders[query] = first(orders[query], answering)
        usage.work_seconds = time.perf_counter() - began
        return Reranked(orders, +counts + replies_counted(replies), usage, len(orders))

    def planned(self, pool: Pool) -> Iterable[Planned[Translation]]:
        """What :meth:`rerank` asks."""
        return self._asked(pool)[0].values()

    def _asked(self, pool: Pool) -> tuple[dict[str, Planned[Translation]], Counter[str]]:
        """Every question with the lines that stand for its tables, and how many are too long."""
        found = {query: self._planned(pool, query) for query in pool.candidates}
        asked = {query: one for query, one in found.items() if one is not None}
        return asked, +Counter({TOO_LONG: len(found) - len(asked)})

    def _planned(self, pool: Pool, query: str) -> Planned[Translation] | None:
        unknown = [table for table in pool.candidates[query] if table not in self._sheets]
        if unknown:
            raise ValueError(
                f"query {query!r}: {self.method} has no cells of {shown(unknown)}; give it the tables of the task's "
                "data"
            )
        lines = sorted({self._sheets[table].described for table in pool.candidates[query]})
        question, tables = pool.questions[query], "\n".join(lines)
        if self.asking.room(self.prompt, question=question, tables=tables) < 0:
            return None
        request = self.asking.request(self.prompt, question=question, tables=tables)
        return Planned(request, lines, read_translation)
