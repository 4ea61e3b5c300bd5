"""What is reranked, by how much, and what comes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from evaluators.judge.replies import Replies
from tcr_tasks.asking import Planned
from tcr_tasks.cutting import ShownTable

# How many of the first stage's best tables are reranked; ``None``: all that it found (T∞ in the paper).
Budget = int | None
PAPER_BUDGETS: tuple[Budget, ...] = (3, 5, 10, 20, 50, None)
DEFAULT_BUDGET = 10
# Names of counts. Those of NOT_WRONG only tell how much there was.
FAILED, UNREADABLE, TOO_LONG = "failed calls", "unreadable replies", "prompts beyond the context window"
ROWS, ROWS_CUT, TABLES_CUT = "rows shown or cut", "rows cut", "tables cut"
ANSWERED, LACKS = "tables that answered", "tables without a column"
NONE_ANSWERS, ALL_ANSWER = "questions without an answering table", "questions that every table answers"
NOT_WRONG = frozenset({ROWS, ANSWERED, LACKS})
# Prompts from which nothing came: what they were about keeps the first stage's order.
UNUSABLE = (FAILED, UNREADABLE, TOO_LONG)


def budget_label(budget: Budget) -> str:
    """``T10``, or ``T∞`` for all."""
    return "T∞" if budget is None else f"T{budget}"


def read_budget(text: str) -> Budget:
    """A budget from the command line.

    Raises:
        ValueError: if it is neither a whole number of at least 1 nor ``all``.
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"a budget is a whole number of at least 1, or all, not {text!r}")
    return int(text)


def read_budgets(texts: Sequence[str]) -> list[Budget]:
    """Budgets from the command line, each once, the smallest first.

    Raises:
        ValueError: as :func:`read_budget`.
    """
    return sorted({read_budget(text) for text in texts}, key=lambda b: float("inf") if b is None else b)


class Context(NamedTuple):
    """What mteb says about the search that the reranking is part of."""

    task_metadata: Any
    hf_split: str
    hf_subset: str
    encode_kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class Pool:
    """Candidates to be put into a new order.

    Attributes:
        questions: query id -> the question, without any retrieval instruction before it.
        candidates: query id -> ids of the tables to rerank, in the first stage's order.
        documents: id -> the table as it is printed in the task, at least for every candidate.
    """

    questions: Mapping[str, str]
    candidates: Mapping[str, Sequence[str]]
    documents: Mapping[str, str]


@dataclass
class Usage:
    """What reranking took.

    Attributes:
        calls: forward passes of a cross-encoder or calls of a language model that the result rests on.
        made: those of them that were made now; the others' outcomes were kept from before.
        failed: those made now that stayed without a reply.
        prompt_tokens, completion_tokens: as the server counted them, those of kept replies included; 0 for a
            cross-encoder.
        seconds: wall-clock time of those made now.
        work_seconds: of what is done for every result anew, such as running queries.
    """

    calls: int = 0
    made: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    work_seconds: float = 0.0


@dataclass
class Reranked:
    """The new order of every query's candidates.

    Attributes:
        orders: query id -> its candidates, each once.
        counts: what went wrong or was left out, by name; a name that is not there stands for 0.
        usage: what it took.
        n_prompts: of a language model, whether or not anything came of them.
    """

    orders: dict[str, list[str]]
    counts: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    n_prompts: int = 0


class Reranker(Protocol):
    """A way to rerank.

    Attributes:
        method: as in the paper, ``AAR-CE``.
        model: the name of the model that judges.
        revision: of the model, or of the prompt where the model's is not known.
        settings: what else changes the order, for mteb's record of the experiment.
        derives: whether one scoring serves every budget.
    """

    method: str
    model: str
    revision: str
    settings: Mapping[str, Any]
    derives: bool

    def rerank(self, pool: Pool, context: Context) -> Reranked:
        """The pool's candidates in a new order."""
        ...


@runtime_checkable
class AskingReranker(Reranker, Protocol):
    """A way to rerank that asks a language model.

    Attributes:
        asking: how it asks.
    """

    asking: Any

    def planned(self, pool: Pool) -> Iterable[Planned[Any]]:
        """The requests of :meth:`rerank`."""
        ...


def rows_counted(shown: Sequence[ShownTable]) -> Counter[str]:
    """What a prompt shows of tables, as counts."""
    rows, kept = sum(table.rows for table in shown), sum(table.kept for table in shown)
    return Counter({ROWS: rows, ROWS_CUT: rows - kept, TABLES_CUT: sum(table.is_cut for table in shown)})


def replies_counted(replies: Replies[Any, Any]) -> Counter[str]:
    """What became of replies, as counts."""
    return +Counter({FAILED: len(replies.failed), UNREADABLE: len(replies.unreadable)})


def by_score(candidates: Sequence[str], scores: Mapping[str, float]) -> list[str]:
    """The candidates by descending score; equal scores keep the first stage's order."""
    return sorted(candidates, key=lambda table: -scores[table])


def first(candidates: Sequence[str], chosen: Collection[str]) -> list[str]:
    """The chosen candidates before the others, each part in the first stage's order."""
    return sorted(candidates, key=lambda table: table not in chosen)
