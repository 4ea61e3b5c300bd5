"""AAR-LLM-PW: a language model says of each candidate whether it can answer (TCR-Bench, section 6, appendix K)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from evaluators.judge import Prompt, Reply
from evaluators.judge.answers import read_verdict
from tcr_tasks.asking import Planned
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
        self.settings = asking.settings_with(self.prompt)

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        """The candidates with a yes first."""
        asked, counts = self._asked(pool)
        replies, usage = self.asking.ask(asked, self.method)
        yes: dict[str, set[str]] = {query: set() for query in pool.candidates}
        for (query, table), is_yes in replies.read.items():
            if is_yes:
                yes[query].add(table)
        orders = {query: first(tables, yes[query]) for query, tables in pool.candidates.items()}
        n_prompts = sum(map(len, pool.candidates.values()))
        return Reranked(orders, counts + replies_counted(replies), usage, n_prompts)

    def planned(self, pool: Pool) -> Iterable[Planned[bool]]:
        """What :meth:`rerank` asks."""
        return self._asked(pool)[0].values()

    def _asked(self, pool: Pool) -> tuple[dict[tuple[str, str], Planned[bool]], Counter[str]]:
        """Every question with every candidate, and what was left out or cut."""
        counts: Counter[str] = Counter()
        asked: dict[tuple[str, str], Planned[bool]] = {}
        for query, tables in pool.candidates.items():
            question = pool.questions[query]
            room = self.asking.room(self.prompt, question=question)
            for table in tables:
                shown = self.asking.cutter.shown({table: pool.documents[table]}, room)
                if shown is None:
                    counts[TOO_LONG] += 1
                    continue
                counts += rows_counted(shown)
                text = shown[0].text
                asked[query, table] = Planned(
                    self.asking.request(self.prompt, question=question, table=text), [text], _is_yes
                )
        return asked, counts


def _is_yes(reply: Reply) -> bool:
    return read_verdict(reply)[0]
