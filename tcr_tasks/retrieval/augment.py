"""Tables described by a language model, and questions turned into tables (TCR-Bench, appendices D.2 and D.3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from datasets import Dataset
from mteb.models import EncoderProtocol
from mteb.types import PromptType

from evaluators.judge import Outcome, Prompt, Request, read_prompt
from evaluators.judge.reply import UnreadableReplyError
from evaluators.plugin.checks import shown
from evaluators.plugin.given import given_model
from evaluators.plugin.models import recorded
from evaluators.plugin.searching import is_searcher, searcher
from tcr_tasks.builder.paraphrase import Asking
from tcr_tasks.retrieval.replies import read_description, read_table
from tcr_tasks.retrieval.shortened import shortened
from tcr_tasks.tasks import INSTRUCTION

__all__ = ["CRAFT", "META", "QUERY_TO_TABLE", "MetaInfo", "QueryToTable", "meta_info", "query_to_table", "read_prompts"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
META, CRAFT, QUERY_TO_TABLE = "meta", "craft", "q2t"
FIELDS: Mapping[str, tuple[str, ...]] = {META: ("table",), CRAFT: ("table",), QUERY_TO_TABLE: ("question",)}
# What each description must say, each on a line of its own.
PARTS: Mapping[str, tuple[str, ...]] = {META: ("Theme", "Columns", "Values"), CRAFT: ("Title", "Description")}
FOLDER = Path(__file__).parent / "prompts"
# About 8,000 tokens: the paper's tables have 7,000 to 8,000.
_LONGEST_TABLE = 32_000


def read_prompts() -> dict[str, Prompt]:
    """The prompts of the package."""
    return {name: read_prompt(FOLDER / f"{name}.txt", fields) for name, fields in FIELDS.items()}


class _Augmented:
    """What both ways of asking share: a search model inside, and counts of what the language model did not give.

    Attributes:
        doubt_figures: after a run, what makes a score doubtful; those of the model inside among them.
    """

    def __init__(self, model: Any, asking: Asking) -> None:
        self.mteb_model_meta = model.mteb_model_meta
        self._inside = searcher(model)
        self._asking = asking
        self._figures: dict[str, float] = {}

    @property
    def doubt_figures(self) -> dict[str, float]:
        """Shares of what is missing, 0..1."""
        return {**getattr(self._inside, "doubt_figures", {}), **self._figures}

    def _read(
        self, requests: Sequence[Request], ids: Sequence[str], label: str, read: Callable[[Outcome], _T]
    ) -> dict[str, _T]:
        """What was read from the replies, by id; the rest is logged, and counted by the caller."""
        out: dict[str, _T] = {}
        problems: dict[str, str] = {}
        outcomes = self._asking.language_model.ask(requests, label=label)
        for key, outcome in zip(ids, outcomes, strict=True):
            try:
                out[key] = read(outcome)
            except UnreadableReplyError as error:
                problems[key] = str(error)
        if problems:
            first = next(iter(problems.values()))
            told = f"{len(problems)} of {len(ids)} replies give nothing usable, so these stay as they are"
            logger.warning("%s: %s (the first: %s): %s", label, told, first, shown(list(problems)))
        return out


class MetaInfo(_Augmented):
    """A model that reads a description, written by a language model, before each table: as the document's title.

    A table whose description is missing is read as it is. ``doubt_figures``: ``documents_without_description_share``,
    and ``documents_shortened_for_description_share``, of which the language model saw the first rows only.
    """

    def __init__(self, model: Any, asking: Asking, prompt: str) -> None:
        super().__init__(model, asking)
        self._prompt = prompt

    def index(self, corpus: Any, **kwargs: Any) -> None:
        """Ask for a description of every document, and let the model inside index both."""
        ids = list(corpus["id"])
        cut = [shortened(text, _LONGEST_TABLE) for text in corpus["text"]]
        requests = [self._asking.request(self._prompt, table=c.text) for c in cut]
        parts = PARTS[self._prompt]
        found = self._read(requests, ids, "descriptions", lambda outcome: read_description(outcome.reply, parts))
        own = corpus["title"] if "title" in corpus.column_names else [""] * len(ids)
        titles = [" ".join(filter(None, (title, found.get(key)))) for key, title in zip(ids, own, strict=True)]
        augmented = Dataset(pa.table({"id": ids, "title": titles, "text": list(corpus["text"])}))
        self._figures = {
            "documents_without_description_share": 1 - len(found) / max(len(ids), 1),
            "documents_shortened_for_description_share": sum(c.left_out > 0 for c in cut) / max(len(ids), 1),
        }
        self._inside.index(augmented, **kwargs)

    def search(self, queries: Any, **kwargs: Any) -> Any:
        """What the model inside finds."""
        return self._inside.search(queries, **kwargs)


class QueryToTable(_Augmented):
    """A model that searches with a table which a language model thinks would answer, in place of the question.

    An encoder reads that table as it reads the corpus' tables. Where no table could be read, it is searched with the
    question. ``doubt_figures``: ``queries_without_table_share``.
    """

    def index(self, corpus: Any, **kwargs: Any) -> None:
        """Let the model inside index the corpus."""
        self._inside.index(corpus, **kwargs)

    def search(self, queries: Any, **kwargs: Any) -> Any:
        """Ask for a table for every question, and let the model inside search with it."""
        ids = list(queries["id"])
        # The language model gets the question; the retrieval instruction is for embeddings of questions.
        asked = [text.removeprefix(f"{INSTRUCTION} ") for text in queries["text"]]
        requests = [self._asking.request(QUERY_TO_TABLE, question=text) for text in asked]
        found = self._read(requests, ids, "tables for questions", lambda outcome: read_table(outcome.reply))
        # Stripped, as mteb hands documents to encoders.
        texts = [found.get(key, text).strip() for key, text in zip(ids, asked, strict=True)]
        self._figures = {"queries_without_table_share": 1 - len(found) / max(len(ids), 1)}
        return self._inside.search(Dataset(pa.table({"id": ids, "text": texts})), **kwargs)


class _AsDocuments:
    """An encoder that reads queries as it reads documents."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self.mteb_model_meta = encoder.mteb_model_meta

    def encode(self, inputs: Any, *, prompt_type: PromptType | None = None, **kwargs: Any) -> Any:
        return self._encoder.encode(inputs, prompt_type=PromptType.document, **kwargs)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self._encoder.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self._encoder.similarity_pairwise(embeddings1, embeddings2)


def meta_info(model: Any, asking: Asking, *, prompt: str = META) -> Any:
    """The model with a description of each table before it: Meta-Info Generation, or CRAFT's augmentation.

    Where the description stands is our choice; the paper says that it is concatenated with the table.

    Args:
        model: a sentence-transformers model, a model in mteb's form such as a cascade, or a ``ModelMeta``.
        asking: the language model.
        prompt: ``meta`` for the paper's three kinds of metadata, ``craft`` for a title and a description.
    """
    inside = given_model(model)
    return recorded(MetaInfo(inside, asking, prompt), inside.mteb_model_meta, _record(asking, prompt))


def query_to_table(model: Any, asking: Asking) -> Any:
    """The model, searching with a hypothetical table in place of each question: Query-to-Table.

    Args:
        model: a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``.
        asking: the language model.
    """
    given = given_model(model)
    encodes = isinstance(given, EncoderProtocol) and not is_searcher(given)
    inside = _AsDocuments(given) if encodes else given
    return recorded(QueryToTable(inside, asking), given.mteb_model_meta, _record(asking, QUERY_TO_TABLE))


def _record(asking: Asking, prompt: str) -> dict[str, Any]:
    """What the texts depend on beside the data."""
    sampling = ",".join(f"{name}={value}" for name, value in asking.sampling.body().items())
    return {"augmentation": f"{prompt}-{asking.prompts[prompt].version}", "llm": f"{asking.model} {sampling}"}
