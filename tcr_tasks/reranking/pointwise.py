"""AAR-LLM-PW: a language model says of each candidate whether it can answer (TCR-Bench, section 6, appendix K)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from evaluators.judge import Prompt
from evaluators.judge.answers import read_verdict
from evaluators.judge.reply import UnreadableReplyError
from tcr_tasks.reranking.asking import Asking, package_prompt, tell
from tcr_tasks.reranking.fitting import fit
from tcr_tasks.reranking.pool import (
    FAILED,
    ROWS,
    ROWS_CUT,
    TABLES_CUT,
    TOO_LONG,
    UNREADABLE,
    Context,
    Pool,
    Reranked,
    first,
)


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
        self.prompt: Prompt = package_prompt("pointwise", ("question", "table"), prompts)
        self.model, self.revision = asking.model, self.prompt.version
        self.settings = asking.settings(self.prompt)

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        """The candidates with a yes first."""
        counts: Counter[str] = Counter()
        pairs, requests = [], []
        for query, tables in pool.candidates.items():
            question = pool.questions[query]
            room = self.asking.room(self.prompt, question=question)
            for table in tables:
                fitted = fit([pool.documents[table]], room, self.asking.counter)
                if fitted is None:
                    counts[TOO_LONG] += 1
                    continue
                counts.update({ROWS: fitted.rows, ROWS_CUT: fitted.rows_cut, TABLES_CUT: fitted.tables_cut})
                pairs.append((query, table))
                requests.append(self.asking.request(self.prompt, question=question, table=fitted.texts[0]))
        outcomes, usage = self.asking.ask(requests, self.method)
        problems: list[str] = []
        yes: dict[str, set[str]] = {query: set() for query in pool.candidates}
        for (query, table), outcome in zip(pairs, outcomes, strict=True):
            if outcome.reply is None:
                counts[FAILED] += 1
                problems.append(f"query {query!r}, {table}: {outcome.failure}")
                continue
            try:
                if read_verdict(outcome.reply)[0]:
                    yes[query].add(table)
            except UnreadableReplyError as error:
                counts[UNREADABLE] += 1
                problems.append(f"query {query!r}, {table}: {error}")
        tell(self.method, problems)
        return Reranked({q: first(tables, yes[q]) for q, tables in pool.candidates.items()}, +counts, usage)
