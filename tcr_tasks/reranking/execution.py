"""AAR-Exec: the question becomes one query, which an SQL engine runs on each candidate. Not in the paper.

One call a question instead of one a table, and the answer is checked on the values.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from evaluators.judge import Prompt, Request
from evaluators.plugin.checks import shown
from tcr_tasks.asking import read_replies
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
from tcr_tasks.reranking.translation import Sheet, read_translation
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
        self.settings = asking.settings(self.prompt)

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        """The candidates that answer first."""
        counts: Counter[str] = Counter()
        requests: dict[str, Request] = {}
        for query in pool.candidates:
            request = self._request(pool, query)
            if request is None:
                counts[TOO_LONG] += 1
            else:
                requests[query] = request
        outcomes, usage = self.asking.ask(list(requests.values()), self.method)
        began = time.perf_counter()
        replies = read_replies(requests, outcomes, read_translation)
        replies.warn(self.method)
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
        return Reranked(orders, +counts + replies_counted(replies), usage)

    def planned(self, pool: Pool) -> Iterator[tuple[Request, list[str]]]:
        """What :meth:`rerank` asks, each request with the lines that stand for its tables."""
        for query in pool.candidates:
            request = self._request(pool, query)
            if request is not None:
                yield request, self._lines(pool, query)

    def _lines(self, pool: Pool, query: str) -> list[str]:
        return sorted({self._sheets[table].described for table in pool.candidates[query]})

    def _request(self, pool: Pool, query: str) -> Request | None:
        unknown = [table for table in pool.candidates[query] if table not in self._sheets]
        if unknown:
            raise ValueError(
                f"query {query!r}: {self.method} has no cells of {shown(unknown)}; give it the tables of the task's "
                "data"
            )
        question, tables = pool.questions[query], "\n".join(self._lines(pool, query))
        if self.asking.room(self.prompt, question=question, tables=tables) < 0:
            return None
        return self.asking.request(self.prompt, question=question, tables=tables)
