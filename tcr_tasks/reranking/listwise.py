"""AAR-LLM-LW: a language model orders all candidates at once (TCR-Bench, section 6 and appendix K)."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from evaluators.judge import Prompt, Reply, Request
from evaluators.judge.answers import complete_text
from evaluators.judge.reply import UnreadableReplyError
from tcr_tasks.asking import Planned
from tcr_tasks.cutting import ShownTable
from tcr_tasks.reranking.asking import Asking, own_or_package_prompt
from tcr_tasks.reranking.json_replies import last_object
from tcr_tasks.reranking.pool import TOO_LONG, Context, Pool, Reranked, replies_counted, rows_counted

Protocol = Literal["shuffled", "paper"]
# The candidates, and how many ids are missing, invented or repeated.
_Order = tuple[list[str], Counter[str]]
MISSING, INVENTED, REPEATED = "missing ids", "invented ids", "repeated ids"


class Listwise:
    """Candidates in the order in which the model lists them, which sees them all in one prompt under anonymous ids.

    Candidates that the reply does not name follow in first-stage order; ids that it invents or repeats are dropped; all
    are counted. A reply that failed or cannot be read leaves the first stage's order and is counted.

    Args:
        asking: the model.
        protocol: the order in which the prompt shows the candidates. ``shuffled``: at random, so that it does not give
            the first stage away; ``paper``: first-stage order, as in Tables 4 and 29.
        seed: of the shuffles, each query's own.
        prompts: a folder with a ``listwise.txt`` in place of the package's.
    """

    method = "AAR-LLM-LW"
    derives = False

    def __init__(
        self, asking: Asking, protocol: Protocol = "shuffled", seed: int = 0, prompts: Path | None = None
    ) -> None:
        if protocol not in ("shuffled", "paper"):
            raise ValueError(f"the protocol is 'shuffled' or 'paper', not {protocol!r}")
        self.asking, self.protocol, self.seed = asking, protocol, seed
        self.prompt: Prompt = own_or_package_prompt("listwise", prompts)
        self.model, self.revision = asking.model, self.prompt.version
        order: dict[str, Any] = {"protocol": protocol} | ({"seed": seed} if protocol == "shuffled" else {})
        self.settings = {**asking.settings_with(self.prompt), **order}

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        """The candidates as the model lists them."""
        asked, counts = self._asked(pool)
        replies, usage = self.asking.ask(asked, self.method)
        orders = {query: list(tables) for query, tables in pool.candidates.items()}
        for query, (order, wrong) in replies.read.items():
            orders[query] = order
            counts += wrong
        return Reranked(orders, counts + replies_counted(replies), usage, len(orders))

    def planned(self, pool: Pool) -> Iterable[Planned[_Order]]:
        """What :meth:`rerank` asks."""
        return self._asked(pool)[0].values()

    def _asked(self, pool: Pool) -> tuple[dict[str, Planned[_Order]], Counter[str]]:
        """Every question with its candidates, and what was left out or cut."""
        counts: Counter[str] = Counter()
        asked = {}
        for query, candidates in pool.candidates.items():
            shown = self._shown(pool, query)
            if shown is None:
                counts[TOO_LONG] += 1
                continue
            counts += rows_counted(shown)
            ids = {f"T{number}": table.id for number, table in enumerate(shown, 1)}
            asked[query] = Planned(
                self._request(pool, query, shown),
                [table.text for table in shown],
                partial(_read_order, ids=ids, first_stage=candidates),
            )
        return asked, counts

    def _order(self, query: str, tables: Sequence[str]) -> list[str]:
        shown = list(tables)
        if self.protocol == "shuffled":
            # From the ids in an order of their own: the first stage's must not show through the shuffle either.
            shown.sort()
            random.Random(f"{self.seed}:{query}").shuffle(shown)
        return shown

    def _shown(self, pool: Pool, query: str) -> list[ShownTable] | None:
        """The candidates as the prompt shows them; ``None`` if their headers alone are too long."""
        tables = self._order(query, pool.candidates[query])
        labels = "\n".join(f"T{number}:\n" for number in range(1, len(tables) + 1))
        room = self.asking.room(self.prompt, question=pool.questions[query], number=str(len(tables)), tables=labels)
        return self.asking.cutter.shown({table: pool.documents[table] for table in tables}, room)

    def _request(self, pool: Pool, query: str, shown: Sequence[ShownTable]) -> Request:
        printed = "\n".join(f"T{number}:\n{table.text.strip()}\n" for number, table in enumerate(shown, 1))
        number = str(len(shown))
        return self.asking.request(self.prompt, question=pool.questions[query], number=number, tables=printed)


def _read_order(reply: Reply, ids: Mapping[str, str], first_stage: Sequence[str]) -> _Order:
    wrong: Counter[str] = Counter()
    return completed(read_ranking(reply), ids, first_stage, wrong), wrong


def read_ranking(reply: Reply) -> list[str]:
    """The ids that a reply lists, as it lists them.

    Raises:
        UnreadableReplyError: if it was cut off or holds no ``{"ranking": [...]}``, or one of other things than texts.
    """
    ranking = last_object(complete_text(reply), "ranking")["ranking"]
    if not isinstance(ranking, list) or not all(isinstance(one, str | int) for one in ranking):
        raise UnreadableReplyError(f"the ranking is no list of ids: {json.dumps(ranking)[:80]}")
    return [str(one).strip() for one in ranking]


def completed(
    listed: Sequence[str], ids: Mapping[str, str], first_stage: Sequence[str], counts: Counter[str]
) -> list[str]:
    """The candidates in the listed order, the missing ones behind in first-stage order.

    Args:
        listed: what the model named.
        ids: the prompt's ids -> candidates.
        first_stage: the candidates in first-stage order.
        counts: is told of ids that are missing, invented or repeated.

    Raises:
        UnreadableReplyError: if it names no candidate at all.
    """
    by_id = {name.casefold(): table for name, table in ids.items()}
    known = [by_id[name.casefold()] for name in listed if name.casefold() in by_id]
    if not known:
        raise UnreadableReplyError("the ranking names no candidate")
    order = list(dict.fromkeys(known))
    missing = [table for table in first_stage if table not in set(order)]
    counts.update({INVENTED: len(listed) - len(known), REPEATED: len(known) - len(order), MISSING: len(missing)})
    return [*order, *missing]
