"""AAR-LLM-PW: a language model says of each candidate whether it can answer (TCR-Bench, section 6, appendix K)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from evaluators.judge import Prompt, Request
from evaluators.judge.answers import read_verdict
from tcr_tasks.asking import read_replies
from tcr_tasks.cutting import ShownTable
from tcr_tasks.reranking.asking import Asking, own_or_package_prompt
from tcr_tasks.reranking.pool import TOO_LONG, Context, Pool, Reranked, first, replies_counted, rows_counted


class Pointwise:
    """Candidates that hold enough to answer, by the model's yes, before all others; each part in first-stage order.

    A reply that failed or cannot be read ranks with the no's and is counted; so does a table whose header alone is
    beyond the context window. A pair is asked once, whatever the budgets it occurs in.

    Args:
        asking: the model.
        prompts: a folder with a ``pointwise.txt`` in place of the package's.
    """

    method = "AAR-LLM-PW"
    derives = True

    def __init__(self, asking: Asking, prompts: Path | None = None) -> None:
        self.asking = asking
        self.prompt: Prompt = own_or_package_prompt("pointwise", prompts)
        self.model, self.revision = asking.model, self.prompt.version
        self.settings = asking.settings(self.prompt)

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        """The candidates with a yes first."""
        counts: Counter[str] = Counter()
        asked: dict[tuple[str, str], Request] = {}
        for query, table, shown in self._shown(pool):
            if shown is None:
                counts[TOO_LONG] += 1
            else:
                counts += rows_counted([shown])
                asked[query, table] = self._request(pool, query, shown)
        outcomes, usage = self.asking.ask(list(asked.values()), self.method)
        replies = read_replies(asked, outcomes, lambda reply: read_verdict(reply)[0])
        replies.warn(self.method)
        yes: dict[str, set[str]] = {query: set() for query in pool.candidates}
        for (query, table), is_yes in replies.read.items():
            if is_yes:
                yes[query].add(table)
        orders = {query: first(tables, yes[query]) for query, tables in pool.candidates.items()}
        return Reranked(orders, counts + replies_counted(replies), usage)

    def planned(self, pool: Pool) -> Iterator[tuple[Request, list[str]]]:
        """What :meth:`rerank` asks, each request with the table in it."""
        for query, _, shown in self._shown(pool):
            if shown is not None:
                yield self._request(pool, query, shown), [shown.text]

    def _shown(self, pool: Pool) -> Iterator[tuple[str, str, ShownTable | None]]:
        """Every question with every candidate as the prompt shows it, ``None`` if its header alone is too long."""
        for query, tables in pool.candidates.items():
            room = self.asking.room(self.prompt, question=pool.questions[query])
            for table in tables:
                found = self.asking.cutter.shown({table: pool.documents[table]}, room)
                yield query, table, None if found is None else found[0]

    def _request(self, pool: Pool, query: str, shown: ShownTable) -> Request:
        return self.asking.request(self.prompt, question=pool.questions[query], table=shown.text)
